"""Handles in stubs that are not decoded: where NDR puts them, in both syntaxes."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.query_stubs import ColumnSet, SortColumn, SortSet
from mqis.wire.mqds.shortstubs import (
    HANDLE_CLOSED,
    NextRequest,
    SplitRequest,
    handle_opened,
    lookup_next_fields,
    only_handle,
    split_get_props,
    split_guid,
    split_lookup_begin,
    split_path,
)
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import VarType

AUTH, LOOKUP = Guid(b"an auth handle.."), Guid(b"a lookup handle.")
OTHER = Guid(b"another handle..")
SYNTAXES = pytest.mark.parametrize("syntax", list(Syntax))


def handle(uuid: Guid, attributes: int = 0) -> ContextHandle:
    return ContextHandle(uuid, attributes)


def requests(auth: ContextHandle) -> list[tuple[Any, Any, Any]]:
    """Operations, requests of theirs, and the functions that split them."""
    ids, types = (101, 103, 108), (VarType.NULL,) * 3
    sort = SortSet((SortColumn(103, 0),))
    columns = ColumnSet((101, 103, 108))
    return [
        (dscomm.GET_PROPS, dscomm.GetProps(2, "m\\q", ids, types, auth, 7), split_get_props),
        (dscomm.GET_PROPS, dscomm.GetProps(2, "m\\qu", ids, types, auth, 0), split_get_props),
        (
            dscomm.GET_PROPS_GUID,
            dscomm.GetPropsGuid(2, OTHER, ids, types, auth, 7),
            split_get_props,
        ),
        (
            dscomm.LOOKUP_BEGIN,
            dscomm.LookupBegin(None, None, columns, None, auth),
            split_lookup_begin,
        ),
        (
            dscomm.LOOKUP_BEGIN,
            dscomm.LookupBegin("x", None, columns, sort, auth),
            split_lookup_begin,
        ),
    ]


@SYNTAXES
@pytest.mark.parametrize("number", range(5))
def test_only_the_auth_handle_is_cut_out(syntax: Syntax, number: int) -> None:
    operation, request, split = requests(handle(AUTH))[number]
    stub = operation.request.encode(request, syntax)
    found = split(stub)
    assert found.auth == AUTH
    put_together = found.before + bytes(4) + AUTH.raw + found.behind
    assert put_together == stub
    with_another = operation.request.encode(requests(handle(OTHER))[number][1], syntax)
    assert split(with_another)[:2] == found[:2]


@SYNTAXES
@pytest.mark.parametrize("number", range(5))
def test_a_handle_with_attributes_is_unusual(syntax: Syntax, number: int) -> None:
    operation, request, split = requests(handle(AUTH, 1))[number]
    assert split(operation.request.encode(request, syntax)) is None


@SYNTAXES
def test_the_fields_of_next(syntax: Syntax) -> None:
    request = dscomm.LookupNext(handle(LOOKUP), 100, handle(AUTH), 7)
    stub = dscomm.LOOKUP_NEXT.request.encode(request, syntax)
    assert lookup_next_fields(stub) == NextRequest(LOOKUP, 100, AUTH, 7)
    assert lookup_next_fields(stub + b"\0") is None
    assert lookup_next_fields(stub[:-1]) is None
    for odd in (
        dscomm.LookupNext(handle(LOOKUP, 1), 100, handle(AUTH), 7),
        dscomm.LookupNext(handle(LOOKUP), 100, handle(AUTH, 1), 7),
    ):
        assert lookup_next_fields(dscomm.LOOKUP_NEXT.request.encode(odd, syntax)) is None


@SYNTAXES
def test_the_handle_of_end_and_its_answer(syntax: Syntax) -> None:
    stub = dscomm.LOOKUP_END.request.encode(dscomm.HandleGiven(handle(LOOKUP)), syntax)
    assert only_handle(stub) == LOOKUP
    assert only_handle(stub + b"\0") is None
    closed = dscomm.HandleGot(ContextHandle.NULL, 0)
    assert dscomm.LOOKUP_END.response.encode(closed, syntax) == HANDLE_CLOSED


@SYNTAXES
def test_the_answer_of_begin(syntax: Syntax) -> None:
    opened = dscomm.HandleGot(handle(LOOKUP), 0)
    assert dscomm.LOOKUP_BEGIN.response.encode(opened, syntax) == handle_opened(LOOKUP)


@pytest.mark.parametrize("size", [0, 1, 19, 20, 23, 24])
def test_too_short_to_be_a_request(size: int) -> None:
    assert split_get_props(bytes(size)) is None
    assert size == 24 or split_lookup_begin(bytes(min(size, 20))) is None


def before_handle(number: int, syntax: Syntax) -> bytes:
    operation, request, split = requests(handle(AUTH))[number]
    found: SplitRequest = split(operation.request.encode(request, syntax))
    return found.before


@SYNTAXES
def test_the_name_of_a_request(syntax: Syntax) -> None:
    """Every shorter one is none, and so is one whose text is odd."""
    by_path, by_guid = before_handle(0, syntax), before_handle(2, syntax)
    path, guid = split_path(by_path, syntax), split_guid(by_guid, syntax)
    assert path
    assert path.name == "m\\q"
    assert guid
    assert guid.name == OTHER
    text = by_path.index("m".encode("utf-16-le"))
    for end in range(text + 8):
        assert split_path(by_path[:end], syntax) is None
    for end in range(by_guid.index(OTHER.raw) + 16):
        assert split_guid(by_guid[:end], syntax) is None
    two_ends = by_path.replace("\\".encode("utf-16-le"), bytes(2))
    assert split_path(two_ends, syntax) is None
    null_pointer = by_guid[:4].ljust(by_guid.index(OTHER.raw), b"\0") + OTHER.raw
    assert split_guid(null_pointer, syntax) is None
