"""The part of the Basic Encoding Rules (X.690) that LDAP uses (RFC 4511 5.1).

An element is a tag, a length and contents:

    04 05 68 65 6C 6C 6F          OCTET STRING "hello"
    30 84 00 00 00 03 02 01 07    SEQUENCE of INTEGER 7, with the long lengths of Active Directory

LDAP allows definite lengths only, and none of its tags has more than one octet. The reader checks
every length against the element around it, so that a length that lies is never followed.
"""

from __future__ import annotations

from typing import Final

from mqis.wire.errors import WireError

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
OCTET_STRING: Final = 0x04
ENUMERATED: Final = 0x0A
SEQUENCE: Final = 0x30
SET: Final = 0x31

CONSTRUCTED: Final = 0x20
APPLICATION: Final = 0x40
CONTEXT: Final = 0x80

#: Octets of an integer: no number of LDAP or of Active Directory's controls has more.
_INTEGER_SIZE: Final = 8
#: Octets of a length in its long form; with more, an element would exceed 4 GiB.
_LENGTH_SIZE: Final = 4


class BerReader:
    """A cursor over the elements between two offsets of ``data``.

    Offsets in errors count from the start of ``data``, also in a reader made by ``enter``.
    """

    __slots__ = ("_data", "_end", "offset")

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self._data = data
        self._end = len(data) if end is None else end
        self.offset = offset

    @property
    def tag(self) -> int:
        """The tag of the next element; -1 at the end."""
        return self._data[self.offset] if self.offset < self._end else -1

    def error(self, reason: str) -> WireError:
        """Returns a ``WireError`` at the current offset, for the caller to raise."""
        return WireError(reason, self.offset)

    def octets(self, what: str, tag: int = OCTET_STRING) -> bytes:
        stop = self._open(tag, what)
        start, self.offset = self.offset, stop
        return self._data[start:stop]

    def text(self, what: str, tag: int = OCTET_STRING) -> str:
        """Reads an LDAPString: UTF-8 (RFC 4511 4.1.2)."""
        at = self.offset
        return _as_text(self.octets(what, tag), what, at)

    def integer(self, what: str, tag: int = INTEGER) -> int:
        at = self.offset
        return _as_integer(self.octets(what, tag), what, at)

    def rest_text(self, what: str) -> str:
        """Reads all contents as text, for an element with an implicit tag."""
        return _as_text(self._rest(), what, self._end)

    def rest_integer(self, what: str) -> int:
        return _as_integer(self._rest(), what, self._end)

    def _rest(self) -> bytes:
        start, self.offset = self.offset, self._end
        return self._data[start : self._end]

    def boolean(self, what: str, tag: int = BOOLEAN) -> bool:
        at = self.offset
        octets = self.octets(what, tag)
        if len(octets) != 1:
            raise WireError(f"{what} is a boolean of {len(octets)} octets", at)
        return octets != b"\0"

    def enter(self, what: str, tag: int = SEQUENCE) -> BerReader:
        """Returns a reader of the contents of the next element, which this one skips."""
        stop = self._open(tag, what)
        start, self.offset = self.offset, stop
        return BerReader(self._data, start, stop)

    def expect_end(self, what: str) -> None:
        if self.offset != self._end:
            raise self.error(f"{self._end - self.offset} bytes after the end of {what}")

    def _open(self, tag: int, what: str) -> int:
        """Moves to the contents of the next element and returns the offset of their end."""
        data, at, end = self._data, self.offset, self._end
        if at + 2 > end:
            raise WireError(f"{what} is missing", at)
        if data[at] != tag:
            raise WireError(f"{what} has tag {data[at]:02x}, not {tag:02x}", at)
        length = data[at + 1]
        start = at + 2
        if length >= 0x80:
            start, length = self._long_length(start, length & 0x7F, what)
        if length > end - start:
            raise WireError(f"{what} needs {length} bytes, {end - start} left", at)
        self.offset = start
        return start + length

    def _long_length(self, start: int, count: int, what: str) -> tuple[int, int]:
        """Returns the offset after a length of ``count`` octets, and the length."""
        if not count:
            raise WireError(f"{what} has an indefinite length, which is not allowed", start - 1)
        if count > _LENGTH_SIZE or start + count > self._end:
            raise WireError(f"{what} has a length of {count} octets", start - 1)
        return start + count, int.from_bytes(self._data[start : start + count], "big")


def _as_text(octets: bytes, what: str, at: int) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise WireError(f"{what} is not UTF-8", at) from None


def _as_integer(octets: bytes, what: str, at: int) -> int:
    if not 0 < len(octets) <= _INTEGER_SIZE:
        raise WireError(f"{what} is an integer of {len(octets)} octets", at)
    return int.from_bytes(octets, "big", signed=True)


def element(tag: int, *contents: bytes) -> bytes:
    """Writes an element with the shortest length."""
    body = contents[0] if len(contents) == 1 else b"".join(contents)
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def sequence(*contents: bytes) -> bytes:
    return element(SEQUENCE, *contents)


def octet_string(value: bytes) -> bytes:
    return element(OCTET_STRING, value)


def text(value: str, tag: int = OCTET_STRING) -> bytes:
    """Writes an LDAPString; half of a surrogate pair, which UTF-8 has not, is a ``ValueError``."""
    return element(tag, value.encode())


def integer(value: int, tag: int = INTEGER) -> bytes:
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    if size > _INTEGER_SIZE:
        raise ValueError(f"{value} does not fit in {_INTEGER_SIZE} octets")
    return element(tag, value.to_bytes(size, "big", signed=True))


def enumerated(value: int) -> bytes:
    return integer(value, ENUMERATED)


def boolean(value: bool, tag: int = BOOLEAN) -> bytes:
    return element(tag, b"\xff" if value else b"\0")
