"""The stubs of dscomm and dscomm2: their bytes, that they come back, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2, query_stubs
from mqis.wire.mqds.query_stubs import (
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import (
    U32,
    Conformant,
    ContextHandle,
    Description,
    Full,
    Parameters,
    Ref,
    Struct,
    Syntax,
    Unique,
)
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import Operation
from mqis.wire.rpc.pdu import decode_pdu
from mqis.wire.rpc.pdu_bodies import Request, Response
from tests.strategies.propvariant import guids, prop_variants, texts
from tests.wire.mqds.vectors import CHALLENGE, SIGNATURE, octets

GUID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
HANDLE = ContextHandle(GUID)
GUID_HEX = "d4c3b2a1 01000200 03040506 0708090a"
HANDLE_HEX = f"00000000 {GUID_HEX}"
UI1_5, UI4_5 = PropVariant(VarType.UI1, 5), PropVariant(VarType.UI4, 5)
CONTINUE_NEEDED = 0x00090312
SYNTAXES = pytest.mark.parametrize("syntax", list(Syntax))

ALL: list[Operation[Any, Any]] = [
    *dscomm.DSCOMM.operations,
    *dscomm2.DSCOMM2.operations,
    *dscomm.DSCOMM.callbacks,
]


# --- whole PDUs of the callbacks, both ways -------------------------------------------------------

SIGN_REQUEST = dscomm.Challenge(CHALLENGE, 5, b"", 128)
SIGN_ANSWER = dscomm.ChallengeAnswer(SIGNATURE, 0)


@pytest.mark.parametrize(
    ("vector", "call_id", "operation", "request_"),
    [
        pytest.param(
            "S_InitSecCtx request",
            7,
            dscomm.INIT_SEC_CTX,
            dscomm.InitSecCtx(0x11223344, bytes.fromhex("0102030405"), 16),
            marks=pytest.mark.req("MQDS-3.2.4.3-01"),
        ),
        pytest.param(
            "S_DSQMGetObjectSecurityChallengeResponceProc request",
            9,
            dscomm.GET_OBJECT_SECURITY_CHALLENGE,
            SIGN_REQUEST,
            marks=pytest.mark.req("MQDS-3.2.4.1-02"),
        ),
    ],
)
def test_callback_requests(
    vector: str, call_id: int, operation: Operation[Any, Any], request_: object
) -> None:
    pdu = decode_pdu(octets(vector))
    assert isinstance(pdu.body, Request)
    assert (pdu.header.call_id, pdu.body.opnum) == (call_id, operation.opnum)
    assert operation.request.encode(request_, Syntax.NDR20) == pdu.body.stub
    assert operation.request.decode(pdu.body.stub, Syntax.NDR20) == request_


@pytest.mark.parametrize(
    ("vector", "operation", "answer", "sizes"),
    [
        (
            "S_InitSecCtx response",
            dscomm.INIT_SEC_CTX,
            dscomm.InitSecCtxAnswer(b"\xaa\xbb\xcc", CONTINUE_NEEDED),
            {"buffer_size": 16},
        ),
        (
            "S_DSQMGetObjectSecurityChallengeResponceProc response",
            dscomm.GET_OBJECT_SECURITY_CHALLENGE,
            SIGN_ANSWER,
            {"answer_max": 128},
        ),
    ],
)
def test_callback_answers(
    vector: str, operation: Operation[Any, Any], answer: object, sizes: dict[str, int]
) -> None:
    pdu = decode_pdu(octets(vector))
    assert isinstance(pdu.body, Response)
    assert operation.response.encode(answer, Syntax.NDR20, given=sizes) == pdu.body.stub
    assert operation.response.decode(pdu.body.stub, Syntax.NDR20, given=sizes) == answer


@pytest.mark.req("MQDS-3.2.4.1-02")
def test_both_challenges_have_one_shape() -> None:
    first, second = dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC, dscomm.GET_OBJECT_SECURITY_CHALLENGE
    assert (first.opnum, second.opnum) == (0, 1)
    for syntax in Syntax:
        stubs = {op.request.encode(SIGN_REQUEST, syntax) for op in (first, second)}
        assert len(stubs) == 1


# --- layouts, written out (NDR20) -----------------------------------------------------------------

LAYOUTS = [
    pytest.param(
        dscomm.CLOSE_SERVER_HANDLE.request,
        dscomm.HandleGiven(HANDLE),
        HANDLE_HEX,
        {},
        id="S_DSCloseServerHandle: nothing but the handle",
        marks=pytest.mark.req("MQDS-3.1.4.3-02", "MQDS-2.2.5-01"),
    ),
    pytest.param(
        dscomm.VALIDATE_SERVER.request,
        dscomm.ValidateServer(GUID, 0, 9, 8, b"abc"),
        # GUID, BOOL, context, maximum; maximum count, offset, actual count, bytes; size
        f"{GUID_HEX} 00000000 09000000 08000000 08000000 00000000 03000000 61626300 03000000",
        {},
        id="S_DSValidateServer",
        marks=pytest.mark.req("MQDS-3.1.4.2-02"),
    ),
    pytest.param(
        dscomm.CREATE_OBJECT.request,
        dscomm.CreateObject(1, "a\\b", b"\1\2", (101,), (PropVariant(VarType.UI1, 1),), None),
        # type; path; dwSDLength, descriptor; cp, aProp; apVar aligned to 8; null GUID pointer
        "01000000 00000200 04000000 00000000 04000000 61005c0062000000"
        "02000000 04000200 02000000 01020000 01000000 01000000 65000000"
        "01000000 00000000 1100 00 00 00000000 1100 01 00 00000000",
        {},
        id="S_DSCreateObject",
        marks=pytest.mark.req("MQDS-3.1.4.4-01", "MQDS-3.1.4-06", "MQDS-2.2.3-01"),
    ),
    pytest.param(
        dscomm.GET_PROPS.response,
        dscomm.PropsGot((UI4_5, PropVariant(VarType.LPWSTR, "a")), b"\1\2\3", 0),
        # apVar with its string behind it, signature, its size, result
        "02000000 00000000 13000000 00000000 13000000 05000000 1f000000 00000000 1f000000 00000200"
        "02000000 00000000 02000000 61000000 03000000 01020300 03000000 00000000",
        {"cp": 2},
        id="S_DSGetProps",
        marks=pytest.mark.req("MQDS-3.1.4.7-01"),
    ),
    pytest.param(
        dscomm.GET_OBJECT_SECURITY.response,
        dscomm.SecurityGot(b"\1\2\0\0", 2, b"\7", 0),
        "04000000 01020000 02000000 01000000 07000000 01000000 00000000",
        {"length": 4},
        id="S_DSGetObjectSecurity: as many bytes as the client has room for",
        marks=pytest.mark.req("MQDS-3.1.4.11-01", "MQDS-3.1.4-08"),
    ),
    pytest.param(
        dscomm.QM_GET_OBJECT_SECURITY.request,
        dscomm.GetMachineSecurity(2, GUID, 4, 100, 0xC0FFEE, HANDLE, 16),
        f"02000000 {GUID_HEX} 04000000 64000000 eeffc000 {HANDLE_HEX} 10000000",
        {},
        id="S_DSQMGetObjectSecurity: with dwContext",
        marks=pytest.mark.req("MQDS-3.1.4.15-01"),
    ),
    pytest.param(
        dscomm.LOOKUP_BEGIN.request,
        dscomm.LookupBegin(
            "c",
            RestrictionSet((PropertyRestriction(4, 101, PropVariant(VarType.UI4, 7)),)),
            ColumnSet((101, 103)),
            SortSet((SortColumn(103, 1),)),
            HANDLE,
        ),
        # context; restriction: count, pointer, rel, prop, prval; columns; sort: column, order
        "00000200 02000000 00000000 02000000 63000000"
        "04000200 01000000 08000200 01000000 00000000"
        "04000000 65000000 13000000 00000000 13000000 07000000"
        "02000000 0c000200 02000000 65000000 67000000"
        f"10000200 01000000 14000200 01000000 67000000 01000000 {HANDLE_HEX}",
        {},
        id="S_DSLookupBegin",
        marks=pytest.mark.req(
            "MQDS-3.1.4.17-01", "MQDS-2.2.11-01", "MQDS-2.2.14-01", "MQDS-2.2.23-01"
        ),
    ),
    pytest.param(
        dscomm.LOOKUP_NEXT.response,
        dscomm.LookupGot((UI1_5,), b"\1\2", 0),
        # dwOutSize; maximum count *dwSize, offset, actual count, values; signature, size, result
        "01000000 03000000 00000000 01000000 1100 0000 00000000 1100 05 00 02000000 01020000"
        "02000000 00000000",
        {"size": 3},
        id="S_DSLookupNext",
        marks=pytest.mark.req("MQDS-3.1.4.18-01"),
    ),
    pytest.param(
        dscomm.CREATE_SERVERS_CACHE.request,
        dscomm.CreateServersCache(3, dscomm.StringPointer(None), HANDLE, 4),
        f"03000000 00000200 00000000 {HANDLE_HEX} 04000000",
        {},
        id="S_DSCreateServersCache: a pointer to a null pointer",
    ),
    pytest.param(
        dscomm.CREATE_SERVERS_CACHE.response,
        dscomm.ServersCache(3, dscomm.StringPointer("S"), b"\1", 0),
        "03000000 00000200 04000200 02000000 00000000 02000000 53000000"
        "01000000 01000000 01000000 00000000",
        {},
        id="S_DSCreateServersCache: its answer",
        marks=pytest.mark.req("MQDS-3.1.4.20-01"),
    ),
    pytest.param(
        dscomm2.GET_COMPUTER_SITES.response,
        dscomm2.ComputerSites((GUID,), b"", 0),
        # count; unique pointer; one array of GUIDs, not pointers to them
        f"01000000 00000200 01000000 00000000 01000000 {GUID_HEX} 00000000 00000000 00000000",
        {},
        id="S_DSGetComputerSites",
        marks=pytest.mark.req("MQDS-3.3.4.1-01"),
    ),
    pytest.param(
        dscomm2.GET_GC_LIST_IN_DOMAIN.request,
        dscomm2.GetGCListInDomain(None, "d", HANDLE, 4),
        f"00000000 00000200 02000000 00000000 02000000 64000000 {HANDLE_HEX} 04000000",
        {},
        id="S_DSGetGCListInDomain",
        marks=pytest.mark.req("MQDS-3.3.4.8-01"),
    ),
    pytest.param(
        dscomm2.GET_GC_LIST_IN_DOMAIN.response,
        dscomm2.GCList("10a", b"\1", 0),
        "00000200 04000000 00000000 04000000 3100300061000000 01000000 01000000 01000000 00000000",
        {},
        id="S_DSGetGCListInDomain: its answer",
        marks=pytest.mark.req("MQDS-3.3.4.8-01"),
    ),
    pytest.param(
        dscomm2.END_DELETE_NOTIFICATION.response,
        dscomm2.HandleReturned(ContextHandle.NULL),
        "00" * 20,
        {},
        id="S_DSEndDeleteNotification: void",
    ),
]


@pytest.mark.parametrize(("parameters", "value", "stub", "sizes"), LAYOUTS)
def test_layouts(
    parameters: Parameters[Any], value: object, stub: str, sizes: dict[str, int]
) -> None:
    data = bytes.fromhex(stub)
    assert parameters.encode(value, Syntax.NDR20, given=sizes) == data
    assert parameters.decode(data, Syntax.NDR20, given=sizes) == value


@pytest.mark.req("MQDS-2.2.3-01")
def test_reserved_bytes_of_a_variant_are_ignored() -> None:
    stub = bytearray(dscomm.SET_PROPS.request.encode(_set_props(UI1_5), Syntax.NDR20))
    at = stub.index(b"\x11\0\0\0\0\0\0\0\x11\0")
    stub[at + 2 : at + 8] = b"\xee" * 6
    assert dscomm.SET_PROPS.request.decode(bytes(stub), Syntax.NDR20) == _set_props(UI1_5)


@pytest.mark.req("MQDS-2.2.3-02")
@SYNTAXES
def test_exactly_the_listed_variant_types_are_read(syntax: Syntax) -> None:
    listed = {0, 1, 2, 3, 11, 16, 17, 18, 19, 20, 21, 31, 65, 72}
    listed |= {0x1000 | vt for vt in (17, 18, 3, 19, 21, 72, 31, 12)}
    assert {int(vt) for vt in VarType} == listed
    stub = dscomm.SET_PROPS.request.encode(_set_props(UI1_5), syntax)
    at = stub.rindex(b"\x11\0\0\0\0\0\0\0")
    unlisted = set(range(0x80)) | {0x1000 | n for n in range(0x80)} | {0x2011, 0x4011}
    for vt in sorted(unlisted - listed):
        tag = vt.to_bytes(2, "little")
        wrong = stub[:at] + tag + stub[at + 2 : at + 8] + tag + stub[at + 10 :]
        with pytest.raises(WireError):
            dscomm.SET_PROPS.request.decode(wrong, syntax)


def _set_props(*values: PropVariant) -> dscomm.SetProps:
    return dscomm.SetProps(1, "a\\b", tuple(range(101, 101 + len(values))), values)


# --- whatever is sent comes back ------------------------------------------------------------------

_U32 = st.integers(0, 0xFFFFFFFF)
_HANDLES = st.builds(ContextHandle, guids, _U32)
_SMALL = st.binary(max_size=40)
_RESTRICTIONS = st.lists(st.builds(PropertyRestriction, _U32, _U32, prop_variants()), max_size=3)
_KEYS = st.lists(st.builds(SortColumn, _U32, _U32), max_size=3)
#: Of each parameter by its name; those that depend on others are drawn in ``_stubs``.
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "object_type": st.integers(1, 58),
    "path": texts,
    "descriptor": _SMALL,
    "guid": guids,
    "enterprise_id": guids,
    "auth": _HANDLES,
    "handle": _HANDLES,
    "signature_size": st.integers(0, 131_072),
    "signature": _SMALL,
    "information": _U32,
    "length": st.integers(0, 524_288),
    "length_needed": _U32,
    "result": _U32,
    "restriction": st.builds(RestrictionSet, st.none() | _RESTRICTIONS.map(tuple)),
    "columns": st.builds(ColumnSet, st.none() | st.lists(_U32, max_size=5).map(tuple)),
    "sort": st.builds(SortSet, st.none() | _KEYS.map(tuple)),
    "size": st.integers(0, 128),
    "index": _U32,
    "servers": st.builds(dscomm.StringPointer, st.none() | texts),
    "setup_mode": st.integers(-(1 << 31), (1 << 31) - 1),
    "context": _U32,
    "ip": st.integers(0, 1),
    "port": _U32,
    "is_gc": st.integers(0, 1),
    "sites": st.lists(guids, max_size=4).map(tuple),
    "computer_name": texts,
    "domain_name": texts,
    "challenge": st.binary(max_size=32),
    "answer": st.binary(max_size=128),
    "token": _SMALL,
    "buffer_size": st.integers(40, 524_288),
    "answer_max": st.just(128),
}


@st.composite
def _stubs(draw: st.DrawFn, parameters: Parameters[Any]) -> tuple[Any, dict[str, int]]:
    """A value of ``parameters`` and the sizes that it owes to a request."""
    scope = parameters.scope
    members = dict(zip(scope.names, scope.members, strict=True))
    count = draw(st.integers(1, 2))
    fields: dict[str, Any] = {}
    for name in scope.visible:
        strategy = _FIELDS.get(name)
        if name == "ids":
            strategy = st.lists(_U32, min_size=count, max_size=count).map(tuple)
        elif name == "values":
            strategy = st.lists(prop_variants(), min_size=count, max_size=count).map(tuple)
        elif name == "types":
            types = st.sampled_from(VarType)
            strategy = st.lists(types, min_size=count, max_size=count).map(tuple)
        elif (name, type(members[name])) in (("context", Unique), ("servers", Ref)):
            strategy = texts
        assert strategy is not None, name
        nullable = isinstance(members[name], (Unique, Full)) or name == "sites"
        fields[name] = draw(st.none() | strategy if nullable else strategy)
    if fields.get("descriptor") == b"":
        fields["descriptor"] = b"\0"
    sizes = {"cp": count, "size": draw(st.integers(count, 128)), "buffer_size": 40}
    sizes |= {"answer_max": 128, "length": len(fields.get("descriptor") or b"")}
    return scope.cls(**fields), sizes


@pytest.mark.req("MQDS-2.2-01")
@pytest.mark.parametrize("operation", [pytest.param(op, id=op.name) for op in ALL])
@SYNTAXES
@settings(max_examples=4)
@given(data=st.data())
def test_round_trip(syntax: Syntax, operation: Operation[Any, Any], data: st.DataObject) -> None:
    request, _ = data.draw(_stubs(operation.request))
    stub = operation.request.encode(request, syntax)
    assert operation.request.decode(stub, syntax) == request
    response, sizes = data.draw(_stubs(operation.response))
    stub = operation.response.encode(response, syntax, given=sizes)
    assert operation.response.decode(stub, syntax, given=sizes) == response


#: Syntax, and whether it is big-endian.
DIALECTS = [(Syntax.NDR20, False), (Syntax.NDR20, True), (Syntax.NDR64, False)]


@pytest.mark.parametrize("operation", [pytest.param(op, id=op.name) for op in ALL])
@settings(max_examples=8)
@given(stub=st.binary(max_size=200), dialect=st.sampled_from(DIALECTS))
def test_garbage_is_refused_in_one_way(
    operation: Operation[Any, Any], stub: bytes, dialect: tuple[Syntax, bool]
) -> None:
    syntax, big_endian = dialect
    sizes = {"cp": 1, "size": 1, "length": 1, "buffer_size": 1, "answer_max": 1}
    for parameters in (operation.request, operation.response):
        try:
            parameters.decode(stub, syntax, big_endian=big_endian, given=sizes)
        except WireError:
            continue


# --- strict checks --------------------------------------------------------------------------------

GET_PORT, GET, NEXT = dscomm.GET_SERVER_PORT, dscomm.GET_PROPS, dscomm.LOOKUP_NEXT
VALIDATE, CREATE = dscomm.VALIDATE_SERVER, dscomm.CREATE_OBJECT
GET_REQUEST = dscomm.GetProps(1, "ab", (101,), (VarType.UI1,), HANDLE, 16)
NEXT_REQUEST = dscomm.LookupNext(HANDLE, 5, HANDLE, 16)
VALIDATE_REQUEST = dscomm.ValidateServer(GUID, 0, 9, 8, b"abc")
DELETE_REQUEST = dscomm.ByPath(1, "ab")
BEGIN_REQUEST = dscomm.LookupBegin(
    None,
    RestrictionSet((PropertyRestriction(4, 101, UI1_5),)),
    ColumnSet((101,)),
    SortSet((SortColumn(101, 0),)),
    HANDLE,
)
U32_MAX = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("operation", "request_", "offset", "numbers"),
    [
        pytest.param(
            GET_PORT,
            dscomm.GetServerPort(1),
            0,
            (2, U32_MAX),
            id="fIP",
            marks=pytest.mark.req("MQDS-3.1.4.1-01"),
        ),
        pytest.param(
            dscomm.DELETE_OBJECT,
            DELETE_REQUEST,
            0,
            (0, 59, U32_MAX),
            id="object type",
            marks=pytest.mark.req("MQDS-2.2.8-01"),
        ),
        pytest.param(
            GET,
            GET_REQUEST,
            24,
            (0, 2, 129),
            id="cp",
            marks=pytest.mark.req("MQDS-3.1.4.4-02"),
        ),
        pytest.param(
            GET,
            GET_REQUEST,
            -4,
            (131_073, U32_MAX),
            id="signature size",
            marks=pytest.mark.req("MQDS-2.2.21-01"),
        ),
        pytest.param(
            NEXT,
            NEXT_REQUEST,
            20,
            (129, U32_MAX),
            id="dwSize",
            marks=pytest.mark.req("MQDS-2.2.22-01"),
        ),
        pytest.param(
            VALIDATE,
            VALIDATE_REQUEST,
            24,
            (2, 7, 9, 524_289),
            id="dwClientBuffMaxSize",
            marks=pytest.mark.req("MQDS-3.1.4.2-02"),
        ),
        pytest.param(VALIDATE, VALIDATE_REQUEST, -4, (2, 4, 524_289), id="dwClientBuffSize"),
        pytest.param(
            dscomm.LOOKUP_BEGIN,
            BEGIN_REQUEST,
            8,
            (0, 2, 129),
            id="cRes",
            marks=pytest.mark.req("MQDS-2.2.12-01"),
        ),
        pytest.param(
            dscomm.LOOKUP_BEGIN,
            BEGIN_REQUEST,
            44,
            (0, 2, 129),
            id="cCol of the columns",
            marks=pytest.mark.req("MQDS-2.2.13-01"),
        ),
        pytest.param(
            dscomm.LOOKUP_BEGIN,
            BEGIN_REQUEST,
            64,
            (0, 2, 129),
            id="cCol of the sort keys",
            marks=pytest.mark.req("MQDS-2.2.15-01"),
        ),
    ],
)
@pytest.mark.req("MQDS-2.2-02")
def test_numbers_out_of_range(
    operation: Operation[Any, Any], request_: object, offset: int, numbers: tuple[int, ...]
) -> None:
    stub = operation.request.encode(request_, Syntax.NDR20)
    assert operation.request.decode(stub, Syntax.NDR20) == request_
    at = offset % len(stub)
    for number in numbers:
        wrong = stub[:at] + number.to_bytes(4, "little") + stub[at + 4 :]
        with pytest.raises(WireError):
            operation.request.decode(wrong, Syntax.NDR20)


@dataclass(frozen=True, slots=True)
class _Holder:
    entries: Any


RESTRICTIONS = (PropertyRestriction(4, 105, PropVariant(VarType.UI4, 7)),)


@pytest.mark.parametrize(
    ("description", "element", "name", "entry"),
    [
        pytest.param(
            query_stubs.RESTRICTION,
            query_stubs.PROPERTY_RESTRICTION,
            "restrictions",
            RESTRICTIONS[0],
            marks=pytest.mark.req("MQDS-2.2.12-01"),
        ),
        pytest.param(
            query_stubs.COLUMN_SET, U32, "columns", 101, marks=pytest.mark.req("MQDS-2.2.13-01")
        ),
        pytest.param(
            query_stubs.SORT_SET,
            query_stubs.SORT_KEY,
            "keys",
            SortColumn(103, 1),
            marks=pytest.mark.req("MQDS-2.2.15-01"),
        ),
    ],
)
@SYNTAXES
def test_sets_of_up_to_128_entries(
    description: Struct[Any], element: Description[Any], name: str, entry: object, syntax: Syntax
) -> None:
    """The stubs are made by a description with the same layout and a higher limit."""
    entries = Unique(Conformant(element, size_is="count", maximum=1000))
    wide = Parameters(_Holder, entries=Struct(description.scope.cls, count=U32, **{name: entries}))
    limited = Parameters(_Holder, entries=description)
    most = _Holder(description.scope.cls((entry,) * 128))
    assert limited.decode(wide.encode(most, syntax), syntax) == most
    stub = wide.encode(_Holder(description.scope.cls((entry,) * 129)), syntax)
    with pytest.raises(WireError):
        limited.decode(stub, syntax)


@pytest.mark.req("MQDS-3.1.4-02")
@SYNTAXES
def test_null_pointer_with_a_size(syntax: Syntax) -> None:
    """SecurityDescriptor NULL, dwSDLength 4."""
    request = dscomm.CreateObject(1, None, None, (101,), (UI1_5,), None)
    stub = dscomm.CREATE_OBJECT.request.encode(request, syntax)
    at = 8 if syntax is Syntax.NDR20 else 16  # behind type and null path
    assert stub[at : at + 4] == bytes(4)
    with pytest.raises(WireError):
        CREATE.request.decode(stub[:at] + b"\4\0\0\0" + stub[at + 4 :], syntax)


@pytest.mark.req("MQDS-3.1.4-02")
def test_null_array_with_a_count() -> None:
    stub = bytearray(dscomm.LOOKUP_BEGIN.request.encode(BEGIN_REQUEST, Syntax.NDR20))
    nulled = replace(BEGIN_REQUEST, restriction=RestrictionSet(None))
    empty = bytearray(dscomm.LOOKUP_BEGIN.request.encode(nulled, Syntax.NDR20))
    assert stub[8:12] == b"\1\0\0\0"
    empty[8:12] = b"\1\0\0\0"
    with pytest.raises(WireError):
        dscomm.LOOKUP_BEGIN.request.decode(bytes(empty), Syntax.NDR20)


@pytest.mark.req("MQDS-3.1.4-08")
@SYNTAXES
def test_a_signature_is_as_long_as_its_size_says(syntax: Syntax) -> None:
    got = dscomm.PropsGot((UI1_5,), b"\1\2\3\4", 0)
    stub = GET.response.encode(got, syntax, given={"cp": 1})
    size = stub.rindex(b"\4\0\0\0")
    for number in (3, 5):
        wrong = stub[:size] + number.to_bytes(4, "little") + stub[size + 4 :]
        with pytest.raises(WireError):
            GET.response.decode(wrong, syntax, given={"cp": 1})


def test_descriptors_longer_than_half_a_megabyte_are_refused() -> None:
    request = dscomm.SetSecurity(1, "a", 4, bytes(524_289))
    with pytest.raises(ValueError, match="524288"):
        dscomm.SET_OBJECT_SECURITY.request.encode(request, Syntax.NDR20)
