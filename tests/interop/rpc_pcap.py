"""Conversations recorded by a proxy, and capture files made of them for other readers.

No interface is listened on, so no privilege is needed: the frames around the bytes are made up,
with the sequence numbers and checksums that they would have had.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: So that PDUs cross the borders of segments, as they do on an Ethernet.
SEGMENT = 1448
_ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
_FIN, _SYN, _PUSH, _ACK = 0x01, 0x02, 0x08, 0x10
_CLIENT, _SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


@dataclass(slots=True)
class Conversation:
    """The bytes of one connection, in order: (whether the client sent them, bytes)."""

    client_port: int
    parts: list[tuple[bool, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Recorder:
    """A proxy's memory."""

    port: int = 0
    conversations: list[Conversation] = field(default_factory=list)


@asynccontextmanager
async def recorded(host: str, port: int) -> AsyncIterator[Recorder]:
    """A proxy before a server: connect to ``recorder.port`` instead."""
    recorder = Recorder()
    tasks: set[asyncio.Task[None]] = set()

    async def pump(
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        conversation: Conversation,
        from_client: bool,
    ) -> None:
        try:
            while data := await reader.read(65536):
                conversation.parts.append((from_client, data))
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(host, port)
        conversation = Conversation(40_000 + len(recorder.conversations))
        recorder.conversations.append(conversation)
        for task in (
            asyncio.create_task(pump(reader, server_writer, conversation, True)),
            asyncio.create_task(pump(server_reader, writer, conversation, False)),
        ):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    recorder.port = server.sockets[0].getsockname()[1]
    try:
        yield recorder
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def write_pcap(path: Path, conversations: list[Conversation], server_port: int) -> None:
    """A capture file (little-endian pcap 2.4, Ethernet) of TCP connections to ``server_port``."""
    frames: list[bytes] = []
    for conversation in conversations:
        frames += _frames(conversation, server_port)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1))
        for number, frame in enumerate(frames):
            seconds, micros = divmod(number * 100, 1_000_000)
            file.write(struct.pack("<IIII", 1_000_000_000 + seconds, micros, *[len(frame)] * 2))
            file.write(frame)


def _frames(conversation: Conversation, server_port: int) -> list[bytes]:
    ports = (conversation.client_port, server_port)
    #: The next sequence number of the server and of the client.
    next_of = {False: 5000, True: 1000}
    frames: list[bytes] = []

    def send(from_client: bool, flags: int, data: bytes = b"") -> None:
        acknowledged = 0 if flags == _SYN else next_of[not from_client]
        frames.append(_frame(from_client, ports, (next_of[from_client], acknowledged), flags, data))
        next_of[from_client] += len(data) + bool(flags & (_SYN | _FIN))

    send(True, _SYN)
    send(False, _SYN | _ACK)
    send(True, _ACK)
    for from_client, data in conversation.parts:
        for at in range(0, len(data), SEGMENT):
            send(from_client, _PUSH | _ACK, data[at : at + SEGMENT])
            send(not from_client, _ACK)
    send(True, _FIN | _ACK)
    send(False, _FIN | _ACK)
    send(True, _ACK)
    return frames


def _frame(
    from_client: bool,
    ports: tuple[int, int],
    numbers: tuple[int, int],
    flags: int,
    data: bytes,
) -> bytes:
    addresses = (_CLIENT, _SERVER)
    if not from_client:
        ports, addresses = ports[::-1], addresses[::-1]
    source, target = addresses
    header = struct.pack(">HHIIBBHHH", *ports, *numbers, 5 << 4, flags, 65535, 0, 0)
    pseudo = source + target + struct.pack(">BBH", 0, 6, len(header) + len(data))
    checksum = _checksum(pseudo + header + data)
    tcp = header[:16] + struct.pack(">H", checksum) + header[18:] + data
    packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + source + target
    packet = packet[:10] + struct.pack(">H", _checksum(packet)) + packet[12:]
    ends = _ETHERNET if from_client else _ETHERNET[6:12] + _ETHERNET[:6] + _ETHERNET[12:]
    return ends + packet + tcp


def _checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
