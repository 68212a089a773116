"""One line of what a capture says."""

from __future__ import annotations

from typing import Any, NamedTuple

from mqis.wire.guid import Guid


class Place(NamedTuple):
    """Where in a file something stands: the packet that completed it."""

    number: int
    offset: int
    time_ns: int | None


class Meaning(NamedTuple):
    """What a message says, whoever carried it."""

    protocol: str
    kind: str
    summary: str = ""
    #: Anything that ``plain.as_text`` takes.
    detail: Any = None
    #: RPC: the call; MS-MQQB: the ordinal of the message.
    call_id: int | None = None
    #: Of a replication message: what it is about, and the highest number in it.
    partition: Guid | None = None
    seq: int | None = None
    #: The queue manager that made it, and machines that it names.
    queue_manager: Guid | None = None
    machines: tuple[str, ...] = ()
    error: str | None = None


class Row(NamedTuple):
    """A decoded message, or where ``error`` is set, what could not be decoded."""

    time_ns: int | None
    frame: int
    #: In the file, of the record of that packet.
    offset: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    #: Whether it goes to who was connected to, or asked.
    to_server: bool
    #: tcp or udp; empty where not even that is known.
    transport: str
    #: The protocol of the stream: mqqb, rpc, mqsd, ...
    carrier: str
    #: The innermost one that was understood: mqdsrp, dscomm, cmp, ...
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


def file_error(offset: int, reason: str, frame: int = 0, time_ns: int | None = None) -> Row:
    """What is wrong with a file or a packet, before any conversation is known."""
    return Row(
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
