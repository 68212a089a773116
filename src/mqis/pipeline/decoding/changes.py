"""The changes that ``locating`` found, as arrays: one item for a change, or for a property."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mqis.pipeline.decoding.octets import Ints, Mask, Octets, running
from mqis.pipeline.decoding.tables import DELETABLE, IDENTIFIER, OF_TYPE
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.change import Command


@dataclass(frozen=True, slots=True)
class Bodies:
    """The bodies of several records, in one buffer and in their order there."""

    octets: Octets
    start: Ints
    end: Ints
    #: True for a message, False for a single change.
    is_message: Mask


@dataclass(frozen=True, slots=True)
class Changes:
    """Some changes, in one order; ``propids`` and ``sizes`` have their properties one by one."""

    #: The index of the body, and the offset of the change.
    row: Ints
    start: Ints
    #: The offset of PartitionID; before it is a GUID, or a path of ``path_length`` bytes.
    fixed: Ints
    path_length: Ints
    #: The offset of the first value, and the number of properties.
    values: Ints
    count: Ints
    propids: Ints
    sizes: Ints


class ChangeColumns:
    """Changes in the order of their bodies, and what follows from where they are."""

    def __init__(self, octets: Octets, changes: Changes) -> None:
        self.octets = octets
        self.changes = changes

    @classmethod
    def merged(cls, bodies: Bodies, rounds: Sequence[Changes], rest: Mask) -> ChangeColumns:
        """The changes of all rounds, without those of bodies in ``rest``."""
        none = np.zeros(0, np.int64)
        whole = Changes(
            *(
                np.concatenate([none, *(getattr(one, name) for one in rounds)])
                for name in Changes.__slots__
            )
        )
        kept = np.flatnonzero(~rest[whole.row])
        return cls(bodies.octets, _chosen(whole, kept[np.argsort(whole.row[kept], kind="stable")]))

    def without(self, rest: Mask) -> ChangeColumns:
        """The changes without those of bodies in ``rest``."""
        kept = np.flatnonzero(~rest[self.changes.row])
        return ChangeColumns(self.octets, _chosen(self.changes, kept))

    def __len__(self) -> int:
        return len(self.changes.row)

    @cached_property
    def is_deletion(self) -> Mask:
        mask: Mask = self.octets.data[self.changes.start] == int(Command.DELETE)
        return mask

    @cached_property
    def by_path(self) -> Mask:
        mask: Mask = self.octets.data[self.changes.start + layout.CHANGE_USE_GUID_AT] == 0
        return mask

    @cached_property
    def ends(self) -> Ints:
        """The index of each change's first property, and at last the number of all properties."""
        return running(self.changes.count)

    @cached_property
    def places(self) -> Ints:
        """The offset of each value in ``packed``, and at last the length of it."""
        return running(self.changes.sizes)

    @cached_property
    def packed(self) -> Octets:
        """The values of all properties, without anything between them."""
        lengths = np.diff(self.places[self.ends])
        return Octets(self.octets.joined(self.changes.values, lengths))

    def _first_in(self, slots: Ints) -> tuple[Ints, Ints]:
        """The changes of these properties, and the offsets of their values in ``octets``."""
        change = np.searchsorted(self.ends, slots, side="right") - 1
        inside = self.places[slots] - self.places[self.ends[change]]
        return change, self.changes.values[change] + inside

    @cached_property
    def object_type(self) -> Ints:
        """The type of each change's object: from its first property, or from D_OBJTYPE of a
        deletion (E59); 0 if they do not tell."""
        kinds = np.zeros(len(self), np.int64)
        told = np.flatnonzero((self.changes.count > 0) & ~self.is_deletion)
        kinds[told] = OF_TYPE[self.changes.propids[self.ends[told]]]
        typed = np.flatnonzero(self.changes.propids == int(PropId.D_OBJTYPE))
        change, at = self._first_in(typed)
        deleted = self.is_deletion[change]
        named = self.octets.data[at[deleted]]
        kinds[change[deleted]] = np.where(np.isin(named, DELETABLE), named, 0)
        return kinds

    @cached_property
    def identifier(self) -> Ints:
        """The offset of the identifier of each change's object; -1 if the change has none."""
        found = np.where(self.by_path, -1, self.changes.start + layout.CHANGE_NAME_AT)
        wanted = np.where(self.by_path, IDENTIFIER[self.object_type], 0)
        own = np.flatnonzero(self.changes.propids == np.repeat(wanted, self.changes.count))
        change, at = self._first_in(own)
        named = self.by_path[change]
        found[change[named]] = at[named]
        return found


def _chosen(changes: Changes, order: Ints) -> Changes:
    """The changes with these indexes, and their properties."""
    begin = running(changes.count)[:-1]
    count = changes.count[order]
    ends = running(count)
    slots = np.arange(int(ends[-1])) + np.repeat(begin[order] - ends[:-1], count)
    each = {name: getattr(changes, name) for name in Changes.__slots__}
    of_properties = ("propids", "sizes")
    return Changes(**{n: a[slots if n in of_properties else order] for n, a in each.items()})
