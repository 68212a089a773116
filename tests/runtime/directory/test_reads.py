"""Reads that are copied: the same bytes as those of the handler, and nothing else is skipped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqis.protocol.directory import read_methods
from mqis.runtime.directory import shortcuts, walks
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.directory.reads import ShapePlan
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import (
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation, SyntaxId
from tests.protocol.directory.world import INHABITANTS, ORDERS, QUEUE, World
from tests.runtime.directory.serving import ALICE, OK, Caller, scenario, serving

PATH = "C14\\orders"
SYNTAXES: dict[Syntax, SyntaxId] = {Syntax.NDR20: NDR20, Syntax.NDR64: NDR64}
#: Properties of a queue in several orders, so that the last one has any padding.
LISTS = [(101, 103, 108), (108, 104), (103, 101, 104, 106, 107, 109, 110, 111), (101,), (108, 108)]
#: Relation PREQ.
EQUAL = 4
Answers = list[bytes]


async def answers(
    store_at: Path, syntax: Syntax, ask: Callable[[Caller], Awaitable[bytes]]
) -> Answers:
    world = World(empty=True)
    with closing(SqliteStore(store_at)) as store:
        world.store = store  # type: ignore[assignment]
        for object_type, properties in INHABITANTS:
            world.create_event(object_type, properties)
        async with (
            serving(world) as served,
            served.caller(ALICE, transfers=[SYNTAXES[syntax]]) as alice,
        ):
            return [await ask(alice) for _ in range(3)]


def request_of(caller: Caller, name: str | Guid, ids: tuple[int, ...], size: int) -> object:
    types = (VarType.NULL,) * len(ids)
    if isinstance(name, str):
        return dscomm.GetProps(QUEUE, name, ids, types, caller.auth, size)
    return dscomm.GetPropsGuid(QUEUE, name, ids, types, caller.auth, size)


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize("name", [PATH, ORDERS])
@scenario
async def test_the_handler_gives_the_same_bytes(
    tmp_path: Path, name: str | Guid, syntax: Syntax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with room for a signature, which nobody makes without a security context."""
    operation: Operation[object, object] = (
        dscomm.GET_PROPS if isinstance(name, str) else dscomm.GET_PROPS_GUID  # type: ignore[assignment]
    )

    async def ask(caller: Caller) -> bytes:
        stubs = [
            operation.request.encode(request_of(caller, name, ids, size), syntax)
            for ids in LISTS
            for size in (0, 5, 64)
        ]
        got = [await caller.rpc.call(dscomm.SYNTAX, operation.opnum, stub) for stub in stubs]
        return b"|".join(answer.stub for answer in got)

    handled: list[object] = []
    get = DscommService._get

    def count(service: DscommService, *given: Any) -> Any:
        handled.append(given)
        return get(service, *given)

    monkeypatch.setattr(DscommService, "_get", count)
    copied = await answers(tmp_path / "a.db", syntax, ask)
    assert handled == []
    monkeypatch.setattr(ShapePlan, "answer", lambda *_given: None)
    assert await answers(tmp_path / "b.db", syntax, ask) == copied
    assert len(handled) == 2 * 3 * len(LISTS)  # the second is remembered


@pytest.mark.parametrize(
    ("object_type", "name", "ids", "types", "result"),
    [
        (QUEUE, "C14\\none", (108,), (VarType.NULL,), HResult.MQDS_OBJECT_NOT_FOUND),
        (QUEUE, PATH, (9_999,), (VarType.NULL,), HResult.MQ_ERROR_ILLEGAL_PROPID),
        (QUEUE, PATH, (108,), (VarType.UI4,), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        (
            ObjectType.USER,
            "a name",
            (PropId.U_SID,),
            (VarType.NULL,),
            HResult.MQ_ERROR_INVALID_PARAMETER,
        ),
        (
            ObjectType.DELETEDOBJECT,
            PATH,
            (401,),
            (VarType.NULL,),
            HResult.MQ_ERROR_INVALID_PARAMETER,
        ),
    ],
)
@scenario
async def test_refusals_are_those_of_the_handler(  # noqa: PLR0917
    tmp_path: Path,
    object_type: ObjectType,
    name: str,
    ids: tuple[int, ...],
    types: tuple[VarType, ...],
    result: HResult,
) -> None:
    async def ask(caller: Caller) -> bytes:
        request = dscomm.GetProps(object_type, name, ids, types, caller.auth, 0)
        got = await caller.call(dscomm.GET_PROPS, request)
        return got.result.to_bytes(4, "little")

    assert (
        await answers(tmp_path / "a.db", Syntax.NDR20, ask)
        == [int(result).to_bytes(4, "little")] * 3
    )
    assert result != OK


Asked = tuple[RestrictionSet | None, ColumnSet, SortSet | None]


def where(propid: PropId, vt: VarType, value: Value, *columns: int) -> Asked:
    equal = PropertyRestriction(EQUAL, propid, PropVariant(vt, value))
    return RestrictionSet((equal,)), ColumnSet(columns), None


_BY_PATH = SortSet((SortColumn(PropId.Q_PATHNAME, 1),))
_LABEL = PropertyRestriction(EQUAL, PropId.Q_LABEL, PropVariant(VarType.LPWSTR, "Orders"))
LOOKUPS: list[Asked] = [
    (None, ColumnSet((101, 108)), None),
    (None, ColumnSet((101, 103)), _BY_PATH),
    where(PropId.Q_LABEL, VarType.LPWSTR, "Orders", 101, 103),
    where(PropId.Q_PATHNAME, VarType.LPWSTR, "c14\\ORDERS", 101, 108, 101),
    where(PropId.Q_PATHNAME, VarType.LPWSTR, "C14\\nothing there", 101, 108),
    where(PropId.Q_LABEL, VarType.LPWSTR, "", 101),
    where(PropId.Q_INSTANCE, VarType.CLSID, ORDERS, 103, 108),
    where(PropId.Q_INSTANCE, VarType.CLSID, Guid.NULL, 103),
    where(PropId.Q_PRIV_LEVEL, VarType.UI4, 0, 103),
    (RestrictionSet((_LABEL, _LABEL)), ColumnSet((103,)), _BY_PATH),
]
REFUSED: list[Asked] = [
    where(PropId.Q_INSTANCE, VarType.LPWSTR, "Orders", 103),
    where(PropId.QM_MACHINE_ID, VarType.CLSID, ORDERS, 103),
    where(PropId.Q_LABEL, VarType.LPWSTR, "Orders", 9_999),
    where(PropId.Q_LABEL, VarType.LPWSTR, "Orders"),
]


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize("context", [None, "of a client"])
@scenario
async def test_lookups_by_shape_are_those_of_the_handler(
    tmp_path: Path, syntax: Syntax, context: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context, which clients leave out, moves the constant: its handler answers."""

    async def ask(caller: Caller) -> bytes:
        told = []
        for restriction, columns, sort in LOOKUPS + REFUSED:
            begin: Any = dscomm.LookupBegin(context, restriction, columns, sort, caller.auth)
            begun = await caller.call(dscomm.LOOKUP_BEGIN, begin)
            told.append(repr(begun.result))
            if begun.result == OK:
                following = dscomm.LookupNext(begun.handle, 100, caller.auth, 0)
                got = await caller.call(dscomm.LOOKUP_NEXT, following)
                told.append(repr(got))
        return "|".join(told).encode()

    monkeypatch.setattr(walks, "SLICE_S", 60.0)  # a busy machine does not change who answers
    handled: list[object] = []
    plan_lookup = read_methods.plan_lookup

    def count(*given: Any) -> Any:
        handled.append(given)
        return plan_lookup(*given)

    monkeypatch.setattr(read_methods, "plan_lookup", count)
    planned = await answers(tmp_path / "a.db", syntax, ask)
    assert planned == [planned[0]] * 3
    if context is None:  # those of one constant; the second answer to others is remembered
        assert len(handled) == 3 * len(REFUSED) + 2
    monkeypatch.setattr(shortcuts, "plan_lookup_of", lambda *_given: None)
    assert await answers(tmp_path / "b.db", syntax, ask) == planned
