"""The calls of a directory client as prepared bytes: RPC requests, and what replies must say.

A stub that needs a context handle is prepared with a stand-in, which the real one replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from bench.load import LoadError, Operation
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.query import MAX_ENTRIES, ColumnSet, PropertyRestriction, RestrictionSet
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc import mgmt
from mqis.wire.rpc.bodies import Bind, ContextElement
from mqis.wire.rpc.header import FIRST_LAST, PacketType, PfcFlags
from mqis.wire.rpc.operation import Operation as RpcOperation
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.syntax import NDR20

DSCOMM, MGMT = 0, 1
#: What Windows offers as the largest fragment.
MAX_FRAG = 5840
#: No signatures are asked for: there is no context that they could be made with.
SIGNATURE_SIZE = 0
_HANDLE_BYTES = 20
_EQUAL = 4

_REQUEST = Struct("<BBBB4sHHIIHH")
_U32 = Struct("<I")
_AUTH = ContextHandle(Guid(b"stands for auth!"))
_LOOKUP = ContextHandle(Guid(b"stands for rows!"))
_AUTH_BYTES, _LOOKUP_BYTES = (bytes(4) + handle.uuid.raw for handle in (_AUTH, _LOOKUP))
_NULL = PropVariant(VarType.NULL, None)


class Call(NamedTuple):
    """An operation's number and its stub, and what a good reply has in it."""

    opnum: int
    stub: bytes
    content: bytes = b""
    context: int = DSCOMM


class Lookup(NamedTuple):
    """S_DSLookupBegin with a restriction, and how many objects of how many columns it finds."""

    begin: Call
    columns: int
    rows: int
    content: bytes = b""


def stub_of(operation: RpcOperation[object, object], request: object) -> bytes:
    return operation.request.encode(request, Syntax.NDR20)
