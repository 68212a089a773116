"""Rows: one for each decoded message or error of a capture."""

from __future__ import annotations

from typing import Any, NamedTuple

from mqis.wire.guid import Guid


class PacketPosition(NamedTuple):
    """The packet in the file that completed a message."""

    number: int
    offset: int
    time_ns: int | None


class Meaning(NamedTuple):
    """The decoded content of a message, whatever carried it."""

    protocol: str
    kind: str
    summary: str = ""
    #: Any value that ``plain.as_text`` converts.
    detail: Any = None
    #: RPC: the call; MS-MQQB: the ordinal of the message.
    call_id: int | None = None
    #: The partition of a replication message, and the highest sequence number in it.
    partition: Guid | None = None
    seq: int | None = None
    #: The queue manager that sent it, and the machines that it names.
    queue_manager: Guid | None = None
    machines: tuple[str, ...] = ()
    error: str | None = None


class DecodedRow(NamedTuple):
    """A decoded message; with ``error`` set, something that could not be decoded."""

    time_ns: int | None
    frame: int
    #: The offset of that packet's record in the file.
    offset: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    #: True if it goes from the client to the server.
    to_server: bool
    #: tcp or udp; empty where not even that is known.
    transport: str
    #: The protocol of the stream: mqqb, rpc, mqsd, ...
    carrier: str
    #: The innermost protocol that was decoded: mqdsrp, dscomm, cmp, ...
    protocol: str
    kind: str
    #: The number of the conversation's first packet, which tells conversations apart.
    stream: int
    call_id: int | None
    #: Bytes of the message as its carrier has it.
    length: int
    summary: str
    #: JSON.
    detail: str
    partition: Guid | None
    seq: int | None
    queue_manager: Guid | None
    machines: tuple[str, ...]
    error: str | None


def file_error(offset: int, reason: str, frame: int = 0, time_ns: int | None = None) -> DecodedRow:
    """A row for an error of the file or of a packet that belongs to no conversation."""
    return DecodedRow(
        time_ns=time_ns,
        frame=frame,
        offset=offset,
        source="",
        source_port=0,
        destination="",
        destination_port=0,
        to_server=False,
        transport="",
        carrier="",
        protocol="",
        kind="packet" if frame else "file",
        stream=0,
        call_id=None,
        length=0,
        summary="",
        detail="",
        partition=None,
        seq=None,
        queue_manager=None,
        machines=(),
        error=reason,
    )
