"""Headers that mqis does not interpret: it finds their length and keeps their bytes.

TransactionHeader, DebugHeader, SoapHeader and MultiQueueFormatHeader (MS-MQMQ 2.2.20.1 to 2.2.20.3,
2.2.20.5, 2.2.20.7, 2.2.20.8).
"""

from __future__ import annotations

from mqis.wire.reader import Reader

_SOAP_SECTIONS = (0x0320, 0x0384)
_MULTI_QUEUE_LISTS = (0x0064, 0x00C8, 0x012C)
_MULTI_QUEUE_SIGNATURE = 0x015E


def _pad(reader: Reader, start: int) -> None:
    reader.bytes(-(reader.offset - start) % 4, "padding")


def skip_transaction(reader: Reader) -> None:
    """Skips u32 Flags, 8 TxSequenceID, u32 TxSequenceNumber, u32 previous, bit 0: 16 connector."""
    flags = reader.u32()
    reader.bytes(32 if flags & 1 else 16, "TransactionHeader")


def skip_debug(reader: Reader) -> None:
    """Skips u16 Flags, u16 Reserved, 16 QueueIdentifier if bits 0-1 are 1."""
    at = reader.offset
    queue_type = reader.u16() & 3
    if queue_type > 1:
        raise reader.error(f"a DebugHeader cannot have queue type {queue_type}", at)
    reader.bytes(18 if queue_type else 2, "DebugHeader")


def skip_soap(reader: Reader) -> None:
    """Skips two sections of u16 SectionID, u16 Reserved, u32 units and the units."""
    start = reader.offset
    for expected in _SOAP_SECTIONS:
        _expect(reader, expected)
        reader.u16()
        reader.bytes(2 * reader.u32(), "SoapHeader")
        _pad(reader, start)


def skip_multi_queue(reader: Reader) -> None:
    """Skips three name lists (u32 HeaderSize, u16 HeaderID, ...), u32 size and a signature."""
    start = reader.offset
    for expected in _MULTI_QUEUE_LISTS:
        at = reader.offset
        size = reader.u32()
        if size < 12:
            raise reader.error(f"an MQFAddressHeader of {size} bytes is too short", at)
        _expect(reader, expected)
        reader.bytes(size - 6, "MQFAddressHeader")
        _pad(reader, start)
    _expect(reader, _MULTI_QUEUE_SIGNATURE)
    reader.u16()
    reader.bytes(reader.u32(), "MQFSignatureHeader")
    _pad(reader, start)


def _expect(reader: Reader, expected: int) -> None:
    at = reader.offset
    found = reader.u16()
    if found != expected:
        raise reader.error(f"section 0x{found:04x} instead of 0x{expected:04x}", at)
