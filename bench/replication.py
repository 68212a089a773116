"""Measures replication against OpenLDAP's syncrepl: changes to two replicas, a new server's sync.

Both sides have one authority and two replicas, on this machine and its disk; all flush a write
before they acknowledge it. Servers authenticate, with signed messages in mqis and a password in
slapd; nothing is encrypted. Creates come from 16 connections in prepared bytes. At the end of each
measurement the contents of all replicas are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import mkdtemp
from time import perf_counter_ns
from typing import Any, Protocol

from bench import members
from bench.backends import Unavailable
from bench.load import Line, LoadError, Operation, Target, complete, cpu_s
from bench.measure import Sample
from bench.members import BSC, PSC, Members
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from bench.syncrepl import Syncrepl
from bench.twins import PER_MACHINE

CLIENTS = 16
#: The intervals of polling replicas for equality, and for one change.
_POLL_S, _LOOK_S = 0.01, 0.001
#: Longer than servers wait to gather changes, so that the enterprise is idle at the next change.
_PAUSE_S = 0.1
_CONVERGES_WITHIN_S = 300.0
_SYNCS_WITHIN_S = 180.0
_VISIBLE_WITHIN_S = 30.0
#: Numbers of objects; the second is for a peer that takes too long for the first.
_SYNC_SIZES = (100_000, 20_000)


class Side(Protocol):
    """An authority and its replicas, of mqis or of slapd."""

    @property
    def name(self) -> str: ...

    @property
    def targets(self) -> Sequence[Target[Any]]: ...

    def start_authority(self) -> None: ...

    def start_replicas(self) -> None: ...

    def await_ready(self) -> None: ...

    def pids(self) -> list[int]: ...

    def creates(self, count: int) -> Iterator[bytes]: ...

    def create(self, peer: Any, request: bytes) -> Operation: ...

    def read_last(self, peer: Any) -> Operation: ...

    def equal(self) -> bool: ...

    def compare(self) -> int: ...


class TooSlow(Exception):
    """The replicas were not equal within the time limit."""


@dataclass(frozen=True, slots=True)
class Convergence:
    """The time until the last replica was equal, and the CPU time of all servers."""

    sample: Sample
    #: The time until the last change was acknowledged; 0 if there are no clients.
    acknowledged_s: float
    authority_cpu_s: float
    replicas_cpu_s: float


def _run(run: Run) -> Results:
    results = Results()
    _changes(run, results)
    _full_sync(run, results)
    return results


BENCH = Bench("replication", "convergence and full synchronisation, beside syncrepl", _run)


# --- changes --------------------------------------------------------------------------------------


def _changes(run: Run, results: Results) -> None:
    counts = (run.scaled(1_000, quick=20), run.scaled(10_000, quick=50))
    rounds, singles = run.scaled(3, quick=1), run.scaled(200, quick=5)
    total = rounds * sum(counts) + 2 * singles
    with ExitStack() as resources:
        sides = _sides(
            run, total // PER_MACHINE + 1, 0, (PSC, BSC), resources=resources, results=results
        )
        for side in sides:
            run.say(f"replication: starting {side.name}")
            side.start_replicas()
            side.await_ready()
            _await_equal(side, _CONVERGES_WITHIN_S)
        for count in counts:
            done = _contest(run, sides, rounds, count)
            _report(done, f"{count:,} creates to two replicas", results)
            results.aims += _aim(done, 2.5 if count == counts[-1] else 0.0, f"{count:,} creates")
        for pause_s in (_PAUSE_S, 0.0):
            _single_changes(run, sides, singles, pause_s, results)
        for side in sides:
            run.say(f"replication: comparing, {side.name}")
            objects = side.compare()
            results.notes.append(f"{side.name}: {objects:,} objects, equal on both replicas")


def _contest(
    run: Run, sides: Sequence[Side], rounds: int, count: int
) -> dict[str, list[Convergence]]:
    done: dict[str, list[Convergence]] = {side.name: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            run.say(f"replication: {count:,} creates, {side.name}")
            done[side.name].append(_converge(side, count))
    return done


def _converge(side: Side, count: int) -> Convergence:
    requests = side.creates(count)

    def work(peer: Any) -> Operation:
        for request in requests:
            yield from side.create(peer, request)

    cpu = _cpu(side)
    start = perf_counter_ns()
    acknowledged = complete(side.targets[0], work, CLIENTS, _CONVERGES_WITHIN_S)
    _await_equal(side, _CONVERGES_WITHIN_S)
    return _convergence(side, count, start, cpu, acknowledged / 1e9)


def _cpu(side: Side) -> tuple[float, float]:
    authority, *replicas = map(cpu_s, side.pids())
    return authority, sum(replicas)


def _convergence(
    side: Side, count: int, start: int, cpu: tuple[float, float], acknowledged_s: float
) -> Convergence:
    sample = Sample(count, perf_counter_ns() - start)
    authority, replicas = _cpu(side)
    return Convergence(sample, acknowledged_s, authority - cpu[0], replicas - cpu[1])


def _await_equal(side: Side, within_s: float) -> None:
    end = time.monotonic() + within_s
    while not side.equal():
        if time.monotonic() > end:
            raise TooSlow(f"{side.name}: replicas were not equal within {within_s:.0f} s")
        time.sleep(_POLL_S)


# --- one change -----------------------------------------------------------------------------------


def _single_changes(
    run: Run, sides: Sequence[Side], count: int, pause_s: float, results: Results
) -> None:
    title = "idle" if pause_s else "back to back"
    samples = {}
    for side in sides:
        run.say(f"replication: single changes, {title}, {side.name}")
        samples[side.name] = [_visible(side, count, pause_s)]
    theirs = samples.get("slapd")
    for name, sample in samples.items():
        row = Row.of(f"one change, {title}: shown by all", name, sample)
        if name == "mqis" and theirs is not None:
            times = theirs[0].percentile_ms(99) / sample[0].percentile_ms(99)
            row = replace(row, ratio=times, peer="slapd, p99")
        results.rows.append(row)
    if pause_s:
        p99 = samples["mqis"][0].percentile_ms(99)
        goal = "one change on every replica within 100 ms at p99, idle"
        results.aims.append(Aim(goal, f"{p99:.1f} ms", p99 <= 100))


def _visible(side: Side, count: int, pause_s: float) -> Sample:
    """Times single changes, from the acknowledgement until every replica returns the change."""
    latencies = []
    start = perf_counter_ns()
    with ExitStack() as opened:
        authority, *replicas = [Line(target) for target in side.targets]
        for line in (authority, *replicas):
            opened.callback(line.close)
        for request in (r for _ in range(count) for r in side.creates(1)):
            time.sleep(pause_s)
            authority.run(side.create(authority.peer, request))
            acknowledged = perf_counter_ns()
            for line in replicas:
                _until_shown(line, side.read_last)
            latencies.append(perf_counter_ns() - acknowledged)
    return Sample(count, perf_counter_ns() - start, sorted(latencies))


def _until_shown(line: Line[Any], read_last: Callable[[Any], Operation]) -> None:
    end = time.monotonic() + _VISIBLE_WITHIN_S
    while True:
        try:
            line.run(read_last(line.peer))
        except LoadError:
            if time.monotonic() > end:
                raise
            time.sleep(_LOOK_S)
        else:
            return


# --- a new server ---------------------------------------------------------------------------------


def _full_sync(run: Run, results: Results) -> None:
    """Measures the sync of one new replica; with fewer objects if the peer takes too long."""
    for size in (200,) if run.quick else _SYNC_SIZES:
        done: dict[str, list[Convergence]] = {}
        slow = None
        with ExitStack() as resources:
            sides = _sides(
                run, size // PER_MACHINE, size, (BSC,), resources=resources, results=results
            )
            try:
                for side in sides:
                    done[side.name] = [_sync(run, side, size, results)]
            except TooSlow as reason:
                slow = f"full synchronisation of {size:,}: {reason}"
        if done:
            _report(done, f"full synchronisation of {size:,} to a new server", results)
        results.aims += _aim(done, 4.0, f"full synchronisation of {size:,}")
        if slow is None:
            return
        results.notes.append(slow)


def _sync(run: Run, side: Side, size: int, results: Results) -> Convergence:
    run.say(f"replication: {size:,} objects to a new server, {side.name}")
    before = cpu_s(side.pids()[0])
    start = perf_counter_ns()
    side.start_replicas()
    _await_equal(side, _SYNCS_WITHIN_S)
    done = _convergence(side, size, start, (before, 0.0), 0.0)
    run.say(f"replication: comparing, {side.name}")
    results.notes.append(f"{side.name}: {side.compare():,} objects, equal on the new server")
    return done


# --- both -----------------------------------------------------------------------------------------


def _sides(
    run: Run,
    machines: int,
    queues: int,
    replicas: Sequence[str],
    *,
    resources: ExitStack,
    results: Results,
) -> list[Side]:
    """Both sides (or mqis alone), with running authorities and stopped replicas."""
    place = Path(mkdtemp(prefix="replication-", dir=run.directory))
    resources.callback(rmtree, place)
    run.say(f"replication: {queues:,} queues for mqis")
    planned = members.plan(place / "mqis", replicas, machines, queues)
    ours = Members(planned, queues, resources)
    ours.start_authority()
    run.say(f"replication: {queues:,} queues for slapd")
    theirs = Syncrepl(place / "slapd", len(replicas), machines, queues, resources)
    try:
        theirs.start_authority()
    except Unavailable as reason:
        results.notes += [str(reason)] if str(reason) not in results.notes else []
        return [ours]
    return [ours, theirs]


def _report(done: dict[str, list[Convergence]], table: str, results: Results) -> None:
    ours, theirs = done["mqis"], done.get("slapd")
    for name, rounds in done.items():
        peer = None
        if rounds is ours and theirs is not None:
            peer = "slapd", [each.sample for each in theirs]
        row = Row.of(table, name, [each.sample for each in rounds], peer=peer)
        seconds = median(each.sample.elapsed_ns for each in rounds) / 1e9
        changes = sum(each.sample.operations for each in rounds)
        authority = sum(each.authority_cpu_s for each in rounds) * 1e6 / changes
        replicas = sum(each.replicas_cpu_s for each in rounds) * 1e6 / changes
        results.rows.append(replace(row, seconds=seconds, cpu_us=authority + replicas))
        text = f"{table}, {name}: CPU {authority:,.0f} us at the authority, {replicas:,.0f} us at "
        text += "replicas for each"
        if acknowledged := median(each.acknowledged_s for each in rounds):
            text += f"; acknowledged after {acknowledged:.2f} s"
        results.notes.append(text)


def _aim(done: dict[str, list[Convergence]], wanted: float, what: str) -> Iterator[Aim]:
    if not wanted or "slapd" not in done:
        return
    ours, theirs = ([each.sample for each in done[name]] for name in ("mqis", "slapd"))
    times = ratio(ours, theirs)
    yield Aim(f">= {wanted:g}x slapd, {what}", f"{times:.2f}x", times >= wanted)
