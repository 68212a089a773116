"""Where context handles lie in the stubs of the most frequent calls of dscomm.

A request that was answered before is recognised by its bytes, without being decoded; only its
context handles differ from call to call. The layouts are those of a little-endian peer, and the
same in both syntaxes: handles and numbers at the end of a stub have no padding between them.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from mqis.wire.guid import Guid
from mqis.wire.ndr import MAX_COUNT, Syntax
from mqis.wire.propvariant import MAX_STRING_UNITS, VarType

_HANDLE_SIZE = 20
_NUMBER_SIZE = 4
#: The values of S_DSGetProps follow their number, at a multiple of 8.
_VALUES_AT = 8
_NO_ATTRIBUTES = bytes(4)
_NEXT = Struct("<20sI20sI")
#: The object type, and the counts of a string or the pointer to a GUID.
_BY_PATH = {Syntax.NDR20: Struct("<4sIII"), Syntax.NDR64: Struct("<4s4xQQQ")}
_ROWS_HEAD = {Syntax.NDR20: Struct("<IIII"), Syntax.NDR64: Struct("<I4xQQQ")}
_COUNTS = {Syntax.NDR20: Struct("<III"), Syntax.NDR64: Struct("<QQQ")}
#: Where the tag of the first restriction's constant is, and what the constant points to.
_CONSTANT = {Syntax.NDR20: (32, 48), Syntax.NDR64: (48, 72)}
_TEXT, _GUID = (vt.to_bytes(2, "little") for vt in (VarType.LPWSTR, VarType.CLSID))
_BY_GUID = {Syntax.NDR20: Struct("<4sI"), Syntax.NDR64: Struct("<4s4xQ")}

#: The answer of S_DSLookupEnd: the null handle and MQ_OK.
HANDLE_CLOSED = bytes(_HANDLE_SIZE + _NUMBER_SIZE)


class SplitRequest(NamedTuple):
    """The bytes of a request around its auth handle."""

    before: bytes
    behind: bytes
    auth: Guid


class RequestedName(NamedTuple):
    """A request that names an object, divided into the name and what others share with it."""

    name: str | Guid
    #: The object type as it stands there, and the place of the rest in a block of eight bytes.
    kind: bytes
    at: int
    #: What is between the name and the auth handle.
    rest: bytes


class RequestedConstant(NamedTuple):
    """A lookup's request, divided into the constant of its only restriction and the rest.

    One that has no constant of its own place is all ``head``.
    """

    head: bytes
    constant: str | Guid | None = None
    #: The place of the rest in a block of eight bytes.
    at: int = 0
    rest: bytes = b""


class NextRequest(NamedTuple):
    """The request of S_DSLookupNext."""

    handle: Guid
    size: int
    auth: Guid
    signature_size: int


def split_get_props(stub: bytes) -> SplitRequest | None:
    """S_DSGetProps, S_DSGetPropsGuid: the auth handle and the signature's size are the last."""
    return _split(stub, len(stub) - _HANDLE_SIZE - _NUMBER_SIZE)


def split_path(before: bytes, syntax: Syntax) -> RequestedName | None:
    """S_DSGetProps: the path, a string that ends at its only zero character."""
    found = _text_at(before, _BY_PATH[syntax].size - _COUNTS[syntax].size, syntax)
    if found is None:
        return None
    text, end = found
    return RequestedName(text, before[:4], end & 7, before[end:])


def _text_at(data: bytes, at: int, syntax: Syntax) -> tuple[str, int] | None:
    """A string behind its counts, which ends at its only zero character, and where it ends."""
    counts = _COUNTS[syntax]
    start = at + counts.size
    if len(data) < start:
        return None
    maximum, first, count = counts.unpack_from(data, at)
    end = start + 2 * count
    if first or not 1 <= count <= maximum <= MAX_COUNT or end > len(data):
        return None
    text = data[start:end].decode("utf-16-le", "surrogatepass")
    return (text[:-1], end) if text.find("\0") == len(text) - 1 else None


def split_guid(before: bytes, syntax: Syntax) -> RequestedName | None:
    """S_DSGetPropsGuid: a pointer, which may be null, and the GUID."""
    form = _BY_GUID[syntax]
    end = form.size + len(Guid.NULL.raw)
    if len(before) < end:
        return None
    kind, pointer = form.unpack_from(before)
    if not pointer:
        return None
    return RequestedName(Guid(before[form.size : end]), kind, end & 7, before[end:])


def nameless(found: RequestedName, syntax: Syntax, *, by_path: bool) -> bytes:
    """The bytes before the auth handle, with a name that is none."""
    if not by_path:
        return _BY_GUID[syntax].pack(found.kind, 1) + Guid.NULL.raw + found.rest
    form = _BY_PATH[syntax]
    count = ((found.at - form.size - 2) % 8) // 2 + 1  # so that the rest is where it was
    return form.pack(found.kind, count, 0, count) + _blank(count) + found.rest


def properties_answer(values: bytes, count: int, signature_size: int, syntax: Syntax) -> bytes:
    """The answer of S_DSGetProps: encoded values, a signature of zeros, and MQ_OK."""
    answer = count.to_bytes(_VALUES_AT, "little") + values
    return answer + unsigned_end(len(answer), signature_size, syntax)


def rows_answer(values: bytes, count: int, size: int, signature_size: int, syntax: Syntax) -> bytes:
    """The answer of S_DSLookupNext: ``count`` encoded values in an array of ``size``."""
    answer = _ROWS_HEAD[syntax].pack(count, size, 0, count) + values
    return answer + unsigned_end(len(answer), signature_size, syntax)


def unsigned_end(at: int, signature_size: int, syntax: Syntax) -> bytes:
    """What is behind the values of an answer: a signature of zeros, its size, and MQ_OK."""
    width = 4 if syntax is Syntax.NDR20 else 8
    number = signature_size.to_bytes(width, "little")
    signature = bytes(signature_size + (-signature_size & 3))
    return bytes(-at & (width - 1)) + number + signature + number[:4] + bytes(_NUMBER_SIZE)


def split_lookup_begin(stub: bytes) -> SplitRequest | None:
    """S_DSLookupBegin: the auth handle is the last parameter."""
    return _split(stub, len(stub) - _HANDLE_SIZE)


def split_constant(before: bytes, syntax: Syntax) -> RequestedConstant | None:
    """S_DSLookupBegin: the constant, if it may be what a pointer of the first restriction names."""
    tag, start = _CONSTANT[syntax]
    vt, head = before[tag : tag + 2], before[:start]
    if vt == _TEXT:
        found = _text_at(before, start, syntax)
        if found is None or found[1] - start > 2 * MAX_STRING_UNITS:
            return None
        text, end = found
        return RequestedConstant(head, text, end & 7, before[end:])
    if vt == _GUID and len(before) >= start + len(Guid.NULL.raw):
        end = start + len(Guid.NULL.raw)
        return RequestedConstant(head, Guid(before[start:end]), end & 7, before[end:])
    return RequestedConstant(before)


def constantless(found: RequestedConstant, syntax: Syntax) -> bytes:
    """The bytes before the auth handle, with a constant of the same type that is none."""
    if found.constant is None:
        return found.head
    if isinstance(found.constant, Guid):
        return found.head + Guid.NULL.raw + found.rest
    counts = _COUNTS[syntax]
    start = len(found.head) + counts.size
    count = ((found.at - start - 2) % 8) // 2 + 1  # so that the rest is where it was
    return found.head + counts.pack(count, 0, count) + _blank(count) + found.rest


def _blank(count: int) -> bytes:
    return " ".encode("utf-16-le") * (count - 1) + bytes(2)


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
