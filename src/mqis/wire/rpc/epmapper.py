"""The endpoint mapper (C706 appendix O): the directory of RPC endpoints on a host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.wire.guid import Guid
from mqis.wire.ndr import (
    CONTEXT_HANDLE,
    GUID,
    U8,
    U32,
    Conformant,
    ConformantVarying,
    ContextHandle,
    Count,
    Given,
    Parameters,
    Range,
    Struct,
    Unique,
    VaryingString,
)
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from mqis.wire.rpc.mgmt import INTERFACE_ID, InterfaceId
from mqis.wire.rpc.tower import MAX_TOWER

MAX_ENTRIES = 500
MAX_ANNOTATION = 64

SYNTAX = SyntaxId(Guid.parse("e1af8308-5d1f-11c9-91a4-08002b14a0fa"), 3)


class Inquiry(IntEnum):
    """The kind of a lookup."""

    ALL = 0
    BY_INTERFACE = 1
    BY_OBJECT = 2
    BY_BOTH = 3


class VersionOption(IntEnum):
    """The interface versions that a lookup accepts."""

    ALL = 1
    COMPATIBLE = 2
    EXACT = 3
    MAJOR_ONLY = 4
    UP_TO = 5


class EpmStatus(IntEnum):
    OK = 0
    CANT_PERFORM = 0x16C9_A0CD
    NOT_REGISTERED = 0x16C9_A0D6


@dataclass(frozen=True, slots=True)
class TowerOctets:
    """twr_t: the length occurs twice, as conformance and as a field."""

    octets: bytes


_TOWER = Struct(TowerOctets, length=U32, octets=Conformant(U8, size_is="length", maximum=MAX_TOWER))


@dataclass(frozen=True, slots=True)
class EndpointEntry:
    """ept_entry_t: a registered endpoint."""

    object: Guid
    tower: TowerOctets | None
    annotation: str


_ENTRY = Struct(
    EndpointEntry,
    object=GUID,
    tower=Unique(_TOWER),
    annotation=VaryingString(MAX_ANNOTATION, wide=False),
)


@dataclass(frozen=True, slots=True)
class LookupAsked:
    inquiry: int
    object: Guid | None
    interface: InterfaceId | None
    version_option: int
    handle: ContextHandle
    max_entries: int


@dataclass(frozen=True, slots=True)
class LookupFound:
    handle: ContextHandle
    entries: tuple[EndpointEntry, ...]
    status: int


@dataclass(frozen=True, slots=True)
class MapAsked:
    object: Guid | None
    tower: TowerOctets | None
    handle: ContextHandle
    max_towers: int


@dataclass(frozen=True, slots=True)
class MapFound:
    handle: ContextHandle
    towers: tuple[TowerOctets | None, ...]
    status: int


@dataclass(frozen=True, slots=True)
class HandleAsked:
    handle: ContextHandle


@dataclass(frozen=True, slots=True)
class HandleFreed:
    handle: ContextHandle
    status: int


EPT_LOOKUP: Operation[LookupAsked, LookupFound] = Operation(
    2,
    "ept_lookup",
    Parameters(
        LookupAsked,
        inquiry=U32,
        object=Unique(GUID),
        interface=Unique(INTERFACE_ID),
        version_option=U32,
        handle=CONTEXT_HANDLE,
        max_entries=Range(U32, 0, MAX_ENTRIES),
    ),
    Parameters(
        LookupFound,
        handle=CONTEXT_HANDLE,
        num=U32,
        entries=ConformantVarying(_ENTRY, size_is=Given("max_entries"), length_is=Count("num")),
        status=U32,
    ),
)
EPT_MAP: Operation[MapAsked, MapFound] = Operation(
    3,
    "ept_map",
    Parameters(
        MapAsked,
        object=Unique(GUID),
        tower=Unique(_TOWER),
        handle=CONTEXT_HANDLE,
        max_towers=Range(U32, 0, MAX_ENTRIES),
    ),
    Parameters(
        MapFound,
        handle=CONTEXT_HANDLE,
        num=U32,
        towers=ConformantVarying(
            Unique(_TOWER), size_is=Given("max_towers"), length_is=Count("num")
        ),
        status=U32,
    ),
)
EPT_LOOKUP_HANDLE_FREE: Operation[HandleAsked, HandleFreed] = Operation(
    4,
    "ept_lookup_handle_free",
    Parameters(HandleAsked, handle=CONTEXT_HANDLE),
    Parameters(HandleFreed, handle=CONTEXT_HANDLE, status=U32),
)

EPMAPPER = InterfaceDescription(
    "epmapper", SYNTAX, (EPT_LOOKUP, EPT_MAP, EPT_LOOKUP_HANDLE_FREE), opnums=5
)
