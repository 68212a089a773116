"""The contents of the directory: objects, the tombstones they leave, the partitions they lie in.

An object is its type, its identifier, its place in the replication order and a bag of *stored*
properties. Several identifiers can show the same attribute (201 and 222, 803 and 812, 1102 and
1101); just one of them is stored, ``read_mapping`` and ``write_mapping`` map the others to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from mqis.protocol.directory.types.catalogue import by_role
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties, PropertyBag
from mqis.wire.propvariant import Value
from mqis.wire.seqnum import SequenceNumber

#: The partition that enterprise-wide objects lie in (MC-MQDSRP 3.1.1.2.3).
ENTERPRISE_PARTITION = Guid.NULL

#: The property that plays each part in an object, by the type of the object.
IDENTIFIER_PROPERTY: dict[ObjectType, PropId] = by_role(PropertyRole.IDENTIFIER)
NAME_PROPERTY: dict[ObjectType, PropId] = by_role(PropertyRole.NAME)
SECURITY_PROPERTY: dict[ObjectType, PropId] = by_role(PropertyRole.SECURITY)
#: What a list shows beside the identifiers of objects that have no name.
_TOLD_APART = {ObjectType.ROUTINGLINK: "neighbor1,neighbor2", ObjectType.USER: "sid"}


def without_path_name(object_type: ObjectType) -> str:
    """Says that objects of a type have no name, and how one is named instead."""
    label = object_type.label
    text = f"a {label} has no path name"
    if object_type not in _TOLD_APART:
        return text
    command = f"mqis lookup {label} --columns id,{_TOLD_APART[object_type]}"
    return f"{text}; name it by its GUID, which '{command}' shows"


def object_type_of(propid: int) -> ObjectType | None:
    """The type that an identifier belongs to by its number (MC-MQDSRP 3.1.1.4); None if unknown.

    Numbers 400 and 1400 are nobody's: a tombstone's properties do not tell what was deleted (E59).
    """
    quotient = (propid - 1000 if propid > 1000 else propid) // 100
    return _TYPES.get(quotient)


def deleted_type_of(properties: Properties) -> ObjectType | None:
    """Returns the type of the deleted object, from its property (E59); None if unknown."""
    found = properties.get(PropId.D_OBJTYPE)
    number = None if found is None else found.value
    return _TYPES.get(number) if isinstance(number, int) else None


_TYPES = {int(kind): kind for kind in ObjectType if kind is not ObjectType.DELETEDOBJECT}


class Scope(IntEnum):
    """The reach of a queue or a tombstone (MS-MQMQ 2.3.1.14, MC-MQDSRP 3.1.1.2.2)."""

    SITE = 0
    ENTERPRISE = 1


def name_key(name: str) -> str:
    """The form in which names are compared: Windows names ignore case."""
    return name.lower()


@dataclass(frozen=True, slots=True)
class DirectoryObject:
    """One object as it stands after its last change."""

    type: ObjectType
    id: Guid
    partition: Guid
    seq: SequenceNumber
    properties: Properties

    def __post_init__(self) -> None:
        if not isinstance(self.properties, (MappingProxyType, PropertyBag)):
            object.__setattr__(self, "properties", MappingProxyType(dict(self.properties)))

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.type, self.id, self.partition, self.seq, dict(self.properties))
        return DirectoryObject, fields

    @property
    def path(self) -> str | None:
        """The name that addresses the object; None for types that have no name."""
        propid = NAME_PROPERTY.get(self.type)
        found = None if propid is None else self.properties.get(propid)
        return None if found is None else str(found.value)

    def value(self, propid: int) -> Value:
        """The stored value, or None where there is none."""
        found = self.properties.get(propid)
        return None if found is None else found.value

    def with_properties(self, changes: Properties, seq: SequenceNumber) -> DirectoryObject:
        return replace(self, seq=seq, properties={**self.properties, **changes})


@dataclass(frozen=True, slots=True)
class DeletedObject:
    """A tombstone: what is left of a deleted object, so that the deletion can replicate."""

    id: Guid
    partition: Guid
    seq: SequenceNumber
    object_type: ObjectType
    scope: Scope

    def __post_init__(self) -> None:
        if self.object_type is ObjectType.DELETEDOBJECT:
            raise ValueError("a tombstone tells the type that the object had")


class PurgeState(IntEnum):
    """The progress of a full synchronisation of a partition (MC-MQDSRP 3.1.1.2.3, E39)."""

    NORMAL = 0
    STARTING_SYNC0 = 1
    IN_SYNC0 = 2
    COMPLETING_SYNC0 = 3


@dataclass(frozen=True, slots=True)
class Partition:
    """The replication state of one partition, as far as it is stored."""

    id: Guid
    owner: str
    last_seq: SequenceNumber = SequenceNumber.MIN
    purged_seq: SequenceNumber = SequenceNumber.MIN
    allowed_purge_seq: SequenceNumber = SequenceNumber.MIN
    purge_state: PurgeState = PurgeState.NORMAL

    def numbered(self, last_seq: SequenceNumber) -> Partition:
        """After its change of that number. Each change does it: ``replace`` takes twice as long."""
        return Partition(
            self.id,
            self.owner,
            last_seq,
            self.purged_seq,
            self.allowed_purge_seq,
            self.purge_state,
        )


_SUM_BYTES = 32
_MODULUS = 1 << 8 * _SUM_BYTES
_COUNT_MODULUS = 1 << 64
_DIGEST_BYTES = 2 * _SUM_BYTES + 8


class PartitionDigest(NamedTuple):
    """The sum of the hashes of a partition's objects (``replication.digest``).

    Every change makes one, and a named tuple is made in a third of a dataclass's time.
    """

    #: Of the objects that every server has.
    shared: int = 0
    #: Of the queues that only the site knows, and their number.
    site: int = 0
    site_only: int = 0

    def plus(self, shared: int, site: int = 0, site_only: int = 0) -> PartitionDigest:
        """With other sums added, which may be negative."""
        return PartitionDigest(
            (self.shared + shared) % _MODULUS,
            (self.site + site) % _MODULUS,
            (self.site_only + site_only) % _COUNT_MODULUS,
        )

    def to_bytes(self) -> bytes:
        sums = (value.to_bytes(_SUM_BYTES, "big") for value in (self.shared, self.site))
        return b"".join(sums) + self.site_only.to_bytes(8, "big")

    @classmethod
    def from_bytes(cls, data: bytes) -> PartitionDigest:
        if len(data) != _DIGEST_BYTES:
            raise ValueError(f"a digest has {_DIGEST_BYTES} bytes, not {len(data)}")
        parts = data[:_SUM_BYTES], data[_SUM_BYTES:-8], data[-8:]
        return cls(*(int.from_bytes(part, "big") for part in parts))
