"""Whole requests and responses in the shapes that dscomm, dscomm2 and IXnRemote use."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mqis.wire import ndr
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle, Given, NdrError, Syntax, To
from mqis.wire.propvariant import PropVariant, VarType

HANDLE = ContextHandle(Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"))
SEC_I_CONTINUE_NEEDED = 0x00090312


# --- S_InitSecCtx (MS-MQDS 3.2.4.3): a count after its array, a size from the request -------------


@dataclass(frozen=True, slots=True)
class InitSecCtx:
    context: int
    server_buffer: bytes
    client_buffer_max_size: int


@dataclass(frozen=True, slots=True)
class InitSecCtxResponse:
    client_buffer: bytes
    status: int


INIT_SEC_CTX = ndr.Parameters(
    InitSecCtx,
    context=ndr.U32,
    server_buffer=ndr.Ref(ndr.Conformant(ndr.BYTE, size_is="server_buffer_size")),
    server_buffer_size=ndr.Range(ndr.U32, 0, 524288),
    client_buffer_max_size=ndr.Range(ndr.U32, 0, 524288),
)
INIT_SEC_CTX_RESPONSE = ndr.Parameters(
    InitSecCtxResponse,
    client_buffer=ndr.Ref(
        ndr.ConformantVarying(
            ndr.BYTE, size_is=Given("client_buffer_max_size"), length_is="client_buffer_size"
        )
    ),
    client_buffer_size=ndr.Ref(ndr.U32),
    status=ndr.U32,
)


def test_init_sec_ctx() -> None:
    stub = bytes.fromhex("44332211 05000000 0102030405 000000 05000000 10000000")
    request = InitSecCtx(0x11223344, bytes.fromhex("0102030405"), 16)
    assert INIT_SEC_CTX.encode(request, Syntax.NDR20) == stub
    assert INIT_SEC_CTX.decode(stub, Syntax.NDR20) == request


def test_init_sec_ctx_response() -> None:
    stub = bytes.fromhex("10000000 00000000 03000000 aabbcc 00 03000000 12030900")
    response = InitSecCtxResponse(b"\xaa\xbb\xcc", SEC_I_CONTINUE_NEEDED)
    given = {"client_buffer_max_size": 16}
    assert INIT_SEC_CTX_RESPONSE.encode(response, Syntax.NDR20, given=given) == stub
    assert INIT_SEC_CTX_RESPONSE.decode(stub, Syntax.NDR20, given=given) == response
    with pytest.raises(NdrError, match="client_buffer_max_size"):
        INIT_SEC_CTX_RESPONSE.decode(stub, Syntax.NDR20, given={"client_buffer_max_size": 8})


# --- S_DSLookupNext: variants, and a signature no longer than asked for ---------------------------


@dataclass(frozen=True, slots=True)
class LookupNextResponse:
    values: tuple[PropVariant, ...]
    signature: bytes
    status: int


LOOKUP_NEXT_RESPONSE = ndr.Parameters(
    LookupNextResponse,
    out_size=ndr.Ref(ndr.U32),
    values=ndr.ConformantVarying(
        ndr.PROPVARIANT, size_is=Given("size"), length_is="out_size", maximum=128
    ),
    signature=ndr.Ref(
        ndr.Conformant(ndr.BYTE, size_is="signature_size", maximum=Given("signature_size"))
    ),
    signature_size=ndr.Ref(ndr.Range(ndr.U32, 0, 131072)),
    status=ndr.U32,
)


@pytest.mark.parametrize("syntax", Syntax)
def test_lookup_next_response(syntax: Syntax) -> None:
    response = LookupNextResponse(
        (PropVariant(VarType.LPWSTR, "site"), PropVariant(VarType.UI1, 1)), b"signed", 0
    )
    given = {"size": 6, "signature_size": 64}
    data = LOOKUP_NEXT_RESPONSE.encode(response, syntax, given=given)
    assert LOOKUP_NEXT_RESPONSE.decode(data, syntax, given=given) == response
    for short in ({"size": 5, "signature_size": 64}, {"size": 6, "signature_size": 5}):
        with pytest.raises(NdrError):
            LOOKUP_NEXT_RESPONSE.decode(data, syntax, given=short)


# --- S_DSCreateServersCache: [ptr] to a [unique, string] ------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateServersCache:
    index: int
    site_servers: To | None
    server_auth: ContextHandle
    signature_size: int


CREATE_SERVERS_CACHE = ndr.Parameters(
    CreateServersCache,
    index=ndr.Ref(ndr.U32),
    site_servers=ndr.Full(ndr.Unique(ndr.WSTRING)),
    server_auth=ndr.CONTEXT_HANDLE,
    signature_size=ndr.Ref(ndr.Range(ndr.U32, 0, 131072)),
)


@pytest.mark.parametrize("site_servers", [None, To(None), To("S;pec;psc")])
@pytest.mark.parametrize("syntax", Syntax)
def test_create_servers_cache(site_servers: To | None, syntax: Syntax) -> None:
    request = CreateServersCache(3, site_servers, HANDLE, 128)
    data = CREATE_SERVERS_CACHE.encode(request, syntax)
    assert CREATE_SERVERS_CACHE.decode(data, syntax) == request


def test_create_servers_cache_bytes() -> None:
    data = CREATE_SERVERS_CACHE.encode(
        CreateServersCache(3, To(None), ContextHandle.NULL, 128), Syntax.NDR20
    )
    assert data.hex() == "03000000" + "00000200" + "00000000" + "00" * 20 + "80000000"


# --- S_DSGetComputerSites: [ref] to a [unique] array, size and length from the same count ---------


@dataclass(frozen=True, slots=True)
class ComputerSites:
    sites: tuple[Guid, ...] | None
    status: int


COMPUTER_SITES = ndr.Parameters(
    ComputerSites,
    count=ndr.Ref(ndr.U32),
    sites=ndr.Ref(ndr.Unique(ndr.ConformantVarying(ndr.GUID, size_is="count", length_is="count"))),
    status=ndr.U32,
)


def test_computer_sites() -> None:
    response = ComputerSites((HANDLE.uuid, Guid.NULL), 0)
    data = COMPUTER_SITES.encode(response, Syntax.NDR20)
    assert data == (
        bytes.fromhex("02000000 00000200 02000000 00000000 02000000")
        + HANDLE.uuid.raw
        + bytes(16)
        + bytes(4)
    )
    assert COMPUTER_SITES.decode(data, Syntax.NDR20) == response
    nothing = bytes.fromhex("00000000 00000000 0500 0ec0")
    assert COMPUTER_SITES.decode(nothing, Syntax.NDR20) == ComputerSites(None, 0xC00E0005)
    with pytest.raises(NdrError):
        COMPUTER_SITES.decode(b"\1" + nothing[1:], Syntax.NDR20)


# --- S_DSLookupBegin: structures with counted pointers, variants inside ---------------------------


@dataclass(frozen=True, slots=True)
class PropertyRestriction:
    rel: int
    prop: int
    value: PropVariant


@dataclass(frozen=True, slots=True)
class Restriction:
    restrictions: tuple[PropertyRestriction, ...] | None


@dataclass(frozen=True, slots=True)
class ColumnSet:
    columns: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class LookupBegin:
    context: str | None
    restriction: Restriction | None
    columns: ColumnSet


RESTRICTION = ndr.Struct(
    Restriction,
    count=ndr.Range(ndr.U32, 0, 128),
    restrictions=ndr.Unique(
        ndr.Conformant(
            ndr.Struct(PropertyRestriction, rel=ndr.U32, prop=ndr.U32, value=ndr.PROPVARIANT),
            size_is="count",
        )
    ),
)
COLUMN_SET = ndr.Struct(
    ColumnSet,
    count=ndr.Range(ndr.U32, 0, 128),
    columns=ndr.Unique(ndr.Conformant(ndr.U32, size_is="count")),
)
LOOKUP_BEGIN = ndr.Parameters(
    LookupBegin,
    context=ndr.Unique(ndr.WSTRING),
    restriction=ndr.Unique(RESTRICTION),
    columns=ndr.Ref(COLUMN_SET),
)


@pytest.mark.parametrize("syntax", Syntax)
def test_lookup_begin(syntax: Syntax) -> None:
    request = LookupBegin(
        None,
        Restriction(
            (
                PropertyRestriction(4, 101, PropVariant(VarType.CLSID, HANDLE.uuid)),
                PropertyRestriction(5, 103, PropVariant(VarType.LPWSTR, "q")),
                PropertyRestriction(0, 104, PropVariant(VarType.UI1, 3)),
            )
        ),
        ColumnSet((101, 103)),
    )
    data = LOOKUP_BEGIN.encode(request, syntax)
    assert LOOKUP_BEGIN.decode(data, syntax) == request
    assert LOOKUP_BEGIN.decode(data + b"trailer", syntax, allow_surplus=True) == request


def test_lookup_begin_bytes() -> None:
    request = LookupBegin(
        "x",
        Restriction((PropertyRestriction(4, 101, PropVariant(VarType.LPWSTR, "q")),)),
        ColumnSet((7,)),
    )
    assert LOOKUP_BEGIN.encode(request, Syntax.NDR20) == bytes.fromhex(
        "00000200 02000000 00000000 02000000 78000000"  # context
        "04000200 01000000 08000200 01000000"  # restriction: count, pointer, maximum count
        "00000000 04000000 65000000 1f000000 00000000 1f000000 0c000200"  # at a multiple of 8
        "02000000 00000000 02000000 71000000"
        "01000000 10000200 01000000 07000000"  # columns
    )


# --- IXnRemote (MS-CMPO): enumerations, strings of exact length -----------------------------------


@dataclass(frozen=True, slots=True)
class Poke:
    rank: int
    callee: str
    host: str
    caller: str
    blob: bytes


GUID_STRING = ndr.ConformantString(minimum=37, maximum=37)
POKE_W = ndr.Parameters(
    Poke,
    rank=ndr.ENUM16,
    callee=GUID_STRING,
    host=ndr.ConformantString(minimum=1, maximum=16),
    caller=GUID_STRING,
    blob_size=ndr.Range(ndr.U32, 8, 8),
    blob=ndr.Conformant(ndr.BYTE, size_is="blob_size"),
)


def test_poke() -> None:
    blob = bytes.fromhex("0800000021000000")
    poke = Poke(1, str(HANDLE.uuid), "Machine_1", str(HANDLE.uuid), blob)
    data = POKE_W.encode(poke, Syntax.NDR20)
    assert len(data) == 228
    assert data.startswith(bytes.fromhex("0100 0000 25000000 00000000 25000000"))
    assert data.endswith(bytes.fromhex("08000000 08000000") + blob)
    assert POKE_W.decode(data, Syntax.NDR20) == poke
    with pytest.raises(ValueError, match="37"):
        POKE_W.encode(Poke(1, "short", "M", str(HANDLE.uuid), blob), Syntax.NDR20)


# --- big-endian peers -----------------------------------------------------------------------------


def test_big_endian_request() -> None:
    """Written by hand: every field swapped, octets and the tail of a UUID not."""
    stub = bytes.fromhex(
        "00000003 00020000 00000000 00000000 a1b2c3d4 0001 0002 030405060708090a 00000080"
    )
    assert CREATE_SERVERS_CACHE.decode(stub, Syntax.NDR20, big_endian=True) == (
        CreateServersCache(3, To(None), HANDLE, 128)
    )
    text = (
        bytes.fromhex("00000007 00020000 00020004 00000002 00000000 00000002 0041 0000")
        + bytes(20)
        + bytes.fromhex("00000040")
    )
    read = CREATE_SERVERS_CACHE.decode(text, Syntax.NDR20, big_endian=True)
    assert read == CreateServersCache(7, To("A"), ContextHandle.NULL, 64)


def test_big_endian_wide_characters() -> None:
    array = bytes.fromhex("00000002 0041 20ac")
    assert ndr.Conformant(ndr.WCHAR).decode(array, Syntax.NDR20, big_endian=True) == "A€"
    fixed = bytes.fromhex("00000000 00000002 0041 0000")
    assert ndr.VaryingString(4).decode(fixed, Syntax.NDR20, big_endian=True) == "A"
