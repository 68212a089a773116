"""LDIF (RFC 2849), the text form of entries and of changes, read and written a record at a time.

    version: 1

    dn: CN=msmq,CN=SRV1,CN=Computers,DC=corp,DC=example
    changetype: add
    objectClass: mSMQConfiguration
    mSMQSites:: yMfJuR4LS0O3raG3keRX3Q==

Values that are not plain ASCII are written in base64. A value that begins with ``<`` names a file
or an address to fetch; such a line is refused, because a file from elsewhere must not decide what
this computer reads. Records that rename entries and records with controls are refused too.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Final

from mqis.wire.errors import WireError
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)

#: Octets of one value with its continuation lines; the largest in a directory is some 1 MiB.
MAXIMUM_LINE: Final = 4 << 20
MAXIMUM_RECORD: Final = 16 << 20
MAXIMUM_VALUES: Final = 100_000
_WIDTH: Final = 76

_DESCRIPTION = re.compile(r"[A-Za-z][A-Za-z0-9-]*(?:;[A-Za-z0-9=*-]+)*|[0-9]+(?:\.[0-9]+)+")
_SAFE = re.compile(
    rb"(?:[\x01-\x09\x0b\x0c\x0e-\x1f\x21-\x39\x3b\x3d-\x7f][\x01-\x09\x0b\x0c\x0e-\x7f]*)?"
)
_KINDS = {kind.name.lower(): kind for kind in ModifyKind}


class LdifError(WireError):
    """A line of a file is wrong; the message has the file, the line and the reason."""

    def __init__(self, source: str, line: int, reason: str) -> None:
        WireError.__init__(self, reason, line)
        self.source = source
        self.line = line

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"

    def __reduce__(self) -> tuple[type[LdifError], tuple[str, int, str]]:  # type: ignore[override]
        return type(self), (self.source, self.line, self.reason)


# --- writing --------------------------------------------------------------------------------------


def write_ldif(records: Iterable[EntryChange], *, version: bool = True) -> Iterator[str]:
    """Yields the text of each record, the version before the first one.

    Samba's ``ldbadd`` does not know the version line; ``ldapadd`` and ``ldifde`` take both.
    """
    if version:
        yield "version: 1\n"
    for record in records:
        yield "\n" + "".join(_record_lines(record))


def _record_lines(record: EntryChange) -> Iterator[str]:
    yield _line("dn", record.name.encode())
    match record:
        case AddEntry():
            yield "changetype: add\n"
            for attribute, values in record.attributes:
                yield from (_line(attribute, value) for value in values)
        case ModifyEntry():
            yield "changetype: modify\n"
            for change in record.changes:
                yield _line(change.kind.name.lower(), change.attribute.encode())
                yield from (_line(change.attribute, value) for value in change.values)
                yield "-\n"
        case _:
            yield "changetype: delete\n"


def _line(attribute: str, value: bytes) -> str:
    if not _DESCRIPTION.fullmatch(attribute):
        raise ValueError(f"{attribute!r} is not the name of an LDAP attribute")
    if _SAFE.fullmatch(value) and not value.endswith(b" "):
        text = f"{attribute}: {value.decode('ascii')}".rstrip(" ")
    else:
        text = f"{attribute}:: {base64.b64encode(value).decode('ascii')}"
    return _folded(text)


def _folded(text: str) -> str:
    head, rest = text[:_WIDTH], text[_WIDTH:]
    pieces = [rest[at : at + _WIDTH - 1] for at in range(0, len(rest), _WIDTH - 1)]
    return "\n ".join([head, *pieces]) + "\n"


# --- reading --------------------------------------------------------------------------------------


def read_ldif(lines: Iterable[bytes], source: str) -> Iterator[EntryChange]:
    """Yields the records of a file; ``LdifError`` with ``source`` and the line if it is malformed.

    A caller that reads from a file gives lines of at most ``MAXIMUM_LINE`` octets.
    """
    return (record for _, record in numbered_records(lines, source))


def numbered_records(lines: Iterable[bytes], source: str) -> Iterator[tuple[int, EntryChange]]:
    """Yields each record of a file with the number of its first line."""
    reader = _Reader(source)
    block: list[tuple[int, str, bytes]] = []
    size = 0
    for number, line in _unfolded(lines, source):
        if not line:
            if block:
                yield from reader.record(block)
            block, size = [], 0
            continue
        size += len(line)
        if size > MAXIMUM_RECORD or len(block) >= MAXIMUM_VALUES:
            raise LdifError(source, number, "the record is too large")
        block.append((number, *reader.field(number, line)))
    if block:
        yield from reader.record(block)


def _unfolded(lines: Iterable[bytes], source: str) -> Iterator[tuple[int, bytes]]:
    """Joins continuation lines and drops comments; an empty line stays, for it ends a record."""
    held: tuple[int, bytearray] | None = None
    number = 0
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip(b"\n").removesuffix(b"\r")
        if number == 1:
            line = _without_mark(line, source)
        if line.startswith(b" "):
            if held is None:
                raise LdifError(source, number, "a continuation line continues nothing")
            held[1].extend(line[1:])
        else:
            yield from _released(held)
            held = (number, bytearray(line)) if line else None
        if len(line) > MAXIMUM_LINE or (held is not None and len(held[1]) > MAXIMUM_LINE):
            reason = f"the line is longer than {MAXIMUM_LINE} octets"
            raise LdifError(source, number, reason)
        if not line:
            yield number, b""
    yield from _released(held)


def _without_mark(line: bytes, source: str) -> bytes:
    """Drops the byte order mark of UTF-8."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LdifError(source, 1, "the file is UTF-16: write it in UTF-8 (ldifde without -u)")
    return line.removeprefix(b"\xef\xbb\xbf")


def _released(held: tuple[int, bytearray] | None) -> Iterator[tuple[int, bytes]]:
    if held is not None and not held[1].startswith(b"#"):
        yield held[0], bytes(held[1])


class _Reader:
    """Makes records of the fields of one file."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._begun = False

    def error(self, line: int, reason: str) -> LdifError:
        return LdifError(self._source, line, reason)

    def field(self, line: int, text: bytes) -> tuple[str, bytes]:
        """Splits a line into the attribute and its decoded value."""
        if text == b"-":
            return "-", b""
        name, colon, value = text.partition(b":")
        attribute = name.decode("ascii", "replace")
        if not colon or not _DESCRIPTION.fullmatch(attribute):
            raise self.error(line, "neither 'attribute: value' nor a comment nor an empty line")
        if value.startswith(b"<"):
            raise self.error(
                line, f"the value of {attribute} stands elsewhere (':<'): write it here"
            )
        if value.startswith(b":"):
            return attribute, self._base64(line, attribute, value[1:].strip(b" "))
        return attribute, value.lstrip(b" ")

    def _base64(self, line: int, attribute: str, value: bytes) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise self.error(line, f"the value of {attribute} is not base64: {error}") from error

    def record(self, block: list[tuple[int, str, bytes]]) -> Iterator[tuple[int, EntryChange]]:
        first = not self._begun
        self._begun = True
        if first and block[0][1].lower() == "version":
            self._version(*block.pop(0))
            if not block:
                return
        line, attribute, name = block[0]
        match attribute.lower():
            case "dn":
                yield line, self._change(self._text(line, "the name", name), block[1:], line)
            case "search":
                self._search_ended(block)
            case "ref":
                pass  # ldapsearch names the other parts of the directory, which it did not read
            case _:
                raise self.error(line, f"a record begins with 'dn:', not with {attribute!r}")

    def _search_ended(self, block: list[tuple[int, str, bytes]]) -> None:
        """Reads the end that ldapsearch writes without ``-LLL``; it tells if the file is whole."""
        for line, attribute, value in block:
            if attribute.lower() == "result" and not value.startswith(b"0 "):
                text = value[:200].decode("utf-8", "replace")
                raise self.error(line, f"the search that wrote this file was cut off: {text}")

    def _version(self, line: int, _attribute: str, value: bytes) -> None:
        if value != b"1":
            raise self.error(line, f"version {value.decode('utf-8', 'replace')} of LDIF, not 1")

    def _change(self, name: str, fields: list[tuple[int, str, bytes]], line: int) -> EntryChange:
        kind = b"add"
        if fields and fields[0][1].lower() == "control":
            raise self.error(fields[0][0], "records with controls are not supported")
        if fields and fields[0][1].lower() == "changetype":
            line, _, kind = fields[0]
            fields = fields[1:]
        match kind:
            case b"add":
                return AddEntry(name, self._attributes(fields, line))
            case b"modify":
                return ModifyEntry(name, tuple(self._changes(fields)))
            case b"delete":
                self._nothing_more(fields)
                return DeleteEntry(name)
        word = kind.decode("utf-8", "replace")
        raise self.error(line, f"changetype {word!r} is none of add, modify, delete")

    def _attributes(
        self, fields: list[tuple[int, str, bytes]], line: int
    ) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
        if not fields:
            raise self.error(line, "an entry without attributes")
        grouped: dict[str, tuple[str, list[bytes]]] = {}
        for number, attribute, value in fields:
            if attribute == "-":
                raise self.error(number, "'-' stands between changes of a modification only")
            grouped.setdefault(attribute.lower(), (attribute, []))[1].append(value)
        return tuple((attribute, tuple(values)) for attribute, values in grouped.values())

    def _changes(self, fields: list[tuple[int, str, bytes]]) -> Iterator[AttributeChange]:
        at = 0
        while at < len(fields):
            line, word, target = fields[at]
            kind = _KINDS.get(word.lower())
            if kind is None:
                raise self.error(line, f"{word!r} is none of add, delete, replace")
            attribute = self._text(line, "the attribute", target)
            values, at = self._values(fields, at + 1, attribute)
            yield AttributeChange(kind, attribute, values)

    def _values(
        self, fields: list[tuple[int, str, bytes]], at: int, attribute: str
    ) -> tuple[tuple[bytes, ...], int]:
        """The values up to the line ``-``, and the place behind it."""
        values: list[bytes] = []
        while at < len(fields) and fields[at][1] != "-":
            line, given, value = fields[at]
            if given.lower() != attribute.lower():
                raise self.error(line, f"a value of {given} in a change of {attribute}")
            values.append(value)
            at += 1
        return tuple(values), at + 1

    def _nothing_more(self, fields: list[tuple[int, str, bytes]]) -> None:
        if fields:
            raise self.error(fields[0][0], "a deletion has no attributes")

    def _text(self, line: int, what: str, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise self.error(line, f"{what} is not UTF-8") from error
