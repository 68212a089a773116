"""What is read of the directory inside a server: the events of MS-MQDS 3.1.6.6 to 3.1.6.9.

The methods of clients, replication and export all read through these. Nobody's rights are asked
here: whoever acts for a client passes ``admit``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mqis.protocol.directory.locate import Target, locate
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.query import Query, Row
from mqis.protocol.directory.reading import is_readable, read_property
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant


def read_directory_object(
    view: View, target: Target, ids: Sequence[int]
) -> dict[PropId, PropVariant]:
    """3.1.6.6: what the read tables show of an object; what they do not list is skipped."""
    if not ids:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "no property is asked for")
    obj = locate(view, target)
    shown = {PropId(p): read_property(obj, p, view) for p in ids if is_readable(p)}
    return {propid: variant for propid, variant in shown.items() if variant is not None}


@dataclass(slots=True)
class LookupState:
    """LookupIteratorState (3.1.1.13): the rows as they were when it began, and how far it is."""

    object_type: ObjectType
    #: PropertyList: in the client's order, duplicates included.
    columns: tuple[PropId, ...]
    rows: list[Row]
    position: int = field(default=0)

    def page(self, size: int) -> list[Row]:
        """As many whole objects as ``size`` values hold, without moving on."""
        count = size // len(self.columns)
        return self.rows[self.position : self.position + count]


def _all(_obj: DirectoryObject) -> bool:
    return True


def begin_directory_lookup(
    view: View, query: Query, admit: Callable[[DirectoryObject], bool] = _all
) -> LookupState:
    """3.1.6.7: the matching objects that ``admit`` lets pass, materialised (note <131>)."""
    rows = query.rows_of(filter(admit, query.objects(view)), view)
    return LookupState(query.object_type, query.columns, rows)


def lookup_directory_next(state: LookupState) -> Row:
    """3.1.6.8: the values of the next object; none at the end, however often it is asked."""
    rows = state.page(len(state.columns))
    state.position += len(rows)
    return rows[0] if rows else ()


def end_directory_lookup(state: LookupState) -> None:
    """3.1.6.9: the rows go; there is no query below this one to end (note <133>)."""
    state.rows.clear()
    state.position = 0
