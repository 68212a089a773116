"""The one verdict about health, which /health, 'mqis status', 'mqis doctor' and the console give.

``judge`` takes what is known of some servers and returns findings, the gravest first. A finding is
red if it is an error, and amber if it is a warning (``mqis.findings.Gravity``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Any, Protocol

from mqis.config.nodes import DEFAULT_RUN
from mqis.findings import Finding, Gravity, Subject, worst
from mqis.protocol.replication.convergence import Contents
from mqis.server.monitoring.replicas import Distance, ReplicaStatus, waiting_text
from mqis.texts import agreeing, counted, some

#: Names or findings that a sentence has; the others are counted.
_EXAMPLES = 3
IN_STEP = "Every replica is in step with its authority"
EQUAL = "Every replica is equal to its authority"
ALONE = "One server, with the only copy of the directory"


class FindingKind(StrEnum):
    """The subject of a finding."""

    #: A server is not up.
    SERVER = "server"
    #: A server reports a problem of its own.
    PROBLEM = "problem"
    #: A server has lost files without which it cannot start again.
    FILES = "files"
    #: Copies with equal numbers have different contents.
    CONTENTS = "contents"
    #: A copy has other numbers than its authority.
    NUMBERS = "numbers"
    #: A full resynchronisation or recovery is running.
    RESYNC = "resync"
    #: A partition lacks its authority, or a server a partition.
    PARTITIONS = "partitions"


#: What is said of several servers with findings of one kind.
_SEVERAL = {
    FindingKind.SERVER: "are not up or at rest",
    FindingKind.PROBLEM: "report problems",
    FindingKind.FILES: "have lost files",
    FindingKind.CONTENTS: "have other contents than their authorities",
    FindingKind.NUMBERS: "have other numbers than their authorities",
    FindingKind.RESYNC: "are being synchronised",
    FindingKind.PARTITIONS: "lack partitions or authorities",
}
#: What to do about a partition that few servers have.
_DELETED_SITE = (
    "normal shortly after a site was made; if a command deleted the site, 'mqis up --adopt' takes "
    "it out of the file, then 'mqis up --remove' its servers out of the enterprise"
)


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    #: The check of each is a ``FindingKind``, its objects are servers.
    findings: tuple[Finding, ...]
    #: The sentence for a verdict without findings.
    good: str = IN_STEP
    #: The number of servers that it is about.
    servers: int = 0

    @property
    def gravity(self) -> Gravity:
        return worst(self.findings)

    @property
    def summary(self) -> str:
        """One sentence, however many servers there are: counts, and at most three examples each."""
        if len(self.findings) <= _EXAMPLES:
            return "; ".join(finding.what for finding in self.findings) or self.good
        affected = {name for finding in self.findings for name in finding.names}
        fine = self.servers - len(affected)
        parts = [f"{fine:,} of {counted(self.servers, 'server')} are fine"] if fine > 0 else []
        kinds = dict.fromkeys(finding.check for finding in self.findings)
        parts += (_counted([f for f in self.findings if f.check == kind]) for kind in kinds)
        return "; ".join(parts)

    def about(self, server: str) -> HealthVerdict:
        """The part of the verdict that concerns one server."""
        name = server.lower()
        mine = (f for f in self.findings if name in (each.lower() for each in f.names))
        return HealthVerdict(tuple(mine), self.good, self.servers)

    def to_json(self) -> dict[str, Any]:
        findings = [_as_json(finding) for finding in self.findings]
        return {"grade": self.gravity.colour, "summary": self.summary, "findings": findings}


def _counted(findings: Sequence[Finding]) -> str:
    """The findings of one kind in few words."""
    if len(findings) == 1:
        return findings[0].what
    names = list(dict.fromkeys(name for finding in findings for name in finding.names))
    words = _SEVERAL[FindingKind(findings[0].check)]
    return f"{counted(len(names), 'server')} {words}: {some(names)}"


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "grade": finding.gravity.colour,
        "kind": finding.check,
        "servers": finding.names,
        "text": finding.what,
        "todo": finding.todo,
    }


def _finding(
    gravity: Gravity, kind: FindingKind, servers: Iterable[str], text: str, todo: str = ""
) -> Finding:
    return Finding(kind, gravity, text, todo, objects=tuple(Subject("server", s) for s in servers))


@dataclass(frozen=True, slots=True)
class Absence:
    """The state of a server that is not up: "is stopped", and of several: "are stopped"."""

    one: str
    several: str
    gravity: Gravity = Gravity.ERROR


class JudgedServer(Protocol):
    """The facts about a server that the verdict depends on."""

    @property
    def name(self) -> str: ...

    @property
    def absence(self) -> Absence | None:
        """None for a server that is up, or that nobody expects to answer."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that it reports itself."""

    @property
    def lost_files(self) -> tuple[str, ...]:
        """What it needs for its next start and does not find any more."""

    @property
    def partitions(self) -> tuple[ReplicaStatus, ...] | None:
        """Its replicas; None if they are not known."""

    @property
    def at_rest(self) -> bool:
        """Its store was read instead of its status."""

    @property
    def neighbours(self) -> int:
        """The number of servers that it replicates with, as it knows them."""


def judge(servers: Sequence[JudgedServer], run: str = "") -> HealthVerdict:
    """Returns the verdict about these servers and their replicas.

    ``run`` is their run directory, for the commands that it suggests.
    """
    found = [
        *_absent(servers),
        *_problems(servers),
        *_lost_files(servers),
        *_different(servers, run),
        *_differences(servers),
        *_resyncing(servers),
        *_incomplete(servers),
        *_unproved(servers, run),
        *_at_rest(servers),
    ]
    gravest_first = sorted(found, key=lambda finding: -finding.gravity)
    return HealthVerdict(tuple(gravest_first), _good(servers), len(servers))


def _good(servers: Sequence[JudgedServer]) -> str:
    if len(servers) == 1:
        return _speaking_for_itself(servers[0]) if servers[0].neighbours else ALONE
    copies = [r for server in servers for r in server.partitions or () if not r.authority]
    equal = copies and all(copy.contents is Contents.EQUAL for copy in copies)
    return EQUAL if equal else IN_STEP


def _speaking_for_itself(server: JudgedServer) -> str:
    """The sentence for one server of several: it knows of the others, and does not judge them."""
    many = server.neighbours
    others = agreeing(many, "the server", f"the {counted(many, 'server')}")
    return (
        f"{server.name} speaks for itself: no fault is known here; 'mqis status' compares it with "
        f"{others} that it replicates with"
    )


# --- servers --------------------------------------------------------------------------------------


def _absent(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    """Yields the servers that are not up, grouped by state."""
    found: dict[Absence, list[str]] = {}
    for server in servers:
        if server.absence is not None:
            found.setdefault(server.absence, []).append(server.name)
    for absence, names in found.items():
        words = agreeing(len(names), absence.one, absence.several)
        todo = "'mqis doctor' says why a server does not run; its log has the details"
        text = f"{some(names)}{words}"
        yield _finding(absence.gravity, FindingKind.SERVER, tuple(names), text, todo)


def _problems(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    for server in servers:
        for problem in server.problems:
            text, todo = f"{server.name}: {problem}", "its log says why; 'mqis doctor' checks it"
            yield _finding(Gravity.ERROR, FindingKind.PROBLEM, (server.name,), text, todo)


def _lost_files(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    for server in servers:
        for lost in server.lost_files:
            text = f"{server.name} runs, but {lost}"
            todo = "do not stop it before the file is back: 'mqis doctor' has the ways"
            yield _finding(Gravity.WARNING, FindingKind.FILES, (server.name,), text, todo)


def _at_rest(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    """Yields the stores at rest of which no other copy proves that they are up to date."""
    equal = {copy.id for _, copy in _copies(servers) if copy.contents is Contents.EQUAL}
    for server in servers:
        own = server.partitions or ()
        proved = (c.contents is Contents.EQUAL or (c.authority and c.id in equal) for c in own)
        if server.at_rest and not any(proved):
            text = f"{server.name}: a store at rest, compared with no other copy"
            yield _finding(Gravity.WARNING, FindingKind.SERVER, (server.name,), text)


# --- contents -------------------------------------------------------------------------------------


def _copies(servers: Iterable[JudgedServer]) -> Iterator[tuple[JudgedServer, ReplicaStatus]]:
    for server in servers:
        for replica in server.partitions or ():
            yield server, replica


def _different(servers: Sequence[JudgedServer], run: str) -> Iterator[Finding]:
    reported: set[tuple[str, frozenset[str]]] = set()
    for server, copy in _copies(servers):
        others = ", ".join(copy.differs_from)
        pair = copy.id, frozenset((server.name, *copy.differs_from))
        if copy.contents is not Contents.DIFFERENT or pair in reported:
            continue
        reported.add(pair)
        text = (
            f"{server.name}: {copy.name} has the same last number as at {others}, "
            "but different contents"
        )
        # With an authority the replica is wrong; without one, either may be.
        blamed = (
            (server.name,) if _is_measured(copy, servers) else (server.name, *copy.differs_from)
        )
        todo = f"{_diff(server.name, copy.differs_from[0], run)} finds the objects"
        yield _finding(Gravity.ERROR, FindingKind.CONTENTS, blamed, text, todo)


def _diff(one: str, other: str, run: str) -> str:
    """The command that compares two servers, which finds them in the run directory."""
    there = f" --run {quote(run)}" if run not in ("", DEFAULT_RUN) else ""
    return f"'mqis diff --replicated server:{one} server:{other}{there}'"


def _is_measured(copy: ReplicaStatus, servers: Sequence[JudgedServer]) -> bool:
    """True if the copy was compared with an authority, and is not one itself."""
    return not copy.authority and any(c.authority for _, c in _copies(servers) if c.id == copy.id)


def _unproved(servers: Sequence[JudgedServer], run: str) -> Iterator[Finding]:
    for server, copy in _copies(servers):
        if copy.contents is Contents.UNPROVED:
            other = copy.differs_from[0]
            text = f"{server.name}: {copy.name} may differ from the one at {other}"
            todo = (
                "queues of scope site can be the reason, which other sites need not have; "
                f"{_diff(server.name, other, run)} compares all"
            )
            yield _finding(Gravity.WARNING, FindingKind.CONTENTS, (server.name,), text, todo)


# --- numbers --------------------------------------------------------------------------------------


def _differences(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    """Yields the servers whose replicas have other numbers than their authorities."""
    for server in servers:
        copies = server.partitions or ()
        behind = sum((copy.distance for copy in copies), Distance(0))
        ahead = sum(copy.ahead for copy in copies)
        amounts = ((behind, "behind"), (Distance(ahead), "ahead"))
        text = ", ".join(f"{d.text} {side}" for d, side in amounts if d.numbers)
        if text:
            todo = "normal shortly after a change; otherwise check its sessions with the authority"
            whole = f"{server.name}: {text}"
            yield _finding(Gravity.WARNING, FindingKind.NUMBERS, (server.name,), whole, todo)


def _resyncing(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    found: dict[str, dict[str, list[str]]] = {}
    for server, copy in _ordered(servers):
        if copy.is_resyncing:
            partitions = found.setdefault(waiting_text(copy.state), {})
            partitions.setdefault(copy.name, []).append(server.name)
    for words, partitions in found.items():
        names = tuple(dict.fromkeys(name for each in partitions.values() for name in each))
        text = f"{some(list(partitions))}: {words}"
        yield _finding(Gravity.WARNING, FindingKind.RESYNC, names, text)


def _ordered(servers: Sequence[JudgedServer]) -> list[tuple[JudgedServer, ReplicaStatus]]:
    """The replicas by partition, the enterprise's first."""
    return sorted(_copies(servers), key=lambda pair: partition_order(pair[1]))


def partition_order(copy: ReplicaStatus) -> tuple[bool, str, str]:
    """The order in which partitions are shown."""
    return copy.name != "enterprise", copy.name.lower(), copy.id


def _incomplete(servers: Sequence[JudgedServer]) -> Iterator[Finding]:
    """Yields partitions without a known authority, and servers that lack a partition."""
    kind, ordered = FindingKind.PARTITIONS, _ordered(servers)
    known = {copy.id: copy.name for _, copy in ordered}
    if not known:
        names = tuple(server.name for server in servers)
        yield _finding(Gravity.WARNING, kind, names, "No server reports a partition")
    owned = {copy.id for _, copy in ordered if copy.authority}
    unseen = [name for id_, name in known.items() if id_ not in owned]
    if unseen:
        text = f"no authority is in sight for {some(unseen)}"
        yield _finding(Gravity.WARNING, kind, (), text, "start the authority, or promote another")
    holders: dict[str, list[str]] = {}
    for server, copy in ordered:
        holders.setdefault(copy.id, []).append(server.name)
    several = [server for server in servers if server.partitions is not None]
    few = [id_ for id_, names in holders.items() if 2 * len(names) < len(several)]
    for id_ in few:
        text = (
            f"only {some(holders[id_])} {agreeing(len(holders[id_]), 'has', 'have')} {known[id_]}"
        )
        yield _finding(Gravity.WARNING, kind, holders[id_], text, _DELETED_SITE)
    for server in several:
        held = {*few, *(copy.id for copy in server.partitions or ())}
        lacking = [name for id_, name in known.items() if id_ not in held]
        if lacking:
            text = f"{server.name} has no replica of {some(lacking)}"
            yield _finding(Gravity.WARNING, kind, (server.name,), text)
