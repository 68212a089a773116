"""Several requests in one segment: each by the short way, and all answered in one write."""

from __future__ import annotations

import asyncio
from math import inf

import pytest

from mqis.protocol.rpc.client_side import Bound, CallReturned, ClientConnection
from mqis.protocol.rpc.server_requests import Requests
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.server_connection import ServerProtocol
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20
from tests.runtime.rpc.desk import COUNT, DESK, Desk, Number
from tests.waiting import run

CALLS = 20


class Kept(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def take(self) -> list[bytes]:
        taken, self.writes = self.writes, []
        return taken


class Side:
    """A bound client and the server's connection, without sockets."""

    def __init__(self) -> None:
        self.transport = Kept()
        self.server = RpcServer([Desk()], SystemEntropy(), turn_s=inf)  # the loop does not turn
        self.protocol = ServerProtocol(self.server)
        self.protocol.connection_made(self.transport)
        self.machine = ClientConnection()
        self.machine.bind([DESK.syntax], transfers=[NDR20])
        self.protocol.data_received(self.machine.data_to_send())
        [bound] = self.machine.receive(b"".join(self.transport.take()))
        assert isinstance(bound, Bound)
        self.context = bound.contexts[0]

    def segment(self) -> bytes:
        """Many requests; the numbers that they count from are ascending."""
        data = b""
        for number in range(CALLS):
            stub = COUNT.request.encode(Number(number), Syntax.NDR20)
            self.machine.request(self.context, COUNT.opnum, stub)
            data += self.machine.data_to_send()
        return data

    def counted(self, written: list[bytes]) -> list[int]:
        events = self.machine.receive(b"".join(written))
        stubs = [event.stub for event in events if isinstance(event, CallReturned)]
        return [COUNT.response.decode(stub, Syntax.NDR20).n for stub in stubs]


def test_requests_of_one_segment_are_answered_in_one_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[bool] = []
    short_way = Requests.whole

    def watched(self: Requests, data: bytes) -> object:
        call = short_way(self, data)
        taken.append(call is not None)
        return call

    async def main() -> None:
        side = Side()
        monkeypatch.setattr(Requests, "whole", watched)
        side.protocol.data_received(side.segment())
        written = side.transport.take()
        assert len(written) == 1
        assert side.counted(written) == list(range(1, CALLS + 1))
        assert taken.count(True) == CALLS
        assert side.server.endpoint.statistics.packets_in == CALLS + 1  # and the bind

    run(main())


@pytest.mark.parametrize("size", [1, 23, 24, 100, 1000])
def test_segments_may_end_anywhere(size: int) -> None:
    async def main() -> None:
        side = Side()
        data = side.segment()
        for at in range(0, len(data), size):
            side.protocol.data_received(data[at : at + size])
        assert side.counted(side.transport.take()) == list(range(1, CALLS + 1))
        assert side.server.endpoint.statistics.calls_in == CALLS

    run(main())
