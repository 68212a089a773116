"""Finds the DirectoryChanges of many bodies at once (MC-MQDSRP 2.2.4), with NumPy.

The result is the same as that of ``wire.mqdsrp``, which decodes one body after the other. All
bodies are read in parallel: the first change of each, then the second. The identifiers of a
change's properties tell the sizes of most values, so that only texts, counted bytes and lists are
looked at one after the other, the first of each change, then the second. Unusual bodies are left
for ``wire.mqdsrp``: damaged ones, and the few that have many more changes than all others.
"""

from __future__ import annotations

import numpy as np

from mqis.pipeline.decoding import tables
from mqis.pipeline.decoding.changes import Bodies, ChangeColumns, Changes
from mqis.pipeline.decoding.octets import Ints, Mask, Octets, running
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.change import MAX_PATH, Command
from mqis.wire.mqdsrp.messages import VERSION, MessageOperation, Sync0
from mqis.wire.propvariant import MAX_STRING_UNITS, MAX_VECTOR_ITEMS

#: Reading one change of fewer bodies than this at once takes longer than reading them one by one,
#: which is done from this round on.
_FEW, _DEEP = 3, 8


def locate(bodies: Bodies, rest: Mask) -> ChangeColumns:
    """Returns the changes of the bodies that are not in ``rest``.

    Adds the bodies to ``rest`` that have to be decoded one by one.
    """
    cursor, count = _first_changes(bodies, rest)
    rounds: list[Changes] = []
    while True:
        row = np.flatnonzero((count > len(rounds)) & ~rest)
        if not len(row):
            break
        if len(rounds) >= _DEEP and len(row) < _FEW:
            rest[row] = True
            break
        found, place, good = _next_changes(bodies, row, cursor[row])
        rest[row[~good]] = True
        cursor[row[good]] = place[good]
        rounds.append(found)
    _check_ends(bodies, cursor, count, rest)
    return ChangeColumns.merged(bodies, rounds, rest)


def _first_changes(bodies: Bodies, rest: Mask) -> tuple[Ints, Ints]:
    """Returns the offset of the first change of each body, and the number of its changes."""
    cursor = bodies.start.copy()
    length = bodies.end - bodies.start
    count = np.where(length > 0, 1, 0)
    messages = np.flatnonzero(bodies.is_message & (length > 0))
    short = length[messages] < layout.PROPAGATION_CHANGES_AT
    rest[messages[short]] = True
    messages = messages[~short]
    octets, at = bodies.octets, bodies.start[messages]
    operation = octets.data[at + layout.OPERATION_AT]
    rest[messages[octets.data[at] != VERSION]] = True
    count[messages] = 0
    propagations = messages[operation == int(MessageOperation.CHANGE_PROPAGATION)]
    cursor[propagations] += layout.PROPAGATION_CHANGES_AT
    count[propagations] = octets.u16(bodies.start[propagations] + layout.PROPAGATION_COUNT_AT)
    replies = operation == int(MessageOperation.SYNC_REPLY)
    long_enough = length[messages] >= layout.SYNC_REPLY_CHANGES_AT
    answers = messages[replies & long_enough]
    cursor[answers] += layout.SYNC_REPLY_CHANGES_AT
    count[answers] = octets.u32(bodies.start[answers] + layout.SYNC_REPLY_COUNT_AT)
    complete = octets.u32(bodies.start[answers] + layout.SYNC_REPLY_COMPLETE_AT)
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
    operation = bodies.octets.data[bodies.start[messages] + layout.OPERATION_AT]
    propagations = messages[operation == int(MessageOperation.CHANGE_PROPAGATION)]
    inside = cursor[propagations] + layout.HEARTBEAT_COUNT_SIZE <= bodies.end[propagations]
    rest[propagations[~inside]] = True
    propagations = propagations[inside]
    rest[propagations[bodies.octets.u16(cursor[propagations]) != 0]] = True


def _next_changes(bodies: Bodies, row: Ints, at: Ints) -> tuple[Changes, Ints, Mask]:
    """Decodes one change of each body in ``row``, at the offsets ``at``.

    Returns also the offset behind each change, and whether it is valid.
    """
    octets, end = bodies.octets, bodies.end[row]
    good = at + layout.CHANGE_NAME_AT + layout.CHANGE_PROPERTY_IDS_AT <= end
    safe = np.where(good, at, 0)
    command, use_guid = octets.data[safe], octets.data[safe + layout.CHANGE_USE_GUID_AT]
    good &= (command <= int(Command.SYNC)) & (use_guid <= 1)
    named = use_guid == 0
    good &= ~(named & (command == int(Command.DELETE)))  # nobody does that: they go by GUID (E14)
    name_at = safe + layout.CHANGE_NAME_AT
    fixed = name_at + layout.CHANGE_GUID_SIZE
    path_length = np.zeros(len(row), np.int64)
    by_path = np.flatnonzero(named & good)
    text_end = octets.terminator(name_at[by_path], end[by_path])
    path_length[by_path] = text_end - name_at[by_path]
    fixed[by_path] = text_end + layout.PATH_END_SIZE
    good &= path_length <= 2 * MAX_PATH
    good &= fixed + layout.CHANGE_PROPERTY_IDS_AT <= end
    fixed = np.where(good, fixed, 0)
    count = np.where(good, octets.data[fixed + layout.CHANGE_PROPERTY_COUNT_AT].astype(np.int64), 0)
    values = fixed + layout.CHANGE_PROPERTY_IDS_AT + layout.PROPERTY_ID_SIZE * count
    good &= values <= end
    count[~good] = 0
    propids, sizes, place = _properties(octets, fixed, count, end, good)
    found = Changes(row, safe, fixed, np.where(good, path_length, 0), values, count, propids, sizes)
    return found, place, good


def _properties(
    octets: Octets, fixed: Ints, count: Ints, end: Ints, good: Mask
) -> tuple[Ints, Ints, Ints]:
    """Returns the identifiers and sizes of all properties, and the offset behind each change."""
    ids_at, ids_size = fixed + layout.CHANGE_PROPERTY_IDS_AT, layout.PROPERTY_ID_SIZE * count
    ids = octets.joined(ids_at, ids_size).view("<u4")
    change = np.repeat(np.arange(len(count)), count)
    propids = np.where(ids < tables.TOP, ids, 0).astype(np.int64)
    shape, sizes = tables.SHAPE[propids], tables.SIZE[propids]
    good[change[shape == tables.UNKNOWN]] = False
    before = running(sizes)
    last = np.cumsum(count)
    place = ids_at + ids_size - before[last - count]
    variable = np.flatnonzero(shape > tables.FIXED)
    each = np.bincount(change[variable], minlength=len(count))
    first = np.cumsum(each) - each
    for index in range(int(each.max(initial=0))):
        which = np.flatnonzero((each > index) & good)
        slot = variable[first[which] + index]
        at = place[which] + before[slot]
        size = _sizes(octets, propids[slot], at, end[which])
        inside = at + size <= end[which]
        good[which[~inside]] = False
        which, slot, size = which[inside], slot[inside], size[inside]
        sizes[slot] = size
        place[which] += size
    place += before[last]
    good &= place <= end
    return propids, sizes, place


def _sizes(octets: Octets, propid: Ints, at: Ints, end: Ints) -> Ints:
    """The size of each value; a size beyond the end of the body if the value is invalid."""
    shape = tables.SHAPE[propid]
    size = end - at + 1
    text = np.flatnonzero(shape == tables.TEXT)
    length = octets.terminator(at[text], end[text]) - at[text]
    short = length <= 2 * MAX_STRING_UNITS
    size[text[short]] = length[short] + layout.PATH_END_SIZE
    counted = np.flatnonzero((shape >= tables.COUNTED) & (at + tables.COUNT_SIZE <= end))
    number = octets.u32(at[counted])
    listed = shape[counted] == tables.LISTED
    valid = ~listed | (number <= MAX_VECTOR_ITEMS)
    counted, number = counted[valid], number[valid]
    size[counted] = tables.COUNT_SIZE + number * tables.ITEM_SIZE[propid[counted]]
    return size
