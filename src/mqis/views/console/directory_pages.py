"""The directory pages: lists of objects by type and search text, and single objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mqis.protocol.directory.descriptors import MachinePolicy, default_descriptor
from mqis.protocol.directory.lookup_query import SortKey
from mqis.protocol.directory.object_sources import Record, ReferenceNames, Source, as_guid
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    SECURITY_PROPERTY,
)
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.row_columns import ValueMeaning, WriteRule
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation as Part
from mqis.views.console.guarded import GuardedSource, ReadValue
from mqis.views.console.open_stores import Secured
from mqis.views.console.paging import page_of
from mqis.views.presentation.permissions import (
    NO_NAMES,
    AccountNames,
    Permission,
    permissions,
    remark,
    who,
)
from mqis.views.presentation.properties import LISTED, find_property, friendly
from mqis.views.presentation.rendering import REFERENCES, WORDS, meaning_of, shown
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import sddl_if_any
from mqis.wire.security.sid import Sid

PAGE = 50
#: The types that can be browsed, in the order of the menu.
KINDS = tuple(
    kind.label
    for kind in (
        ObjectType.QUEUE,
        ObjectType.MACHINE,
        ObjectType.SITE,
        ObjectType.ROUTINGLINK,
        ObjectType.CN,
        ObjectType.USER,
        ObjectType.ENTERPRISE,
    )
)
_OF_IDENTIFIER = re.compile(r"\{?[0-9a-f-]+\}?")
#: The property that a search looks into, besides the name.
_DESCRIBED: dict[ObjectType, PropId] = {
    ObjectType.QUEUE: PropId.Q_LABEL,
    ObjectType.ROUTINGLINK: PropId.L_DESCRIPTION,
}


@dataclass(frozen=True, slots=True)
class ObjectRow:
    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    kind: str
    columns: tuple[str, ...]
    rows: tuple[ObjectRow, ...]
    #: The number of objects that match the search, or of the type without a search.
    found: int
    #: True if there are more objects than a list may hold.
    cut: bool
    page: int
    pages: int


@dataclass(frozen=True, slots=True)
class Reference:
    kind: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A property as the page shows it."""

    name: str
    propid: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownSecurity:
    sddl: str | None
    owner: str
    group: str
    entries: tuple[Permission, ...]
    remark: str | None


@dataclass(frozen=True, slots=True)
class ObjectPage:
    kind: str
    id: str
    path: str | None
    partition: str | None
    seq: str | None
    properties: tuple[Shown, ...]
    security: ShownSecurity | None
    #: The reason why the permissions are not shown.
    hidden: str | None
    #: (name, present value, possible values) of the properties that a user may try to set.
    settable: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def title(self) -> str:
        return self.path or self.id


def kind_of(text: str) -> ObjectType:
    """The object type of that name; raises ValueError if it cannot be browsed."""
    if text not in KINDS:
        raise ValueError(f"there is no type {text!r}")
    return ObjectType.parse(text)


# --- lists ----------------------------------------------------------------------------------------


def listing(
    source: Source, kind: str, text: str = "", page: int = 1, accounts: AccountNames = NO_NAMES
) -> Listing:
    """One page of the objects whose name, label or identifier holds ``text``, sorted by name."""
    object_type = kind_of(kind)
    columns = tuple(find_property(object_type, word) for word in LISTED[object_type])
    described = _DESCRIBED.get(object_type)
    wanted = columns if described is None or described in columns else (*columns, described)
    names = _Names(source, accounts)
    number, cut, part = _search(source, object_type, text, wanted, names)
    page, pages = page_of(number, page, PAGE)
    rows = tuple(
        ObjectRow(str(record.id), tuple(names.shown(p, record.values[p]) for p in columns))
        for record in part(slice((page - 1) * PAGE, page * PAGE))
    )
    return Listing(kind, tuple(map(_heading, columns)), rows, number, cut, page, pages)


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of what values refer to: objects by their GUIDs, accounts by their SIDs."""

    objects: ReferenceNames
    accounts: AccountNames

    def shown(self, propid: PropId, variant: PropVariant | None) -> str:
        text = shown(propid, variant, self.objects)
        if meaning_of(propid) is not ValueMeaning.SID or not text:
            return text
        try:
            return who(Sid.parse(text), self.accounts)
        except ValueError:  # damaged, so shown as bytes
            return text


def _search(
    source: Source, object_type: ObjectType, text: str, columns: Sequence[PropId], names: _Names
) -> tuple[int, bool, Callable[[slice], list[Record]]]:
    """The number of matches, whether there are more, and a function that reads a part of them."""
    test = _Test(text, _DESCRIBED.get(object_type), columns, names)
    if isinstance(source, GuardedSource):
        found = source.search(object_type, text, test)
        return (
            len(found.ids),
            found.cut,
            lambda part: source.records(object_type, found.ids[part], columns),
        )
    # The whole list: a server has no call for a part of a sorted list.
    sort = (SortKey(NAME_PROPERTY[object_type]),) if object_type in NAME_PROPERTY else ()
    records = source.lookup(object_type, columns, (), sort)
    taken = [r for r in records if test(r.path, r.id, r.values.get)]
    return len(taken), False, lambda part: taken[part]


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of objects; ``more``: there may be more than were counted."""

    number: int
    more: bool = False


def counts(source: Source) -> dict[str, Tally]:
    """The number of readable objects of each type."""
    if isinstance(source, GuardedSource):
        return {kind: Tally(*source.tally(kind_of(kind))) for kind in KINDS}
    return {kind: Tally(len(source.lookup(kind_of(kind), (), (), ()))) for kind in KINDS}


class _Test:
    """Tests whether an object matches a search text."""

    def __init__(
        self, text: str, described: PropId | None, columns: Sequence[PropId], names: _Names
    ) -> None:
        self._wanted = text.lower()
        #: The text as part of an identifier; empty if it cannot be one.
        self._id = self._wanted.strip("{}") if _OF_IDENTIFIER.fullmatch(self._wanted) else ""
        self._described = described
        self._columns = columns
        self._names = names

    def __call__(self, path: str | None, id: Guid, read: ReadValue) -> bool:  # noqa: A002
        wanted = self._wanted
        if wanted in (path or "").lower() or (self._id and self._id in str(id)):
            return True
        if self._described is not None:
            value = read(self._described)
            if value is not None and wanted in str(value.value).lower():
                return True
        # An object without a name is found by the values that a list shows.
        return path is None and any(
            wanted in self._names.shown(propid, read(propid)).lower() for propid in self._columns
        )


def _heading(propid: PropId) -> str:
    if propid in NAME_PROPERTY.values():
        return "name"
    return "id" if propid in IDENTIFIER_PROPERTY.values() else words(propid)


def words(propid: int) -> str:
    """The name of a property in words: ``journal quota`` for Q_JOURNAL_QUOTA."""
    return friendly(propid).replace("_", " ")


# --- one object -----------------------------------------------------------------------------------


def object_page(
    source: Secured,
    kind: str,
    id: str,  # noqa: A002
    accounts: AccountNames = NO_NAMES,
) -> ObjectPage:
    """The page of an object; raises ``DirectoryError`` if there is none, ValueError if no id."""
    object_type = kind_of(kind)
    if as_guid(id) is None:
        raise ValueError(f"{id!r} is not an identifier (8-4-4-4-12 hexadecimal digits)")
    record = source.get(object_type, id, ())
    security, hidden = _security(source, record, accounts)
    names = _Names(source, accounts)
    properties = tuple(
        _shown(propid, variant, names)
        for propid, variant in record.values.items()
        if variant is not None and propid not in SECURITY_PROPERTY.values()
    )
    return ObjectPage(
        kind,
        str(record.id),
        record.path,
        _partition(record.partition, names),
        record.seq,
        properties,
        security,
        hidden,
        _settable(record, source),
    )


def _partition(partition: Guid | None, names: _Names) -> str | None:
    """The name of a partition: that of its site, if the visitor may read it."""
    if partition is None:
        return None
    if partition == ENTERPRISE_PARTITION:
        return "enterprise"
    return names.objects.name_of(ObjectType.SITE, partition) or str(partition)


def _shown(propid: PropId, variant: PropVariant, names: _Names) -> Shown:
    references = _references(propid, variant, names.objects)
    text = names.shown(propid, variant)
    return Shown(words(propid), f"PROPID_{propid.name}", text, references)


def _references(
    propid: PropId, variant: PropVariant, names: ReferenceNames
) -> tuple[Reference, ...]:
    object_type = REFERENCES.get(propid)
    if object_type is None:
        return ()
    value = variant.value
    listed: Sequence[object] = value if isinstance(value, tuple) else (value,)
    return tuple(
        Reference(object_type.label, str(guid), names.name_of(object_type, guid) or str(guid))
        for guid in listed
        if isinstance(guid, Guid) and guid
    )


def _security(
    source: Secured, record: Record, accounts: AccountNames
) -> tuple[ShownSecurity | None, str | None]:
    if record.type not in SECURITY_PROPERTY:
        return None, f"a {record.type.label} has no permissions of its own"
    try:
        parts = Part.OWNER | Part.GROUP | Part.DACL
        data = source.security(record.type, str(record.id), int(parts))
        sd = SecurityDescriptor.from_bytes(data) if data else _default(record.type)
    except DirectoryError as error:
        return None, str(error)
    except WireError as error:
        return None, f"the stored descriptor cannot be read: {error}"
    made = ShownSecurity(
        sddl_if_any(sd),
        who(sd.owner, accounts),
        who(sd.group, accounts),
        tuple(permissions(sd, record.type, accounts)),
        remark(sd) if data else "no permissions are stored: these are the defaults of its type",
    )
    return made, None


def _default(object_type: ObjectType) -> SecurityDescriptor:
    return default_descriptor(object_type, None, MachinePolicy.OWNER)


def _settable(
    record: Record, names: ReferenceNames
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The properties that MS-MQDS lets a client change; the server may still refuse."""
    found = []
    for propid, row in ROWS.items():
        if row.object_type is not record.type or propid >= 1000:
            continue
        if row.update is not WriteRule.APPLY:
            continue
        now = shown(propid, record.values.get(row.id), names)
        choices: Mapping[int, str] = WORDS.get(propid, {})
        found.append((friendly(propid), now, tuple(choices.values())))
    return tuple(found)
