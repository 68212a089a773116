"""Restrictions (MS-MQDS 2.2.11, 2.2.12): what a lookup asks of each object.

They compare what a property shows, not what is stored: clients ask for 210 greater than 1 and for
201 equal to a site, and both are computed (MQDS-3.1.4.17-04).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.read_mapping import packed_reader_of, reader_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType

#: A restriction, a column set and a sort set have at most this many entries (2.2.12 to 2.2.15).
MAX_ENTRIES = 128


class Relation(IntEnum):
    """The relation of the property to the constant. The numbers beyond 5 that an IDL declares are
    not legal here."""

    LT = 0
    LE = 1
    GT = 2
    GE = 3
    EQ = 4
    NE = 5

    @classmethod
    def from_wire(cls, number: int) -> Relation:
        found = _BY_NUMBER.get(number)
        if found is None:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_RELATION, f"relation {number} is not one of 0 to 5"
            )
        return found

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self]


_BY_NUMBER = {int(relation): relation for relation in Relation}
_SYMBOLS = {
    Relation.LT: "<",
    Relation.LE: "<=",
    Relation.GT: ">",
    Relation.GE: ">=",
    Relation.EQ: "=",
    Relation.NE: "!=",
}
_COMPARE: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
    Relation.EQ: operator.eq,
    Relation.NE: operator.ne,
}


#: Types of which equal values have equal bytes; text ignores case, a list may hold text.
_COMPARED_PACKED = {
    VarType.CLSID,
    VarType.UI1,
    VarType.UI2,
    VarType.UI4,
    VarType.I2,
    VarType.I4,
}


@dataclass(frozen=True, slots=True)
class Restriction:
    """property <relation> constant."""

    relation: Relation
    propid: PropId
    constant: PropVariant

    def __post_init__(self) -> None:
        entry = PROPERTIES.get(self.propid)
        if entry is None:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID, f"no property {self.propid}"
            )
        if self.constant.vt is not entry.vt:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
                f"{entry.name} is {entry.vt}, compared with {self.constant.vt}",
            )

    def test(self, view: View) -> Callable[[DirectoryObject], bool]:
        """``matches`` for many objects, all of the property's type."""
        if self.relation is Relation.EQ and self.constant.vt in _COMPARED_PACKED:
            return self._test_packed(view)
        read, compare = reader_of(self.propid), _COMPARE[self.relation]
        constant = comparable(self.constant.value)

        def is_met(obj: DirectoryObject) -> bool:
            shown = read(obj, view)
            return shown is not None and compare(comparable(shown.value), constant)

        return is_met

    def _test_packed(self, view: View) -> Callable[[DirectoryObject], bool]:
        """The same for values that are equal if their bytes are: nothing is decoded."""
        read = packed_reader_of((int(self.propid),))
        wanted = [(int(self.constant.vt), self.constant.packed())]
        return lambda obj: read(obj, view) == wanted

    def holds(self, shown: Value) -> bool:
        """Returns whether a value that the property shows meets the restriction."""
        return _COMPARE[self.relation](comparable(shown), comparable(self.constant.value))

    def __str__(self) -> str:
        return f"{self.propid.name} {self.relation.symbol} {self.constant.value!r}"


def comparable(value: Value | PropVariant) -> Any:
    """The form in which values are compared and sorted.

    Text ignores case, as the databases behind these directories always have; a GUID sorts as its
    text does; a list compares element by element.
    """
    if isinstance(value, str):
        return name_key(value)
    if isinstance(value, Guid):
        return value.big_endian
    if isinstance(value, tuple):
        return tuple(comparable(element) for element in value)
    if isinstance(value, PropVariant):
        return (int(value.vt), comparable(value.value))
    return value
