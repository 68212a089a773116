"""The dscomm2 interface (MS-MQDS 3.3.4): all methods with their opnums and stubs."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.mqds.dscomm import (
    AUTH,
    HRESULT,
    OBJECT_TYPE,
    PROPS_GOT,
    RESULT,
    SIGNED,
    TYPED,
    DirectoryResult,
    GetProps,
    GetPropsGuid,
    HandleGiven,
    HandleGot,
    PropsGot,
)
from mqis.wire.ndr import (
    CONTEXT_HANDLE,
    GUID,
    I32,
    U32,
    WSTRING,
    ConformantVarying,
    ContextHandle,
    Full,
    Parameters,
    Ref,
    Unique,
)
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId

SYNTAX = SyntaxId(Guid.parse("708cca10-9569-11d1-b2a5-0060977d8118"), 1)

#: Far more sites than a machine can be in.
MAX_SITES = 65_536


@dataclass(frozen=True, slots=True)
class GetComputerSites:
    path: str | None
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class ComputerSites:
    sites: tuple[Guid, ...] | None
    signature: bytes
    result: int


@dataclass(frozen=True, slots=True)
class BeginDeleteNotification:
    path: str
    auth: ContextHandle


@dataclass(frozen=True, slots=True)
class NoParameters:
    """A request without parameters but hBind, which is not on the wire."""


@dataclass(frozen=True, slots=True)
class IsServerGC:
    """The BOOL that S_DSIsServerGC returns."""

    is_gc: int


@dataclass(frozen=True, slots=True)
class HandleReturned:
    """The response of S_DSEndDeleteNotification: the handle alone."""

    handle: ContextHandle


@dataclass(frozen=True, slots=True)
class GetGCListInDomain:
    computer_name: str | None
    domain_name: str | None
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class GCList:
    servers: str | None
    signature: bytes
    result: int


GET_COMPUTER_SITES: Operation[GetComputerSites, ComputerSites] = Operation(
    0,
    "S_DSGetComputerSites",
    Parameters(GetComputerSites, path=Unique(WSTRING), **AUTH),
    Parameters(
        ComputerSites,
        count=Ref(U32),
        sites=Ref(
            Unique(ConformantVarying(GUID, size_is="count", length_is="count", maximum=MAX_SITES))
        ),
        **SIGNED,
    ),
)
GET_PROPS_EX: Operation[GetProps, PropsGot] = Operation(
    1,
    "S_DSGetPropsEx",
    Parameters(GetProps, object_type=OBJECT_TYPE, path=Ref(WSTRING), **TYPED, **AUTH),
    PROPS_GOT,
)
GET_PROPS_GUID_EX: Operation[GetPropsGuid, PropsGot] = Operation(
    2,
    "S_DSGetPropsGuidEx",
    Parameters(GetPropsGuid, object_type=OBJECT_TYPE, guid=Unique(GUID), **TYPED, **AUTH),
    PROPS_GOT,
)
BEGIN_DELETE_NOTIFICATION: Operation[BeginDeleteNotification, HandleGot] = Operation(
    3,
    "S_DSBeginDeleteNotification",
    Parameters(BeginDeleteNotification, path=Ref(WSTRING), auth=CONTEXT_HANDLE),
    Parameters(HandleGot, handle=CONTEXT_HANDLE, result=HRESULT),
)
NOTIFY_DELETE: Operation[HandleGiven, DirectoryResult] = Operation(
    4, "S_DSNotifyDelete", Parameters(HandleGiven, handle=CONTEXT_HANDLE), RESULT
)
END_DELETE_NOTIFICATION: Operation[HandleGiven, HandleReturned] = Operation(
    5,
    "S_DSEndDeleteNotification",
    Parameters(HandleGiven, handle=CONTEXT_HANDLE),
    Parameters(HandleReturned, handle=CONTEXT_HANDLE),
)
IS_SERVER_GC: Operation[NoParameters, IsServerGC] = Operation(
    6, "S_DSIsServerGC", Parameters(NoParameters), Parameters(IsServerGC, is_gc=I32)
)
GET_GC_LIST_IN_DOMAIN: Operation[GetGCListInDomain, GCList] = Operation(
    8,
    "S_DSGetGCListInDomain",
    Parameters(
        GetGCListInDomain,
        computer_name=Full(WSTRING),
        domain_name=Full(WSTRING),
        **AUTH,
    ),
    Parameters(GCList, servers=Ref(Unique(WSTRING)), **SIGNED),
)

DSCOMM2 = InterfaceDescription(
    "dscomm2",
    SYNTAX,
    (
        GET_COMPUTER_SITES,
        GET_PROPS_EX,
        GET_PROPS_GUID_EX,
        BEGIN_DELETE_NOTIFICATION,
        NOTIFY_DELETE,
        END_DELETE_NOTIFICATION,
        IS_SERVER_GC,
        GET_GC_LIST_IN_DOMAIN,
    ),
    opnums=9,
)
