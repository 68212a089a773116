"""Decodes the DirectoryChanges of many bodies at once (MC-MQDSRP 2.2.4), with NumPy.

The result is the same as that of ``wire.mqdsrp``, which decodes one body after the other. All
bodies of a batch are read in parallel: the first change of each, then the second; within each
change the first property, then the second. Unusual bodies are left for ``wire.mqdsrp``: damaged
ones, texts that are not ASCII, and lists whose values are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mqis.pipeline.transforms.octets import Ints, Mask, Octets
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, object_type_of
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import MAX_PATH, Command
from mqis.wire.mqdsrp.layout import (
    CHANGE_GUID_SIZE,
    CHANGE_NAME_AT,
    CHANGE_PROPERTY_COUNT_AT,
    CHANGE_PROPERTY_IDS_AT,
    CHANGE_USE_GUID_AT,
    HEARTBEAT_COUNT_SIZE,
    OPERATION_AT,
    PATH_END_SIZE,
    PROPAGATION_CHANGES_AT,
    PROPAGATION_COUNT_AT,
    PROPERTY_ID_SIZE,
    SYNC_REPLY_CHANGES_AT,
    SYNC_REPLY_COMPLETE_AT,
    SYNC_REPLY_COUNT_AT,
)
from mqis.wire.mqdsrp.messages import VERSION, MessageOperation, Sync0
from mqis.wire.propvariant import MAX_STRING_UNITS, MAX_VECTOR_ITEMS, VarType

# --- tables by property ---------------------------------------------------------------------------

_TOP = max(PROPERTIES) + 1
_UNKNOWN, FIXED, TEXT, COUNTED, LISTED = range(5)
_SIZES = {
    **dict.fromkeys((VarType.I1, VarType.UI1), 1),
    **dict.fromkeys((VarType.I2, VarType.UI2), 2),
    **dict.fromkeys((VarType.I4, VarType.UI4), 4),
    **dict.fromkeys((VarType.I8, VarType.UI8), 8),
    VarType.CLSID: 16,
}
_ITEMS = {
    VarType.VECTOR_UI2: 2,
    VarType.VECTOR_I4: 4,
    VarType.VECTOR_UI4: 4,
    VarType.VECTOR_UI8: 8,
    VarType.VECTOR_CLSID: 16,
}
#: By property: the way its value is read, the size of the value or of one item, its VARTYPE.
SHAPE = np.zeros(_TOP, dtype=np.int8)
_SIZE = np.zeros(_TOP, dtype=np.int64)
VT = np.zeros(_TOP, dtype=np.int64)
#: By property: the type of object that it belongs to; by type: the property that identifies it.
_OF_TYPE = np.zeros(_TOP, dtype=np.int64)
_IDENTIFIER = np.zeros(max(map(int, ObjectType)) + 1, dtype=np.int64)


def _fill_tables() -> None:
    for propid, entry in PROPERTIES.items():
        vt = entry.vt
        VT[propid] = int(vt)
        if vt in _SIZES:
            SHAPE[propid], _SIZE[propid] = FIXED, _SIZES[vt]
        elif vt is VarType.LPWSTR:
            SHAPE[propid] = TEXT
        elif vt in (VarType.BLOB, VarType.VECTOR_UI1):
            SHAPE[propid] = COUNTED
        elif vt in _ITEMS:
            SHAPE[propid], _SIZE[propid] = LISTED, _ITEMS[vt]
        _OF_TYPE[propid] = int(object_type_of(propid) or 0)
    for kind, propid in IDENTIFIER_PROPERTY.items():
        _IDENTIFIER[int(kind)] = int(propid)


_fill_tables()
_DELETABLE = np.array([int(k) for k in ObjectType if k is not ObjectType.DELETEDOBJECT])


@dataclass(slots=True)
class _Round:
    """The n-th change of each body that has so many."""

    octets: Octets
    #: For each body: the offset of the next unread byte, its end, and whether it is valid so far.
    place: Ints
    end: Ints
    good: Mask
    row: Ints
    start: Ints
    #: The offset of PartitionID; before it is a GUID, or a path of ``path_length`` bytes.
    fixed: Ints
    path_length: Ints
    count: Ints
    object_type: Ints
    #: The offset of the object's identifier; -1 if the change has none.
    identifier: Ints
    #: By property: the indexes of changes, the property's index, and its ids, offsets and sizes.
    steps: list[tuple[Ints, int, Ints, Ints, Ints]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """The decoded changes in the order of their bodies.

    ``propids``, ``places`` and ``sizes`` have an item for each property of all changes.
    """

    octets: Octets
    row: Ints
    start: Ints
    fixed: Ints
    path_length: Ints
    object_type: Ints
    identifier: Ints
    #: The index of each change's first property, and at last the number of all properties.
    ends: Ints
    propids: Ints
    places: Ints
    sizes: Ints

    def number(self, offset: int) -> npt.NDArray[np.int64]:
        """PreviousSeqNumber, SeqNumber or PurgedSeqNumber, by its offset from PartitionID."""
        wide = self.octets.numbers(self.fixed + offset, ">u8")
        return wide.astype(np.uint64).view(np.int64)


@dataclass(frozen=True, slots=True)
class Bodies:
    """The bodies of several records, in one buffer."""

    octets: Octets
    start: Ints
    end: Ints
    #: True for a message, False for a single change.
    is_message: Mask


def decode(bodies: Bodies, *, properties: bool) -> tuple[ChangeColumns, Mask]:
    """Returns the changes, and a mask of the bodies that must be decoded one by one."""
    rest = np.zeros(len(bodies.start), dtype=np.bool_)
    cursor, count = _first_changes(bodies, rest)
    rounds: list[_Round] = []
    number = 0
    while True:
        row = np.flatnonzero((count > number) & ~rest)
        if not len(row):
            break
        found = _next_changes(bodies, row, cursor[row], properties)
        rest[row[~found.good]] = True
        cursor[row[found.good]] = found.place[found.good]
        rounds.append(found)
        number += 1
    _check_ends(bodies, cursor, count, rest)
    return _merged(bodies, rounds, rest), rest


def _first_changes(bodies: Bodies, rest: Mask) -> tuple[Ints, Ints]:
    """Returns the offset of the first change of each body, and the number of its changes."""
    cursor = bodies.start.copy()
    length = bodies.end - bodies.start
    count = np.where(length > 0, 1, 0)
    messages = np.flatnonzero(bodies.is_message & (length > 0))
    short = length[messages] < PROPAGATION_CHANGES_AT
    rest[messages[short]] = True
    messages = messages[~short]
    octets, at = bodies.octets, bodies.start[messages]
    operation = octets.data[at + OPERATION_AT]
    rest[messages[octets.data[at] != VERSION]] = True
    count[messages] = 0
    propagations = messages[operation == int(MessageOperation.CHANGE_PROPAGATION)]
    cursor[propagations] += PROPAGATION_CHANGES_AT
    count[propagations] = octets.u16(bodies.start[propagations] + PROPAGATION_COUNT_AT)
    replies = operation == int(MessageOperation.SYNC_REPLY)
    long_enough = length[messages] >= SYNC_REPLY_CHANGES_AT
    answers = messages[replies & long_enough]
    cursor[answers] += SYNC_REPLY_CHANGES_AT
    count[answers] = octets.u32(bodies.start[answers] + SYNC_REPLY_COUNT_AT)
    complete = octets.u32(bodies.start[answers] + SYNC_REPLY_COMPLETE_AT)
    rest[answers[complete > int(Sync0.COMPLETE)]] = True
    # Replies without changes tell a number, other messages are few: they are looked at one by one.
    rest[answers[count[answers] == 0]] = True
    others = messages[~replies & (operation != int(MessageOperation.CHANGE_PROPAGATION))]
    rest[others] = True
    rest[messages[replies & ~long_enough]] = True
    return cursor, count


def _check_ends(bodies: Bodies, cursor: Ints, count: Ints, rest: Mask) -> None:
    """Leaves out bodies whose end is wrong.

    A single change must end its body; propagated changes must be followed by a heartbeat.
    """
    single = ~bodies.is_message & (count > 0)
    rest[single & (cursor != bodies.end)] = True
    messages = np.flatnonzero(bodies.is_message & ~rest & (bodies.end > bodies.start))
    operation = bodies.octets.data[bodies.start[messages] + OPERATION_AT]
    propagations = messages[operation == int(MessageOperation.CHANGE_PROPAGATION)]
    inside = cursor[propagations] + HEARTBEAT_COUNT_SIZE <= bodies.end[propagations]
    rest[propagations[~inside]] = True
    propagations = propagations[inside]
    rest[propagations[bodies.octets.u16(cursor[propagations]) != 0]] = True


def _next_changes(bodies: Bodies, row: Ints, at: Ints, properties: bool) -> _Round:
    """Decodes one change of each body in ``row``, at the offsets ``at``."""
    octets, end = bodies.octets, bodies.end[row]
    good = at + CHANGE_NAME_AT + CHANGE_PROPERTY_IDS_AT <= end
    safe = np.where(good, at, 0)
    command, use_guid = octets.data[safe], octets.data[safe + CHANGE_USE_GUID_AT]
    good &= (command <= int(Command.SYNC)) & (use_guid <= 1)
    named = use_guid == 0
    good &= ~(named & (command == int(Command.DELETE)))  # nobody does that: they go by GUID (E14)
    name_at = safe + CHANGE_NAME_AT
    text_end = octets.terminator(name_at)
    path_length = np.where(named, text_end - name_at, 0)
    good &= path_length <= 2 * MAX_PATH
    fixed = np.where(named, text_end + PATH_END_SIZE, name_at + CHANGE_GUID_SIZE)
    good &= fixed + CHANGE_PROPERTY_IDS_AT <= end
    fixed = np.where(good, fixed, 0)
    count = np.where(good, octets.data[fixed + CHANGE_PROPERTY_COUNT_AT].astype(np.int64), 0)
    place = fixed + CHANGE_PROPERTY_IDS_AT + PROPERTY_ID_SIZE * count
    good &= place <= end
    count = np.where(good, count, 0)
    path_length = np.where(good, path_length, 0)
    kinds = np.zeros(len(row), dtype=np.int64)
    identifier = np.where(named, -1, name_at)
    found = _Round(
        octets, place, end, good, row, safe, fixed, path_length, count, kinds, identifier
    )
    for index in range(int(count.max(initial=0))):
        _property(found, index, properties)
    deleted = command == int(Command.DELETE)
    kinds[deleted & ~np.isin(kinds, _DELETABLE)] = 0
    return found


def _property(found: _Round, index: int, properties: bool) -> None:
    """Decodes property number ``index`` of every change that has so many; advances ``place``."""
    octets, place, end, good = found.octets, found.place, found.end, found.good
    which = np.flatnonzero((found.count > index) & good)
    ids_at = found.fixed[which] + CHANGE_PROPERTY_IDS_AT
    propid = octets.u32(ids_at + PROPERTY_ID_SIZE * index)
    known = propid < _TOP
    shape = np.where(known, SHAPE[np.where(known, propid, 0)], _UNKNOWN)
    if properties:
        shape[shape == LISTED] = _UNKNOWN
    good[which[shape == _UNKNOWN]] = False
    which, propid, shape = (part[shape != _UNKNOWN] for part in (which, propid, shape))
    at = place[which]
    size = _sizes(octets, propid, shape, at, end[which])
    inside = at + size <= end[which]
    good[which[~inside]] = False
    which, propid, at, size = (part[inside] for part in (which, propid, at, size))
    place[which] = at + size
    _identify(found, index, which, propid, at)
    found.steps.append((which, index, propid, at, size))


def _sizes(octets: Octets, propid: Ints, shape: Ints, at: Ints, end: Ints) -> Ints:
    """The size of each value; a size beyond the end of the body if the value is invalid."""
    beyond = end - at + 1
    size = _SIZE[propid]
    text = np.flatnonzero(shape == TEXT)
    length = octets.terminator(at[text]) - at[text]
    size[text] = np.where(length <= 2 * MAX_STRING_UNITS, length + 2, beyond[text])
    counted = np.flatnonzero((shape == COUNTED) | (shape == LISTED))
    here = at[counted] + 4 <= end[counted]
    size[counted[~here]] = beyond[counted[~here]]
    counted = counted[here]
    number = octets.u32(at[counted])
    listed = shape[counted] == LISTED
    size[counted] = 4 + number * np.where(listed, _SIZE[propid[counted]], 1)
    size[counted[listed & (number > MAX_VECTOR_ITEMS)]] = beyond[
        counted[listed & (number > MAX_VECTOR_ITEMS)]
    ]
    return size


def _identify(found: _Round, index: int, which: Ints, propid: Ints, at: Ints) -> None:
    """Finds the object of each change: the type from its first property, or D_OBJTYPE of a
    deletion (E59), and the identifier."""
    octets, kinds = found.octets, found.object_type
    deleted = octets.data[found.start[which]] == int(Command.DELETE)
    if index == 0:
        kinds[which[~deleted]] = _OF_TYPE[propid[~deleted]]
    typed = deleted & (propid == int(PropId.D_OBJTYPE))
    kinds[which[typed]] = octets.data[at[typed]]
    unnamed = octets.data[found.start[which] + CHANGE_USE_GUID_AT] == 0
    own = unnamed & (propid == _IDENTIFIER[np.minimum(kinds[which], len(_IDENTIFIER) - 1)])
    found.identifier[which[own]] = at[own]


def _merged(bodies: Bodies, rounds: list[_Round], rest: Mask) -> ChangeColumns:
    """Merges the rounds in the order of the bodies, without the bodies that were left out."""

    def together(name: str) -> Ints:
        parts = [getattr(one, name) for one in rounds]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    row = together("row")
    kept = np.flatnonzero(~rest[row])
    order = kept[np.argsort(row[kept], kind="stable")]
    count = together("count")[order]
    ends = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(count)))
    position = np.full(len(row), -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    propids, places, sizes = (np.zeros(int(ends[-1]), dtype=np.int64) for _ in range(3))
    first = 0
    for one in rounds:
        for which, index, propid, at, size in one.steps:
            change = position[first + which]
            wanted = change >= 0
            slot = ends[change[wanted]] + index
            propids[slot], places[slot], sizes[slot] = propid[wanted], at[wanted], size[wanted]
        first += len(one.row)
    chosen = {
        name: together(name)[order]
        for name in ("row", "start", "fixed", "path_length", "object_type", "identifier")
    }
    return ChangeColumns(
        bodies.octets, **chosen, ends=ends, propids=propids, places=places, sizes=sizes
    )
