"""Measures how a directory server grows: reads and lookups with 10,000, 100,000, 1,000,000 queues.

The first reads find nothing in memory, the later ones do: they go round a hundred queues. Each
size has a server of its own, which is started once; its memory is taken at the end, after it has
read and looked up as many queues as it remembers, or all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

from bench import calls, serving, twins
from bench.calls import RpcPeer
from bench.load import FIRST_SHARE, Operation, Target, cpu_us, load
from bench.processes import Cores, kept_to
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from bench.stores import scattered_numbers
from bench.twins import PER_MACHINE, Queue
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

SIZES = (10_000, 100_000, 1_000_000)
CLIENTS, WARM, FIRST_ONES = 16, 100, 10_000
#: The seconds in which a server fills its memory before that is measured.
FILLING_S = 30
FIRST, AGAIN, FIRST_LOOKUP, LOOKUP = "first read", "read again", "first lookup", "lookup again"
_SHOWN = (PropId.Q_INSTANCE, PropId.Q_LABEL, PropId.Q_QUOTA)
_COLUMNS = (PropId.Q_INSTANCE, PropId.Q_PATHNAME)
#: A size may take this many times as long as the one before it.
MOST = 1.3
MOST_MB = 400

Work = Callable[[RpcPeer], Operation]


@dataclass(frozen=True, slots=True)
class Grown:
    """What one size gave: operations per second by name."""

    queues: int
    started_s: float
    resident_mb: float
    rates: dict[str, float]


def _run(run: Run) -> Results:
    results = Results()
    if not hasattr(os, "sched_setaffinity"):
        results.notes.append("growth: skipped: processes cannot be kept to a core here")
        return results
    grown = [_grow(run, size // (100 if run.quick else 1), results) for size in SIZES]
    for size in grown:
        results.notes.append(
            f"growth: {size.queues:,} queues: started in {size.started_s:.2f} s, "
            f"{size.resident_mb:,.0f} MB resident"
        )
    results.aims += _aims(grown)
    return results


BENCH = Bench("growth", "reads and lookups among 10,000 to 1,000,000 queues", _run)


def _grow(run: Run, queues: int, results: Results) -> Grown:
    path = run.directory / f"growth-{queues}.db"
    run.say(f"growth: creating {queues:,} queues")
    with closing(SqliteStore(path)) as store:
        twins.fill(store, max(1, queues // PER_MACHINE), queues)
    try:
        with ExitStack() as resources:
            return _measured(run, path, queues, resources, results)
    finally:
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()


def _measured(run: Run, path: Path, queues: int, resources: ExitStack, results: Results) -> Grown:
    cores = Cores.available()
    with kept_to(cores.server):
        began = perf_counter()
        served = serving.start(path, resources)
        started_s = perf_counter() - began
    target = Target(served.pid, served.port, RpcPeer)
    rates = {}
    with kept_to(cores.clients):
        for name, work in _works(queues).items():
            run.say(f"growth: {queues:,} queues, {name}")
            seconds = run.sample_s * (FIRST_SHARE if name in (FIRST, FIRST_LOOKUP) else 1)
            rounds = [load(target, work, CLIENTS, seconds) for _ in range(run.rounds)]
            row = Row.of(f"{queues:,} queues", name, [one.sample for one in rounds])
            results.rows.append(replace(row, cpu_us=cpu_us(rounds)))
            rates[name] = row.per_second
        run.say(f"growth: {queues:,} queues, filling the memory")
        for works in (_reads(queues), _lookups(queues)):
            load(target, _in_turns(works), CLIENTS, run.scaled(FILLING_S, quick=1))
    return Grown(queues, started_s, _resident_mb(served.pid), rates)


def _works(queues: int) -> dict[str, Work]:
    return {
        FIRST: _prepared(_reads(queues), FIRST_ONES),
        AGAIN: _prepared(_reads(queues), WARM),
        FIRST_LOOKUP: _prepared(_lookups(queues), FIRST_ONES),
        LOOKUP: _prepared(_lookups(queues), WARM),
    }


def _some(queues: int) -> Iterator[Queue]:
    """Queues from everywhere, endlessly."""
    return map(Queue, cycle(scattered_numbers(queues)))


def _reads(queues: int) -> Iterator[Work]:
    for queue in _some(queues):
        call = calls.get_props(queue.path, _SHOWN, queue.label)
        yield lambda peer, call=call: peer.call(call)  # type: ignore[misc]


def _lookups(queues: int) -> Iterator[Work]:
    for queue in _some(queues):
        label = PropVariant(VarType.LPWSTR, queue.label)
        lookup = calls.lookup(PropId.Q_LABEL, label, _COLUMNS, 1)
        yield lambda peer, lookup=lookup: peer.look_up(lookup)  # type: ignore[misc]


def _prepared(works: Iterator[Work], count: int) -> Work:
    """``count`` of them in turns, all made before the clock runs."""
    return _in_turns(cycle(list(islice(works, count))))


def _in_turns(works: Iterator[Work]) -> Work:
    def following(peer: RpcPeer) -> Operation:
        return next(works)(peer)

    return following


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def _aims(grown: list[Grown]) -> Iterator[Aim]:
    small, large = grown[0], grown[-1]
    for name in (FIRST, AGAIN, FIRST_LOOKUP, LOOKUP):
        times = small.rates[name] / large.rates[name]
        goal = f"{name}: at most {MOST:g} times as long with {large.queues:,} queues"
        yield Aim(goal, f"{times:.2f} times", times <= MOST)
    middle = grown[1]
    goal = f"at most {MOST_MB} MB resident with {middle.queues:,} queues"
    yield Aim(goal, f"{middle.resident_mb:,.0f} MB", middle.resident_mb <= MOST_MB)
