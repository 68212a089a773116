"""The example interface: our client against our server, every shape at every level."""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from examples.shapes import interface as idl
from examples.shapes.client import ShapesClient, credentials, find_port
from examples.shapes.host import Host, hosted
from examples.shapes.samples import BLOB, SAMPLES
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests.waiting import DEADLINE_S, until

ROOT = Path(__file__).resolve().parents[2]
SYNTAXES = [pytest.param(NDR20, id="ndr20"), pytest.param(NDR64, id="ndr64")]
PROTECTION = [
    (AuthType.NONE, AuthLevel.NONE),
    *(
        (kind, level)
        for kind in (AuthType.NTLM, AuthType.SPNEGO)
        for level in (AuthLevel.CONNECT, AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY)
    ),
]

Scene = Callable[[Host, ShapesClient], Awaitable[None]]


@asynccontextmanager
async def connected(
    host: Host,
    syntax: SyntaxId = NDR20,
    kind: int = AuthType.NONE,
    level: int = AuthLevel.NONE,
    group_id: int = 0,
) -> AsyncIterator[ShapesClient]:
    client = ShapesClient()
    wanted = None if level == AuthLevel.NONE else credentials(kind, level)
    await client.connect(
        host.address, host.port, transfers=[syntax], credentials=wanted, group_id=group_id
    )
    async with client:
        yield client


def play(scene: Scene) -> None:
    async def run() -> None:
        async with hosted() as host, connected(host) as client:
            await scene(host, client)

    asyncio.run(run())


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize(("kind", "level"), PROTECTION)
def test_every_shape_at_every_level(syntax: SyntaxId, kind: AuthType, level: AuthLevel) -> None:
    async def run() -> None:
        async with hosted() as host, connected(host, syntax, kind, level) as client:
            assert client.rpc.transfer(idl.SYNTAX) == syntax
            for sample in SAMPLES:
                answer = await client.call(sample.operation, sample.request, sample.given)
                assert answer == sample.answer, sample.name
            assert await client.consult(5) == 11
            client.nest = 1
            assert await client.consult(5) == 23
            assert client.callbacks == 3
            caller = await client.call(idl.WHO_AM_I, idl.Nothing())
            name = None if kind == AuthType.NONE else "EXAMPLE\\alice"
            assert caller == idl.Caller(name, level)
            statistics = host.server.endpoint.statistics
            # Both ways many fragments: the blob alone is 768,000 bytes.
            assert statistics.packets_in > len(BLOB) / 5840
            assert statistics.packets_out > len(BLOB) / 5840

    asyncio.run(run())


def test_samples_and_conversation_use_every_operation() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.shapes"],
        cwd=ROOT,
        env={"COLUMNS": "140", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "I am EXAMPLE\\alice" in done.stdout
    assert "unexpected: " not in done.stdout
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    operations = {operation.name for operation in idl.SHAPES.operations}
    assert operations - shown == {"who_am_i"}, "who_am_i is the first line of the output"


def test_serve_and_call_are_two_processes() -> None:
    command = [sys.executable, "-u", "-m", "examples.shapes"]
    serving = subprocess.Popen(
        [*command, "serve", "--mapper-port", "0"],
        cwd=ROOT,
        env={"COLUMNS": "140", "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stdout is not None
        said = serving.stdout.readline()
        mapper_port = said.split("endpoint mapper at port ")[1].split(";")[0]
        options = ["--mapper-port", mapper_port, "--auth", "ntlm", "--level", "integrity"]
        done = subprocess.run(
            [*command, "call", *options, "--syntax", "ndr20"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    finally:
        serving.terminate()
        serving.wait(DEADLINE_S)

    assert done.returncode == 0, done.stderr
    assert "NDR20, integrity; I am EXAMPLE\\alice" in done.stdout


def test_without_a_server_one_line_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.shapes", "call", "--mapper-port", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("cannot connect to 127.0.0.1:1")
    assert "Traceback" not in done.stderr


def test_the_mapper_knows_the_port_and_nothing_else() -> None:
    async def scene(host: Host, _client: ShapesClient) -> None:
        assert await find_port(host.address, host.mapper_port, idl.SYNTAX) == host.port
        stranger = SyntaxId(Guid.parse("00000000-0000-0000-0000-000000000001"), 1)
        with pytest.raises(LookupError, match=r"the endpoint mapper at .* has no"):
            await find_port(host.address, host.mapper_port, stranger)

    play(scene)


def test_a_full_pointer_can_be_shared() -> None:
    """We never send one twice, so the stub is made by hand: both pointers have identifier 4."""

    async def scene(_host: Host, client: ShapesClient) -> None:
        stub = struct.pack("<6I", 1, 0, 4, 300, 4, 0xDEAD)  # the last number is surplus
        answer = await client.rpc.call(idl.SYNTAX, idl.POINTERS.opnum, stub)
        # unique: null; total 601 (aligned to 8), one null, same
        assert answer.stub == struct.pack("<I4xQIB", 0, 601, 1, 1)

    play(scene)


# --- context handles ------------------------------------------------------------------------------


async def take(client: ShapesClient, handle: ContextHandle, count: int) -> tuple[int, ...]:
    taken = await client.call(idl.TAKE, idl.TakeAsked(handle, count), {"count": count})
    return taken.numbers


def test_a_handle_keeps_what_the_server_keeps() -> None:
    async def scene(host: Host, client: ShapesClient) -> None:
        opened = await client.call(idl.OPEN_PILE, idl.PileAsked(5))
        assert opened.handle
        assert host.service.open_piles == 1
        assert await take(client, opened.handle, 3) == (4, 3, 2)
        assert await take(client, opened.handle, 3) == (1, 0)
        closed = await client.call(idl.CLOSE_PILE, opened)
        assert closed.handle == ContextHandle.NULL
        assert (host.service.open_piles, host.service.rundowns) == (0, 0)
        with pytest.raises(RpcFault) as caught:
            await take(client, opened.handle, 1)
        assert caught.value.status == FaultStatus.CONTEXT_MISMATCH

    play(scene)


def test_a_handle_is_good_in_its_group_and_nowhere_else() -> None:
    async def scene(host: Host, client: ShapesClient) -> None:
        handle = (await client.call(idl.OPEN_PILE, idl.PileAsked(5))).handle
        async with connected(host, group_id=client.rpc.group_id) as friend:
            assert await take(friend, handle, 1) == (4,)
        async with connected(host) as stranger:
            with pytest.raises(RpcFault) as caught:
                await take(stranger, handle, 1)
            assert caught.value.status == FaultStatus.CONTEXT_MISMATCH
        assert await take(client, handle, 1) == (3,)

    play(scene)


def test_a_client_that_leaves_is_cleaned_up_after() -> None:
    async def scene(host: Host, client: ShapesClient) -> None:
        async with connected(host) as other:
            await other.call(idl.OPEN_PILE, idl.PileAsked(1))
            await other.call(idl.OPEN_PILE, idl.PileAsked(1))
            assert host.service.open_piles == 2
        await until(lambda: not host.service.open_piles)  # the server hears of it a moment later
        assert host.service.rundowns == 2

    play(scene)


# --- callbacks and faults -------------------------------------------------------------------------


def test_a_refused_callback_fails_its_call() -> None:
    async def refuse(
        _context: AgreedContext, _opnum: int, _stub: bytes, _big_endian: bool
    ) -> bytes:
        raise RpcFault(FaultStatus.SERVER_TOO_BUSY)

    async def scene(host: Host, _client: ShapesClient) -> None:
        for handler, status in (
            (refuse, FaultStatus.SERVER_TOO_BUSY),
            (None, FaultStatus.OP_RNG_ERROR),
        ):
            async with await RpcClient.connect(
                host.address, host.port, [idl.SYNTAX], callbacks=handler
            ) as client:
                with pytest.raises(RpcFault) as caught:
                    await invoke(client, idl.SHAPES, idl.CONSULT, idl.Number(1))
                assert caught.value.status == status
                # The connection outlives it.
                caller = await invoke(client, idl.SHAPES, idl.WHO_AM_I, idl.Nothing())
                assert caller.level == AuthLevel.NONE

    play(scene)


def test_callbacks_of_calls_that_overlap_find_their_own() -> None:
    async def scene(_host: Host, client: ShapesClient) -> None:
        answers = await asyncio.gather(*(client.consult(n) for n in range(20)))
        assert answers == [2 * n + 1 for n in range(20)]

    play(scene)


@pytest.mark.parametrize("status", [FaultStatus.ACCESS_DENIED, 0xC000_0022, 0x6F7])
def test_a_fault_comes_through(status: int) -> None:
    async def scene(_host: Host, client: ShapesClient) -> None:
        with pytest.raises(RpcFault) as caught:
            await client.call(idl.FAIL, idl.Number(status))
        assert caught.value.status == status

    play(scene)


@pytest.mark.parametrize(
    ("opnum", "stub", "status"),
    [
        pytest.param(idl.SQUARES.opnum, b"\0\0", FaultStatus.BAD_STUB_DATA, id="short"),
        pytest.param(
            idl.SQUARES.opnum,
            struct.pack("<II", 0, idl.MAX_ITEMS + 1),
            FaultStatus.BAD_STUB_DATA,
            id="range",
        ),
        pytest.param(
            idl.AREAS.opnum,
            struct.pack("<IIHH", 1, 1, 9, 9),
            FaultStatus.INVALID_TAG,
            id="no such arm",
        ),
        pytest.param(16, b"", FaultStatus.OP_RNG_ERROR, id="no such operation"),
    ],
)
def test_a_bad_stub_is_refused_and_the_connection_stays(
    opnum: int, stub: bytes, status: int
) -> None:
    async def scene(_host: Host, client: ShapesClient) -> None:
        with pytest.raises(RpcFault) as caught:
            await client.rpc.call(idl.SYNTAX, opnum, stub)
        assert caught.value.status == status
        assert await client.consult(1) == 3

    play(scene)


@pytest.mark.parametrize("kind", [AuthType.NTLM, AuthType.SPNEGO])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PRIVACY])
def test_a_wrong_password_gets_nowhere(kind: int, level: int) -> None:
    async def run() -> None:
        async with hosted() as host:
            wrong = credentials(kind, level, "looking-glass")

            async def attempt() -> None:
                async with ShapesClient() as client:
                    await client.connect(host.address, host.port, credentials=wrong)
                    # NTLM's last leg has no answer: the first call gets it.
                    await client.call(idl.WHO_AM_I, idl.Nothing())

            with pytest.raises((RpcConnectionError, RpcFault)):
                await attempt()
            assert host.server.endpoint.statistics.calls_in == 0

    asyncio.run(run())
