"""A wire tap: what a client and a server say to each other, PDU by PDU, in its order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypeVar

from mqis.client import ServerAddress
from mqis.wire.rpc.pdu import Pdu, decode_pdu
from mqis.wire.rpc.pdu_bodies import Request
from mqis.wire.rpc.pdu_header import HEADER_SIZE, Header
from tests.client.peers import HOST

B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Heard:
    """One PDU and where it came from."""

    from_client: bool
    pdu: Pdu
    raw: bytes

    @property
    def body(self) -> Any:
        return self.pdu.body

    @property
    def call_id(self) -> int:
        return self.pdu.header.call_id


class Tap:
    """Listens on a port of its own and passes everything on to ``port``."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.heard: list[Heard] = []
        self.port = 0

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(HOST, self.port)

    async def __aenter__(self) -> Tap:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()

    def of(self, kind: type[B]) -> list[tuple[Heard, B]]:
        """The PDUs with this kind of body."""
        return [(heard, heard.body) for heard in self.heard if type(heard.body) is kind]

    def stubs(self, opnum: int, *, from_client: bool = True) -> list[bytes]:
        """The stubs of the calls, or callbacks, with this number; each fits one fragment."""
        return [
            body.stub
            for heard, body in self.of(Request)
            if heard.from_client is from_client and body.opnum == opnum
        ]

    def say_to_client(self, data: bytes) -> None:
        """Put words into the server's mouth."""
        self._writers[-1].write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(HOST, self._target)
        self._writers += [up_writer, writer]
        await asyncio.gather(
            self._pass_on(reader, up_writer, from_client=True),
            self._pass_on(up_reader, writer, from_client=False),
        )

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, from_client: bool
    ) -> None:
        try:
            while True:
                head = await reader.readexactly(HEADER_SIZE)
                header = Header.decode(head)
                pdu = head + await reader.readexactly(header.frag_length - HEADER_SIZE)
                self.heard.append(Heard(from_client, decode_pdu(pdu, header), pdu))
                writer.write(pdu)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
