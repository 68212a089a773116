"""The management interface (C706 appendix Q), by which every server describes itself."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.ndr import (
    GUID,
    U16,
    U32,
    Conformant,
    ConformantString,
    Given,
    Parameters,
    Range,
    Ref,
    Struct,
    Unique,
)
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId

MAX_STATISTICS = 50
MAX_PRINCIPAL = 4096

SYNTAX = SyntaxId(Guid.parse("afa8bd80-7d8a-11c9-bef4-08002b102989"), 1)


@dataclass(frozen=True, slots=True)
class InterfaceId:
    """rpc_if_id_t: an interface with its version."""

    uuid: Guid
    major: int
    minor: int


INTERFACE_ID = Struct(InterfaceId, uuid=GUID, major=U16, minor=U16)


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request without parameters."""


@dataclass(frozen=True, slots=True)
class InterfaceIds:
    """rpc_if_id_vector_t: a list of interfaces."""

    ids: tuple[InterfaceId | None, ...]


_VECTOR = Struct(InterfaceIds, count=U32, ids=Conformant(Unique(INTERFACE_ID), size_is="count"))


@dataclass(frozen=True, slots=True)
class InqIfIds:
    vector: InterfaceIds | None
    status: int


@dataclass(frozen=True, slots=True)
class StatisticsAsked:
    count: int


@dataclass(frozen=True, slots=True)
class StatisticsGiven:
    numbers: tuple[int, ...]
    status: int


@dataclass(frozen=True, slots=True)
class Listening:
    status: int
    listening: int


@dataclass(frozen=True, slots=True)
class Status:
    status: int


@dataclass(frozen=True, slots=True)
class PrincipalAsked:
    authn_proto: int
    size: int


@dataclass(frozen=True, slots=True)
class Principal:
    name: str
    status: int


INQ_IF_IDS: Operation[Nothing, InqIfIds] = Operation(
    0,
    "inq_if_ids",
    Parameters(Nothing),
    Parameters(InqIfIds, vector=Unique(_VECTOR), status=U32),
)
INQ_STATS: Operation[StatisticsAsked, StatisticsGiven] = Operation(
    1,
    "inq_stats",
    Parameters(StatisticsAsked, count=Ref(Range(U32, 0, MAX_STATISTICS))),
    Parameters(
        StatisticsGiven,
        count=U32,
        numbers=Conformant(U32, size_is="count", maximum=MAX_STATISTICS),
        status=U32,
    ),
)
IS_SERVER_LISTENING: Operation[Nothing, Listening] = Operation(
    2,
    "is_server_listening",
    Parameters(Nothing),
    Parameters(Listening, status=U32, listening=U32),
)
STOP_SERVER_LISTENING: Operation[Nothing, Status] = Operation(
    3, "stop_server_listening", Parameters(Nothing), Parameters(Status, status=U32)
)
INQ_PRINC_NAME: Operation[PrincipalAsked, Principal] = Operation(
    4,
    "inq_princ_name",
    Parameters(PrincipalAsked, authn_proto=U32, size=Range(U32, 0, MAX_PRINCIPAL)),
    Parameters(
        Principal,
        name=ConformantString(size_is=Given("size"), maximum=MAX_PRINCIPAL, wide=False),
        status=U32,
    ),
)

MGMT = InterfaceDescription(
    "mgmt",
    SYNTAX,
    (INQ_IF_IDS, INQ_STATS, IS_SERVER_LISTENING, STOP_SERVER_LISTENING, INQ_PRINC_NAME),
    opnums=5,
)
