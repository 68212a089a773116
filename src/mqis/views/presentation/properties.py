"""Parses properties as users write them: ``label`` for PROPID_Q_LABEL, ``label=orders``.

A property has one word, which commands print and accept: ``path``, ``id``, ``partition`` and
``seq`` for every type that has them, else the specification's name without PROPID and the letters
of the type, in lower case. That name (``pathname``), names in full and numbers are accepted too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mqis.files import system_reason
from mqis.protocol.directory.object_sources import ReferenceNames
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.property_words import own_word, property_word
from mqis.protocol.directory.types.row_columns import UNLIMITED, ValueMeaning
from mqis.texts import meant, parse_moment
from mqis.views.presentation.rendering import REFERENCES, WORDS, meaning_of
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import Sid

#: The default columns of a list of objects.
LISTED: dict[ObjectType, tuple[str, ...]] = {
    ObjectType.QUEUE: ("path", "label", "transaction", "scope"),
    ObjectType.MACHINE: ("path", "site_ids", "service", "os", "address"),
    ObjectType.SITE: ("path", "psc", "gates", "foreign"),
    ObjectType.ROUTINGLINK: ("neighbor1", "neighbor2", "cost", "description"),
    ObjectType.CN: ("path", "protocolid", "id"),
    ObjectType.USER: ("sid", "id"),
    ObjectType.ENTERPRISE: ("path", "pecname", "id"),
}


class PropertyError(MqisError):
    """A property, a value or a condition is invalid."""


# --- names ----------------------------------------------------------------------------------------


def friendly(propid: int) -> str:
    """The word for a property, in every command and document: ``label`` for Q_LABEL.

    Returns the number of an unknown property.
    """
    return property_word(propid)


def names_of(object_type: ObjectType) -> dict[str, PropId]:
    """The words for the properties of the type, one for each."""
    return {friendly(p): e.id for p, e in PROPERTIES.items() if e.object_type is object_type}


def find_property(object_type: ObjectType, text: str) -> PropId:
    """Finds a property by ``label``, ``PROPID_Q_LABEL``, ``Q_LABEL`` or ``108``."""
    words = names_of(object_type)
    word = text.strip().lower()
    if word in words:
        return words[word]
    for propid in words.values():
        if word in _other_words(propid):
            return propid
    raise PropertyError(
        f"a {object_type.label} has no property {text!r}; {meant(word, list(words))}"
    )


def _other_words(propid: PropId) -> tuple[str, ...]:
    name = propid.name.lower()
    return own_word(propid), str(int(propid)), name, f"propid_{name}"


# --- values ---------------------------------------------------------------------------------------

_CONDITION = re.compile(r"\s*([A-Za-z0-9_]+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_RELATIONS = {relation.symbol: relation for relation in Relation}


def parse_condition(object_type: ObjectType, text: str, names: ReferenceNames) -> Restriction:
    """Parses ``label=orders`` or ``create_time >= 2024-01-01``."""
    propid, relation, constant = split_condition(object_type, text)
    return Restriction(relation, propid, parse_value(propid, constant, names))


def split_condition(object_type: ObjectType, text: str) -> tuple[PropId, Relation, str]:
    """Splits a condition into its property, its relation and the text of its constant."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise PropertyError(f"{text!r} is not a condition: write property=value (or != < <= > >=)")
    word, symbol, constant = match.groups()
    return find_property(object_type, word), _RELATIONS[symbol], constant


def parse_assignments(
    object_type: ObjectType, texts: Sequence[str], names: ReferenceNames, *, files: bool = True
) -> dict[int, PropVariant]:
    """Parses ``label=orders`` and the like; refuses a property that is given twice.

    ``files``: read ``@FILE`` from this computer. False for texts that come from another one.
    """
    values: dict[int, PropVariant] = {}
    for text in texts:
        word, equals, value = text.partition("=")
        if not equals:
            raise PropertyError(f"{text!r} is not an assignment: write property=value")
        propid = find_property(object_type, word)
        if propid in values:
            raise PropertyError(f"{friendly(propid)} is set twice")
        values[propid] = parse_value(propid, value, names, files=files)
    return values


def parse_value(
    propid: PropId, text: str, names: ReferenceNames, *, files: bool = True
) -> PropVariant:
    """Parses ``text`` as a value of the property's variant type."""
    vt = PROPERTIES[propid].vt
    try:
        return PropVariant(vt, _value(propid, vt, text, names, files))
    except (ValueError, WireError) as error:
        raise PropertyError(f"{friendly(propid)}: {text!r} is no value of {vt}: {error}") from None


def _value(propid: PropId, vt: VarType, text: str, names: ReferenceNames, files: bool) -> Value:
    if vt is VarType.LPWSTR:
        return text
    if vt is VarType.CLSID:
        return _guid(propid, text, names)
    if vt is VarType.VECTOR_CLSID:
        return tuple(_guid(propid, part, names) for part in text.split(",") if part.strip())
    if vt is VarType.VECTOR_LPWSTR:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if vt in (VarType.BLOB, VarType.VECTOR_UI1):
        return _bytes(propid, text, files)
    return _integer(propid, text)


def _guid(propid: PropId, text: str, names: ReferenceNames) -> Guid:
    object_type = REFERENCES.get(propid)
    found = None if object_type is None else names.id_of(object_type, text.strip())
    if found is not None:
        return found
    try:
        return Guid.parse(text)
    except ValueError as error:
        if object_type is None:
            raise
        raise ValueError(f"{error}, nor the name of a {object_type.label}") from None


def _bytes(propid: PropId, text: str, files: bool) -> bytes:
    meaning = meaning_of(propid)
    if meaning is ValueMeaning.SID:
        return Sid.parse(text).to_bytes()
    if meaning is ValueMeaning.DESCRIPTOR:
        return parse_sddl(text).to_bytes()
    if files and text.startswith("@"):
        return _file(Path(text[1:]))
    return bytes.fromhex(text)


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {system_reason(error)}") from None


def _integer(propid: PropId, text: str) -> int:
    for number, word in WORDS.get(propid, {}).items():
        if text.lower() == word.lower():
            return number
    meaning = meaning_of(propid)
    if meaning is ValueMeaning.QUOTA and text.lower() == "unlimited":
        return UNLIMITED
    if meaning is ValueMeaning.TIME and "-" in text:
        return int(parse_moment(text).timestamp())
    try:
        return int(text, 0)
    except ValueError:
        words = ", ".join(WORDS.get(propid, {}).values())
        raise ValueError(f"wants one of {words}" if words else "wants a number") from None
