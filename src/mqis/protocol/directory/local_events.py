"""The local events of the directory (MS-MQDS 3.1.6): what changes it, whoever asks.

One instance serves one operation inside one transaction: the object, its sequence number, its
tombstone and its partition's last number change together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    SECURITY_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Scope,
)
from mqis.protocol.directory.ownchange import ChangeKind, NotAuthority, OwnChange
from mqis.protocol.directory.ownership import (
    SITE_TYPES,
    authority,
    enterprise,
    machine_of,
    partition_or_new,
    site_of,
)
from mqis.protocol.directory.paths import check_path
from mqis.protocol.directory.types.catalogue import by_role
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.protocol.directory.user_certificates import with_certificates
from mqis.protocol.directory.write_mapping import (
    client_create,
    client_update,
    event_create,
    event_update,
    named,
)
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Entropy, Transaction
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties, PropertyBag
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber

_MODIFY_TIME = by_role(PropertyRole.MODIFY_TIME)
_CREATE_TIME = by_role(PropertyRole.CREATE_TIME)
_EXISTS = {
    ObjectType.QUEUE: HResult.MQ_ERROR_QUEUE_EXISTS,
    ObjectType.MACHINE: HResult.MQ_ERROR_MACHINE_EXISTS,
}


@dataclass(frozen=True, slots=True)
class DirectoryEvents:
    """The events over one transaction, at ``now`` seconds since 1970."""

    transaction: Transaction
    now: int
    entropy: Entropy
    #: The site of this server, where a machine goes that names none.
    own_site: Guid | None = None
    #: Whether this server decides about a partition. Without it there is no other server.
    owns: Callable[[Guid], bool] | None = None
    #: Raises ``DirectoryError`` for a change that must not be made, before it is. Without it all
    #: pass.
    permit: Callable[[OwnChange], None] | None = None
    #: Called with each change that this server makes as the authority, in order.
    observe: Callable[[OwnChange], None] | None = None
    #: The user or server that asks, for the journal.
    by: str = ""

    # --- for clients: MS-MQDS 3.1.4.4, 3.1.4.9, 3.1.4.5 --------------------------------------

    def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: Properties,
        *,
        security: bytes | None = None,
        creator: Sid | None = None,
    ) -> DirectoryObject:
        """Creates an object for a client; the server gives names, identifiers and times.

        ``security`` is the descriptor of the new object, for types that keep one. ``creator`` is
        the account that the object counts for, if that is not the owner in the descriptor.
        """
        self._check_creatable(object_type)
        if object_type not in NAME_PROPERTY:
            path = None  # clients name links all the same (MQDS-2.2.9-02)
        stored = client_create(object_type, properties)
        given = properties.get(IDENTIFIER_PROPERTY[object_type])
        takes_identifier = object_type not in (ObjectType.QUEUE, ObjectType.USER)
        if object_type is ObjectType.CN and PropId.CN_NAME in stored:
            path = str(stored[PropId.CN_NAME].value)  # the table copies it (8.3.6)
        if object_type in NAME_PROPERTY:
            if path is None:
                raise DirectoryError(
                    HResult.MQ_ERROR_INVALID_PARAMETER, f"a {object_type.label} needs a path name"
                )
            path = check_path(object_type, path)
            stored |= named(object_type, path)
        if object_type is ObjectType.USER:
            self._list_certificates(stored)
            known = self.user_of(stored)
            if known is not None:
                return self._replace(known, with_certificates(known, stored))
        if security is not None:
            stored[SECURITY_PROPERTY[object_type]] = PropVariant(VarType.BLOB, security)
        if object_type in _CREATE_TIME:
            time = PropVariant(VarType.I4, self.now)
            stored |= {_CREATE_TIME[object_type]: time, _MODIFY_TIME[object_type]: time}
        identifier = given if takes_identifier else None
        return self._add(object_type, path, stored, identifier, creator=creator)

    def update(self, obj: DirectoryObject, properties: Properties) -> DirectoryObject:
        """Changes an object for a client; an update that changes nothing still takes a number."""
        changes = client_update(obj, properties)
        self._list_certificates(changes)
        if obj.type in _MODIFY_TIME:
            changes[_MODIFY_TIME[obj.type]] = PropVariant(VarType.I4, self.now)
        return self._replace(obj, changes)

    def set_stored(self, obj: DirectoryObject, changes: dict[int, PropVariant]) -> DirectoryObject:
        """Stored properties that have calls of their own: permissions, keys, certificates."""
        if obj.type in _MODIFY_TIME:
            changes = {**changes, _MODIFY_TIME[obj.type]: PropVariant(VarType.I4, self.now)}
        return self._replace(obj, changes)

    # --- the events themselves: MS-MQDS 3.1.6.3 to 3.1.6.5 ----------------------------------------
    #
    # ``seq`` is iSeqNumber, the number that another authority gave the change; without it the
    # change is ours and takes the next number of its partition.

    def create_directory_object(
        self,
        object_type: ObjectType,
        properties: Properties,
        *,
        partition: Guid | None = None,
        seq: SequenceNumber | None = None,
    ) -> DirectoryObject:
        """3.1.6.3: identifier, name and times come from the properties.

        ``partition`` is iPartitionID, for queues and machines alone: all else is the enterprise's.
        There is one Enterprise: another one takes its place (MQDS-3.1.6.3-07).
        """
        if object_type is ObjectType.DELETEDOBJECT:
            raise DirectoryError(
                HResult.MQ_ERROR_INVALID_PARAMETER, "a tombstone is no object to create"
            )
        stored = event_create(object_type, properties)
        self._list_certificates(stored)
        path: str | None = None
        if object_type in NAME_PROPERTY:
            name = stored.get(NAME_PROPERTY[object_type])
            if name is None:
                raise DirectoryError(
                    HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, f"a {object_type.label} needs a name"
                )
            path = check_path(object_type, str(name.value))
        given = properties.get(IDENTIFIER_PROPERTY[object_type])
        if object_type is ObjectType.ENTERPRISE:
            replaced = enterprise(self.transaction)
            if replaced is not None:
                self.transaction.delete(replaced)
        chosen = partition if object_type in SITE_TYPES else None
        return self._add(object_type, path, stored, given, chosen, seq=seq)

    def update_directory_object(
        self, obj: DirectoryObject, properties: Properties, *, seq: SequenceNumber | None = None
    ) -> DirectoryObject:
        """3.1.6.4: every stored property may change, what is unknown is skipped.

        The object stays in its partition, whatever iPartitionID says.
        """
        changes = event_update(obj, properties)
        self._list_certificates(changes)
        return self._replace(obj, changes, seq=seq)

    def delete_directory_object(
        self, obj: DirectoryObject, *, seq: SequenceNumber | None = None
    ) -> DeletedObject:
        """3.1.6.5: the object goes, a tombstone with the next number comes."""
        gone = OwnChange(ChangeKind.DELETE, obj, obj, by=self.by)
        self._check_permitted(gone)
        self._check_authority(obj.partition, seq, gone)
        scope = obj.value(PropId.Q_SCOPE) if obj.type is ObjectType.QUEUE else Scope.ENTERPRISE
        tombstone = DeletedObject(
            obj.id,
            obj.partition,
            self._number(obj.partition, seq),
            obj.type,
            Scope.SITE if scope == Scope.SITE else Scope.ENTERPRISE,
        )
        self.transaction.delete(obj)
        self.transaction.bury(tombstone)
        self._notify_observer(replace(gone, tombstone=tombstone), seq)
        return tombstone

    def restore_directory_object(self, obj: DirectoryObject) -> DirectoryObject:
        """Creates a deleted object again: identifier, properties, descriptor and times stay.

        It gets a new number, like any change, and its place follows from its machine or site.
        """
        identifier = prop(IDENTIFIER_PROPERTY[obj.type], obj.id)
        return self._add(obj.type, obj.path, dict(obj.properties), identifier)

    # --- shared -----------------------------------------------------------------------------------

    def _check_creatable(self, object_type: ObjectType) -> None:
        if object_type is ObjectType.ENTERPRISE:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION, "an enterprise cannot be created"
            )
        if object_type is ObjectType.DELETEDOBJECT:
            raise DirectoryError(
                HResult.MQ_ERROR_INVALID_PARAMETER, f"a {object_type.label} cannot be created"
            )

    def _list_certificates(self, stored: dict[int, PropVariant]) -> None:
        """A bare certificate becomes a list of one (MQDS-3.1.4.4-25)."""
        found = stored.get(PropId.U_SIGN_CERT)
        if found is not None:
            assert isinstance(found.value, bytes)
            listed = UserSignCerts(())
            if found.value:
                listed = UserSignCerts.from_property(found.value, self.entropy.guid())
            stored[PropId.U_SIGN_CERT] = prop(PropId.U_SIGN_CERT, listed.to_bytes())

    def user_of(self, properties: Properties) -> DirectoryObject | None:
        """The user who has the SID of a new one: there is one for each (MQDS-3.1.4.4-24)."""
        sid = properties.get(PropId.U_SID)
        # What a client gives may be of any type, until the create table has checked it.
        key = key_of(sid.value) if sid is not None and isinstance(sid.value, bytes) else None
        if key is None:
            return None
        return next(iter(self.transaction.having(ObjectType.USER, PropId.U_SID, key)), None)

    def _add(
        self,
        object_type: ObjectType,
        path: str | None,
        stored: dict[int, PropVariant],
        given: PropVariant | None,
        chosen_partition: Guid | None = None,
        *,
        seq: SequenceNumber | None = None,
        creator: Sid | None = None,
    ) -> DirectoryObject:
        tx = self.transaction
        if path is not None and tx.find(object_type, path) is not None:
            raise _exists(object_type, path)
        named_by_caller = given is not None and bool(given.value)
        identifier = given.value if given is not None and given.value else self.entropy.guid()
        assert isinstance(identifier, Guid)  # write_mapping.py has checked its type
        if named_by_caller and tx.get(object_type, identifier) is not None:
            raise _exists(object_type, str(identifier))
        partition = self._place(object_type, path, stored)
        if chosen_partition is not None:
            partition = chosen_partition

        properties = PropertyBag.of(stored)

        def added(number: SequenceNumber) -> OwnChange:
            new = DirectoryObject(object_type, identifier, partition, number, properties)
            changed = tuple(stored)
            return OwnChange(ChangeKind.CREATE, new, changed=changed, by=self.by, creator=creator)

        if self.permit is not None:
            self.permit(added(SequenceNumber.MIN))
        if not self._decides(partition, seq):
            raise NotAuthority(added(SequenceNumber.MIN))
        change = added(self._number(partition, seq))
        made = tx.insert(change.obj)
        if made is not None:
            change = replace(change, obj=made)
        if creator is not None:
            tx.put_creator(object_type, change.obj.id, creator.to_bytes())
        if named_by_caller:  # a fresh identifier was never buried
            tx.unbury(partition, identifier)
        if object_type is ObjectType.ENTERPRISE:
            self._name_owner()
        self._notify_observer(change, seq)
        return change.obj

    def _name_owner(self) -> None:
        """The enterprise itself tells who owns its partition, which it is the first object of."""
        state = self.transaction.partition(ENTERPRISE_PARTITION)
        owner = authority(ENTERPRISE_PARTITION, self.transaction)
        if state is not None and owner is not None:
            self.transaction.put_partition(replace(state, owner=owner))

    def _place(
        self, object_type: ObjectType, path: str | None, stored: dict[int, PropVariant]
    ) -> Guid:
        """The partition of a new object; ``stored`` learns where it hangs (ownership.py)."""
        if object_type is ObjectType.QUEUE:
            host = machine_of(path or "", self.transaction)
            stored[PropId.Q_QMID] = prop(PropId.Q_QMID, host.id)
            return host.partition
        if object_type is ObjectType.MACHINE:
            if self.own_site is not None:
                own = (self.own_site,)
                stored.setdefault(PropId.QM_SITE_IDS, prop(PropId.QM_SITE_IDS, own))
            return site_of(stored)
        return ENTERPRISE_PARTITION

    def _replace(
        self,
        old: DirectoryObject,
        changes: dict[int, PropVariant],
        seq: SequenceNumber | None = None,
    ) -> DirectoryObject:
        new = old.with_properties(changes, old.seq)
        if new.path != old.path and new.path is not None:
            check_path(new.type, new.path)
            other = self.transaction.find(new.type, new.path)
            if other is not None and other.id != old.id:
                raise _exists(new.type, new.path)
        updated = OwnChange(ChangeKind.UPDATE, new, old, tuple(changes), by=self.by)
        self._check_permitted(updated)
        self._check_authority(old.partition, seq, updated)
        new = replace(new, seq=self._number(old.partition, seq))
        self.transaction.update(old, new)
        self._notify_observer(replace(updated, obj=new), seq)
        return new

    def _decides(self, partition: Guid, seq: SequenceNumber | None) -> bool:
        """A change with a number was decided by its authority; one without is ours to decide."""
        return seq is not None or self.owns is None or self.owns(partition)

    def _check_authority(
        self, partition: Guid, seq: SequenceNumber | None, change: OwnChange
    ) -> None:
        if not self._decides(partition, seq):
            raise NotAuthority(change)

    def _check_permitted(self, change: OwnChange) -> None:
        if self.permit is not None:
            self.permit(change)

    def _notify_observer(self, change: OwnChange, seq: SequenceNumber | None) -> None:
        if seq is None and self.observe is not None:
            self.observe(change)

    def _number(self, partition: Guid, given: SequenceNumber | None) -> SequenceNumber:
        """The number of a change: the one it came with, or the partition's next."""
        if given is None:
            return self._next_seq(partition)
        known = self.transaction.partition(partition)
        if known is None or given > known.last_seq:
            state = known or partition_or_new(partition, self.transaction)
            self.transaction.put_partition(replace(state, last_seq=given))
        return given

    def _next_seq(self, partition: Guid) -> SequenceNumber:
        state = partition_or_new(partition, self.transaction)
        seq = state.last_seq.increment()
        if seq in (SequenceNumber.MIN, SequenceNumber.MAX):
            raise StorageError(f"partition {partition} has no sequence numbers left")
        self.transaction.put_partition(state.numbered(seq))
        return seq


def _exists(object_type: ObjectType, name: str) -> DirectoryError:
    code = _EXISTS.get(object_type, HResult.MQ_ERROR_QUEUE_EXISTS)
    return DirectoryError(code, f"{object_type.label} {name!r} is in the directory already")
