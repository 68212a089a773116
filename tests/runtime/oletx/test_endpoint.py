"""Endpoints over real sockets: connections both ways, refusals, ends, and partners that fail."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import SessionState
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.rpc.endpoint_map import EndpointRegistry
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.runtime.oletx.application_connection import (
    ConnectionClosed,
    ConnectionDenied,
    Message,
    OleTxConnection,
)
from mqis.runtime.oletx.oletx_endpoint import ConnectionRequest, OleTxEndpoint
from mqis.runtime.oletx.partner_binding import Security
from mqis.runtime.oletx.resolver import FixedResolver, MapperResolver, find_port
from mqis.wire.cmpo.codes import CmResult, TeardownType
from mqis.wire.cmpo.ixnremote import BoundVersionSet
from mqis.wire.guid import Guid
from tests.runtime.oletx.endpoints import ALPHA, BETA, QUICK, TYPE, couple, echo
from tests.waiting import DEADLINE_S, run, until

DENIED = 0x80070005


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.req("CMP-2.1-01", "CMP-3.1.4.2-01", "CMP-1.5-01")
@pytest.mark.parametrize("first", [0, 1], ids=["primary", "secondary"])
def test_connections_both_ways_on_one_session(first: int) -> None:
    async def scene() -> None:
        async with couple() as both:
            for endpoint in both:
                endpoint.accept(TYPE, echo)
            one, other = both[first], both[1 - first]
            for me, partner in ((one, other), (other, one)):
                async with await me.connect(partner.name, TYPE) as connection:
                    assert connection.partner == partner.name
                    assert connection.connection_type == TYPE
                    assert connection.version == BoundVersionSet(2, 1, 5)
                    assert connection.outgoing
                    await connection.send(0x2001, b"there")
                    assert await connection.receive() == Message(0x2002, b"there")
            for endpoint in both:
                (session,) = endpoint.transport.machine.sessions
                assert session.initiated_here is (endpoint is one)

    run(scene())


LOW = NameObject("LOW", Guid.parse("01000002-0000-0000-0000-000000000000"))
HIGH = NameObject("HIGH", Guid.parse("02000001-0000-0000-0000-000000000000"))


@pytest.mark.parametrize("initiator", [0, 1])
def test_identifiers_whose_texts_and_bytes_sort_differently(initiator: int) -> None:
    assert (str(LOW.cid) < str(HIGH.cid)) != (LOW.cid.raw < HIGH.cid.raw)

    async def scene() -> None:
        async with couple(LOW, HIGH) as both:
            both[1 - initiator].accept(TYPE, echo)
            async with await both[initiator].connect(both[1 - initiator].name, TYPE) as connection:
                await connection.send(1, b"x")
                assert await connection.receive() == Message(2, b"x")
            assert both[1].transport.machine.sessions[0].is_primary

    run(scene())


def test_both_connect_at_once() -> None:
    """PokeW and BuildContextW cross on real sockets, many times."""

    async def scene() -> None:
        for _ in range(10):
            async with couple() as (a, b):
                a.accept(TYPE, echo)
                b.accept(TYPE, echo)
                ours, theirs = await asyncio.gather(a.connect(BETA, TYPE), b.connect(ALPHA, TYPE))
                await ours.send(1, b"from a")
                await theirs.send(1, b"from b")
                assert await ours.receive() == Message(2, b"from a")
                assert await theirs.receive() == Message(2, b"from b")
                assert len(a.transport.machine.sessions) == 1

    run(scene())


@pytest.mark.req("CMP-1.3-02", "CMP-3.1.7.4-01", "CMP-3.1.7.4.2-01")
def test_messages_behind_the_request_need_no_answer() -> None:
    """``open`` waits for nothing: request and messages share the first boxcar."""

    async def scene() -> None:
        got: list[Message] = []

        async def collect(connection: OleTxConnection) -> None:
            got.extend([message async for message in connection])

        async with couple() as (a, b):
            b.accept(TYPE, collect)
            connection = a.open(BETA, TYPE)
            for n in range(5):
                connection.send_nowait(n, bytes(n))
            await connection.opened()
            await connection.disconnect()
            await until(lambda: len(got) == 5)
            assert got == [Message(n, bytes(n)) for n in range(5)]
            (link,) = a._links.values()
            # The request with its messages, and the DISCONNECT.
            assert link.mux.statistics.boxcars_sent == 2

    run(scene())


def test_order_and_contents_of_many_messages_on_many_connections() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)

            async def talk(connection: OleTxConnection, number: int) -> None:
                bodies = [f"{number}/{n}".encode() * (n % 50 + 1) for n in range(200)]
                sending = asyncio.create_task(_send_all(connection, bodies))
                for body in bodies:
                    assert await connection.receive() == Message(2, body)
                await sending
                await connection.disconnect()

            connections = [await a.connect(BETA, TYPE) for _ in range(40)]
            await asyncio.gather(*(talk(c, n) for n, c in enumerate(connections)))

    run(scene())


async def _send_all(connection: OleTxConnection, bodies: list[bytes]) -> None:
    for body in bodies:
        await connection.send(1, body)


def test_the_largest_body_and_one_more() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            async with await a.connect(BETA, TYPE) as connection:
                body = bytes(81_880)
                await connection.send(1, body)
                assert await connection.receive() == Message(2, body)
                with pytest.raises(ValueError, match="81880"):
                    await connection.send(1, body + b"x")

    run(scene())


def test_a_reader_that_takes_its_time_stops_the_sender() -> None:
    """Nothing is lost, and no more waits than the limits say."""

    async def scene() -> None:
        limits = SessionLimits(connection_queued_bytes=100_000, connection_unread_bytes=200_000)
        release = asyncio.Event()
        sizes: list[int] = []

        async def slow(connection: OleTxConnection) -> None:
            await release.wait()
            sizes.extend([len(message.body) async for message in connection])

        async with couple(limits=limits) as (a, b):
            b.accept(TYPE, slow)
            connection = await a.connect(BETA, TYPE)
            sent = 0

            async def flood() -> None:
                nonlocal sent
                for _ in range(400):
                    await connection.send(1, bytes(8000))
                    sent += 1

            task = asyncio.create_task(flood())
            before = -1
            while sent != before:  # until nothing moves
                before = sent
                await asyncio.sleep(0.3)
            assert 0 < sent < 400
            release.set()
            await task
            await connection.disconnect()
            await until(lambda: len(sizes) == 400)

    run(scene())


async def _talk_for_ever(connection: OleTxConnection) -> None:
    while True:
        await connection.send(1)
        await connection.receive()


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.req("CMP-3.1.7.4.3-01")
def test_a_type_that_nobody_accepts() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            connection = await a.connect(BETA, 0x999)
            with pytest.raises(ConnectionDenied) as denied:
                await connection.receive()
            assert denied.value.reason == CmResult.INVALID_ARGUMENT
            await connection.wait_closed()  # the opener has disconnected it
            with pytest.raises(ConnectionDenied):
                await connection.send(1)
            async with await a.connect(BETA, TYPE) as other:
                await other.send(1)
                assert await other.receive() == Message(2, b"")

    run(scene())


@pytest.mark.req("CMP-2.2.5-02")
def test_an_acceptor_that_chooses() -> None:
    asked: list[ConnectionRequest] = []

    def admit(request: ConnectionRequest) -> int:
        asked.append(request)
        return DENIED if len(asked) == 1 else 0

    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo, admit)
            refused = await a.connect(BETA, TYPE)
            with pytest.raises(ConnectionDenied) as denied:
                await refused.receive()
            assert denied.value.reason == DENIED
            taken = await a.connect(BETA, TYPE)
            await taken.send(1)
            assert await taken.receive() == Message(2, b"")
        assert asked == [ConnectionRequest(ALPHA, TYPE, BoundVersionSet(2, 1, 5), None)] * 2

    run(scene())


def test_only_the_opener_may_disconnect() -> None:
    async def scene() -> None:
        met: list[OleTxConnection] = []

        async def keep(connection: OleTxConnection) -> None:
            met.append(connection)
            await connection.wait_closed()

        async with couple() as (a, b):
            b.accept(TYPE, keep)
            connection = await a.connect(BETA, TYPE)
            await until(lambda: met)
            with pytest.raises(ValueError, match="opened"):
                await met[0].disconnect()
            await connection.disconnect()
            await until(lambda: met[0].closed)
            assert await met[0].receive() is None
            with pytest.raises(ConnectionClosed):
                met[0].send_nowait(1)
            with pytest.raises(ConnectionClosed):
                connection.send_nowait(1)

    run(scene())


def test_a_handler_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(connection: OleTxConnection) -> None:
        raise LookupError("a mistake")

    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, broken)
            b.accept(TYPE + 1, echo)
            await a.connect(BETA, TYPE)
            async with await a.connect(BETA, TYPE + 1) as connection:
                await connection.send(1)
                assert await connection.receive() == Message(2, b"")

    run(scene())
    assert "a mistake" in caplog.text


# --- ends of sessions -----------------------------------------------------------------------------


def test_an_idle_session_ends_quietly_and_comes_back() -> None:
    async def scene() -> None:
        limits = SessionLimits(ping_interval_s=0.05, idle_intervals=3)
        async with couple(limits=limits) as (a, b):
            b.accept(TYPE, echo)
            for _ in range(2):
                async with await a.connect(BETA, TYPE) as connection:
                    await connection.send(1)
                    assert await connection.receive() == Message(2, b"")
                    await asyncio.sleep(0.4)  # with a connection it is not idle
                    assert a.transport.machine.sessions
                await until(lambda: not a.transport.machine.sessions)
                await until(lambda: not b.transport.machine.sessions)
                assert not a._links
                assert not b._links

    run(scene())


def test_a_connection_that_waits_for_a_slot_fails_with_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            asked: list[int] = []

            def grant(_session: object, requested: int, _now: float) -> int:
                asked.append(requested)
                return 0

            monkeypatch.setattr(b, "grant", grant)
            waiting = asyncio.create_task(a.connect(BETA, TYPE))
            await until(lambda: asked)
            await b.close(grace_s=0)
            with pytest.raises(ConnectionClosed):
                await waiting

    run(scene())


def test_a_boxcar_for_a_session_that_was_idle_too_long_is_told_so() -> None:
    """It crossed the teardown, which is under way."""

    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            async with await a.connect(BETA, TYPE):
                (link,) = a._links.values()
            assert link.receive(0, b"", 0.0) != CmResult.TEARING_DOWN
            link.mux.handle_timer(float("inf"))
            assert link.receive(0, b"", 0.0) == CmResult.TEARING_DOWN

    run(scene())


def test_connect_waits_for_the_end_of_a_session_that_is_torn_down() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            await a.session(BETA)
            machine = a.transport.machine
            (old,) = machine.sessions
            machine.tear_down(old, TeardownType.FORCE, asyncio.get_running_loop().time())
            async with await a.connect(BETA, TYPE) as connection:
                await connection.send(1)
                assert await connection.receive() == Message(2, b"")
            (new,) = machine.sessions
            assert new is not old
            assert old.state is SessionState.CLOSED

    run(scene())


def test_a_partner_that_closes() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            connection = await a.connect(BETA, TYPE)
            await connection.send(1)
            assert await connection.receive() == Message(2, b"")
            await b.close()
            with pytest.raises(ConnectionClosed, match="down"):
                await connection.receive()
            await until(lambda: not a.transport.machine.sessions)

    run(scene())


def test_closing_disconnects_before_it_tears_down() -> None:
    """The partner sees the end of each connection, and no broken session."""

    async def scene() -> None:
        ended: list[Message | ConnectionClosed | None] = []

        async def listen(connection: OleTxConnection) -> None:
            try:
                ended.append(await connection.receive())
            except ConnectionClosed as error:
                ended.append(error)

        async with couple() as (a, b):
            b.accept(TYPE, listen)
            await a.connect(BETA, TYPE)
            await a.close(DEADLINE_S)
            await until(lambda: ended)
            assert ended == [None]

    run(scene())


def test_a_partner_whose_sockets_break() -> None:
    """Its associations are cut without a word: rundown on the other side."""

    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            connection = await a.connect(BETA, TYPE)
            for protocol in list(b.transport._server._connections):
                protocol.abort()
            with pytest.raises(ConnectionClosed):
                await _talk_for_ever(connection)
            await until(lambda: not a.transport.machine.sessions)
            await until(lambda: not b.transport.machine.sessions)
            async with await a.connect(BETA, TYPE) as again:
                await again.send(1)
                assert await again.receive() == Message(2, b"")

    run(scene())


# --- partners that cannot be had ------------------------------------------------------------------


@pytest.mark.parametrize("name", [ALPHA, BETA], ids=["poke", "build"])
def test_a_partner_that_never_answers(name: NameObject) -> None:
    """It takes the connection and says nothing."""

    async def scene() -> None:
        async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        me = BETA if name is ALPHA else ALPHA
        resolver = FixedResolver({name.cid: ("127.0.0.1", port)})
        async with OleTxEndpoint(me, resolver=resolver, settings=QUICK) as endpoint:
            connection = endpoint.open(name, TYPE)
            with pytest.raises(SessionError) as failure:
                await endpoint.connect(name, TYPE)
            assert failure.value.result == CmResult.TIMED_OUT
            with pytest.raises(ConnectionClosed, match="TIMED_OUT"):
                await connection.opened()
            assert not endpoint.transport.machine.sessions
            assert not endpoint._links
            assert not endpoint.transport._bindings
        server.close()

    run(scene())


@pytest.mark.req("CMP-3.1.4.2-02")
def test_a_second_connection_uses_the_session_that_is_there() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.accept(TYPE, echo)
            opened = [await a.connect(BETA, TYPE) for _ in range(2)]
            for connection in opened:
                await connection.send(1, b"one")
                assert await connection.receive() == Message(2, b"one")
            assert [connection.id for connection in opened] == [1, 2]
            assert len(a.transport.machine.sessions) == 1

    run(scene())


@pytest.mark.req("CMP-3.1.4.2-02")
def test_a_partner_that_is_not_there() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            await b.close()
            with pytest.raises(SessionError) as failure:
                await a.connect(BETA, TYPE)
            assert failure.value.result == CmResult.SERVER_UNAVAILABLE
            with pytest.raises(SessionError):
                await a.connect(NameObject("NOWHERE", Guid(bytes([9]) * 16)), TYPE)

    run(scene())


def test_no_common_version() -> None:
    async def scene() -> None:
        async with couple() as (a, b):
            b.transport.machine._setup._versions = type(b._versions)(level_three=(7, 9))
            with pytest.raises(SessionError) as failure:
                await a.connect(BETA, TYPE)
            assert failure.value.result == CmResult.VERSION_SET_NOT_SUPPORTED

    run(scene())


# --- initialisation -------------------------------------------------------------------------------


@pytest.mark.req("CMP-3.1.3.1-01", "CMP-3.1.3.2-01", "CMP-3.1.1-01", "CMP-2.1.2-01")
def test_what_the_layer_above_gives_is_what_the_transport_has() -> None:
    async def scene() -> None:
        given = Security()
        endpoint = OleTxEndpoint(ALPHA, level_three=(2, 4), security=given)
        async with endpoint:
            partner = endpoint.transport.machine
            assert partner.name is ALPHA
            assert partner.versions.level_two == (1, 1)
            assert partner.versions.level_three == (2, 4)
            assert partner.versions.level_one == (1, 2)
            assert endpoint.transport.security is given

    run(scene())


@pytest.mark.req("CMP-3.1.3.2-02")
@pytest.mark.parametrize("what", ["port", "mapper_port"])
def test_a_port_that_is_taken_fails_the_start_and_leaves_nothing(what: str) -> None:
    async def scene() -> None:
        taken = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        port = taken.sockets[0].getsockname()[1]
        registry = EndpointRegistry()
        options: dict[str, Any] = {"mapper_port": 0, what: port, "registry": registry}
        endpoint = OleTxEndpoint(ALPHA, **options)
        with pytest.raises(OSError, match="address") as failure:
            await endpoint.start()
        assert failure.value.errno == errno.EADDRINUSE
        assert list(registry._entries) == []
        with pytest.raises(RuntimeError, match="not open"):
            endpoint.open(BETA, TYPE)
        if what == "port":  # the mapper had been started
            assert endpoint.mapper_port
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", endpoint.mapper_port)
        taken.close()

    run(scene())


def test_the_endpoint_is_registered_under_its_identifier() -> None:
    async def scene() -> None:
        registry = EndpointRegistry()
        async with (
            OleTxEndpoint(ALPHA, registry=registry, mapper_port=0) as a,
            OleTxEndpoint(BETA, registry=registry) as b,
        ):
            assert a.mapper_port is not None
            assert await find_port("127.0.0.1", a.mapper_port, ALPHA.cid) == a.port
            assert await find_port("127.0.0.1", a.mapper_port, BETA.cid) == b.port
            assert a.port != b.port
            objects = {entry.object for entry in registry._entries}
            assert objects == {ALPHA.cid, BETA.cid}
            await b.close()
            assert {entry.object for entry in registry._entries} == {ALPHA.cid}

    run(scene())


def test_a_fixed_port() -> None:
    async def scene() -> None:
        free = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        port = free.sockets[0].getsockname()[1]
        free.close()
        await free.wait_closed()
        async with OleTxEndpoint(ALPHA, port=port) as endpoint:
            assert endpoint.port == port

    run(scene())


def test_an_endpoint_has_to_be_entered() -> None:
    async def scene() -> None:
        endpoint = OleTxEndpoint(ALPHA)
        with pytest.raises(RuntimeError, match="enter the endpoint"):
            _ = endpoint.transport
        with pytest.raises(RuntimeError, match="not open"):
            await endpoint.connect(BETA, TYPE)

    run(scene())


def test_a_caller_that_claims_another_host_is_not_called_back() -> None:
    """Else it could make this side connect to third parties."""

    async def scene() -> None:
        back = MapperResolver().calling_back("192.0.2.1")
        with pytest.raises(RpcConnectionError, match=r"localhost is not at 192\.0\.2\.1"):
            await back(NameObject("localhost", BETA.cid))

    run(scene())
