"""The judge's values as mqis has them: its operations and its dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from mqis.wire.cmpo.ixnremote import IXN_REMOTE, BindVersionSet, BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.mqds.dscomm import DSCOMM, StringPointer
from mqis.wire.mqds.dscomm2 import DSCOMM2
from mqis.wire.mqds.query_stubs import (
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import ContextHandle, Parameters
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import Operation
from tests.wire.ndr_judge.kinds import Handle, Identifier
from tests.wire.ndr_judge.shapes import Array, Pointer, Structure
from tests.wire.ndr_judge.streams import Kind, Values
from tests.wire.ndr_judge.variant import ARMS

OPERATIONS: dict[str, Operation[Any, Any]] = {
    operation.name: operation
    for interface in (DSCOMM, DSCOMM2, IXN_REMOTE)
    for operation in (*interface.operations, *interface.callbacks)
}
#: The IDL's names, by the names that mqis has for them.
_IDL_NAMES = {
    "object_type": "dwObjectType",
    "path": "pwcsPathName",
    "length": "dwSDLength nLength",
    "descriptor": "SecurityDescriptor pSecurityDescriptor",
    "ids": "aProp",
    "values": "apVar pbBuffer",
    "types": "apVar",
    "guid": "pObjGuid pGuid",
    "auth": "phServerAuth",
    "signature": "pbServerSignature",
    "signature_size": "pdwServerSignatureSize",
    "information": "SecurityInformation",
    "length_needed": "lpnLengthNeeded",
    "context": "dwContext pwcsContext",
    "handle": "pHandle Handle phContext pphServerAuth ppHandle contextHandle",
    "restriction": "pRestriction",
    "columns": "pColumns",
    "sort": "pSort",
    "size": "dwSize",
    "index": "pdwIndex",
    "servers": "lplpSiteServers lplpwszGCList",
    "enterprise_id": "pguidEnterpriseId",
    "setup_mode": "fSetupMode",
    "buffer_size": "dwClientBuffMaxSize",
    "token": "pClientBuff pServerbuff",
    "ip": "fIP",
    "challenge": "abChallenge",
    "answer": "abSignature abCallengeResponce",
    "answer_max": "dwSignatureMaxSize dwCallengeResponceMaxSize",
    "sites": "ppguidSites",
    "computer_name": "lpwszComputerName",
    "domain_name": "lpwszDomainName",
    "result": "return",
    "port": "return",
    "is_gc": "return",
    "rank": "sRank",
    "versions": "BindVersionSet",
    "callee": "pszCalleeUuid pwszCalleeUuid",
    "host_name": "pszHostName pwszHostName",
    "caller": "pszUuidString pwszUuidString",
    "guid_in": "pszGuidIn pwszGuidIn",
    "guid_out": "pszGuidOut pwszGuidOut",
    "bound": "pBoundVersionSet",
    "blob": "rguchBlob",
    "resource": "resourceType",
    "requested": "dwcRequested",
    "accepted": "pdwcAccepted",
    "messages": "dwcMessages",
    "boxcar": "rguchBoxCar",
    "teardown": "tearDownType",
    "cp": "cp",
}
_OUR_NAMES = {name: ours for ours, names in _IDL_NAMES.items() for name in names.split()}


def as_ours(described: Parameters[Any], kinds: Mapping[str, Kind], values: Values) -> Any:
    """The dataclass of a request or response."""
    found = {}
    for field in fields(described.scope.cls):
        (name,) = [name for name in _IDL_NAMES[field.name].split() if name in values]
        if field.name == "types":
            found[field.name] = tuple(VarType(variant["vt"]) for variant in values[name])
        else:
            found[field.name] = _converted(kinds[name], values[name])
    return described.scope.cls(**found)


def sizes(values: Values) -> dict[str, int]:
    """The counts of a request, which its response depends on."""
    counts = ((name, value) for name, value in values.items() if isinstance(value, int))
    return {_OUR_NAMES[name]: value for name, value in counts if name in _OUR_NAMES}


def _converted(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case Pointer(target=Pointer(target=inner)):
            return StringPointer(_converted(inner, value[0]))
        case Pointer():
            return _converted(kind.target, value)
        case Array() if not kind.octets:
            return tuple(_converted(kind.element, item) for item in value)
        case Identifier():
            value = Guid.parse(value)
        case Handle():
            value = ContextHandle(Guid.parse(value))
        case Structure():
            value = _structure(kind, value)
    return value


def _structure(kind: Structure, value: Values) -> Any:
    if kind.name == "PROPVARIANT":
        return _variant(value)
    members = [_converted(kind.members[name], member) for name, member in value.items()]
    return _CLASSES[kind.name](*members)


def _variant(value: Values) -> PropVariant:
    vt, kind, arm = VarType(value["vt"]), ARMS[value["vt"]], value["_varUnion"]
    match kind:
        case Structure():
            (_, (name, pointer)) = kind.members.items()
            assert isinstance(pointer, Pointer)
            empty = b"" if arm[name] is None and vt in _OCTETS else []
            items = _converted(pointer.target, empty if arm[name] is None else arm[name])
            nulls_replaced = vt is VarType.VECTOR_LPWSTR
            return PropVariant(vt, tuple(text or "" for text in items) if nulls_replaced else items)
        case Pointer() if arm is None:
            return PropVariant(VarType.NULL, None)
        case None:
            return PropVariant(vt, None)
    return PropVariant(vt, bool(arm) if vt is VarType.BOOL else _converted(kind, arm))


_OCTETS = (VarType.BLOB, VarType.VECTOR_UI1)


_CLASSES: dict[str, Callable[..., Any]] = {
    "MQPROPERTYRESTRICTION": PropertyRestriction,
    "MQRESTRICTION": lambda _count, items: RestrictionSet(items),
    "MQCOLUMNSET": lambda _count, items: ColumnSet(items),
    "MQSORTKEY": SortColumn,
    "MQSORTSET": lambda _count, items: SortSet(items),
    "BIND_VERSION_SET": BindVersionSet,
    "BOUND_VERSION_SET": BoundVersionSet,
}
