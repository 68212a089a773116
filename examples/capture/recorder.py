"""Proxies that record their traffic, and the capture file made from it.

Everything runs on one computer; in the file every server has its own address and its usual port.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from mqis.testing.pcap import Ends, Part, conversation_frames, udp_frame, write_pcap

HOST = "127.0.0.1"


@dataclass(slots=True)
class Conversation:
    """One connection, or the datagrams between two ports."""

    ends: Ends
    opened_ns: int
    parts: list[Part] = field(default_factory=list)
    udp: bool = False

    def frames(self) -> list[tuple[int, bytes]]:
        if self.udp:
            return [(at, udp_frame(self.ends, side, data)) for at, side, data in self.parts]
        return list(conversation_frames(self.ends, self.parts, opened_ns=self.opened_ns))


class Recorder:
    """The recorded conversations of all proxies."""

    def __init__(self) -> None:
        self.conversations: list[Conversation] = []

    def opened(self, client: str, server: tuple[str, int], *, udp: bool = False) -> Conversation:
        ends = Ends(client, 49_152 + len(self.conversations), *server)
        self.conversations.append(Conversation(ends, time.time_ns(), udp=udp))
        return self.conversations[-1]

    def pcap(self) -> bytes:
        """The capture file, with its packets in the order of time."""
        frames = [frame for each in self.conversations for frame in each.frames()]
        return write_pcap(sorted(frames, key=lambda frame: frame[0]), nanoseconds=True)

    @asynccontextmanager
    async def proxy(
        self, target: int, server: tuple[str, int], client: str, port: int = 0
    ) -> AsyncIterator[int]:
        """Yields a port to connect to instead of ``target``; ``server`` and ``client`` are the
        addresses in the file."""
        tasks: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            conversation = self.opened(client, server)
            try:
                far_reader, far_writer = await asyncio.open_connection(HOST, target)
            except OSError:
                writer.close()
                return
            for come, go, from_client in (
                (reader, far_writer, True),
                (far_reader, writer, False),
            ):
                task = asyncio.create_task(_pump(come, go, conversation, from_client))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        listener = await asyncio.start_server(accept, HOST, port)
        try:
            yield listener.sockets[0].getsockname()[1]
        finally:
            listener.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    conversation: Conversation,
    from_client: bool,
) -> None:
    try:
        while data := await reader.read(65536):
            conversation.parts.append((time.time_ns(), from_client, data))
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
