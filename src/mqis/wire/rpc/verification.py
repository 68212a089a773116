"""The verification trailer (MS-RPCE 2.2.2.13): the client's view of the call, in the signed stub.

     0  8  signature 8a e3 13 71 02 f4 36 71
     8  n  commands: u16 type and flags, u16 length, value

It follows the stub of the last request fragment at a multiple of four. Its fields are always
little-endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.wire.errors import WireError
from mqis.wire.reader import Reader
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.rpc.pdu_header import DREP, Fields

SIGNATURE = bytes.fromhex("8ae3137102f43671")
#: The greatest distance of a trailer's start from the end; it holds three small commands.
_REACH = 512
END = 0x4000
MUST_PROCESS = 0x8000


class VerificationCommand(IntEnum):
    BITMASK_1 = 1
    PCONTEXT = 2
    HEADER2 = 3


@dataclass(frozen=True, slots=True)
class Verification:
    """The contents of the trailer; None for a command that is missing."""

    client_header_signing: bool | None = None
    interface: SyntaxId | None = None
    transfer: SyntaxId | None = None
    header: tuple[int, bytes, int, int, int] | None = None
    #: True if there is an unknown command that must be processed.
    unknown: bool = False


def find_verification(stub: bytes) -> tuple[int, Verification] | None:
    """Finds a trailer in ``stub``; returns its offset and contents, or None."""
    start = stub.rfind(SIGNATURE, max(0, len(stub) - _REACH))
    while start >= 0 and start % 4:
        start = stub.rfind(SIGNATURE, max(0, len(stub) - _REACH), start)
    if start < 0:
        return None
    return start, _decode(Reader(stub, start + len(SIGNATURE)))


def _decode(reader: Reader) -> Verification:
    signing: bool | None = None
    interface = transfer = None
    header = None
    unknown = False
    while True:
        at = reader.offset
        number, size = reader.u16(), reader.u16()
        value = reader.sub(size, "command")
        command = number & 0x3FFF
        if command == VerificationCommand.BITMASK_1:
            signing = bool(value.u32() & 1)
        elif command == VerificationCommand.PCONTEXT:
            data = value.bytes(40, "pcontext")
            fields = Fields(data, 0, 40, big_endian=False)
            interface, transfer = SyntaxId.decode(fields), SyntaxId.decode(fields)
        elif command == VerificationCommand.HEADER2:
            ptype, drep = value.u32() & 0xFF, value.bytes(4, "drep")
            header = (ptype, drep, value.u32(), value.u16(), value.u16())
        else:  # skipped, unless it must be processed
            unknown = unknown or bool(number & MUST_PROCESS)
            value.bytes(size, "command")
        if value.remaining:
            raise WireError(f"verification command {command} cannot have {size} bytes", at)
        if number & END:
            return Verification(signing, interface, transfer, header, unknown)


def drep_of(*, big_endian: bool) -> bytes:
    """The data representation that HEADER2 repeats."""
    return bytes(4) if big_endian else DREP
