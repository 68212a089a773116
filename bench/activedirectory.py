"""Measures import, the pass-through server and the mirror against a Samba domain controller.

Before that, estates of three sizes at a slapd (``estates``).

The peers are ldapsearch, and our own LDAP client with the same search: what the directory itself
takes is on both sides.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter_ns

from bench import calls, estates, member, sambadomain
from bench.backends import ROOT, Unavailable
from bench.calls import RpcPeer
from bench.enterprise import label
from bench.load import Line, Target
from bench.measure import Sample
from bench.member import Home
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from bench.sambadomain import DOMAIN, PASSWORD, SERVER_NAME, URL, USER, SambaDomain
from bench.stores import scattered_numbers
from mqis.admin.activedirectory.connecting import connect
from mqis.config.file import default_toml, override
from mqis.config.sections import Config
from mqis.protocol.ldap.ports import LdapQuery
from mqis.runtime.activedirectory.reading import CONTROLS, PAGE_SIZE
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.storage.sqlite import SqliteStore
from mqis.testing.ports import free_port
from mqis.wire.ldap.changes import AttributeChange, ModifyEntry, ModifyKind
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import And, Equality
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

QUEUES = 3_000
#: The aims: import beside ldapsearch, calls beside bare searches (p50), and seconds of the mirror.
IMPORT_SHARE, MOST_TIMES, SEEN_S = 0.5, 3.0, 1.0
CHANGES = 20
_WITHIN_S = 120.0
_SHOWN = (PropId.Q_INSTANCE, PropId.Q_LABEL, PropId.Q_QUOTA)
#: What the server asks of a queue's entry.
_COLUMNS = (
    "objectClass", "objectGUID", "distinguishedName", "cn", "parentGUID", "mSMQQueueType",
    "mSMQQueueNameExt", "mSMQJournal", "mSMQQueueQuota", "mSMQBasePriority",
    "mSMQQueueJournalQuota", "mSMQLabelEx", "whenCreated", "whenChanged", "mSMQAuthenticate",
    "mSMQPrivacyLevel", "mSMQTransactional", "MSMQ-MulticastAddress", "nTSecurityDescriptor",
)  # fmt: skip
#: Owner, group and access list of descriptors (1.2.840.113556.1.4.801), as the import asks.
_DESCRIPTORS = "!1.2.840.113556.1.4.801=::MAMCAQc="


def _run(run: Run) -> Results:
    queues = run.scaled(QUEUES, 120)
    run.say(f"activedirectory: a Samba domain controller with {queues} queues")
    results = Results()
    estates.measure(run, results)
    try:
        domain = sambadomain.start(run.directory / "samba", queues, run.resources)
    except Unavailable as reason:
        results.notes.append(str(reason))
        return results
    _imports(run, domain, results)
    _calls(run, domain, results)
    _mirror(run, domain, results)
    return results


BENCH = Bench("activedirectory", "import, pass-through and mirror of a Samba domain", _run)


# --- import ---------------------------------------------------------------------------------------


def _imports(run: Run, domain: SambaDomain, results: Results) -> None:
    rounds = min(run.rounds, 3)
    ours: list[Sample] = []
    theirs: list[Sample] = []
    cpu: dict[str, list[float]] = {"mqis": [], "ldapsearch": []}
    for number in range(rounds):
        run.say("activedirectory: mqis import and ldapsearch")
        target = run.directory / f"import{number}.db"
        imported = [
            *(sys.executable, "-m", "mqis.cli.main", "import", URL, "--store", str(target)),
            *domain.arguments(),
        ]
        objects = domain.queues + -(-domain.queues // sambadomain.QUEUES_OF_A_MACHINE)
        with _counted_cpu(cpu["mqis"]):
            ours.append(_timed(imported, objects))
        with closing(SqliteStore(target, create=False)) as store, store.read() as view:
            found = view.count(ObjectType.QUEUE)
        if found != domain.queues:
            raise RuntimeError(f"{found} queues were imported instead of {domain.queues}")
        with _counted_cpu(cpu["ldapsearch"]):
            theirs.append(_timed(_dump(), objects, LDAPTLS_CACERT=str(domain.ca_file)))
    table = f"{domain.queues:,} queues and their machines, from the start of the process"
    share = ratio(ours, theirs)
    for name, samples, peer in (
        ("mqis import", ours, "ldapsearch"),
        ("ldapsearch", theirs, None),
    ):
        seconds = median(sample.elapsed_ns for sample in samples) / 1e9
        per_object = median(cpu[name.split()[0]]) / samples[0].operations * 1e6
        rate = median(sample.per_second for sample in samples)
        results.rows.append(
            Row(table, name, rate, seconds=seconds, cpu_us=per_object, peer=peer,
                ratio=share if peer else None)
        )  # fmt: skip
    goal = f"import >= {IMPORT_SHARE}x ldapsearch, {domain.queues:,} queues"
    results.aims.append(Aim(goal, f"{share:.2f}x", share >= IMPORT_SHARE))


def _dump() -> list[str]:
    """Prints every attribute of the same entries, in pages of the same size."""
    return [
        *("ldapsearch", "-x", "-LLL", "-H", URL, "-D", USER, "-w", PASSWORD, "-b", DOMAIN),
        *("-E", f"pr={PAGE_SIZE}/noprompt", "-E", _DESCRIPTORS),
        *("(|(objectClass=mSMQQueue)(objectClass=mSMQConfiguration))",),
        *("*", "nTSecurityDescriptor", "parentGUID"),
    ]


def _timed(command: list[str], operations: int, **environment: str) -> Sample:
    start = perf_counter_ns()
    done = subprocess.run(
        command,
        env=os.environ | environment,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    elapsed = perf_counter_ns() - start
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    return Sample(operations, elapsed)


@contextmanager
def _counted_cpu(seconds: list[float]) -> Iterator[None]:
    """Adds the CPU time of the processes that end inside."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


# --- the pass-through server ----------------------------------------------------------------------


def _calls(run: Run, domain: SambaDomain, results: Results) -> None:
    home = Home(run.directory / "through", free_port())
    home.directory.mkdir()
    _configure(home, domain)
    run.say("activedirectory: a pass-through server")
    served = member.start(home, run.resources)
    target = Target(served.pid, served.ready(), RpcPeer)
    numbers = scattered_numbers(domain.queues)[:1000]
    ours: dict[str, list[Sample]] = {"read by path": [], "lookup, label = x": []}
    bare = {name: list[Sample]() for name in ours}
    with closing(Line(target)) as line, asyncio.Runner() as runner:
        client = runner.run(_client(domain))
        asked = {name: cycle(numbers) for name in ours}

        def through(name: str) -> Callable[[], object]:
            number = asked[name]

            def read() -> None:
                n = next(number)
                line.run(line.peer.call(calls.get_props(sambadomain.path_of(n), _SHOWN, label(n))))

            def look_up() -> None:
                wanted = prop(PropId.Q_LABEL, label(next(number)))
                line.run(line.peer.look_up(calls.lookup(PropId.Q_LABEL, wanted, _SHOWN, 1)))

            return read if name == "read by path" else look_up

        def beside(name: str) -> Callable[[], Awaitable[None]]:
            number = asked[name]
            query = _read_query if name == "read by path" else _lookup_query
            return lambda: _found_one(client, query(next(number)))

        for _ in range(run.rounds):
            for name, samples in ours.items():
                run.say(f"activedirectory: {name}")
                samples.append(_each(through(name), run.sample_s))
                bare[name].append(runner.run(_each_async(beside(name), run.sample_s)))
        runner.run(client.close())
    served.stop()
    table = f"pass-through, {domain.queues:,} queues"
    for name, samples in ours.items():
        row = Row.of(table, name, samples, peer=("bare search", bare[name]))
        floor = Row.of(table, f"{name}: bare search", bare[name])
        results.rows += [row, floor]
        assert row.p50_ms is not None
        assert floor.p50_ms is not None
        times = row.p50_ms / floor.p50_ms
        goal = f"{name}: p50 <= {MOST_TIMES:.0f}x that of the bare LDAP search"
        results.aims.append(Aim(goal, f"{times:.1f}x", times <= MOST_TIMES))


def _configure(home: Home, domain: SambaDomain) -> None:
    values: dict[str, dict[str, object]] = {
        "store": {
            "url": URL,
            "user": USER,
            "password_file": str(domain.password_file),
            "ca_file": str(domain.ca_file),
            "server_name": SERVER_NAME,
            "timeout_s": 60,
        },
        "server": {"name": "BENCH", "site": sambadomain.SITE_NAME, "role": "none"},
        "rpc": {"mapper": False},
        "security": {"gss": "none"},
        "log": {"level": "warning"},
    }
    text = default_toml(override(Config(), values, "bench"))
    (home.directory / "mqis.toml").write_text(text, encoding="utf-8")


async def _client(domain: SambaDomain) -> LdapDirectoryClient:
    client, _ = await connect(domain.options())
    return client


def _read_query(number: int) -> LdapQuery:
    wanted = Equality("objectClass", b"mSMQQueue")
    return LdapQuery(sambadomain.name_of(number), SearchScope.BASE, wanted, _COLUMNS, CONTROLS, 0)


def _lookup_query(number: int) -> LdapQuery:
    labelled = Equality("mSMQLabelEx", label(number).encode())
    wanted = And((Equality("objectClass", b"mSMQQueue"), labelled))
    return LdapQuery(DOMAIN, SearchScope.SUBTREE, wanted, _COLUMNS, CONTROLS, PAGE_SIZE)


async def _found_one(client: LdapDirectoryClient, query: LdapQuery) -> None:
    found = [entry async for entry in client.search(query)]
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} entries instead of one below {query.base}")


def _each(operation: Callable[[], object], seconds: float) -> Sample:
    """Times operations one after the other, at least three."""
    latencies: list[int] = []
    start = now = perf_counter_ns()
    stop = start + int(seconds * 1e9)
    while now < stop or len(latencies) < 3:
        operation()
        before, now = now, perf_counter_ns()
        latencies.append(now - before)
    return Sample(len(latencies), now - start, sorted(latencies))


async def _each_async(operation: Callable[[], Awaitable[None]], seconds: float) -> Sample:
    latencies: list[int] = []
    start = now = perf_counter_ns()
    stop = start + int(seconds * 1e9)
    while now < stop or len(latencies) < 3:
        await operation()
        before, now = now, perf_counter_ns()
        latencies.append(now - before)
    return Sample(len(latencies), now - start, sorted(latencies))


# --- the mirror -----------------------------------------------------------------------------------


def _mirror(run: Run, domain: SambaDomain, results: Results) -> None:
    run.say("activedirectory: a mirror")
    place = run.directory / "mirror.db"
    command = [sys.executable, "-m", "mqis.cli.main", "mirror", URL, "--store", str(place)]
    log = (run.directory / "mirror.log").open("wb")
    with (
        log,
        subprocess.Popen(
            [*command, *domain.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
        ) as process,
    ):
        try:
            with closing(_opened(place, domain.queues, process)) as store:
                latencies = asyncio.run(_changes(domain, store, run.scaled(CHANGES, 3)))
        finally:
            process.terminate()
    sample = Sample(len(latencies), sum(latencies), sorted(latencies))
    seen = sample.percentile_ms(50) / 1e3
    results.rows.append(Row.of("mirror, one change at a time", "commit to visible", [sample]))
    goal = f"a change is in the mirrored store within {SEEN_S:.0f} s of its commit (p50)"
    results.aims.append(Aim(goal, f"{seen:.2f} s", seen < SEEN_S))


def _opened(place: Path, queues: int, process: subprocess.Popen[bytes]) -> SqliteStore:
    """Waits until the mirror has everything."""
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        if place.exists():
            store = SqliteStore(place, create=False)
            with store.read() as view:
                if view.count(ObjectType.QUEUE) == queues:
                    return store
            store.close()
        time.sleep(0.2)
    raise RuntimeError(f"the mirror has not {queues} queues after {_WITHIN_S:.0f} s")


async def _changes(domain: SambaDomain, store: SqliteStore, count: int) -> list[int]:
    """The nanoseconds from each commit until the store shows it; the first wakes the mirror."""
    async with _closing_client(domain) as client:
        taken = [await _seen(client, store, number) for number in range(count + 1)]
    return taken[1:]


@asynccontextmanager
async def _closing_client(domain: SambaDomain) -> AsyncIterator[LdapDirectoryClient]:
    client = await _client(domain)
    try:
        yield client
    finally:
        await client.close()


async def _seen(client: LdapDirectoryClient, store: SqliteStore, number: int) -> int:
    text = f"changed {number}"
    change = AttributeChange(ModifyKind.REPLACE, "mSMQLabelEx", (text.encode(),))
    await client.apply(ModifyEntry(sambadomain.name_of(number), (change,)))
    start = perf_counter_ns()
    while perf_counter_ns() - start < _WITHIN_S * 1e9:
        with store.read() as view:
            if next(iter(view.having(ObjectType.QUEUE, PropId.Q_LABEL, text.encode())), None):
                return perf_counter_ns() - start
        await asyncio.sleep(0.001)
    raise RuntimeError(f"the mirror does not show a change after {_WITHIN_S:.0f} s")
