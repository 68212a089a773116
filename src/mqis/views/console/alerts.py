"""The alerts that the console sees itself: those that fire now, and those that have ended.

The rules are those of Prometheus (``server.monitoring.alerting``): name, severity, the time for
which a condition has to hold, and what to do. The console evaluates the conditions that the status
of servers shows (``_WATCHES``); the others take Prometheus.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from mqis.enterprise.status import EnterpriseStatus, MemberState, MemberStatus
from mqis.files import write_whole
from mqis.findings import Gravity
from mqis.server.monitoring.alerting import AlertRule, alert_rules
from mqis.server.monitoring.verdict import FindingKind
from mqis.texts import MOST_NAMES, agreeing, counted, duration, joined, size, some

#: The file in the run directory that keeps alerts while the console does not run.
FILE = "console-alerts.json"
_FORMAT = "mqis alerts 1"
#: The most alerts that are kept: active ones, and ended ones.
MOST_ACTIVE, MOST_ENDED = 500, 500
#: The most characters of a text from a file.
_MOST_TEXT = 500

#: (server, text) of each fault; the server may be empty.
Fault = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SeenAlert:
    """An alert at one server. Times are seconds since the epoch."""

    name: str
    server: str
    text: str
    #: When the console first saw the condition, and when it no longer did; None while it holds.
    since: float
    ended: float | None = None
    #: False until the condition has held for as long as the rule asks.
    firing: bool = False

    @property
    def rule(self) -> AlertRule:
        return alert_rules()[self.name]

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.server


@dataclass(frozen=True, slots=True)
class AlertsPage:
    firing: tuple[SeenAlert, ...]
    pending: tuple[SeenAlert, ...]
    ended: tuple[SeenAlert, ...]
    #: The rules that the console watches, and those that only Prometheus does.
    watched: tuple[AlertRule, ...]
    elsewhere: tuple[AlertRule, ...]


class AlertLog:
    """Follows the alerts from one status to the next; for all threads."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._active: dict[tuple[str, str], SeenAlert] = {}
        self._ended: deque[SeenAlert] = deque(maxlen=MOST_ENDED)
        self._counts: dict[tuple[str, str], deque[tuple[float, float]]] = {}
        self._lock = Lock()
        if file is not None:
            self._load(file)

    def observe(self, status: EnterpriseStatus) -> None:
        with self._lock:
            seen = {(name, server): text for name, server, text in self._seen(status)}
            before = dict(self._active), tuple(self._ended)
            self._update(seen, status.taken)
            if (self._active, tuple(self._ended)) != before:
                self._save()

    def page(self) -> AlertsPage:
        with self._lock:
            active, ended = list(self._active.values()), tuple(reversed(self._ended))
        active.sort(key=lambda a: (a.rule.severity != "critical", a.since, a.key))
        rules = alert_rules().values()
        return AlertsPage(
            tuple(alert for alert in active if alert.firing),
            tuple(alert for alert in active if not alert.firing),
            ended,
            tuple(rule for rule in rules if rule.name in _WATCHED),
            tuple(rule for rule in rules if rule.name not in _WATCHED),
        )

    def _update(self, seen: dict[tuple[str, str], str], now: float) -> None:
        for key in [key for key in self._active if key not in seen]:
            alert = self._active.pop(key)
            if alert.firing:
                self._ended.append(replace(alert, ended=now))
        for key, text in seen.items():
            known = self._active.get(key)
            if known is None and len(self._active) >= MOST_ACTIVE:
                continue
            since = now if known is None else min(known.since, now)
            held = now - since >= alert_rules()[key[0]].held_s
            # The text of one that fires stays: a number that moves is no news.
            words = known.text if known is not None and known.firing else text
            self._active[key] = SeenAlert(*key, words, since, firing=held)

    def _seen(self, status: EnterpriseStatus) -> Iterator[tuple[str, str, str]]:
        for name, watch in _WATCHES.items():
            yield from ((name, server, text) for server, text in watch(status))
        for name, (counter, window_s, most) in _INCREASES.items():
            for server in status.servers:
                grown = self._grown(server, counter, window_s, status.taken)
                held = len(server.replicas) if name in _FOR_EACH_PARTITION else 1
                if grown > most * max(1, held):
                    text = f"{counter.replace('_', ' ')}: {grown:,.0f} within {duration(window_s)}"
                    yield name, server.name, text

    def _grown(self, server: MemberStatus, counter: str, window_s: int, now: float) -> float:
        """The growth of a counter within the time; a counter that fell has restarted."""
        value = server.counters.get(counter)
        if value is None or not math.isfinite(value):
            return 0.0
        kept = self._counts.setdefault((server.name, counter), deque(maxlen=512))
        if kept and (value < kept[-1][1] or now < kept[-1][0]):
            kept.clear()
        kept.append((now, value))
        while kept[0][0] < now - window_s:
            kept.popleft()
        return value - kept[0][1]

    # --- the file ---------------------------------------------------------------------------------

    def _save(self) -> None:
        if self._file is None:
            return
        alerts = [asdict(each) for each in (*self._active.values(), *self._ended)]
        with suppress(OSError):  # the console may read a run directory that it cannot write
            write_whole(self._file, json.dumps({"format": _FORMAT, "alerts": alerts}))

    def _load(self, file: Path) -> None:
        try:
            content = json.loads(file.read_text("utf-8"))
            listed = content["alerts"] if content["format"] == _FORMAT else []
            alerts = [_alert(each) for each in listed[: MOST_ACTIVE + MOST_ENDED]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return
        for alert in alerts:
            if alert.name not in alert_rules():
                continue  # of another version
            if alert.ended is None:
                self._active[alert.key] = alert
            else:
                self._ended.append(alert)


def _alert(content: dict[str, Any]) -> SeenAlert:
    name, server, text = (str(content[word])[:_MOST_TEXT] for word in ("name", "server", "text"))
    ended = None if content["ended"] is None else float(content["ended"])
    since = float(content["since"])
    if not math.isfinite(since) or not math.isfinite(ended or 0.0):
        raise ValueError("this is not a time")
    return SeenAlert(name, server, text, since, ended, bool(content["firing"]))


# --- conditions -----------------------------------------------------------------------------------


def _down(status: EnterpriseStatus) -> Iterable[Fault]:
    for server in status.servers:
        if server.state in (MemberState.DOWN, MemberState.FAILED):
            yield server.name, server.reason or server.state.text


def _not_serving(status: EnterpriseStatus) -> Iterable[Fault]:
    for server in status.servers:
        if server.state is MemberState.STARTING:
            yield server.name, "it runs, but serves no clients yet"


Watch = Callable[[EnterpriseStatus], Iterable[Fault]]


def _verdict(gravity: Gravity, without: frozenset[str]) -> Watch:
    def watch(status: EnterpriseStatus) -> list[Fault]:
        found: dict[str, list[str]] = {}
        for finding in status.verdict.findings:
            if finding.gravity is gravity and finding.check not in without:
                for name in finding.names:
                    found.setdefault(name, []).append(finding.what)
        return [(name, some(texts, separator="; ")) for name, texts in found.items()]

    return watch


def _disk(least: int, most: int) -> Watch:
    def watch(status: EnterpriseStatus) -> Iterable[Fault]:
        for server in status.servers:
            low = {place: f for place, f in server.disk_free.items() if least <= f < most}
            if low:
                texts = (f"{size(free)} left for its {place}" for place, free in low.items())
                yield server.name, ", ".join(texts)

    return watch


def _authorities(status: EnterpriseStatus) -> dict[str, list[str]]:
    """The servers in sight that say that they are the authority, by the partition's name."""
    found: dict[str, list[str]] = {}
    for server in status.servers:
        for replica in server.replicas if server.up else ():
            owners = found.setdefault(replica.name, [])
            owners += [server.name] if replica.authority else []
    return found


def _two_authorities(status: EnterpriseStatus) -> Iterable[Fault]:
    for name, owners in _authorities(status).items():
        if len(owners) > 1:
            several = joined(owners, MOST_NAMES)
            yield owners[-1], f"{name}: {several} say that they are its authority"


def _no_authority(status: EnterpriseStatus) -> Iterable[Fault]:
    missing = [name for name, owners in _authorities(status).items() if not owners]
    if missing:
        yield "", f"no authority is up for {some(missing)}"


#: The rule compares with the numbers of ten minutes ago.
_BEHIND_S = 600.0


def _behind(status: EnterpriseStatus) -> Iterable[Fault]:
    for server in status.servers:
        if (server.behind_s or 0.0) >= _BEHIND_S:
            yield server.name, f"{server.distance.text} behind"


def _missing(status: EnterpriseStatus) -> Iterable[Fault]:
    for server in status.servers:
        lacking = sum(replica.missing for replica in server.replicas)
        if lacking:
            are = agreeing(lacking, "is", "are")
            yield server.name, f"{counted(lacking, 'change')} {are} known and missing"


def _archive(status: EnterpriseStatus) -> Iterable[Fault]:
    for server in status.servers:
        if server.counters.get("archive_lag_s", 0.0) > 3600:
            yield server.name, server.late_archive


_WATCHES: dict[str, Watch] = {
    "MqisServerDown": _down,
    "MqisNotServing": _not_serving,
    "MqisVerdictRed": _verdict(Gravity.ERROR, frozenset({FindingKind.CONTENTS})),
    "MqisVerdictAmber": _verdict(Gravity.WARNING, frozenset({FindingKind.SERVER})),
    "MqisDiskLow": _disk(64 << 20, 1 << 30),
    "MqisDiskFull": _disk(0, 64 << 20),
    "MqisContentsDiffer": _verdict(Gravity.ERROR, frozenset(FindingKind) - {FindingKind.CONTENTS}),
    "MqisTwoAuthorities": _two_authorities,
    "MqisNoAuthority": _no_authority,
    "MqisReplicaBehind": _behind,
    "MqisChangesMissing": _missing,
    "MqisArchiveBehind": _archive,
}
#: The counter, the seconds within which it may grow, and by how much at most.
_INCREASES = {
    "MqisFullResyncRepeats": ("sync0_rounds", 6 * 3600, 3),
    "MqisForwardTimeouts": ("forward_timeouts", 900, 0),
    "MqisCommitsFail": ("commit_failures", 300, 0),
    "MqisLogonsFail": ("logon_failures", 900, 20),
    "MqisAccessDenied": ("access_denied", 900, 100),
    "MqisConnectionsRefused": ("refused_connections", 900, 50),
    "MqisSignaturesRefused": ("messages_refused", 900, 20),
}
#: The increases whose limit is for each partition that the server holds.
_FOR_EACH_PARTITION = {"MqisFullResyncRepeats"}
_WATCHED = _WATCHES.keys() | _INCREASES.keys()
