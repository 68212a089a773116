"""Strangers work in turns: a caller with a name does not wait for all that they have sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.protocol.rpc.server_side import PDUS_AT_ONCE, CallReceived, Event
from mqis.runtime.budgets import Budgets
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.runtime.rpc.server_connection import ServerProtocol
from mqis.runtime.turns import TURN_S
from mqis.testing.security import SharedSecret
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20
from tests.protocol.rpc.talk import Talk, alter_pdu, element, split
from tests.runtime.rpc.desk import (
    COUNT,
    DESK,
    HOST,
    WAIT,
    Desk,
    Number,
    connected,
    count,
    serving,
)
from tests.runtime.rpc.test_hostile import bound, request
from tests.waiting import run, until

STRANGERS = 30
#: Calls in one segment: more bytes than the PDU that is arriving, which is not charged.
CALLS = 400


class Slow(Desk):
    """Each call takes a whole turn. Notes the numbers that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        #: What ``look`` returned at each call.
        self.look: Callable[[], int] = lambda: 0
        self.seen: list[int] = []

    def dispatch(self, incoming: IncomingCall) -> bytes | Awaitable[bytes]:
        time.sleep(TURN_S)
        self.seen.append(self.look())
        self.asked.append(int.from_bytes(incoming.call.stub[:4], "little"))
        return super().dispatch(incoming)


async def somebody(port: int) -> RpcClient:
    secret = SharedSecret(name="alice")
    return await connected(
        port, credentials=Credentials(secret, AuthType.KERBEROS, AuthLevel.INTEGRITY, "host")
    )


@pytest.mark.req("SEC-17-07")
def test_a_caller_with_a_name_does_not_wait_for_strangers() -> None:
    async def main() -> None:
        desk = Slow()
        async with serving(desk, authenticator=SharedSecret()) as (_, port):
            strangers = [await connected(port) for _ in range(STRANGERS)]
            alice = await somebody(port)
            everyone = [*strangers, alice]
            await asyncio.gather(*(count(client, n) for n, client in enumerate(everyone)))
            assert sorted(desk.asked) == list(range(STRANGERS + 1))
            assert desk.asked.index(STRANGERS) <= 2, desk.asked
            for client in everyone:
                await client.close()

    run(main())


@pytest.mark.req("SEC-17-07")
def test_each_address_has_its_turn() -> None:
    """Somebody who is about to log on is a stranger until then."""

    async def main() -> None:
        desk = Slow()
        async with serving(desk) as (_, port):
            many = [await connected(port) for _ in range(STRANGERS)]
            everyone = [*many, await elsewhere(port)]
            await asyncio.gather(*(count(client, n) for n, client in enumerate(everyone)))
            assert sorted(desk.asked) == list(range(STRANGERS + 1))
            assert desk.asked.index(STRANGERS) <= 3, desk.asked
            for client in everyone:
                await client.close()

    run(main())


async def elsewhere(port: int) -> RpcClient:
    """A client at another address."""
    _, client = await asyncio.get_running_loop().create_connection(
        lambda: RpcClient(None), HOST, port, local_addr=("127.0.0.2", 0)
    )
    await client.bind([DESK.syntax], (NDR20,), None, group_id=0)
    return client


@pytest.mark.req("SEC-17-07")
def test_calls_in_one_segment_take_turns_too() -> None:
    async def main() -> None:
        desk = Slow()
        async with serving(desk) as (_, port):
            hasty, other = await connected(port), await elsewhere(port)
            # All calls of a task's turn are one segment, or nearly.
            calls = [count(hasty, n) for n in range(STRANGERS)]
            await asyncio.gather(*calls, count(other, STRANGERS))
            assert sorted(desk.asked) == list(range(STRANGERS + 1))
            assert [n for n in desk.asked if n < STRANGERS] == list(range(STRANGERS))
            assert desk.asked.index(STRANGERS) <= 3, desk.asked
            await hasty.close()
            await other.close()

    run(main())


@pytest.mark.req("SEC-17-07")
@pytest.mark.parametrize("pdus", [PDUS_AT_ONCE - 1, PDUS_AT_ONCE, PDUS_AT_ONCE + 1, 40])
def test_pdus_beyond_those_of_one_turn_are_left_for_later(pdus: int) -> None:
    talk = Talk().bound()
    talk.server.receive(b"".join(alter_pdu((element(n),)) for n in range(1, pdus + 1)), 0.0)
    assert talk.server.stalled is (pdus > PDUS_AT_ONCE)
    assert len(split(talk.server.data_to_send())) == min(pdus, PDUS_AT_ONCE)
    talk.go_on()
    assert not talk.server.stalled
    assert len(split(talk.server.data_to_send())) == max(0, pdus - PDUS_AT_ONCE)


@pytest.mark.req("SEC-7-04", "SEC-17-07")
def test_what_waits_is_charged() -> None:
    """A stranger's bytes cost memory while they wait, as those of a call that arrives."""

    async def main() -> None:
        desk, budgets = Slow(), Budgets()
        desk.look = lambda: budgets.memory.used
        async with serving(desk, budgets=budgets) as (_, port):
            one, other = await bound(port), await bound(port)
            asked = request(COUNT.opnum, stub=COUNT.request.encode(Number(1), Syntax.NDR20))
            one.writer.write(asked)
            other.writer.write(asked * CALLS)
            await until(lambda: len(desk.asked) == CALLS + 1)
            assert max(desk.seen) == len(asked) * CALLS - RpcLimits().max_frag
            await until(lambda: budgets.memory.used == 0)
            await one.close()
            await other.close()

    run(main())


@pytest.mark.req("SEC-17-07")
def test_a_connection_that_is_closed_has_no_turn() -> None:
    """An administrator, or a connection that needs the room, may end it while it waits."""

    async def main() -> None:
        desk = Slow()
        async with serving(desk) as (server, port):
            strangers = [await connected(port) for _ in range(STRANGERS)]
            desk.look = lambda: sum(server.end_session(n) for n in range(2, STRANGERS + 1))
            answers = await asyncio.gather(
                *(count(client, n) for n, client in enumerate(strangers)), return_exceptions=True
            )
            assert desk.asked == [0]
            assert [isinstance(answer, int) for answer in answers] == [True] + [False] * (
                STRANGERS - 1
            )
            assert await count(strangers[0], 50) == 51
            for client in strangers:
                await client.close()

    run(main())


@pytest.mark.req("SEC-17-07")
def test_an_error_ends_one_connection_and_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = ServerProtocol._handle

    def failing(self: ServerProtocol, event: Event) -> None:
        if isinstance(event, CallReceived) and event.call.stub[0] == 3:
            raise RuntimeError("unexpected")
        handle(self, event)

    async def main() -> None:
        desk = Slow()
        async with serving(desk) as (server, port):
            strangers = [await connected(port) for _ in range(STRANGERS)]
            monkeypatch.setattr(ServerProtocol, "_handle", failing)
            calls = [count(client, n) for n, client in enumerate(strangers)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            failed = [n for n, answer in enumerate(answers) if not isinstance(answer, int)]
            assert failed == [3]
            assert server.connections == STRANGERS - 1
            for client in strangers:
                await client.close()

    run(main())


@pytest.mark.req("SEC-17-07")
def test_nothing_is_charged_to_a_connection_that_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its last turn may come afterwards: a call under way was charged once more, for ever."""
    lost, charged = ServerProtocol.connection_lost, []

    async def main() -> None:
        desk, budgets = Desk(), Budgets()

        def lost_before_its_turn(self: ServerProtocol, error: Exception | None) -> None:
            lost(self, error)
            self.work()
            charged.append(budgets.memory.used)

        monkeypatch.setattr(ServerProtocol, "connection_lost", lost_before_its_turn)
        async with serving(desk, budgets=budgets) as (server, port):
            raw = await bound(port)
            number = COUNT.request.encode(Number(60_000), Syntax.NDR20)
            await raw.send(request(WAIT.opnum, stub=number))
            await until(lambda: desk.started == 1)
            assert budgets.memory.used > 0
            raw.abort()
            await until(lambda: server.connections == 0)
            assert charged == [0]

    run(main())
