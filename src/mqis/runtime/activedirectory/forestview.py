"""``protocol.ports.View`` over an Active Directory: what a directory call reads.

A view remembers what it has read, so that one call sees one state of each object; Active Directory
has no snapshots. What only a store of our own has is empty here: partitions, sequence numbers,
tombstones, the states of replication.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

from mqis.protocol.activedirectory.certificates import CERTIFIED
from mqis.protocol.activedirectory.conditions import conditions_of, referred, search_filter
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS, UNIQUE_NAMES
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.indexing import index_keys
from mqis.protocol.directory.objects import (
    DeletedObject,
    DirectoryObject,
    Partition,
    PartitionDigest,
    name_key,
)
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ports import Change
from mqis.runtime.activedirectory.connection import ForestConnection
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.journal import JournalRecord
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import And, Equality, Filter
from mqis.wire.ldap.names import guid_name
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber

#: Asks for no attributes (RFC 4511 4.5.1.8).
_NO_ATTRIBUTES: Final = "1.1"
#: Objects that one view remembers.
_MOST_REMEMBERED: Final = 1000
_NAMELESS: Final = (ObjectType.USER, ObjectType.DELETEDOBJECT)


class ForestView:
    """Reads through one connection, which many views share."""

    def __init__(self, link: ForestConnection) -> None:
        self._link = link
        self._remembered: dict[tuple[ObjectType, Guid | str], DirectoryObject | None] = {}

    # --- objects ----------------------------------------------------------------------------------

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject | None:  # noqa: A002
        if object_type is ObjectType.DELETEDOBJECT or not id:
            return None
        return self._once(object_type, id, lambda reader: reader.read_one(object_type, id))

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        if object_type is ObjectType.ENTERPRISE:
            found = next(self.objects(object_type), None)
            wanted = found is not None and name_key(found.path or "") == name_key(path)
            return found if wanted else None
        if object_type in _NAMELESS or not path or not _is_text(path):
            return None
        try:
            return self._once(
                object_type, name_key(path), lambda reader: reader.find(object_type, path)
            )
        except DirectoryError as error:
            if error.hresult == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME:
                return None
            raise

    def objects(self, object_type: ObjectType) -> Iterator[DirectoryObject]:
        """All objects of a type; of users those with certificates. The directory orders them."""
        if object_type is ObjectType.DELETEDOBJECT:
            return iter(())
        if object_type is ObjectType.ENTERPRISE:
            found = self._once(object_type, "", lambda reader: reader.read_enterprise())
            return iter(() if found is None else (found,))
        return self._link.search(object_type, CERTIFIED if object_type is ObjectType.USER else None)

    def owned_by(self, object_type: ObjectType, owner: Guid) -> Iterator[DirectoryObject]:
        if object_type is ObjectType.QUEUE:
            if self.get(ObjectType.MACHINE, owner) is None:
                return iter(())
            base, scope = guid_name(owner), SearchScope.ONE_LEVEL
            return self._link.search(object_type, base=base, scope=scope)
        if object_type is ObjectType.MACHINE:
            return self._link.search(object_type, Equality("mSMQSites", owner.raw))
        return iter(()) if owner else self.objects(object_type)

    def having(
        self, object_type: ObjectType, propid: PropId, key: bytes
    ) -> Iterator[DirectoryObject]:
        """Asks the directory where it can compare, and looks at every object where it cannot."""
        condition = self._condition(propid, key)
        found = (
            self.objects(object_type)
            if condition is None
            else self._link.search(object_type, condition)
        )
        return (obj for obj in found if (propid, key) in index_keys(obj))

    def compared(
        self, object_type: ObjectType, restrictions: Sequence[Restriction]
    ) -> Iterator[DirectoryObject]:
        """Leaves to the directory what it can compare; queues of one machine are read below it."""
        if object_type in (ObjectType.ENTERPRISE, ObjectType.DELETEDOBJECT):
            return self.objects(object_type)
        named = next(filter(None, map(_name_in, restrictions)), "")
        if named:
            one = self.find(object_type, named)
            return iter(() if one is None else (one,))
        base, scope = None, SearchScope.SUBTREE
        owner = next(filter(None, map(_owner_in, restrictions)), None)
        if owner is not None:
            if self.get(ObjectType.MACHINE, owner) is None:
                return iter(())
            base, scope = guid_name(owner), SearchScope.ONE_LEVEL
        conditions: list[Filter] = [CERTIFIED] if object_type is ObjectType.USER else []
        conditions += conditions_of(restrictions, self._references(object_type, restrictions))
        condition = And(tuple(conditions)) if conditions else None
        return self._link.search(object_type, condition, base=base, scope=scope)

    def _references(
        self, object_type: ObjectType, restrictions: Sequence[Restriction]
    ) -> References:
        guids = sorted(referred(restrictions))
        if not guids:
            return References()
        return self._link.ask(object_type, lambda reader: reader.names_of(guids))

    def _condition(self, propid: PropId, key: bytes) -> Filter | None:
        row = ATTRIBUTE_ROWS[propid]
        if row.reference:
            target = self.get(ObjectType.SITE, Guid(key))
            names = [] if target is None else [self._name_of(target)]
            return And(tuple(Equality(row.attribute, name) for name in names)) if names else None
        # Case is folded in keys of texts, and the directory folds that of ASCII the same way.
        is_text = propid == PropId.Q_LABEL
        return None if is_text and not key.isascii() else Equality(row.attribute, key)

    def _name_of(self, obj: DirectoryObject) -> bytes:
        references = self._link.ask(obj.type, lambda reader: reader.names_of([obj.id]))
        return str(references.names[obj.id]).encode()

    def count(self, object_type: ObjectType) -> int:
        if object_type in (ObjectType.ENTERPRISE, ObjectType.DELETEDOBJECT):
            return sum(1 for _ in self.objects(object_type))
        return self._link.ask(object_type, lambda reader: _count(reader, object_type))

    def count_created(self, account: bytes) -> int:
        """Nothing: Active Directory limits what an account may own by quotas of its own."""
        return 0

    def _once(
        self,
        object_type: ObjectType,
        key: Guid | str,
        ask: Callable[[ForestReader], Coroutine[Any, Any, DirectoryObject | None]],
    ) -> DirectoryObject | None:
        place = object_type, key
        if place not in self._remembered:
            found = self._link.ask(object_type, ask)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[place] = found
        return self._remembered[place]

    # --- what only a store of our own has ---------------------------------------------------------

    def changes(self, partition: Guid, after: SequenceNumber) -> Iterator[Change]:
        return iter(())

    def tombstones(self, id: Guid) -> list[DeletedObject]:  # noqa: A002
        return []

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        return None

    def partitions(self) -> list[Partition]:
        return []

    def digest(self, id: Guid) -> PartitionDigest | None:  # noqa: A002
        return None

    def state(self, family: str, key: bytes) -> bytes | None:
        return None

    def states(self, family: str) -> list[tuple[bytes, bytes]]:
        return []

    def outbox(self, after: int, limit: int) -> list[tuple[int, JournalRecord]]:
        return []


def _name_in(restriction: Restriction) -> str:
    """The full path or qualified name that only one object can have; empty if it asks for none."""
    value = restriction.constant.value
    wanted = restriction.propid in UNIQUE_NAMES and restriction.relation is Relation.EQ
    return value if wanted and isinstance(value, str) else ""


def _owner_in(restriction: Restriction) -> Guid | None:
    """The machine whose queues alone can meet a restriction."""
    value = restriction.constant.value
    wanted = restriction.propid is PropId.Q_QMID and restriction.relation is Relation.EQ
    return value if wanted and isinstance(value, Guid) and value else None


def _is_text(path: str) -> bool:
    """Returns whether a path can be written as UTF-8: nothing in a directory has another name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in path


async def _count(reader: ForestReader, object_type: ObjectType) -> int:
    query = LdapQuery(
        str(reader.forest.search_base(object_type)),
        filter=search_filter(object_type, *([CERTIFIED] if object_type is ObjectType.USER else [])),
        attributes=(_NO_ATTRIBUTES,),
        page_size=reader.page_size,
    )
    total = 0
    async for _ in reader.client.search(query):
        total += 1
    return total
