"""The IXnRemote interface (MS-CMPO 3.3.4, appendix A), which both partners serve and call.

Enumerations have 16 bits, because the IDL has no v1_enum; 2.2.7 to 2.2.9 say otherwise (E-CMPO-01).
Top-level pointers are reference pointers, which are not on the wire. ``range`` is checked here, so
that a violation is a fault of the RPC runtime and never reaches a method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mqis.wire.cmpo.codes import ComProtocol, ResourceType, SessionRank, TeardownType
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import (
    CONTEXT_HANDLE,
    U8,
    U32,
    Conformant,
    ConformantString,
    ContextHandle,
    Description,
    Enum,
    Parameters,
    Range,
    Ref,
    Struct,
)
from mqis.wire.reader import Reader
from mqis.wire.rpc.interfaces import NDR20, InterfaceDescription, Operation, SyntaxId
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

# --- BIND_INFO_BLOB (2.2.1): the protocols by which the sender can be reached ---------------------

BLOB_SIZE = 8


@dataclass(frozen=True, slots=True)
class BindInfo(Structure):
    """u32 dwcbThisStruct = 8, u32 grbitComProtocols. Unknown bits are kept."""

    NAME: ClassVar[str] = "BIND_INFO_BLOB"

    protocols: ComProtocol

    @classmethod
    def decode(cls, reader: Reader) -> BindInfo:
        size = reader.u32()
        if size != BLOB_SIZE:
            raise WireError(f"BIND_INFO_BLOB of {size} bytes, not {BLOB_SIZE}", reader.offset - 4)
        return cls(ComProtocol(reader.u32()))

    def encode(self, writer: Writer) -> None:
        writer.u32(BLOB_SIZE)
        writer.u32(self.protocols)

    @property
    def effective(self) -> ComProtocol:
        """The protocols, or TCP if no bit is set (2.2.4)."""
        return self.protocols or ComProtocol.IP_TCP


# --- BIND_VERSION_SET and BOUND_VERSION_SET (2.2.2, 2.2.3) ----------------------------------------
# The versions of three protocol levels. Level one is MS-CMPO itself, level two MS-CMP, level three
# the protocol above (MS-DTCO).


@dataclass(frozen=True, slots=True)
class BindVersionSet:
    """The versions that the caller supports."""

    min_level_one: int
    max_level_one: int
    min_level_two: int
    max_level_two: int
    min_level_three: int
    max_level_three: int


@dataclass(frozen=True, slots=True)
class BoundVersionSet:
    """The versions that both partners support; all zero in requests and errors."""

    level_one: int
    level_two: int
    level_three: int

    NONE: ClassVar[BoundVersionSet]


BoundVersionSet.NONE = BoundVersionSet(0, 0, 0)

BIND_VERSION_SET = Struct(
    BindVersionSet,
    min_level_one=U32,
    max_level_one=U32,
    min_level_two=U32,
    max_level_two=U32,
    min_level_three=U32,
    max_level_three=U32,
)
BOUND_VERSION_SET = Struct(BoundVersionSet, level_one=U32, level_two=U32, level_three=U32)


# --- The calls of IXnRemote -----------------------------------------------------------------------

SYNTAX = SyntaxId(Guid.parse("906b0ce0-c70b-1067-b317-00dd010662da"), 1)

#: GUID_LENGTH: 36 characters and the terminating zero.
GUID_LENGTH = 37
#: MAX_COMPUTERNAME_LENGTH and the terminating zero.
HOST_NAME_LENGTH = 16
MAX_MESSAGES = 4095
MIN_BOXCAR, MAX_BOXCAR = 40, 0x14000
#: The text of the null GUID, the value of pszGuidOut until a bind has succeeded.
NO_GUID = str(Guid.NULL)

HRESULT = U32
RANK = Enum(SessionRank)
TEARDOWN_TYPE = Enum(TeardownType)
RESOURCE_TYPE = Enum(ResourceType)


@dataclass(frozen=True, slots=True)
class Poke:
    """A secondary asks the primary for a session. GUIDs are text here, as on the wire."""

    rank: int
    callee: str
    host_name: str
    caller: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class BuildContext:
    """One half of the session set-up. Requests leave ``guid_out`` and ``bound`` empty."""

    rank: int
    versions: BindVersionSet
    callee: str
    host_name: str
    caller: str
    guid_in: str
    guid_out: str
    bound: BoundVersionSet
    blob: bytes


@dataclass(frozen=True, slots=True)
class ContextBuilt:
    guid_out: str
    bound: BoundVersionSet
    handle: ContextHandle
    result: int


@dataclass(frozen=True, slots=True)
class NegotiateResources:
    handle: ContextHandle
    resource: int
    requested: int
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class ResourcesNegotiated:
    accepted: int
    result: int


@dataclass(frozen=True, slots=True)
class SendReceive:
    """A boxcar with its message count. The caller checks that the two agree."""

    handle: ContextHandle
    messages: int
    boxcar: bytes


@dataclass(frozen=True, slots=True)
class TearDownContext:
    handle: ContextHandle
    rank: int
    teardown: int


@dataclass(frozen=True, slots=True)
class ContextTornDown:
    handle: ContextHandle
    result: int


@dataclass(frozen=True, slots=True)
class BeginTearDown:
    handle: ContextHandle
    teardown: int


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """A response that consists of the HRESULT only."""

    result: int


_RESULT: Parameters[RemoteResult] = Parameters(RemoteResult, result=HRESULT)
_BLOB = {
    "size": Range(U32, BLOB_SIZE, BLOB_SIZE),
    "blob": Conformant(U8, size_is="size", maximum=BLOB_SIZE),
}


def _text(length: int, minimum: int, *, wide: bool) -> ConformantString:
    return ConformantString(minimum=minimum, maximum=length, wide=wide)


def _partners(*, wide: bool) -> dict[str, Description[Any]]:
    """The parameters that name the callee, the caller and the caller's host."""
    guid = _text(GUID_LENGTH, GUID_LENGTH, wide=wide)
    return {
        "callee": guid,
        "host_name": _text(HOST_NAME_LENGTH, 1, wide=wide),
        "caller": guid,
    }


def _poke(opnum: int, name: str, *, wide: bool) -> Operation[Poke, RemoteResult]:
    return Operation(
        opnum, name, Parameters(Poke, rank=RANK, **_partners(wide=wide), **_BLOB), _RESULT
    )


def _build_context(opnum: int, name: str, *, wide: bool) -> Operation[BuildContext, ContextBuilt]:
    guid = _text(GUID_LENGTH, GUID_LENGTH, wide=wide)
    return Operation(
        opnum,
        name,
        Parameters(
            BuildContext,
            rank=RANK,
            versions=BIND_VERSION_SET,
            **_partners(wide=wide),
            guid_in=guid,
            guid_out=guid,
            bound=Ref(BOUND_VERSION_SET),
            **_BLOB,
        ),
        Parameters(
            ContextBuilt,
            guid_out=guid,
            bound=Ref(BOUND_VERSION_SET),
            handle=CONTEXT_HANDLE,
            result=HRESULT,
        ),
    )


POKE = _poke(0, "Poke", wide=False)
BUILD_CONTEXT = _build_context(1, "BuildContext", wide=False)
NEGOTIATE_RESOURCES: Operation[NegotiateResources, ResourcesNegotiated] = Operation(
    2,
    "NegotiateResources",
    Parameters(
        NegotiateResources,
        handle=CONTEXT_HANDLE,
        resource=RESOURCE_TYPE,
        requested=U32,
        accepted=Ref(U32),
    ),
    Parameters(ResourcesNegotiated, accepted=Ref(U32), result=HRESULT),
)
SEND_RECEIVE: Operation[SendReceive, RemoteResult] = Operation(
    3,
    "SendReceive",
    Parameters(
        SendReceive,
        handle=CONTEXT_HANDLE,
        messages=Range(U32, 1, MAX_MESSAGES),
        size=Range(U32, MIN_BOXCAR, MAX_BOXCAR),
        boxcar=Conformant(U8, size_is="size", maximum=MAX_BOXCAR),
    ),
    _RESULT,
)
TEAR_DOWN_CONTEXT: Operation[TearDownContext, ContextTornDown] = Operation(
    4,
    "TearDownContext",
    Parameters(TearDownContext, handle=CONTEXT_HANDLE, rank=RANK, teardown=TEARDOWN_TYPE),
    Parameters(ContextTornDown, handle=CONTEXT_HANDLE, result=HRESULT),
)
BEGIN_TEAR_DOWN: Operation[BeginTearDown, RemoteResult] = Operation(
    5,
    "BeginTearDown",
    Parameters(BeginTearDown, handle=CONTEXT_HANDLE, teardown=TEARDOWN_TYPE),
    _RESULT,
)
POKE_W = _poke(6, "PokeW", wide=True)
BUILD_CONTEXT_W = _build_context(7, "BuildContextW", wide=True)

#: The interface uses NDR20 only (2.2) and accepts its own context handles only (3.3.4).
IXN_REMOTE = InterfaceDescription(
    "IXnRemote",
    SYNTAX,
    (
        POKE,
        BUILD_CONTEXT,
        NEGOTIATE_RESOURCES,
        SEND_RECEIVE,
        TEAR_DOWN_CONTEXT,
        BEGIN_TEAR_DOWN,
        POKE_W,
        BUILD_CONTEXT_W,
    ),
    opnums=8,
    transfer_syntaxes=(NDR20,),
    strict_context_handles=True,
)
