"""Measures mqis' directory server against OpenLDAP's slapd, each through its own protocol.

Both hold the same queues, answer anonymous clients without signatures, check access rights, and
flush every write before they acknowledge it. Each has one core, the clients have another. A point
read is S_DSGetProps by path in mqis and a base search of the entry in slapd; a lookup is
S_DSLookupBegin, S_DSLookupNext and S_DSLookupEnd in mqis and one equality search in slapd. A second
server of mqis has its store in PostgreSQL, which shares the servers' core.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench import backends, calls, ldap, serving, slapd, twins
from bench.backends import Unavailable
from bench.calls import RpcPeer
from bench.ldap import LdapPeer
from bench.load import (
    FIRST_SHARE,
    Load,
    Operation,
    Peer,
    Target,
    cpu_us,
    load,
)
from bench.measure import Sample, contest
from bench.processes import Cores, kept_to
from bench.relay import start as start_relay
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from bench.stores import scattered_numbers
from bench.twins import PER_MACHINE, PER_TYPE, SUFFIX, Queue, machine_name, type_of
from mqis.protocol.ports import Store
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType

P = TypeVar("P", bound=Peer)

CLIENTS = (1, 16)
BARE, FIRST_READ, READ, CREATE = "bare call", "first read", "read", "create"
FIRST_ONE, ONE = "first lookup of 1", "lookup of 1"
HUNDRED, THOUSAND = "lookup of 100", "lookup of 1,000"
OPERATIONS = (FIRST_READ, READ, FIRST_ONE, ONE, HUNDRED, THOUSAND, CREATE)
#: Reads and lookups of 1 go round this many queues, as programs do; the first ones go through all
#: others.
ROUND = 100
#: The calls of a lookup whose values fit on one page: begin, next, end.
CALLS_OF_LOOKUP = 3
#: The aims with 16 clients, in multiples of slapd's rate. A lookup takes three calls here, one
#: there; creates are measured where a flush takes less than a millisecond.
WANTED = {
    FIRST_READ: 0.9,
    READ: 1.4,
    FIRST_ONE: 0.25,
    ONE: 0.5,
    HUNDRED: 0.9,
    THOUSAND: 0.8,
    CREATE: 1.6,
}
#: The same with the store in PostgreSQL, in multiples of the rate with a file.
POSTGRES = "PostgreSQL"
DISTANT, DELAY_MS = "PostgreSQL 1 ms away", 1
WANTED_THERE = {READ: 0.9, FIRST_READ: 0.5}
#: Above this share of its core, the load generator may have been the bottleneck.
BUSY = 0.9

#: By the operation's name: a function of clients and seconds that runs the load.
Side = Mapping[str, Callable[[int, float], Load]]


def _run(run: Run) -> Results:
    results = Results()
    if not hasattr(os, "sched_setaffinity"):
        results.notes.append("directory: skipped: processes cannot be kept to a core here")
        return results
    cores = Cores.available()
    if cores.server == cores.clients:
        results.notes.append("directory: one core for servers and clients: they share its time")
    machines, queues = run.scaled(1_000, quick=100), run.scaled(10_000, quick=1_000)
    with kept_to(cores.server):
        sides = _sides(run, machines, queues, results)
    with kept_to(cores.clients):
        for clients in CLIENTS:
            _measure(run, sides, clients, f"{queues:,} queues", results)
    return results


BENCH = Bench("directory", "reads, lookups and creates through RPC, beside slapd", _run)


def _sides(run: Run, machines: int, queues: int, results: Results) -> dict[str, Side]:
    """Fills and starts both servers, or mqis alone if slapd is not available."""
    run.say(f"directory: {queues:,} queues for mqis")
    path = run.directory / "directory.db"
    with closing(SqliteStore(path)) as store:
        sides = {"mqis": _ours(run, store, path, machines, queues)}
    run.say(f"directory: {queues:,} queues for mqis in PostgreSQL")
    try:
        database = backends.postgres(run, "directory")
    except Unavailable as reason:
        results.notes.append(str(reason))
    else:
        sides[POSTGRES] = _ours(run, database.store, database.place, machines, queues)
        sides[DISTANT] = _ours(run, *_distant(run), machines, queues)
    run.say(f"directory: {queues:,} queues for slapd")
    try:
        sides["slapd"] = _slapd(run, machines, queues, results)
    except Unavailable as reason:
        results.notes.append(str(reason))
    return sides


# --- mqis -----------------------------------------------------------------------------------------

#: The properties that a read returns, and a lookup returns of each object.
_SHOWN = (PropId.Q_INSTANCE, PropId.Q_LABEL, PropId.Q_QUOTA)
_COLUMNS = (PropId.Q_INSTANCE, PropId.Q_PATHNAME)


def _distant(run: Run) -> tuple[Store, str]:
    """A store of its own behind a relay, and how to connect to it."""
    database = backends.postgres(run, "distant")
    [port] = re.findall(r"port=(\d+)", database.place)
    relay = start_relay(int(port), DELAY_MS, run.resources)
    return database.store, database.place.replace(f"port={port}", f"port={relay.port}")


def _ours(run: Run, store: Store, place: Path | str, machines: int, queues: int) -> Side:
    ids = twins.fill(store, machines, queues)
    served = serving.start(place, run.resources)
    hosts, types = ids[: queues // PER_MACHINE], range(queues // PER_TYPE)
    some = [Queue(number) for number in scattered_numbers(queues)]
    bare = calls.listening()
    reads = [calls.get_props(queue.path, _SHOWN, queue.label) for queue in some]
    ones = [_equal(PropId.Q_LABEL, VarType.LPWSTR, queue.label, 1) for queue in some]
    first_read, read = cycle(reads[ROUND:]), cycle(reads[:ROUND])
    first_one, one = cycle(ones[ROUND:]), cycle(ones[:ROUND])
    hundred = cycle([_equal(PropId.Q_QMID, VarType.CLSID, host, PER_MACHINE) for host in hosts])
    thousand = cycle([_equal(PropId.Q_TYPE, VarType.CLSID, type_of(n), PER_TYPE) for n in types])
    create = twins.creates(
        queues,
        "utf-16-le",
        lambda queue: calls.create_queue(queue.path, queue.properties(), twins.GIVEN),
    )
    operations: dict[str, Callable[[RpcPeer], Operation]] = {
        BARE: lambda peer: peer.call(bare),
        FIRST_READ: lambda peer: peer.call(next(first_read)),
        READ: lambda peer: peer.call(next(read)),
        FIRST_ONE: lambda peer: peer.look_up(next(first_one)),
        ONE: lambda peer: peer.look_up(next(one)),
        HUNDRED: lambda peer: peer.look_up(next(hundred)),
        THOUSAND: lambda peer: peer.look_up(next(thousand)),
        CREATE: lambda peer: peer.create(next(create)),
    }
    return _side(Target(served.pid, served.port, RpcPeer), operations)


def _equal(propid: PropId, vt: VarType, value: Value, rows: int) -> calls.Lookup:
    return calls.lookup(propid, PropVariant(vt, value), _COLUMNS, rows)


# --- slapd ----------------------------------------------------------------------------------------

_SHOWN_THERE = ("queueInstance", "queueLabel", "queueQuota")
_COLUMNS_THERE = ("queueInstance", "queuePath")


def _slapd(run: Run, machines: int, queues: int, results: Results) -> Side:
    server = slapd.start(
        run.directory,
        run.resources,
        suffix=SUFFIX,
        schema=twins.schema(),
        indexed=twins.INDEXED,
        content=twins.ldif(machines, queues),
    )
    results.notes.append(f"slapd {server.version}, back_mdb, default number of threads")
    hosts, types = range(queues // PER_MACHINE), range(queues // PER_TYPE)
    some = [Queue(number) for number in scattered_numbers(queues)]
    any_class = ldap.present("objectClass")
    reads = [
        (ldap.search(queue.dn, ldap.BASE, any_class, _SHOWN_THERE), queue.label.encode())
        for queue in some
    ]
    ones = [_search("queueLabel", queue.label.encode()) for queue in some]
    first_read, read = cycle(reads[ROUND:]), cycle(reads[:ROUND])
    first_one, one = cycle(ones[ROUND:]), cycle(ones[:ROUND])
    hundred = cycle([_search("queueMachine", machine_name(n).encode()) for n in hosts])
    thousand = cycle([_search("queueType", type_of(n).raw) for n in types])
    create = twins.creates(queues, "utf-8", lambda queue: ldap.add(queue.dn, queue.attributes()))
    operations: dict[str, Callable[[LdapPeer], Operation]] = {
        FIRST_READ: lambda peer: peer.ask(*next(first_read)),
        READ: lambda peer: peer.ask(*next(read)),
        FIRST_ONE: lambda peer: peer.ask(next(first_one)),
        ONE: lambda peer: peer.ask(next(one)),
        HUNDRED: lambda peer: peer.ask(next(hundred), entries=PER_MACHINE),
        THOUSAND: lambda peer: peer.ask(next(thousand), entries=PER_TYPE),
        CREATE: lambda peer: peer.ask(next(create), entries=0),
    }
    return _side(Target(server.pid, server.port, LdapPeer), operations)


def _search(attribute: str, value: bytes) -> bytes:
    return ldap.search(SUFFIX, ldap.SUBTREE, ldap.equality(attribute, value), _COLUMNS_THERE)


# --- both -----------------------------------------------------------------------------------------


def _side(target: Target[P], operations: Mapping[str, Callable[[P], Operation]]) -> Side:
    return {
        name: lambda clients, seconds, work=work: load(target, work, clients, seconds)  # type: ignore[misc]
        for name, work in operations.items()
    }


def _measure(
    run: Run, sides: Mapping[str, Side], clients: int, table: str, results: Results
) -> None:
    loads: dict[tuple[str, str], list[Load]] = {}

    def contender(key: tuple[str, str], work: Callable[[int, float], Load]) -> Sample:
        run.say(f"directory: {key[1]}, {key[0]}, {_plural(clients)}")
        share = FIRST_SHARE if key[1] in (FIRST_READ, FIRST_ONE) else 1
        loads.setdefault(key, []).append(work(clients, run.sample_s * share))
        return loads[key][-1].sample

    keys = [
        (side, name)
        for name in (BARE, *OPERATIONS)
        for side, operations in sides.items()
        if name in operations and (side not in (POSTGRES, DISTANT) or name != BARE)
    ]
    samples = contest(
        run.rounds,
        {
            " ".join(key): lambda key=key: contender(key, sides[key[0]][key[1]])  # type: ignore[misc]
            for key in keys
        },
    )
    of = {key: samples[" ".join(key)] for key in keys}
    for side, name in keys:
        theirs = of.get(("slapd", name)) if side == "mqis" else None
        row = Row.of(
            f"{table}, {_plural(clients)}",
            name if side == "mqis" else f"{side} {name}",
            of[side, name],
            peer=None if theirs is None else ("slapd", theirs),
        )
        results.rows.append(replace(row, cpu_us=cpu_us(loads[side, name])))
    results.notes += _too_busy(loads, clients)
    if clients == CLIENTS[-1]:
        results.aims += _aims(of, clients)
        results.aims += _cpu_aim(loads, clients)


def _too_busy(loads: Mapping[tuple[str, str], list[Load]], clients: int) -> Iterator[str]:
    for (side, name), rounds in loads.items():
        share = median(load.client_share for load in rounds)
        if share > BUSY:
            yield (
                f"{name}, {side}, {_plural(clients)}: the load generator was busy {share:.0%} of "
                "the time; the server may be faster"
            )


def _aims(of: Mapping[tuple[str, str], Sequence[Sample]], clients: int) -> Iterator[Aim]:
    for name, wanted in WANTED.items():
        if ("slapd", name) in of:
            times = ratio(of["mqis", name], of["slapd", name])
            goal = f">= {wanted:g}x slapd, {name}, {_plural(clients)}"
            yield Aim(goal, f"{times:.2f}x", times >= wanted)
    for name, wanted in WANTED_THERE.items():
        for side in (POSTGRES, DISTANT):
            if (side, name) in of:
                times = ratio(of[side, name], of["mqis", name])
                goal = f">= {wanted:g}x SQLite in {side}, {name}, {_plural(clients)}"
                yield Aim(goal, f"{times:.2f}x", times >= wanted)
    for name, each in ((READ, 1), (ONE, CALLS_OF_LOOKUP)):
        share = ratio(of["mqis", name], of["mqis", BARE]) * each
        goal = f">= 40 % of the bare calls per second, {name}, {_plural(clients)}"
        yield Aim(goal, f"{share:.0%}", share >= 0.4)


def _cpu_aim(loads: Mapping[tuple[str, str], list[Load]], clients: int) -> Iterator[Aim]:
    if ("slapd", READ) in loads:
        ours, theirs = (cpu_us(loads[side, READ]) for side in ("mqis", "slapd"))
        if not ours:  # a quick run on a busy machine may not have done a single one
            return
        times = theirs / ours
        goal = f">= 1x slapd by CPU, {READ}, {_plural(clients)}"
        yield Aim(goal, f"{times:.2f}x", times >= 1)


def _plural(clients: int) -> str:
    return f"{clients} client{'s' if clients > 1 else ''}"
