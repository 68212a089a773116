"""Distinguished names (RFC 4514), and the forms in which Active Directory writes them.

    CN=orders,CN=msmq,CN=SRV1,OU=Berlin,DC=corp,DC=example

A name is a tuple of parts, the most particular one first. Part values are plain text: escapes
exist in the written form only, so that no value, whatever its characters, can become a second part.
Active Directory escapes more than RFC 4514 asks for (``CN=a\\3Db``) and puts a line feed into the
name of a deleted object (``CN=orders\\0ADEL:GUID``); both are read here. Names compare without
regard to case, as in Active Directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid

#: No directory takes a name that long; it bounds the work that a hostile one causes.
MAXIMUM_NAME: Final = 16_384

_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}|[0-9]+(?:\.[0-9]+)+")
#: Letters, digits and blanks inside of values alone: most names, which need no parser.
_PLAIN_TEXT = r"[A-Za-z0-9_$-](?:[A-Za-z0-9 ._$-]*[A-Za-z0-9._$-])?"
_PLAIN_PART = rf"[A-Za-z][A-Za-z0-9-]{{0,63}}={_PLAIN_TEXT}"
_PLAIN_VALUE = re.compile(_PLAIN_TEXT)
_PLAIN_NAME = re.compile(rf"{_PLAIN_PART}(?:,{_PLAIN_PART})*")
_SPECIAL = frozenset(',+"\\<>;=')
_TWO_DIGITS = re.compile(r"[0-9A-Fa-f]{2}")


@dataclass(frozen=True, slots=True)
class NamePart:
    """One part of a distinguished name: an attribute and its value, as in ``CN=orders``."""

    attribute: str
    value: str

    @property
    def key(self) -> tuple[str, str]:
        """Equal for two parts that name the same entry."""
        return self.attribute.lower(), self.value.casefold()

    def __str__(self) -> str:
        return f"{self.attribute}={escape_value(self.value)}"


@dataclass(frozen=True, slots=True)
class DistinguishedName:
    """The name of an entry; the empty one is the root of the directory."""

    parts: tuple[NamePart, ...] = ()

    @classmethod
    def parse(cls, text: str) -> DistinguishedName:
        """Reads a name as a server or a person writes it."""
        if len(text) > MAXIMUM_NAME:
            raise WireError(
                f"a distinguished name of more than {MAXIMUM_NAME} characters", MAXIMUM_NAME
            )
        if _PLAIN_NAME.fullmatch(text):
            return cls(tuple([NamePart(*part.split("=")) for part in text.split(",")]))
        return cls(tuple(_Parser(text).parts()))

    @property
    def parent(self) -> DistinguishedName:
        return DistinguishedName(self.parts[1:])

    @property
    def leaf(self) -> str:
        """The value of the first part, which is the entry's own name; empty for the root."""
        return self.parts[0].value if self.parts else ""

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """Equal for two spellings of one name."""
        return tuple(part.key for part in self.parts)

    def child(self, attribute: str, value: str) -> DistinguishedName:
        return DistinguishedName((NamePart(attribute, value), *self.parts))

    def is_below(self, other: DistinguishedName) -> bool:
        """Returns whether this name is ``other`` or stands below it."""
        if not other.parts:
            return True
        return self.key[-len(other.parts) :] == other.key

    def __str__(self) -> str:
        return ",".join(map(str, self.parts))

    def __bool__(self) -> bool:
        return bool(self.parts)


@dataclass(frozen=True, slots=True)
class ExtendedName:
    """A name with identifiers, which the extended-DN control asks for: ``<GUID=...>;CN=...``.

    Active Directory also takes ``<GUID=...>`` alone wherever a name is wanted.
    """

    name: DistinguishedName
    guid: Guid | None = None
    sid: str = ""

    @property
    def is_deleted(self) -> bool:
        """Returns whether Active Directory has renamed the entry to that of a deleted object."""
        return "\nDEL:" in self.name.leaf

    @classmethod
    def parse(cls, text: str) -> ExtendedName:
        guid, sid, start = None, "", 0
        while match := _IDENTIFIER.match(text, start):
            if match["kind"].upper() == "GUID":
                guid = _identifier_guid(match["value"], start)
            else:
                sid = match["value"]
            start = match.end()
        return cls(DistinguishedName.parse(text[start:]), guid, sid)


_IDENTIFIER = re.compile(r"<(?P<kind>GUID|SID)=(?P<value>[^>]{0,256})>;?", re.IGNORECASE)


def _identifier_guid(text: str, offset: int) -> Guid:
    """Reads both forms of the control: the usual text, and the octets in hexadecimal."""
    try:
        return Guid(bytes.fromhex(text)) if len(text) == 32 else Guid.parse(text)
    except ValueError as error:
        raise WireError(f"<GUID={text}> in a name is not a GUID", offset) from error


def without_identifiers(text: str) -> str:
    """The name alone, without the identifiers that the extended-DN control puts before it."""
    start = 0
    while match := _IDENTIFIER.match(text, start):
        start = match.end()
    return text[start:]


def guid_name(guid: Guid) -> str:
    """The name by which Active Directory finds an object wherever it stands (E-MQDSSM-06)."""
    return f"<GUID={guid}>"


def escape_value(value: str) -> str:
    """Writes a part's value so that it reads back as the same text and stays one part."""
    if _PLAIN_VALUE.fullmatch(value):
        return value
    last = len(value) - 1
    return "".join(_escape(char, index, last) for index, char in enumerate(value))


def _escape(char: str, index: int, last: int) -> str:
    if char in _SPECIAL or (char == "#" and index == 0) or (char == " " and index in (0, last)):
        return "\\" + char
    if ord(char) < 0x20 or char == "\x7f":
        return f"\\{ord(char):02X}"
    if 0xD800 <= ord(char) <= 0xDFFF:
        raise WireError("a name with half of a surrogate pair cannot be written in LDAP", index)
    return char


class _Parser:
    """Reads the parts of one name from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parts(self) -> Iterator[NamePart]:
        self._skip_blanks()
        while self._at < len(self._text):
            yield NamePart(self._attribute(), self._value())
            if self._at < len(self._text):
                self._at += 1  # the comma
                self._skip_blanks()
                if self._at == len(self._text):
                    raise self._error("a distinguished name ends with a comma")

    def _attribute(self) -> str:
        match = _ATTRIBUTE.match(self._text, self._at)
        if match is None:
            raise self._error("an attribute name is missing in a distinguished name")
        self._at = match.end()
        self._skip_blanks()
        if self._text[self._at : self._at + 1] != "=":
            raise self._error(f"no '=' after {match[0]} in a distinguished name")
        self._at += 1
        self._skip_blanks()
        return match[0]

    def _value(self) -> str:
        if self._text[self._at : self._at + 1] == "#":
            raise self._error(
                "a value in hexadecimal BER ('#...') in a distinguished name is not supported"
            )
        octets = bytearray()
        kept = 0  # an unescaped blank at the end does not belong to the value
        while self._at < len(self._text) and self._text[self._at] != ",":
            char = self._text[self._at]
            if char == "\\":
                octets += self._escaped()
                kept = len(octets)
                continue
            octets += self._plain(char)
            kept = kept if char == " " else len(octets)
            self._at += 1
        return self._decoded(bytes(octets[:kept]))

    def _plain(self, char: str) -> bytes:
        if char in '+"<>;=':
            raise self._error(f"{char!r} is not escaped in a distinguished name")
        return self._encoded(char)

    def _escaped(self) -> bytes:
        pair = _TWO_DIGITS.match(self._text, self._at + 1)
        if pair is not None:
            self._at += 3
            return bytes.fromhex(pair[0])
        char = self._text[self._at + 1 : self._at + 2]
        if not char:
            raise self._error("a distinguished name ends within an escape")
        self._at += 2
        return self._encoded(char)

    def _encoded(self, char: str) -> bytes:
        try:
            return char.encode()
        except UnicodeEncodeError as error:
            raise self._error("half of a surrogate pair in a distinguished name") from error

    def _decoded(self, octets: bytes) -> str:
        try:
            return octets.decode()
        except UnicodeDecodeError as error:
            raise self._error("a value in a distinguished name is not UTF-8") from error

    def _skip_blanks(self) -> None:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1

    def _error(self, reason: str) -> WireError:
        return WireError(reason, self._at)
