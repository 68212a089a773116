"""The names that logs give to a change, the same at all servers, so that it can be followed.

The authority numbers a change, and that number travels with it: partition and number name it at
every server. A server that forwards one does not know the number yet, but the request's own names
travel too (E46), and the authority knows both.
"""

from __future__ import annotations

from mqis.protocol.directory.objects import name_key
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber


def change_id(partition: Guid, seq: SequenceNumber) -> str:
    """``2b0d...-0c11:0000000000000042``"""
    return f"{partition}:{seq}"


def request_id(requester: str, number: int) -> str:
    """``ber-dir2:0000a1b2``: a change request, by RequesterName and RequestIdentifier."""
    return f"{name_key(requester)}:{number:08x}"


def parse_change_id(text: str) -> tuple[Guid, SequenceNumber] | None:
    """None for what is no such name."""
    partition, _, number = text.rpartition(":")
    try:
        return Guid.parse(partition), SequenceNumber.parse(number)
    except ValueError:
        return None


def parse_request_id(text: str) -> tuple[str, int] | None:
    """None for what is no such name."""
    requester, _, number = text.rpartition(":")
    if not requester or len(number) != 8:
        return None
    try:
        return name_key(requester), int(number, 16)
    except ValueError:
        return None
