"""The dscomm interface (MS-MQDS 3.1.4): all methods with their opnums and stubs.

Two conventions hold throughout. A signing method takes the size of the client's signature buffer
and returns that many bytes; ``signature`` is the buffer, its length the size on the wire. Strings
that the IDL declares as bare ``wchar_t*`` are NUL-terminated strings on the wire (MQDS-3.1.4-06).
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.mqds.query_stubs import (
    COLUMN_SET,
    MAX_ENTRIES,
    RESTRICTION,
    SORT_SET,
    ColumnSet,
    RestrictionSet,
    SortSet,
)
from mqis.wire.ndr import (
    CONTEXT_HANDLE,
    GUID,
    I32,
    LENIENT_WSTRING,
    PROPVARIANT,
    PROPVARIANT_TYPE,
    U8,
    U32,
    WSTRING,
    Conformant,
    ConformantVarying,
    ContextHandle,
    Count,
    Full,
    Given,
    Parameters,
    Range,
    Ref,
    Struct,
    Unique,
)
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId

SYNTAX = SyntaxId(Guid.parse("77df7a80-f298-11d0-8358-00a024c480a8"), 1)

#: The object types that NDR accepts (MQDS-2.2.8-01); methods refuse more of them.
OBJECT_TYPE = Range(U32, 1, 58)
MAX_BUFFER = 524_288
MAX_SIGNATURE = 131_072
#: The sizes of the challenge and of its answer (product notes <74>, <77>).
CHALLENGE_BYTES = 32
CHALLENGE_ANSWER_BYTES = 128

PROPERTY_COUNT = Range(U32, 1, MAX_ENTRIES)
PROPERTY_IDS = Conformant(U32, size_is="cp", maximum=MAX_ENTRIES)
PROPERTY_VALUES = Conformant(PROPVARIANT, size_is="cp", maximum=MAX_ENTRIES)
#: The values of a request that reads: a null string or GUID keeps its type, which is checked.
PROPERTY_TYPES = Conformant(PROPVARIANT_TYPE, size_is="cp", maximum=MAX_ENTRIES)
#: The values in a response: as many as in the request.
RETURNED_VALUES = Conformant(PROPVARIANT, size_is=Given("cp"), maximum=MAX_ENTRIES)
BUFFER_SIZE = Range(U32, 0, MAX_BUFFER)
SIGNATURE_SIZE = Ref(Range(U32, 0, MAX_SIGNATURE))
SIGNATURE = Conformant(U8, size_is="signature_size", maximum=MAX_SIGNATURE)
#: An [out] buffer, which always has the size that the request named.
SIZED_BUFFER = Conformant(U8, size_is=Given("length"), maximum=MAX_BUFFER)
HRESULT = U32


@dataclass(frozen=True, slots=True)
class DirectoryResult:
    """A response that consists of the HRESULT only."""

    result: int


RESULT: Parameters[DirectoryResult] = Parameters(DirectoryResult, result=HRESULT)


@dataclass(frozen=True, slots=True)
class CreateObject:
    object_type: int
    path: str | None
    descriptor: bytes | None
    ids: tuple[int, ...]
    values: tuple[PropVariant, ...]
    guid: Guid | None


@dataclass(frozen=True, slots=True)
class Created:
    guid: Guid | None
    result: int


@dataclass(frozen=True, slots=True)
class ByPath:
    """A request that names an object by its path name."""

    object_type: int
    path: str


@dataclass(frozen=True, slots=True)
class ByGuid:
    object_type: int
    guid: Guid


@dataclass(frozen=True, slots=True)
class GetProps:
    """Asks for properties: apVar has only types on the way in (3.1.4.7), which ``types`` keeps."""

    object_type: int
    path: str
    ids: tuple[int, ...]
    types: tuple[VarType, ...]
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class GetPropsGuid:
    object_type: int
    guid: Guid | None
    ids: tuple[int, ...]
    types: tuple[VarType, ...]
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class PropsGot:
    values: tuple[PropVariant, ...]
    signature: bytes
    result: int


@dataclass(frozen=True, slots=True)
class SetProps:
    object_type: int
    path: str
    ids: tuple[int, ...]
    values: tuple[PropVariant, ...]


@dataclass(frozen=True, slots=True)
class SetPropsGuid:
    object_type: int
    guid: Guid
    ids: tuple[int, ...]
    values: tuple[PropVariant, ...]


@dataclass(frozen=True, slots=True)
class GetSecurity:
    object_type: int
    path: str
    information: int
    length: int
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class GetSecurityGuid:
    object_type: int
    guid: Guid
    information: int
    length: int
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class GetMachineSecurity:
    """The request of S_DSQMGetObjectSecurity; the server repeats ``context`` in its challenge."""

    object_type: int
    guid: Guid
    information: int
    length: int
    context: int
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class SecurityGot:
    #: The descriptor, padded with zeros to the length that the request named.
    descriptor: bytes
    length_needed: int
    signature: bytes
    result: int


@dataclass(frozen=True, slots=True)
class SetSecurity:
    object_type: int
    path: str
    information: int
    descriptor: bytes | None


@dataclass(frozen=True, slots=True)
class SetSecurityGuid:
    object_type: int
    guid: Guid
    information: int
    descriptor: bytes | None


@dataclass(frozen=True, slots=True)
class LookupBegin:
    context: str | None
    restriction: RestrictionSet | None
    columns: ColumnSet
    sort: SortSet | None
    auth: ContextHandle


@dataclass(frozen=True, slots=True)
class HandleGot:
    handle: ContextHandle
    result: int


@dataclass(frozen=True, slots=True)
class LookupNext:
    handle: ContextHandle
    size: int
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class LookupGot:
    values: tuple[PropVariant, ...]
    signature: bytes
    result: int


@dataclass(frozen=True, slots=True)
class HandleGiven:
    handle: ContextHandle


@dataclass(frozen=True, slots=True)
class SetMachineProperties:
    path: str
    ids: tuple[int, ...]
    values: tuple[PropVariant, ...]
    context: int


@dataclass(frozen=True, slots=True)
class StringPointer:
    """A pointer to a string pointer: the outer one can be present while the inner one is null."""

    text: str | None


@dataclass(frozen=True, slots=True)
class CreateServersCache:
    index: int
    servers: StringPointer | None
    auth: ContextHandle
    signature_size: int


@dataclass(frozen=True, slots=True)
class ServersCache:
    index: int
    servers: StringPointer | None
    signature: bytes
    result: int


@dataclass(frozen=True, slots=True)
class ValidateServer:
    enterprise_id: Guid
    setup_mode: int
    context: int
    buffer_size: int
    token: bytes


@dataclass(frozen=True, slots=True)
class GetServerPort:
    ip: int


@dataclass(frozen=True, slots=True)
class ServerPort:
    """A port number, not an HRESULT; 0 means that the server has no such port."""

    port: int


_STRING_POINTER = Struct(StringPointer, text=Unique(WSTRING))
#: Parameters that many methods share, by their dataclass field names.
PROPS = {"cp": PROPERTY_COUNT, "ids": PROPERTY_IDS, "values": PROPERTY_VALUES}
TYPED = {"cp": PROPERTY_COUNT, "ids": PROPERTY_IDS, "types": PROPERTY_TYPES}
AUTH = {"auth": CONTEXT_HANDLE, "signature_size": SIGNATURE_SIZE}
SIGNED = {"signature": Ref(SIGNATURE), "signature_size": SIGNATURE_SIZE, "result": HRESULT}

PROPS_GOT: Parameters[PropsGot] = Parameters(PropsGot, values=RETURNED_VALUES, **SIGNED)
_SECURITY_GOT: Parameters[SecurityGot] = Parameters(
    SecurityGot, descriptor=Ref(SIZED_BUFFER), length_needed=Ref(U32), **SIGNED
)
_DESCRIPTOR = {
    "descriptor": Unique(Conformant(U8, size_is="length", maximum=MAX_BUFFER)),
    "length": BUFFER_SIZE,
}

CREATE_OBJECT: Operation[CreateObject, Created] = Operation(
    0,
    "S_DSCreateObject",
    Parameters(
        CreateObject,
        object_type=OBJECT_TYPE,
        path=Unique(WSTRING),
        length=BUFFER_SIZE,
        descriptor=Unique(Conformant(U8, size_is="length", maximum=MAX_BUFFER)),
        **PROPS,
        guid=Unique(GUID),
    ),
    Parameters(Created, guid=Unique(GUID), result=HRESULT),
)
DELETE_OBJECT: Operation[ByPath, DirectoryResult] = Operation(
    1,
    "S_DSDeleteObject",
    Parameters(ByPath, object_type=OBJECT_TYPE, path=Ref(WSTRING)),
    RESULT,
)
GET_PROPS: Operation[GetProps, PropsGot] = Operation(
    2,
    "S_DSGetProps",
    Parameters(GetProps, object_type=OBJECT_TYPE, path=Ref(WSTRING), **TYPED, **AUTH),
    PROPS_GOT,
)
SET_PROPS: Operation[SetProps, DirectoryResult] = Operation(
    3,
    "S_DSSetProps",
    Parameters(SetProps, object_type=OBJECT_TYPE, path=Ref(WSTRING), **PROPS),
    RESULT,
)
GET_OBJECT_SECURITY: Operation[GetSecurity, SecurityGot] = Operation(
    4,
    "S_DSGetObjectSecurity",
    Parameters(
        GetSecurity,
        object_type=OBJECT_TYPE,
        path=Ref(WSTRING),
        information=U32,
        length=BUFFER_SIZE,
        **AUTH,
    ),
    _SECURITY_GOT,
)
SET_OBJECT_SECURITY: Operation[SetSecurity, DirectoryResult] = Operation(
    5,
    "S_DSSetObjectSecurity",
    Parameters(
        SetSecurity,
        object_type=OBJECT_TYPE,
        path=Ref(WSTRING),
        information=U32,
        **_DESCRIPTOR,
    ),
    RESULT,
)
LOOKUP_BEGIN: Operation[LookupBegin, HandleGot] = Operation(
    6,
    "S_DSLookupBegin",
    Parameters(
        LookupBegin,
        # The server ignores it (3.1.4.17), so nothing in it is a reason to refuse the call.
        context=Unique(LENIENT_WSTRING),
        restriction=Unique(RESTRICTION),
        columns=Ref(COLUMN_SET),
        sort=Unique(SORT_SET),
        auth=CONTEXT_HANDLE,
    ),
    Parameters(HandleGot, handle=CONTEXT_HANDLE, result=HRESULT),
)
LOOKUP_NEXT: Operation[LookupNext, LookupGot] = Operation(
    7,
    "S_DSLookupNext",
    Parameters(
        LookupNext,
        handle=CONTEXT_HANDLE,
        size=Ref(Range(U32, 0, MAX_ENTRIES)),
        **AUTH,
    ),
    Parameters(
        LookupGot,
        out_size=Ref(U32),
        values=ConformantVarying(
            PROPVARIANT, size_is=Given("size"), length_is=Count("out_size"), maximum=MAX_ENTRIES
        ),
        **SIGNED,
    ),
)
LOOKUP_END: Operation[HandleGiven, HandleGot] = Operation(
    8,
    "S_DSLookupEnd",
    Parameters(HandleGiven, handle=CONTEXT_HANDLE),
    Parameters(HandleGot, handle=CONTEXT_HANDLE, result=HRESULT),
)
DELETE_OBJECT_GUID: Operation[ByGuid, DirectoryResult] = Operation(
    10,
    "S_DSDeleteObjectGuid",
    Parameters(ByGuid, object_type=OBJECT_TYPE, guid=Ref(GUID)),
    RESULT,
)
GET_PROPS_GUID: Operation[GetPropsGuid, PropsGot] = Operation(
    11,
    "S_DSGetPropsGuid",
    Parameters(GetPropsGuid, object_type=OBJECT_TYPE, guid=Unique(GUID), **TYPED, **AUTH),
    PROPS_GOT,
)
SET_PROPS_GUID: Operation[SetPropsGuid, DirectoryResult] = Operation(
    12,
    "S_DSSetPropsGuid",
    Parameters(SetPropsGuid, object_type=OBJECT_TYPE, guid=Ref(GUID), **PROPS),
    RESULT,
)
GET_OBJECT_SECURITY_GUID: Operation[GetSecurityGuid, SecurityGot] = Operation(
    13,
    "S_DSGetObjectSecurityGuid",
    Parameters(
        GetSecurityGuid,
        object_type=OBJECT_TYPE,
        guid=Ref(GUID),
        information=U32,
        length=BUFFER_SIZE,
        **AUTH,
    ),
    _SECURITY_GOT,
)
SET_OBJECT_SECURITY_GUID: Operation[SetSecurityGuid, DirectoryResult] = Operation(
    14,
    "S_DSSetObjectSecurityGuid",
    Parameters(
        SetSecurityGuid,
        object_type=OBJECT_TYPE,
        guid=Ref(GUID),
        information=U32,
        **_DESCRIPTOR,
    ),
    RESULT,
)
QM_SET_MACHINE_PROPERTIES: Operation[SetMachineProperties, DirectoryResult] = Operation(
    19,
    "S_DSQMSetMachineProperties",
    Parameters(SetMachineProperties, path=Ref(WSTRING), **PROPS, context=U32),
    RESULT,
)
CREATE_SERVERS_CACHE: Operation[CreateServersCache, ServersCache] = Operation(
    20,
    "S_DSCreateServersCache",
    Parameters(CreateServersCache, index=Ref(U32), servers=Full(_STRING_POINTER), **AUTH),
    Parameters(ServersCache, index=Ref(U32), servers=Full(_STRING_POINTER), **SIGNED),
)
QM_GET_OBJECT_SECURITY: Operation[GetMachineSecurity, SecurityGot] = Operation(
    21,
    "S_DSQMGetObjectSecurity",
    Parameters(
        GetMachineSecurity,
        object_type=OBJECT_TYPE,
        guid=Ref(GUID),
        information=U32,
        length=BUFFER_SIZE,
        context=U32,
        **AUTH,
    ),
    _SECURITY_GOT,
)
VALIDATE_SERVER: Operation[ValidateServer, HandleGot] = Operation(
    22,
    "S_DSValidateServer",
    Parameters(
        ValidateServer,
        enterprise_id=Ref(GUID),
        setup_mode=I32,
        context=U32,
        buffer_size=BUFFER_SIZE,
        token=Ref(
            ConformantVarying(U8, size_is="buffer_size", length_is="token_size", maximum=MAX_BUFFER)
        ),
        token_size=BUFFER_SIZE,
    ),
    Parameters(HandleGot, handle=CONTEXT_HANDLE, result=HRESULT),
)
CLOSE_SERVER_HANDLE: Operation[HandleGiven, HandleGot] = Operation(
    23,
    "S_DSCloseServerHandle",
    Parameters(HandleGiven, handle=CONTEXT_HANDLE),
    Parameters(HandleGot, handle=CONTEXT_HANDLE, result=HRESULT),
)
GET_SERVER_PORT: Operation[GetServerPort, ServerPort] = Operation(
    27,
    "S_DSGetServerPort",
    Parameters(GetServerPort, ip=Range(U32, 0, 1)),
    Parameters(ServerPort, port=U32),
)


# --- callbacks from the server to the client during a call; they have opnums of their own ---------


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge to prove possession of the machine's private key (two obsolete callbacks)."""

    challenge: bytes
    context: int
    #: The initial content of the answer's buffer: empty.
    answer: bytes
    answer_max: int


@dataclass(frozen=True, slots=True)
class ChallengeAnswer:
    answer: bytes
    result: int


@dataclass(frozen=True, slots=True)
class InitSecCtx:
    """The server's next token; the client may answer with up to ``buffer_size`` bytes."""

    context: int
    token: bytes
    buffer_size: int


@dataclass(frozen=True, slots=True)
class InitSecCtxAnswer:
    token: bytes
    result: int


def _challenge(opnum: int, name: str) -> Operation[Challenge, ChallengeAnswer]:
    return Operation(
        opnum,
        name,
        Parameters(
            Challenge,
            challenge=Ref(Conformant(U8, size_is="challenge_size", maximum=CHALLENGE_BYTES)),
            challenge_size=Range(U32, 0, CHALLENGE_BYTES),
            context=U32,
            answer=Ref(
                ConformantVarying(
                    U8,
                    size_is="answer_max",
                    length_is="answer_size",
                    maximum=CHALLENGE_ANSWER_BYTES,
                )
            ),
            answer_size=Ref(U32),
            answer_max=Range(U32, 0, CHALLENGE_ANSWER_BYTES),
        ),
        Parameters(
            ChallengeAnswer,
            answer=Ref(
                ConformantVarying(
                    U8,
                    size_is=Given("answer_max"),
                    length_is="answer_size",
                    maximum=CHALLENGE_ANSWER_BYTES,
                )
            ),
            answer_size=Ref(U32),
            result=HRESULT,
        ),
    )


SET_MACHINE_PROPERTIES_SIGN_PROC = _challenge(0, "S_DSQMSetMachinePropertiesSignProc")
GET_OBJECT_SECURITY_CHALLENGE = _challenge(1, "S_DSQMGetObjectSecurityChallengeResponceProc")
INIT_SEC_CTX: Operation[InitSecCtx, InitSecCtxAnswer] = Operation(
    2,
    "S_InitSecCtx",
    Parameters(
        InitSecCtx,
        context=U32,
        token=Ref(Conformant(U8, size_is="token_size", maximum=MAX_BUFFER)),
        token_size=BUFFER_SIZE,
        buffer_size=BUFFER_SIZE,
    ),
    Parameters(
        InitSecCtxAnswer,
        token=Ref(
            ConformantVarying(
                U8, size_is=Given("buffer_size"), length_is="token_size", maximum=MAX_BUFFER
            )
        ),
        token_size=Ref(U32),
        result=HRESULT,
    ),
)

DSCOMM = InterfaceDescription(
    "dscomm",
    SYNTAX,
    (
        CREATE_OBJECT,
        DELETE_OBJECT,
        GET_PROPS,
        SET_PROPS,
        GET_OBJECT_SECURITY,
        SET_OBJECT_SECURITY,
        LOOKUP_BEGIN,
        LOOKUP_NEXT,
        LOOKUP_END,
        DELETE_OBJECT_GUID,
        GET_PROPS_GUID,
        SET_PROPS_GUID,
        GET_OBJECT_SECURITY_GUID,
        SET_OBJECT_SECURITY_GUID,
        QM_SET_MACHINE_PROPERTIES,
        CREATE_SERVERS_CACHE,
        QM_GET_OBJECT_SECURITY,
        VALIDATE_SERVER,
        CLOSE_SERVER_HANDLE,
        GET_SERVER_PORT,
    ),
    opnums=28,
    callbacks=(SET_MACHINE_PROPERTIES_SIGN_PROC, GET_OBJECT_SECURITY_CHALLENGE, INIT_SEC_CTX),
)
