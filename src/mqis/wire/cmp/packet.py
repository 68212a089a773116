"""MESSAGE_PACKET (MS-CMP 2.2.2 to 2.2.8): one message of one connection.

     0  u32  MsgTag
     4  u32  fIsMaster, 1 from the side that opened the connection, 0 from the one that accepted it
     8  u32  dwConnectionId, which the opener assigned
    12  u32  dwUserMsgType
    16  u32  dwcbVarLenData, data only: the filler behind it does not count (E-CMP-04)
    20  u32  dwReserved1, anything
    24       data

    tag                    fIsMaster  id  dwUserMsgType    data
    DISCONNECT             1          id  connection type
    DISCONNECTED           0          id  0
    CONNECTION_REQ_DENIED  0          id  0                Reason, u32
    PING                   1          0   0
    CONNECTION_REQ         1          id  connection type
    USER_MESSAGE           1 or 0     id  message type     opaque

DISCONNECTED and CONNECTION_REQ_DENIED carry fIsMaster 0 and type 0, as their own sections and the
examples say; 2.2.2 and 3.1.5.1 contradict them (E-CMP-02, E-CMP-03).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

PACKET_SIZE = 24
#: The size of the longest boxcar minus its header and the header of one packet.
MAX_DATA = 81_880
#: The dwReserved1 of the examples in section 4; Windows sends random bytes.
RESERVED = 0xCD64CD64

PACKET = Struct("<6I")
_REASON = Struct("<I")


class MsgTag(IntEnum):
    """The kind of a message. The values 6 to 0xFFE are not assigned (E-CMP-10)."""

    DISCONNECT = 1
    DISCONNECTED = 2
    CONNECTION_REQ_DENIED = 3
    PING = 4
    CONNECTION_REQ = 5
    USER_MESSAGE = 0xFFF


class Packet(NamedTuple):
    """A message. A tuple, not a dataclass, because a boxcar has thousands of them.

    The data of a decoded packet is a view into its boxcar: a caller that keeps it makes a copy,
    otherwise the whole boxcar stays in memory.
    """

    tag: int
    is_master: int
    connection_id: int
    user_msg_type: int
    data: bytes | memoryview = b""
    reserved: int = RESERVED

    @classmethod
    def disconnect(cls, connection_id: int, connection_type: int) -> Packet:
        return cls(MsgTag.DISCONNECT, 1, connection_id, connection_type)

    @classmethod
    def disconnected(cls, connection_id: int) -> Packet:
        return cls(MsgTag.DISCONNECTED, 0, connection_id, 0)

    @classmethod
    def denied(cls, connection_id: int, reason: int) -> Packet:
        if not 0 <= reason <= 0xFFFFFFFF:
            raise ValueError(f"a reason has 32 bits, {reason!r} does not fit")
        return cls(MsgTag.CONNECTION_REQ_DENIED, 0, connection_id, 0, _REASON.pack(reason))

    @classmethod
    def ping(cls) -> Packet:
        return cls(MsgTag.PING, 1, 0, 0)

    @classmethod
    def connection_req(cls, connection_id: int, connection_type: int) -> Packet:
        return cls(MsgTag.CONNECTION_REQ, 1, connection_id, connection_type)

    @property
    def reason(self) -> int | None:
        """The reason of a CONNECTION_REQ_DENIED, its first four data bytes; None if too short."""
        if len(self.data) < _REASON.size:
            return None
        reason: int = _REASON.unpack_from(self.data)[0]
        return reason

    def header(self) -> bytes:
        """The 24 bytes before the data; raises ``ValueError`` if a field does not fit."""
        tag, is_master, connection_id, user_msg_type, data, reserved = self
        size = len(data)
        if size > MAX_DATA:
            raise ValueError(f"a message of {size} bytes, at most {MAX_DATA} are allowed")
        try:
            return PACKET.pack(tag, is_master, connection_id, user_msg_type, size, reserved)
        except struct_error as error:
            raise ValueError(f"{self!r} has a field that does not fit: {error}") from None
