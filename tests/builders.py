"""Directory objects for tests: valid by the catalogue, filed under the identifiers that are stored.

Numbers make identifiers: ``queue(7)`` and ``queue(7, label="x")`` are two states of one queue. They
also make descriptors, times and certificates: two objects of a type share none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Partition,
    Scope,
)
from mqis.protocol.directory.types.catalogue import DEFAULTS
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.seqnum import SequenceNumber
from tests import distinct

#: A property shown by another one, or by the object itself, is not stored under its own number.
NOT_STORED: frozenset[int] = frozenset(
    {
        *IDENTIFIER_PROPERTY.values(),
        *(propid for propid in PropId if propid.name.endswith("_SEQNUM")),
        *(propid for propid in PropId if propid.name.endswith(("_PARTITIONID", "HASHKEY"))),
        *(
            propid
            for propid in PropId
            if propid.name.endswith(("FULL_PATH", "PATHNAME_DNS", "_DN"))
        ),
        *(propid for propid in PropId if propid.name.endswith("SECURITY_INFORMATION")),
        PropId.Q_OBJ_SECURITY,
        PropId.QM_SITE_ID,
        PropId.QM_ENCRYPTION_PK,
        PropId.QM_ENCRYPTION_PK_BASE,
        PropId.QM_ENCRYPTION_PK_ENHANCED,
        PropId.QM_SERVICE_ROUTING,
        PropId.QM_SERVICE_DEPCLIENTS,
        PropId.QM_OBJ_SECURITY,
        PropId.QM_SIGN_PK,
        PropId.QM_ENCRYPT_PK,
        PropId.S_FULL_NAME,
        PropId.L_COST,
    }
)
NOTHING: Mapping[PropId, Value] = MappingProxyType({})


def _security(object_type: ObjectType, number: int) -> bytes:
    return distinct.descriptor(object_type, number % 2**32).to_bytes()


def guid(number: int) -> Guid:
    """Ascending numbers are ascending bytes."""
    return Guid(number.to_bytes(16, "big"))


SITE = guid(0x3001)
OTHER_SITE = guid(0x3002)
MACHINE = guid(0x2001)
NETWORK = guid(0x5001)


def stored(object_type: ObjectType, values: Mapping[PropId, Value]) -> dict[int, PropVariant]:
    """The defaults of a type, with ``values`` in their places, typed by the catalogue."""
    defaults = {
        propid: default
        for propid, default in DEFAULTS.items()
        if PROPERTIES[propid].object_type is object_type and propid not in NOT_STORED
    }
    return defaults | props(values)


def _object(
    object_type: ObjectType,
    number: int,
    partition: Guid,
    seq: int | None,
    values: Mapping[PropId, Value],
) -> DirectoryObject:
    at = SequenceNumber(number if seq is None else seq)
    return DirectoryObject(object_type, guid(number), partition, at, stored(object_type, values))


def queue(
    number: int = 0x1001,
    path: str | None = None,
    *,
    machine: Guid = MACHINE,
    label: str = "",
    service_type: Guid = Guid.NULL,
    partition: Guid = SITE,
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    values: dict[PropId, Value] = {
        PropId.Q_PATHNAME: f"machine\\queue{number}" if path is None else path,
        PropId.Q_QMID: machine,
        PropId.Q_LABEL: label,
        PropId.Q_TYPE: service_type,
        PropId.Q_CREATE_TIME: distinct.created_at(number),
        PropId.Q_MODIFY_TIME: distinct.modified_at(number),
        PropId.Q_SECURITY: _security(ObjectType.QUEUE, number),
    }
    return _object(ObjectType.QUEUE, number, partition, seq, {**values, **others})


def machine(
    number: int = 0x2001,
    path: str | None = None,
    *,
    sites: tuple[Guid, ...] = (SITE,),
    networks: tuple[Guid, ...] = (NETWORK,),
    service: int = 0,
    partition: Guid | None = None,
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    values: dict[PropId, Value] = {
        PropId.QM_PATHNAME: f"machine{number}" if path is None else path,
        PropId.QM_SITE_IDS: sites,
        PropId.QM_CNS: networks,
        PropId.QM_SERVICE: service,
        PropId.QM_CREATE_TIME: distinct.created_at(number),
        PropId.QM_MODIFY_TIME: distinct.modified_at(number),
        PropId.QM_SECURITY: _security(ObjectType.MACHINE, number),
    }
    where = (sites[0] if sites else SITE) if partition is None else partition
    return _object(ObjectType.MACHINE, number, where, seq, {**values, **others})


def site(
    number: int = 0x3001,
    path: str | None = None,
    *,
    psc: str = "",
    gates: tuple[Guid, ...] = (),
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    values: dict[PropId, Value] = {
        PropId.S_PATHNAME: f"site{number}" if path is None else path,
        PropId.S_PSC: psc,
        PropId.S_GATES: gates,
        PropId.S_SECURITY: _security(ObjectType.SITE, number),
    }
    return _object(ObjectType.SITE, number, ENTERPRISE_PARTITION, seq, {**values, **others})


def network(
    number: int = 0x5001,
    path: str | None = None,
    *,
    protocol: int = 1,
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    values: dict[PropId, Value] = {
        PropId.CN_NAME: f"network{number}" if path is None else path,
        PropId.CN_PROTOCOLID: protocol,
        PropId.CN_SECURITY: _security(ObjectType.CN, number),
    }
    return _object(ObjectType.CN, number, ENTERPRISE_PARTITION, seq, {**values, **others})


def enterprise(
    number: int = 0x6001,
    path: str = "enterprise",
    *,
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    values: dict[PropId, Value] = {
        PropId.E_NAME: path,
        PropId.E_SECURITY: _security(ObjectType.ENTERPRISE, number),
    }
    return _object(ObjectType.ENTERPRISE, number, ENTERPRISE_PARTITION, seq, {**values, **others})


def user(
    number: int = 0x7001,
    *,
    sid: bytes | None = None,
    digests: tuple[Guid, ...] | None = None,
    certificate: bytes | None = None,
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    # S-1-5-21-0-0-0-number
    account = bytes.fromhex("0105000000000005 15000000") + bytes(12) + number.to_bytes(4, "little")
    values: dict[PropId, Value] = {
        PropId.U_SID: account if sid is None else sid,
        PropId.U_DIGEST: (guid(number + 1),) if digests is None else digests,
        PropId.U_SIGN_CERT: b"certificate %d" % number if certificate is None else certificate,
    }
    return _object(ObjectType.USER, number, ENTERPRISE_PARTITION, seq, {**values, **others})


def link(
    number: int = 0x8001,
    *,
    neighbours: tuple[Guid, Guid] = (SITE, OTHER_SITE),
    cost: int = 1,
    gates: tuple[Guid, ...] = (),
    seq: int | None = None,
    others: Mapping[PropId, Value] = NOTHING,
) -> DirectoryObject:
    values: dict[PropId, Value] = {
        PropId.L_NEIGHBOR1: neighbours[0],
        PropId.L_NEIGHBOR2: neighbours[1],
        PropId.L_ACTUAL_COST: cost,
        PropId.L_GATES: gates,
    }
    return _object(ObjectType.ROUTINGLINK, number, ENTERPRISE_PARTITION, seq, {**values, **others})


def tombstone(
    number: int,
    *,
    partition: Guid = SITE,
    seq: int | None = None,
    object_type: ObjectType = ObjectType.QUEUE,
    scope: Scope = Scope.ENTERPRISE,
) -> DeletedObject:
    at = SequenceNumber(number if seq is None else seq)
    return DeletedObject(guid(number), partition, at, object_type, scope)


def partition(
    id: Guid = SITE,  # noqa: A002
    *,
    owner: str = "PSC",
    last_seq: int = 0xFFFF,
) -> Partition:
    return Partition(id, owner, SequenceNumber(last_seq))


def one_of_each() -> list[DirectoryObject]:
    """A small directory in which everything that is referred to is there."""
    return [
        enterprise(),
        site(0x3001, psc="PEC"),
        site(0x3002),
        network(),
        link(),
        machine(),
        queue(),
        user(),
    ]
