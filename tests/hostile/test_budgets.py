"""One client asks for more than its share: of the event loop, of handles, of memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from select import select

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, DCERPC_v5

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.runtime.entropy import SystemEntropy
from mqis.server.accounts import AccountsFile
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.sddl import parse_sddl
from tests.cli.running import CONFIG, Running, prepare, serving
from tests.hostile.rawrpc import (
    INSUFFICIENT_RESOURCES,
    NO_MEMORY,
    OK,
    TOO_BUSY,
    Attacker,
    Fault,
    get_props,
    lookup_begin,
    result_of,
)
from tests.interop import mqds_impacket as mqds
from tests.waiting import wait_until

QUEUES = 2_000
READABLE = (*range(101, 117), 121, 123, 124)
#: As many columns as there may be.
COLUMNS = tuple(islice(cycle(READABLE), 128))
PATH = "ams-dir1\\hostile0000"
#: A share of the memory that the tests can use up: 3 MB a connection, 4 MB all strangers.
SMALL = CONFIG.replace("mapper_port = 0", "mapper_port = 0\nmemory_mb = 8")
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration enterprise, with a machine that has many queues."""
    path = tmp_path_factory.mktemp("budgets") / "many.db"
    security = PropVariant(VarType.BLOB, parse_sddl("O:BAG:SYD:(A;;0x2003f;;;WD)").to_bytes())
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
        with store.write() as transaction:
            events = DirectoryEvents(transaction, 1_000_000_000, SystemEntropy())
            for number in range(QUEUES):
                label = PropVariant(VarType.LPWSTR, f"number {number * 7919 % QUEUES}")
                path_name = f"ams-dir1\\hostile{number:04}"
                events.create(ObjectType.QUEUE, path_name, {108: label, 1101: security})
    return path


@contextmanager
def served(tmp_path: Path, store: Path, config: str) -> Iterator[Running]:
    prepare(tmp_path, store, config)
    AccountsFile(tmp_path / "accounts.toml").add("honest", "honest", domain="LAB")
    with serving(tmp_path, "--json") as running:
        yield running
        mqds.disconnect_all()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Iterator[Running]:
    """With the budgets that a server has without configuration."""
    with served(tmp_path_factory.mktemp("default"), store, CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("small"), store, SMALL) as running:
        yield running


def port_of(running: Running) -> int:
    port: int = running.ready["port"]
    return port


def honest(running: Running) -> DCERPC_v5:
    """Somebody who logged on, from the address that the attackers use."""
    return mqds.connect(port_of(running), "honest", RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)


def is_served(dce: DCERPC_v5) -> bool:
    """Returns whether a caller gets a handle, a property and a lookup."""
    call = mqds.S_DSValidateServer()
    call["pguidEnterpriseId"] = bytes(16)
    call["fSetupMode"] = call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = 0
    call["dwContext"] = 7
    got = mqds.ask(dce, call)
    assert got["ErrorCode"] == OK
    auth = got["pphServerAuth"]["octets"]
    assert mqds.ask(dce, get_props(auth, PATH, (103, 108)))["ErrorCode"] == OK
    return bool(mqds.ask(dce, lookup_begin(auth, (101, 103)))["ErrorCode"] == OK)


def taken(attacker: Attacker, tries: int) -> int:
    """The number of context handles that a connection gets."""
    for count in range(tries):
        try:
            attacker.validate()
        except Fault as fault:
            if fault.status != NO_MEMORY:
                raise
            return count
    return tries


def heard(attackers: list[Attacker], least: int) -> list[Attacker]:
    """Those that the server has told something, or none while they are fewer than ``least``."""
    readable, _, _ = select([attacker.socket for attacker in attackers], [], [], 0)
    found = [attacker for attacker in attackers if attacker.socket in readable]
    return found if len(found) >= least else []


def reads_until_answered(greedy: Attacker, reader: Attacker) -> int:
    """The number of reads that are answered before the call of another connection is."""
    call = get_props(reader.auth, PATH, (103, 108))
    opnum, stub, count = call.opnum, call.getData(), 0
    while not greedy.has_answer():
        reader.send_stub(opnum, stub)
        assert result_of(reader.answer()) == OK
        count += 1
    return count


class TestTheLoop:
    @pytest.mark.req("SEC-7-01")
    @pytest.mark.parametrize("sort", [0, 108], ids=["by identifier", "sorted"])
    def test_a_lookup_of_everything_does_not_hold_the_reads_of_others(
        self, server: Running, sort: int
    ) -> None:
        with Attacker(port_of(server)) as greedy, Attacker(port_of(server)) as reader:
            greedy.validate()
            reader.validate()
            greedy.send(lookup_begin(greedy.auth, COLUMNS, sort))
            between = reads_until_answered(greedy, reader)
            assert result_of(greedy.answer()) == OK
            # The last of them may have been answered behind the lookup.
            assert between > 5

    @pytest.mark.req("SEC-7-01")
    def test_many_large_lookups_do_not_hold_a_small_one(self, server: Running) -> None:
        with ExitStack() as stack:
            greedy = [stack.enter_context(Attacker(port_of(server))) for _ in range(8)]
            other = stack.enter_context(Attacker(port_of(server)))
            for attacker in (*greedy, other):
                attacker.validate()
            for attacker in greedy:
                attacker.send(lookup_begin(attacker.auth, COLUMNS))
            assert other.begin_lookup(302) == OK  # all sites
            assert not all(attacker.has_answer() for attacker in greedy)
            assert [result_of(attacker.answer()) for attacker in greedy] == [OK] * 8

    @pytest.mark.req("SEC-7-01")
    def test_a_call_that_takes_long_to_decode_does_not_hold_the_reads_of_others(
        self, server: Running
    ) -> None:
        strings = PropVariant(VarType.VECTOR_LPWSTR, ("",) * 65_536)
        create = dscomm.CreateObject(1, "a\\b", None, (1, 2, 3), (strings,) * 3, None)
        stub = dscomm.CREATE_OBJECT.request.encode(create, Syntax.NDR20)
        with Attacker(port_of(server)) as greedy, Attacker(port_of(server)) as reader:
            reader.validate()
            greedy.send_stub(0, stub)
            between = reads_until_answered(greedy, reader)
            assert result_of(greedy.answer()) != OK
            assert between > 5


class TestHandles:
    @pytest.mark.req("SEC-7-03")
    def test_one_address_cannot_take_all_context_handles(self, server: Running) -> None:
        with ExitStack() as stack:
            greedy = [stack.enter_context(Attacker(port_of(server))) for _ in range(5)]
            assert taken(greedy[0], 300) == 256
            assert sum(taken(attacker, 300) for attacker in greedy[1:]) == 1024 - 256
            with Attacker(port_of(server), "127.0.0.2") as elsewhere:
                elsewhere.validate()
            assert is_served(honest(server))
        with Attacker(port_of(server)) as later:
            assert taken(later, 10) == 10  # those of clients that left are there again

    @pytest.mark.req("SEC-7-03")
    def test_one_address_cannot_take_all_lookups(self, server: Running) -> None:
        def begun(attacker: Attacker) -> int:
            attacker.validate()
            results = [attacker.begin_lookup(302) for _ in range(66)]
            assert set(results) <= {OK, INSUFFICIENT_RESOURCES}
            return results.count(OK)

        with ExitStack() as stack:
            greedy = [stack.enter_context(Attacker(port_of(server))) for _ in range(5)]
            assert [begun(attacker) for attacker in greedy] == [64, 64, 64, 64, 0]
            assert begun(stack.enter_context(Attacker(port_of(server), "127.0.0.2"))) == 64
            assert is_served(honest(server))


class TestMemory:
    @pytest.mark.req("SEC-7-02")
    def test_a_lookup_is_charged_for_its_cells_not_for_its_rows(self, small: Running) -> None:
        with Attacker(port_of(small)) as attacker:
            attacker.validate()
            narrow = [attacker.begin_lookup(101) for _ in range(8)]
            assert narrow == [OK] * 8
        with Attacker(port_of(small)) as attacker:
            attacker.validate()
            wide = [attacker.begin_lookup(*COLUMNS) for _ in range(8)]
            assert set(wide) == {OK, INSUFFICIENT_RESOURCES}

    @pytest.mark.req("SEC-7-04")
    def test_calls_that_never_end_are_not_kept_for_ever(self, small: Running) -> None:
        with ExitStack() as stack:
            greedy = [stack.enter_context(Attacker(port_of(small))) for _ in range(8)]
            half = 3 * MEGABYTE // 2
            for attacker in greedy:
                attacker.begin_stub(half)
            # Two times 1.5 MB are within the 4 MB of all strangers.
            for attacker in wait_until(lambda: heard(greedy, 6)):
                with pytest.raises((Fault, ConnectionError)) as told:
                    attacker.answer()
                if isinstance(told.value, Fault):
                    assert told.value.status == TOO_BUSY
            assert is_served(honest(small))

    @pytest.mark.req("SEC-7-04")
    def test_one_connection_cannot_send_one_call_that_takes_everything(
        self, small: Running
    ) -> None:
        with Attacker(port_of(small)) as attacker:
            attacker.begin_stub(7 * MEGABYTE // 2)
            attacker.socket.settimeout(45)  # less than the 60 s that such a call may take to arrive
            with pytest.raises((Fault, ConnectionError)):
                attacker.answer()

    @pytest.mark.req("SEC-7-05", "SEC-7-03", "SEC-7-02")
    def test_sixteen_strangers_leave_memory_and_handles_for_others(self, small: Running) -> None:
        before = resident(small)
        with ExitStack() as stack:
            strangers = [stack.enter_context(Attacker(port_of(small))) for _ in range(16)]
            for stranger in strangers:
                stranger.validate()
            refused = 0
            for stranger in strangers:
                results = [stranger.begin_lookup(*COLUMNS) for _ in range(3)]
                refused += results.count(INSUFFICIENT_RESOURCES)
            assert refused
            for stranger in strangers:
                taken(stranger, 300)
            for stranger in strangers:
                stranger.begin_stub(MEGABYTE)
            gc.collect()
            grown = resident(small) - before
            assert is_served(honest(small))
        assert grown < (8 + 48) * MEGABYTE


def resident(running: Running) -> int:
    """The memory of a server's process, in bytes."""
    status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return 1024 * int(line.split()[1])
