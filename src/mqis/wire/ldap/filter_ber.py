"""Search filters in BER (RFC 4511 4.5.1.7). The tree of values is in ``filters``.

Filter ::= CHOICE {
    and [0] SET OF Filter,  or [1] SET OF Filter,  not [2] Filter,
    equalityMatch [3] AttributeValueAssertion,  substrings [4] SubstringFilter,
    greaterOrEqual [5], lessOrEqual [6] AttributeValueAssertion,
    present [7] AttributeDescription,  approxMatch [8],  extensibleMatch [9] }
"""

from __future__ import annotations

from typing import Final

from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import CONSTRUCTED, CONTEXT, BerReader
from mqis.wire.ldap.filters import (
    MAXIMUM_DEPTH,
    And,
    Equality,
    ExtensibleMatch,
    Filter,
    GreaterOrEqual,
    LessOrEqual,
    Not,
    Or,
    Present,
    Substrings,
)

_AND: Final = CONTEXT | CONSTRUCTED
_OR: Final = _AND | 1
_NOT: Final = _AND | 2
_EQUALITY: Final = _AND | 3
_SUBSTRINGS: Final = _AND | 4
_GREATER: Final = _AND | 5
_LESS: Final = _AND | 6
_PRESENT: Final = CONTEXT | 7
_EXTENSIBLE: Final = _AND | 9

_INITIAL, _ANY, _FINAL = CONTEXT, CONTEXT | 1, CONTEXT | 2
_RULE, _TYPE, _VALUE, _DN = CONTEXT | 1, CONTEXT | 2, CONTEXT | 3, CONTEXT | 4

_Item = Equality | Substrings | GreaterOrEqual | LessOrEqual | Present | ExtensibleMatch


def encode_filter(node: Filter, depth: int = 0) -> bytes:
    """Writes a filter. One nested too deeply for a server to accept is a ``ValueError``."""
    if depth > MAXIMUM_DEPTH:
        raise ValueError(f"a filter nested more than {MAXIMUM_DEPTH} deep")
    match node:
        case And(items):
            return ber.element(_AND, *(encode_filter(item, depth + 1) for item in items))
        case Or(items):
            return ber.element(_OR, *(encode_filter(item, depth + 1) for item in items))
        case Not(item):
            return ber.element(_NOT, encode_filter(item, depth + 1))
    return _encode_item(node)


def _encode_item(node: _Item) -> bytes:
    match node:
        case Equality(attribute, value):
            return _assertion(_EQUALITY, attribute, value)
        case GreaterOrEqual(attribute, value):
            return _assertion(_GREATER, attribute, value)
        case LessOrEqual(attribute, value):
            return _assertion(_LESS, attribute, value)
        case Present(attribute):
            return ber.text(attribute, _PRESENT)
        case Substrings():
            return _encode_substrings(node)
    return _encode_extensible(node)


def _assertion(tag: int, attribute: str, value: bytes) -> bytes:
    return ber.element(tag, ber.text(attribute), ber.octet_string(value))


def _encode_substrings(node: Substrings) -> bytes:
    pieces = [
        *([ber.element(_INITIAL, node.initial)] if node.initial else []),
        *(ber.element(_ANY, piece) for piece in node.middle),
        *([ber.element(_FINAL, node.final)] if node.final else []),
    ]
    return ber.element(_SUBSTRINGS, ber.text(node.attribute), ber.sequence(*pieces))


def _encode_extensible(node: ExtensibleMatch) -> bytes:
    return ber.element(
        _EXTENSIBLE,
        ber.text(node.rule, _RULE) if node.rule else b"",
        ber.text(node.attribute, _TYPE) if node.attribute else b"",
        ber.element(_VALUE, node.value),
        ber.boolean(True, _DN) if node.dn_attributes else b"",
    )


def decode_filter(reader: BerReader, depth: int = 0) -> Filter:
    if depth > MAXIMUM_DEPTH:
        raise reader.error(f"a filter nested more than {MAXIMUM_DEPTH} deep")
    match reader.tag:
        case tag if tag == _AND:
            return And(_decode_items(reader, tag, depth))
        case tag if tag == _OR:
            return Or(_decode_items(reader, tag, depth))
        case tag if tag == _NOT:
            inside = reader.enter("a filter", tag)
            item = decode_filter(inside, depth + 1)
            inside.expect_end("a negated filter")
            return Not(item)
    return _decode_item(reader)


def _decode_items(reader: BerReader, tag: int, depth: int) -> tuple[Filter, ...]:
    inside = reader.enter("a filter", tag)
    items = []
    while inside.tag >= 0:
        items.append(decode_filter(inside, depth + 1))
    return tuple(items)


def _decode_item(reader: BerReader) -> Filter:
    match reader.tag:
        case tag if tag == _EQUALITY:
            return Equality(*_decode_assertion(reader, tag))
        case tag if tag == _GREATER:
            return GreaterOrEqual(*_decode_assertion(reader, tag))
        case tag if tag == _LESS:
            return LessOrEqual(*_decode_assertion(reader, tag))
        case tag if tag == _PRESENT:
            return Present(reader.text("an attribute", tag))
        case tag if tag == _SUBSTRINGS:
            return _decode_substrings(reader)
        case tag if tag == _EXTENSIBLE:
            return _decode_extensible(reader)
    raise reader.error(f"no filter begins with tag {max(reader.tag, 0):02x}")


def _decode_assertion(reader: BerReader, tag: int) -> tuple[str, bytes]:
    inside = reader.enter("a comparison", tag)
    attribute, value = inside.text("an attribute"), inside.octets("a value")
    inside.expect_end("a comparison")
    return attribute, value


def _decode_substrings(reader: BerReader) -> Substrings:
    inside = reader.enter("substrings", _SUBSTRINGS)
    attribute = inside.text("an attribute")
    pieces = inside.enter("substrings")
    inside.expect_end("substrings")
    initial = pieces.octets("an initial piece", _INITIAL) if pieces.tag == _INITIAL else b""
    middle = []
    while pieces.tag == _ANY:
        middle.append(pieces.octets("a piece", _ANY))
    final = pieces.octets("a final piece", _FINAL) if pieces.tag == _FINAL else b""
    pieces.expect_end("substrings")
    try:
        return Substrings(attribute, initial, tuple(middle), final)
    except ValueError as error:
        raise pieces.error(str(error)) from None


def _decode_extensible(reader: BerReader) -> ExtensibleMatch:
    inside = reader.enter("an extensible comparison", _EXTENSIBLE)
    rule = inside.text("a rule", _RULE) if inside.tag == _RULE else ""
    attribute = inside.text("an attribute", _TYPE) if inside.tag == _TYPE else ""
    value = inside.octets("a value", _VALUE)
    dn = inside.boolean("dnAttributes", _DN) if inside.tag == _DN else False
    inside.expect_end("an extensible comparison")
    try:
        return ExtensibleMatch(rule, attribute, value, dn)
    except ValueError as error:
        raise inside.error(str(error)) from None
