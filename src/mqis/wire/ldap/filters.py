"""Search filters (RFC 4511 4.5.1.7) as a tree of values, and their text (RFC 4515).

The tree is what programs build: values are octets and never pass through text, so that no value can
change the shape of a filter. The text is for people and for LDIF tools; every octet that is not a
plain printable ASCII character is written as ``\\xx``, so that it reads back as the same tree.

    (&(objectClass=mSMQQueue)(mSMQLabelEx=orders\\2a))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mqis.wire.errors import WireError

#: Nested deeper than this a filter is refused: directories refuse it too, and the stack is finite.
MAXIMUM_DEPTH: Final = 64
MAXIMUM_TEXT: Final = 1 << 20

#: The name or the object identifier of an attribute or rule, and options such as ``;binary``.
_NAME = r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}"
_DESCRIPTION = _NAME + r"(?:;[A-Za-z0-9-]{1,64}){0,4}"
_ATTRIBUTE = re.compile(_DESCRIPTION)
_ITEM = re.compile(
    rf"(?P<attribute>{_DESCRIPTION})?(?:(?P<sign>[><~]?=)|(?P<dn>:dn)?(?::(?P<rule>{_NAME}))?:=)"
)


@dataclass(frozen=True, slots=True)
class And:
    """All of ``items`` hold; without items it is true (RFC 4526)."""

    items: tuple[Filter, ...]

    def __str__(self) -> str:
        return f"(&{''.join(map(str, self.items))})"


@dataclass(frozen=True, slots=True)
class Or:
    """One of ``items`` holds; without items it is false (RFC 4526)."""

    items: tuple[Filter, ...]

    def __str__(self) -> str:
        return f"(|{''.join(map(str, self.items))})"


@dataclass(frozen=True, slots=True)
class Not:
    item: Filter

    def __str__(self) -> str:
        return f"(!{self.item})"


@dataclass(frozen=True, slots=True)
class Equality:
    attribute: str
    value: bytes

    def __str__(self) -> str:
        return f"({_checked(self.attribute)}={escape_assertion(self.value)})"


@dataclass(frozen=True, slots=True)
class Substrings:
    """The value begins with ``initial``, has ``middle`` in this order, and ends with ``final``."""

    attribute: str
    initial: bytes = b""
    middle: tuple[bytes, ...] = ()
    final: bytes = b""

    def __post_init__(self) -> None:
        if not (self.initial or self.middle or self.final) or b"" in self.middle:
            raise ValueError("a substring comparison has pieces, and none in the middle is empty")

    def __str__(self) -> str:
        pieces = (self.initial, *self.middle, self.final)
        return f"({_checked(self.attribute)}={'*'.join(map(escape_assertion, pieces))})"


@dataclass(frozen=True, slots=True)
class GreaterOrEqual:
    attribute: str
    value: bytes

    def __str__(self) -> str:
        return f"({_checked(self.attribute)}>={escape_assertion(self.value)})"


@dataclass(frozen=True, slots=True)
class LessOrEqual:
    attribute: str
    value: bytes

    def __str__(self) -> str:
        return f"({_checked(self.attribute)}<={escape_assertion(self.value)})"


@dataclass(frozen=True, slots=True)
class Present:
    attribute: str

    def __str__(self) -> str:
        return f"({_checked(self.attribute)}=*)"


@dataclass(frozen=True, slots=True)
class ExtensibleMatch:
    """A comparison by a named rule, such as Active Directory's bitwise and (MS-ADTS 3.1.1.3.4)."""

    rule: str
    attribute: str
    value: bytes
    dn_attributes: bool = False

    def __post_init__(self) -> None:
        if not self.rule and not self.attribute:
            raise ValueError("an extensible comparison needs a rule or an attribute")

    def __str__(self) -> str:
        attribute = _checked(self.attribute) if self.attribute else ""
        dn = ":dn" if self.dn_attributes else ""
        rule = f":{_checked(self.rule)}" if self.rule else ""
        return f"({attribute}{dn}{rule}:={escape_assertion(self.value)})"


Filter = (
    And
    | Or
    | Not
    | Equality
    | Substrings
    | GreaterOrEqual
    | LessOrEqual
    | Present
    | ExtensibleMatch
)


def _checked(attribute: str) -> str:
    if not _ATTRIBUTE.fullmatch(attribute):
        raise WireError(f"{attribute!r} is not the name of an LDAP attribute", 0)
    return attribute


def escape_assertion(value: bytes) -> str:
    """Writes octets so that none of them ends the value or stands for others (RFC 4515 3)."""
    return "".join(chr(octet) if octet in _PLAIN else f"\\{octet:02x}" for octet in value)


_PLAIN: Final = frozenset(range(0x20, 0x7F)) - frozenset(b"*()\\")


def parse_filter(text: str) -> Filter:
    """Reads the text of a filter; what is not one raises WireError with the place."""
    if len(text) > MAXIMUM_TEXT:
        raise WireError(f"a filter of more than {MAXIMUM_TEXT} characters", MAXIMUM_TEXT)
    parser = _Parser(text)
    found = parser.filter(0)
    parser.end()
    return found


class _Parser:
    """Reads one filter by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def filter(self, depth: int) -> Filter:
        if depth > MAXIMUM_DEPTH:
            raise self._error(f"a filter nested more than {MAXIMUM_DEPTH} deep")
        self._expect("(")
        found = self._inside(depth)
        self._expect(")")
        return found

    def end(self) -> None:
        if self._at != len(self._text):
            raise self._error("text after the end of a filter")

    def _inside(self, depth: int) -> Filter:
        match self._text[self._at : self._at + 1]:
            case "&":
                return And(self._list(depth))
            case "|":
                return Or(self._list(depth))
            case "!":
                self._at += 1
                return Not(self.filter(depth + 1))
        return self._item()

    def _list(self, depth: int) -> tuple[Filter, ...]:
        self._at += 1
        items = []
        while self._text[self._at : self._at + 1] == "(":
            items.append(self.filter(depth + 1))
        return tuple(items)

    def _item(self) -> Filter:
        match = _ITEM.match(self._text, self._at)
        if match is None:
            raise self._error("no attribute and comparison in a filter")
        self._at = match.end()
        start, value = self._at, self._assertion()
        attribute, rule = match["attribute"] or "", match["rule"] or ""
        if not attribute and not rule:
            raise self._error("no attribute in a filter")
        if match["sign"] is None:
            return ExtensibleMatch(rule, attribute, self._octets(value, start), bool(match["dn"]))
        return self._simple(attribute, match["sign"], value, start)

    def _simple(self, attribute: str, sign: str, value: str, start: int) -> Filter:
        if sign == ">=":
            return GreaterOrEqual(attribute, self._octets(value, start))
        if sign == "<=":
            return LessOrEqual(attribute, self._octets(value, start))
        if sign == "~=":
            raise self._error("an approximate comparison in a filter is not supported")
        if value == "*":
            return Present(attribute)
        if "*" in value:
            return self._substrings(attribute, value.split("*"), start)
        return Equality(attribute, self._octets(value, start))

    def _substrings(self, attribute: str, pieces: list[str], start: int) -> Filter:
        initial, *middle, final = (self._octets(piece, start) for piece in pieces)
        if b"" in middle:
            raise self._error("two '*' side by side in a filter")
        return Substrings(attribute, initial, tuple(middle), final)

    def _assertion(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in "()":
            self._at += 1
        return self._text[start : self._at]

    def _octets(self, text: str, start: int) -> bytes:
        try:
            return _ESCAPE.sub(_unescape, text.encode())
        except ValueError as error:  # half of a surrogate pair, or no two digits after a backslash
            raise WireError(
                "a value in a filter has a broken escape or character", start
            ) from error

    def _expect(self, char: str) -> None:
        if self._text[self._at : self._at + 1] != char:
            raise self._error(f"{char!r} is missing in a filter")
        self._at += 1

    def _error(self, reason: str) -> WireError:
        return WireError(reason, self._at)


_ESCAPE = re.compile(rb"\\(.?.?)", re.DOTALL)


def _unescape(match: re.Match[bytes]) -> bytes:
    if len(match[1]) != 2 or b" " in match[1]:
        raise ValueError("no two hexadecimal digits")
    return bytes.fromhex(match[1].decode("ascii"))
