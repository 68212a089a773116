"""A queue manager made of a socket and packets: what an attacker needs to speak MS-MQQB.

It says whose GUID it likes, and sends whatever bytes it is given. Nothing of our queue manager is
used, only the encodings.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import count

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import Message, encode_message
from mqis.wire.mqqb.baseheader import BASE_SIZE, BaseHeader
from mqis.wire.mqqb.internal import ConnectionParameters, EstablishConnection
from mqis.wire.mqqb.packet import Packet, UserMessage, decode_framed
from mqis.wire.mqqb.properties import MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader, SenderIdType
from mqis.wire.mqqb.userheader import UserHeader
from mqis.wire.reader import Reader
from tests.waiting import DEADLINE_S

#: Far from what a server numbers its own messages with.
_numbers = count(7)


def unsigned(guid: Guid, machine: str, message: Message, signature: bytes = b"") -> UserMessage:
    """A replication message as ``guid`` would send it to ``machine``, but for the signature."""
    direct = QueueName.of_direct(f"OS:{machine}\\PRIVATE$\\mqis_queue$")
    security = SecurityHeader(
        SenderIdType.QUEUE_MANAGER, guid.raw, signature=signature, default_provider=bool(signature)
    )
    return UserMessage(
        UserHeader(guid, next(_numbers), direct),
        MessageProperties(encode_message(message)),
        security,
    )


def again(recorded: UserMessage) -> UserMessage:
    """The same message under a number that nobody has seen: the signature does not cover it."""
    return replace(recorded, header=replace(recorded.header, message_id=next(_numbers)))


@dataclass
class QueuePort:
    """A session with a server, in somebody's name."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int, guid: Guid) -> QueuePort:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        made = cls(reader, writer)
        writer.write(EstablishConnection(guid, Guid.NULL, 0).to_bytes())
        answer = await made.packet()
        assert isinstance(answer, EstablishConnection)
        if answer.refused:
            await made.close()
            raise ConnectionRefusedError
        writer.write(ConnectionParameters(1000, 1000).to_bytes())
        assert isinstance(await made.packet(), ConnectionParameters)
        return made

    async def packet(self) -> Packet:
        async with asyncio.timeout(DEADLINE_S):
            head = await self.reader.readexactly(BASE_SIZE)
            base = BaseHeader.decode(Reader(head))
            return decode_framed(
                base, head + await self.reader.readexactly(base.length - len(head))
            )

    async def send(self, *messages: UserMessage) -> None:
        """All in one write, so that the server has them before anybody answers the first."""
        self.writer.write(b"".join(message.to_bytes() for message in messages))
        await self.writer.drain()

    async def close(self) -> None:
        self.writer.close()


class Tap:
    """Stands before a queue port and keeps what clients send to it."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._streams: list[bytearray] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to = await asyncio.open_connection("127.0.0.1", self._target)
        kept = bytearray()
        self._streams.append(kept)
        for source, sink, copy in ((reader, to, kept), (there, writer, bytearray())):
            task = asyncio.create_task(_copy(source, sink, copy))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def messages(self) -> list[UserMessage]:
        """The messages sent to queues, in order, without the session set-up."""
        found = []
        for stream in self._streams:
            at = 0
            while at + BASE_SIZE <= len(stream):
                base = BaseHeader.decode(Reader(bytes(stream[at : at + BASE_SIZE])))
                packet = decode_framed(base, bytes(stream[at : at + base.length]))
                at += base.length
                if isinstance(packet, UserMessage):
                    found.append(packet)
        return found

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, kept: bytearray) -> None:
    try:
        while data := await source.read(65536):
            kept += data
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()
