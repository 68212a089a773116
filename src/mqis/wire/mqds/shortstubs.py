"""Where context handles lie in the stubs of the most frequent calls of dscomm.

A request that was answered before is recognised by its bytes, without being decoded; only its
context handles differ from call to call. The layouts are those of a little-endian peer, and the
same in both syntaxes: handles and numbers at the end of a stub have no padding between them.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from mqis.wire.guid import Guid

_HANDLE_SIZE = 20
_NUMBER_SIZE = 4
_NO_ATTRIBUTES = bytes(4)
_NEXT = Struct("<20sI20sI")

#: The answer of S_DSLookupEnd: the null handle and MQ_OK.
HANDLE_CLOSED = bytes(_HANDLE_SIZE + _NUMBER_SIZE)


class SplitRequest(NamedTuple):
    """The bytes of a request around its auth handle."""

    before: bytes
    behind: bytes
    auth: Guid


class NextRequest(NamedTuple):
    """The request of S_DSLookupNext."""

    handle: Guid
    size: int
    auth: Guid
    signature_size: int


def split_get_props(stub: bytes) -> SplitRequest | None:
    """S_DSGetProps, S_DSGetPropsGuid: the auth handle and the signature's size are the last."""
    return _split(stub, len(stub) - _HANDLE_SIZE - _NUMBER_SIZE)


def split_lookup_begin(stub: bytes) -> SplitRequest | None:
    """S_DSLookupBegin: the auth handle is the last parameter."""
    return _split(stub, len(stub) - _HANDLE_SIZE)


def lookup_next_fields(stub: bytes) -> NextRequest | None:
    if len(stub) != _NEXT.size:
        return None
    handle, size, auth, signature_size = _NEXT.unpack(stub)
    uuid, auth_uuid = only_handle(handle), only_handle(auth)
    if uuid is None or auth_uuid is None:
        return None
    return NextRequest(uuid, size, auth_uuid, signature_size)


def only_handle(stub: bytes) -> Guid | None:
    """The UUID of a stub that is one context handle, as that of S_DSLookupEnd."""
    if len(stub) != _HANDLE_SIZE or not stub.startswith(_NO_ATTRIBUTES):
        return None
    return Guid(stub[4:])


def handle_opened(uuid: Guid) -> bytes:
    """The answer of S_DSLookupBegin: a new handle and MQ_OK."""
    return _NO_ATTRIBUTES + uuid.raw + bytes(_NUMBER_SIZE)


def _split(stub: bytes, at: int) -> SplitRequest | None:
    if at <= 0:
        return None
    end = at + _HANDLE_SIZE
    uuid = only_handle(stub[at:end])
    return None if uuid is None else SplitRequest(stub[:at], stub[end:], uuid)
