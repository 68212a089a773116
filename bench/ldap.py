"""The part of LDAP (RFC 4511) that a load generator needs: four requests, and the ends of replies.

All requests have the same message identifier, as only one is pending at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.load import LoadError, Operation

BASE, SUBTREE = 0, 2

_SEQUENCE, _SET, _INTEGER, _OCTETS, _BOOLEAN, _ENUMERATED = 0x30, 0x31, 0x02, 0x04, 0x01, 0x0A
_BIND, _BIND_RESPONSE, _SEARCH, _ENTRY, _DONE, _ADD, _ADD_RESPONSE = (
    *(0x60, 0x61, 0x63, 0x64, 0x65),
    *(0x68, 0x69),
)
_SIMPLE, _EQUALITY, _PRESENT = 0x80, 0xA3, 0x87
_NO_LIMIT = b"\x02\x01\x00"


def tlv(tag: int, *contents: bytes) -> bytes:
    """Encodes tag, length and value (X.690 8.1), with the shortest form of the length."""
    value = b"".join(contents)
    size = len(value)
    if size < 0x80:
        return bytes((tag, size)) + value
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + value


def _text(text: str) -> bytes:
    return tlv(_OCTETS, text.encode())


def _message(operation: bytes) -> bytes:
    return tlv(_SEQUENCE, b"\x02\x01\x01", operation)


def anonymous_bind() -> bytes:
    return _message(tlv(_BIND, b"\x02\x01\x03", _text(""), tlv(_SIMPLE)))


def equality(attribute: str, value: bytes) -> bytes:
    return tlv(_EQUALITY, _text(attribute), tlv(_OCTETS, value))


def present(attribute: str) -> bytes:
    return tlv(_PRESENT, attribute.encode())


def search(base: str, scope: int, condition: bytes, attributes: Sequence[str]) -> bytes:
    """A search request for the attributes of entries that match a filter."""
    return _message(
        tlv(
            _SEARCH,
            _text(base),
            tlv(_ENUMERATED, bytes((scope,))),
            tlv(_ENUMERATED, b"\0"),  # aliases are not followed
            _NO_LIMIT,
            _NO_LIMIT,
            tlv(_BOOLEAN, b"\0"),
            condition,
            tlv(_SEQUENCE, *map(_text, attributes)),
        )
    )


def add(name: str, attributes: Sequence[tuple[str, bytes]]) -> bytes:
    listed = (
        tlv(_SEQUENCE, _text(attribute), tlv(_SET, tlv(_OCTETS, value)))
        for attribute, value in attributes
    )
    return _message(tlv(_ADD, _text(name), tlv(_SEQUENCE, *listed)))


class Reply(NamedTuple):
    """All messages that answer one request."""

    entries: int
    code: int
    data: bytes


@dataclass(slots=True)
class LdapPeer:
    """The ``load.Peer`` of an LDAP server."""

    _buffer: bytes = b""
    _at: int = 0
    _entries: int = 0

    def greet(self) -> Operation:
        return self.ask(anonymous_bind(), entries=0)

    def ask(self, request: bytes, content: bytes = b"", *, entries: int = 1) -> Operation:
        """Sends one request, which must return so many entries that contain ``content``."""
        reply: Reply = yield request
        if reply.code or reply.entries != entries or content not in reply.data:
            raise LoadError(
                f"LDAP result {reply.code} with {reply.entries} entries instead of {entries}: "
                f"{reply.data[-120:]!r}"
            )

    def feed(self, data: bytes) -> Reply | None:
        buffer = self._buffer = self._buffer + data if self._buffer else data
        at, entries = self._at, self._entries
        while (found := _header(buffer, at)) is not None:
            start, end = found
            if len(buffer) < end:
                break
            kind = buffer[start + 3]  # after the message identifier, which is 02 01 01
            if kind == _ENTRY:
                entries += 1
                at = end
                continue
            self._buffer, self._at, self._entries = b"", 0, 0
            return Reply(entries, _result_code(buffer, start + 3), buffer)
        self._at, self._entries = at, entries
        return None


def _header(buffer: bytes, at: int) -> tuple[int, int] | None:
    """The start and end of the value of the element at ``at``; None if it is not complete yet."""
    if len(buffer) < at + 6:
        return None
    size = buffer[at + 1]
    if size < 0x80:
        return at + 2, at + 2 + size
    start = at + 2 + (size & 0x7F)
    return start, start + int.from_bytes(buffer[at + 2 : start], "big")


def _result_code(buffer: bytes, at: int) -> int:
    """The resultCode of the response whose tag is at ``at``."""
    if buffer[at] not in (_BIND_RESPONSE, _DONE, _ADD_RESPONSE):
        raise LoadError(f"LDAP response of type 0x{buffer[at]:02x}")
    header = _header(buffer, at)
    if header is None or buffer[header[0]] != _ENUMERATED:
        raise LoadError(f"an LDAP response without a result code: {buffer[at:]!r}")
    return buffer[header[0] + 2]
