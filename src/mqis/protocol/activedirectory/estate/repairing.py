"""The repairs of all findings together, and the changes that take them back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mqis.findings import Finding
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)

#: The attributes that a directory sets itself and takes from no client, in lower case.
_SET_BY_DIRECTORY = frozenset(
    {
        "distinguishedname", "dscorepropagationdata", "instancetype", "isdeleted",
        "lastknownparent", "memberof", "name", "objectguid", "objectsid", "parentguid",
        "replpropertymetadata", "structuralobjectclass", "subschemasubentry", "usnchanged",
        "usncreated", "whenchanged", "whencreated",
    }
)  # fmt: skip
_OPPOSITE = {ModifyKind.ADD: ModifyKind.DELETE, ModifyKind.DELETE: ModifyKind.ADD}


def repairs_together(
    findings: Iterable[Finding],
) -> list[tuple[Finding, tuple[EntryChange, ...]]]:
    """The changes of each finding that has some, so that none fails because of another.

    An entry that one repair deletes is neither changed nor deleted by others.
    """
    listed = [found for found in findings if found.repair]
    changes = [change for found in listed for change in found.repair]
    open_ = {change.name for change in changes if isinstance(change, DeleteEntry)}
    deleted = frozenset(open_)
    rows: list[tuple[Finding, tuple[EntryChange, ...]]] = []
    for found in listed:
        kept: list[EntryChange] = []
        for change in found.repair:
            if isinstance(change, DeleteEntry) and change.name in open_:
                open_.remove(change.name)
                kept.append(change)
            elif change.name not in deleted:
                kept.append(change)
        if kept:
            rows.append((found, tuple(kept)))
    return rows


def undo_of(repair: Sequence[EntryChange], before: Mapping[str, AddEntry]) -> Iterator[EntryChange]:
    """Yields the opposite of each change, the last first.

    ``before`` has the entries as they were. Without its entry a deletion cannot be taken back, and
    no value that was replaced: these are left out.
    """
    for change in reversed(repair):
        old = before.get(change.name)
        match change:
            case AddEntry():
                yield DeleteEntry(change.name)
            case DeleteEntry() if old is not None:
                yield _as_written(old)
            case ModifyEntry():
                changes = tuple(_opposites(change, old))
                if changes:
                    yield ModifyEntry(change.name, changes, change.descriptor_parts)
            case _:
                pass


def lost_in(repair: Sequence[EntryChange], before: Mapping[str, AddEntry]) -> list[str]:
    """The names of entries whose change cannot be taken back, because they could not be read."""
    return [
        change.name
        for change in repair
        if change.name not in before and (isinstance(change, DeleteEntry) or replaces(change))
    ]


def replaces(change: EntryChange) -> bool:
    """Returns whether a change takes all values of an attribute away without naming them."""
    return isinstance(change, ModifyEntry) and any(
        one.kind is ModifyKind.REPLACE for one in change.changes
    )


def _opposites(change: ModifyEntry, old: AddEntry | None) -> Iterator[AttributeChange]:
    for one in reversed(change.changes):
        if one.kind is not ModifyKind.REPLACE:
            yield AttributeChange(_OPPOSITE[one.kind], one.attribute, one.values)
        elif old is not None:
            yield AttributeChange(one.kind, one.attribute, _nameable(old.values(one.attribute)))


def _nameable(values: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Without names of deleted entries, which no client can write."""
    return tuple(value for value in values if b"\\0adel:" not in value.lower())


def _as_written(entry: AddEntry) -> AddEntry:
    """The entry with the attributes that a client may give, links from elsewhere left out."""
    rows = (
        (name, values)
        for name, values in entry.attributes
        if name.lower() not in _SET_BY_DIRECTORY and not name.lower().endswith("bl")
    )
    return AddEntry(entry.name, tuple(rows))
