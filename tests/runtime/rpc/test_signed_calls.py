"""Signed and sealed calls with real NTLM over sockets: nothing that guards a call is left out.

The short way of a whole call must not pass by the caller's identity, the minimum level, the memory
budget, the counters, or the end of a connection whose signature is wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType, Identity
from mqis.protocol.budget import Quota
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import AgreedContext, Bound, CallReturned, ClientConnection
from mqis.protocol.rpc.faults import FaultStatus
from mqis.runtime.budgets import Budgets
from mqis.runtime.rpc import server_connection as driver
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.runtime.rpc.typed import invoke
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.pdu_header import PacketType
from tests.runtime.authentication.pairs import ALICE, CLIENT, SERVER, TARGET
from tests.runtime.rpc.desk import (
    COUNT,
    DESK,
    MEASURE,
    Blob,
    Desk,
    Number,
    Raw,
    connected,
    count,
    refused,
    serving,
)
from tests.waiting import run, until

LEVELS = pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
TYPES = pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO])


def credentials(auth_type: int, level: int) -> Credentials:
    return Credentials(CLIENT, auth_type, level, TARGET)


class Watched(Desk):
    """Notes who calls, and at which level."""

    def __init__(self) -> None:
        super().__init__()
        self.callers: list[tuple[Identity | None, int]] = []

    def dispatch(self, incoming: IncomingCall) -> bytes | Awaitable[bytes]:
        self.callers.append((incoming.identity, incoming.level))
        return super().dispatch(incoming)


@TYPES
@LEVELS
@pytest.mark.parametrize("min_level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_the_service_learns_who_calls(auth_type: int, level: int, min_level: int) -> None:
    async def main() -> None:
        desk = Watched()
        async with serving(desk, authenticator=SERVER, min_level=min_level) as (server, port):
            client = await connected(port, credentials=credentials(auth_type, level))
            for number in range(5):
                assert await count(client, number) == number + 1
            await client.close()
            who = ALICE.identity if level >= min_level else None
            assert desk.callers == [(who, level)] * 5
            assert server.served(desk.interface).operations[COUNT.opnum].calls == 5
            assert server.endpoint.statistics.calls_in == 5

    run(main())


@LEVELS
def test_a_request_beyond_the_memory_budget_is_refused(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SMALL", 100)
    budgets = Budgets()
    budgets.memory.quota = Quota(*[50_000] * 4)

    async def main() -> None:
        async with serving(authenticator=SERVER, budgets=budgets) as (_, port):
            client = await connected(port, credentials=credentials(AuthType.NTLM, level))
            large = Blob(bytes(4000))  # one PDU, but more than the budget once it is decoded
            await refused(FaultStatus.SERVER_TOO_BUSY, invoke(client, DESK, MEASURE, large))
            assert await count(client) == 2
            await client.close()
            await until(lambda: budgets.memory.used == 0)

    run(main())


# --- attacks --------------------------------------------------------------------------------------


class Signer:
    """A client that hands out its signed requests instead of sending them."""

    def __init__(self, raw: Raw, level: int) -> None:
        context = CLIENT.initiator(AuthType.NTLM, level, TARGET)
        self._raw, self._machine = raw, ClientConnection()
        self._channel = Channel(1, AuthType.NTLM, level, context)
        self._context: AgreedContext | None = None

    async def bind(self) -> None:
        self._machine.bind([DESK.syntax], transfers=[NDR20], channel=self._channel)
        while self._context is None:
            await self._raw.send(self._machine.data_to_send())
            for event in self._machine.receive(await self._raw.pdu()):
                if isinstance(event, Bound):
                    self._context = event.contexts[0]
        await self._raw.send(self._machine.data_to_send())

    def request(self) -> bytes:
        assert self._context is not None
        stub = COUNT.request.encode(Number(1), Syntax.NDR20)
        self._machine.request(self._context, COUNT.opnum, stub)
        return self._machine.data_to_send()

    def returned(self, answer: bytes) -> bool:
        [event] = self._machine.receive(answer)
        return isinstance(event, CallReturned)


def flip(at: int) -> Callable[[bytes], bytes]:
    def flipped(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at] ^= 1
        return bytes(changed)

    return flipped


def auth_length(length: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:10] + length.to_bytes(2, "little") + data[12:]


def without_last(count: int) -> Callable[[bytes], bytes]:
    """The trailer is cut short, and the lengths say so."""

    def cut(data: bytes) -> bytes:
        size, token = len(data) - count, 16 - count
        lengths = size.to_bytes(2, "little") + token.to_bytes(2, "little")
        return data[:8] + lengths + data[12:size]

    return cut


ATTACKS = {
    "call id": flip(12),
    "operation": flip(22),
    "stub": flip(24),
    "trailer": flip(-21),
    "checksum": flip(-10),
    "sequence number": flip(-1),
    "token cut by one byte": without_last(1),
    "token of one byte": without_last(15),
    "shorter auth_length": auth_length(8),
    "longer auth_length": auth_length(24),
    "auth_length beyond the PDU": auth_length(0xFFFF),
    "auth_length that overlaps the header": auth_length(60),
}


@LEVELS
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_damaged_call_ends_the_connection_and_never_runs(level: int, attack: str) -> None:
    async def main() -> None:
        desk = Watched()
        async with serving(desk, authenticator=SERVER) as (server, port):
            raw = await Raw.connect(port)
            signer = Signer(raw, level)
            await signer.bind()
            await raw.send(signer.request())
            assert signer.returned(await raw.pdu())
            damaged = ATTACKS[attack](signer.request())
            await raw.send(damaged)
            answer = await raw.rest()
            await raw.close()
            assert answer[2] == PacketType.FAULT
            assert len(desk.callers) == 1
            assert server.endpoint.statistics.refused == 1
            assert server.endpoint.statistics.faults == 1

    run(main())


@LEVELS
@pytest.mark.parametrize("order", [(0, 0), (1,), (0, 2), (0, 1, 0)], ids=str)
def test_replayed_and_reordered_calls(level: int, order: tuple[int, ...]) -> None:
    """All but the last call of each order are in order; the last one ends the connection."""

    async def main() -> None:
        desk = Watched()
        async with serving(desk, authenticator=SERVER) as (server, port):
            raw = await Raw.connect(port)
            signer = Signer(raw, level)
            await signer.bind()
            calls = [signer.request() for _ in range(3)]
            for number in order[:-1]:
                await raw.send(calls[number])
                assert (await raw.pdu())[2] == PacketType.RESPONSE
            await raw.send(calls[order[-1]])
            answer = await raw.rest()
            await raw.close()
            assert answer[2] == PacketType.FAULT
            assert int.from_bytes(answer[24:28], "little") == FaultStatus.SEC_PKG_ERROR
            assert len(desk.callers) == len(order) - 1
            assert server.endpoint.statistics.fault_statuses == {FaultStatus.SEC_PKG_ERROR: 1}

    run(main())
