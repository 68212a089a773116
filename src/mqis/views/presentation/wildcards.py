"""Conditions with wildcards, ``path=s011*``: tested here, because no server knows them.

``*`` stands for any text and ``?`` for one character; ``[*]`` and ``[?]`` are the characters
themselves. A text is compared without regard to case, and of a list one element has to fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import translate

from mqis.protocol.directory.lookup_query import SortKey
from mqis.protocol.directory.object_sources import Record, Source
from mqis.protocol.directory.objects import name_key
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.views.presentation.properties import (
    PropertyError,
    parse_condition,
    split_condition,
)
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

_TEXTS = (VarType.LPWSTR, VarType.VECTOR_LPWSTR)
#: A bracket that does not make a wildcard an ordinary character is one itself.
_ORDINARY_BRACKET = re.compile(r"\[(?![*?]\])")


@dataclass(frozen=True, slots=True)
class WildcardCondition:
    """The texts that a property may have, or with ``excluded`` may not have."""

    propid: PropId
    pattern: re.Pattern[str]
    excluded: bool

    def is_met(self, value: PropVariant | None) -> bool:
        """An object without a value meets no condition, as in the restrictions of servers."""
        if value is None or value.vt not in _TEXTS:
            return False
        texts = value.value if isinstance(value.value, tuple) else (value.value,)
        found = any(self.pattern.fullmatch(name_key(str(text))) for text in texts)
        return found is not self.excluded


def look_up(
    source: Source,
    object_type: ObjectType,
    columns: Sequence[PropId],
    conditions: Sequence[str],
    sort: Sequence[SortKey],
) -> list[Record]:
    """The objects that meet all conditions as users write them, in order."""
    restrictions: list[Restriction] = []
    wildcards: list[WildcardCondition] = []
    for text in conditions:
        wildcard = parse_wildcard(object_type, text)
        if wildcard is None:
            restrictions.append(parse_condition(object_type, text, source))
        else:
            wildcards.append(wildcard)
    read = tuple(dict.fromkeys((*columns, *(condition.propid for condition in wildcards))))
    found = source.lookup(object_type, read, restrictions, sort)
    return [
        replace(record, values={propid: record.values[propid] for propid in columns})
        for record in found
        if all(condition.is_met(record.values[condition.propid]) for condition in wildcards)
    ]


def parse_wildcard(object_type: ObjectType, text: str) -> WildcardCondition | None:
    """Parses a condition with a wildcard; None for one without."""
    propid, relation, constant = split_condition(object_type, text)
    if PROPERTIES[propid].vt not in _TEXTS or not re.search(r"[*?]", constant):
        return None
    if relation not in (Relation.EQ, Relation.NE):
        raise PropertyError(
            f"{text!r}: a wildcard fits only = and !=; write [*] or [?] for the character itself"
        )
    return WildcardCondition(propid, _compiled(constant), relation is Relation.NE)


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(translate(_ORDINARY_BRACKET.sub("[[]", name_key(text))))
