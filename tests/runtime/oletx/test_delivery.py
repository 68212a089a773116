"""Messages into and out of connections: callbacks, senders that wait, long PDUs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.oletx import partner_driver
from mqis.runtime.oletx.application_connection import (
    BOXCARS_AHEAD,
    ConnectionClosed,
    Message,
    OleTxConnection,
)
from mqis.wire.cmp.boxcar import MAX_SIZE
from mqis.wire.cmp.packet import MAX_DATA
from tests.runtime.oletx.endpoints import PATIENT, TYPE, couple, echo
from tests.waiting import DEADLINE_S, run, until

LONG = bytes(MAX_DATA)


# --- callbacks ------------------------------------------------------------------------------------


def test_a_callback_gets_what_waits_and_what_comes() -> None:
    async def scene() -> None:
        got: list[Message] = []
        there: list[OleTxConnection] = []

        async def handle(connection: OleTxConnection) -> None:
            there.append(connection)
            await until(lambda: len(connection._messages) == 3)
            connection.deliver_to(lambda *message: got.append(Message(*message)))
            await connection.wait_closed()

        async with couple() as (one, other):
            other.accept(TYPE, handle)
            async with await one.connect(other.name, TYPE) as connection:
                for number in range(3):
                    await connection.send(number, b"%d" % number)
                await until(lambda: len(got) == 3)
                for number in range(3, 2000):
                    await connection.send(number, b"%d" % number)
                await until(lambda: len(got) == 2000)
            assert got == [Message(number, b"%d" % number) for number in range(2000)]
            assert there[0].receive_nowait() is None

    run(scene())


def test_a_callback_takes_over_from_a_reader_that_was_too_slow() -> None:
    """The connection is paused then, and its messages wait with the multiplexer."""

    async def scene() -> None:
        got: list[int] = []

        async def handle(connection: OleTxConnection) -> None:
            await until(lambda: connection.raw.paused and connection.raw.unread > 0)
            connection.deliver_to(lambda message_type, _body: got.append(message_type))
            await connection.wait_closed()

        async with couple() as (one, other):
            other.accept(TYPE, handle)
            async with await one.connect(other.name, TYPE) as connection:
                for number in range(8):
                    await connection.send(number, LONG)
                await until(lambda: len(got) == 8)
            assert got == list(range(8))

    run(scene())


def test_a_callback_that_fails_costs_no_other_message(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        got: list[int] = []

        def callback(message_type: int, _body: bytes) -> None:
            if message_type == 1:
                raise ValueError("not that one")
            got.append(message_type)

        async def handle(connection: OleTxConnection) -> None:
            connection.deliver_to(callback)
            await connection.wait_closed()

        async with couple() as (one, other):
            other.accept(TYPE, handle)
            async with await one.connect(other.name, TYPE) as connection:
                for number in range(4):
                    connection.send_nowait(number)
                await until(lambda: len(got) == 3)
            assert got == [0, 2, 3]

    with caplog.at_level(logging.ERROR):
        run(scene())
    assert "not that one" in caplog.text


# --- senders --------------------------------------------------------------------------------------


def test_a_sender_waits_while_boxcars_do() -> None:
    """It never gets far ahead of the partner, and the loop is not its own."""

    async def scene() -> None:
        most = 0
        async with couple() as (one, other):
            other.accept(TYPE, echo)
            async with await one.connect(other.name, TYPE) as connection:
                mux = (await one.session(other.name)).mux
                for number in range(50):
                    await connection.send(number, bytes(MAX_SIZE // 2))
                    most = max(most, mux.boxcars_waiting)
                await until(lambda: len(connection._messages) > 0)
                for number in range(50):
                    assert await connection.receive() == Message(number + 1, bytes(MAX_SIZE // 2))
        assert most == BOXCARS_AHEAD

    run(scene())


def test_senders_without_waiting_catch_up() -> None:
    async def scene() -> None:
        async with couple() as (one, other):
            other.accept(TYPE, echo)
            async with await one.connect(other.name, TYPE) as connection:
                mux = (await one.session(other.name)).mux
                for number in range(10):
                    connection.send_nowait(number, LONG)
                assert mux.boxcars_waiting == 10
                await connection.drain()
                assert mux.boxcars_waiting <= BOXCARS_AHEAD
                await connection.drain()  # at once
                for number in range(10):
                    assert await connection.receive() == Message(number + 1, LONG)

    run(scene())


def test_a_sender_that_waits_hears_of_the_end() -> None:
    async def scene() -> None:
        async def idle(connection: OleTxConnection) -> None:
            await connection.wait_closed()

        async def send(connection: OleTxConnection) -> None:
            while True:
                await connection.send(1, LONG)

        async with couple(settings=replace(PATIENT, call_s=3.0)) as (one, other):
            other.accept(TYPE, idle)
            connection = await one.connect(other.name, TYPE)
            mux = (await one.session(other.name)).mux
            sending = asyncio.create_task(send(connection))
            await until(lambda: mux.boxcars_waiting > BOXCARS_AHEAD)
            with pytest.raises(ConnectionClosed):  # the partner reads nothing: its call timer
                await sending

    run(scene())


# --- PDUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("theirs", "agreed"), [(65_528, 65_528), (5840, 5840), (4280, 4280)])
def test_pdus_are_as_long_as_both_want(
    theirs: int, agreed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partners of our own kind save fragments; others get what they are used to."""
    monkeypatch.setattr(partner_driver, "LIMITS", RpcLimits(max_frag=theirs))

    async def scene() -> None:
        async with couple() as (one, other):
            other.accept(TYPE, echo)
            async with await one.connect(other.name, TYPE) as connection:
                await connection.send(1, LONG)
                assert await connection.receive() == Message(2, LONG)
            (binding,) = one.transport._bindings.values()
            client = binding._client
            assert client is not None
            assert client._machine._max_frag == agreed

    run(scene())


def test_who_leaves_much_unread_gets_away_all_the_same() -> None:
    """The partner's last word comes behind its messages."""

    async def scene() -> None:
        async def flood(connection: OleTxConnection) -> None:
            for number in range(12):
                await connection.send(number, LONG)
            await connection.wait_closed()

        async with couple() as (one, other):
            other.accept(TYPE, flood)
            async with asyncio.timeout(DEADLINE_S):
                async with await one.connect(other.name, TYPE) as connection:
                    await until(lambda: connection.raw.paused)
            assert connection.closed

    run(scene())
