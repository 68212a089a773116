"""Faults below the methods: malformed stubs, and numbers that no method has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.rpc.faults import FaultStatus
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.ndr import U32, WSTRING, Parameters, Ref, Syntax
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation, SyntaxId
from tests.protocol.directory.world import MACHINE, ORDERS, QUEUE, blob, text, ui4
from tests.runtime.directory.serving import ADMIN, OK, Caller, fault_of, scenario, serving
from tests.waiting import DEADLINE_S

NULL = VarType.NULL
BAD_STUB = FaultStatus.BAD_STUB_DATA


async def sent(caller: Caller, operation: Operation[Any, Any], stub: bytes) -> bytes:
    """The answer to a stub that nobody has looked at."""
    interface = dscomm.SYNTAX if operation in dscomm.DSCOMM.operations else dscomm2.SYNTAX
    return (await caller.rpc.call(interface, operation.opnum, stub, timeout_s=DEADLINE_S)).stub


def _patched(stub: bytes, old: bytes, new: bytes) -> bytes:
    assert stub.count(old) == 1, (stub.hex(), old.hex())
    return stub.replace(old, new)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        pytest.param(
            dscomm.CREATE_OBJECT,
            dscomm.CreateObject(QUEUE, "a\\b", None, (108,), (text("x"),), None),
            marks=pytest.mark.req("MQDS-3.1.4.4-02"),
        ),
        pytest.param(
            dscomm.GET_PROPS,
            None,
            marks=pytest.mark.req("MQDS-3.1.4.7-02", "MQDS-3.1.6.6-01"),
        ),
        pytest.param(
            dscomm.SET_PROPS,
            dscomm.SetProps(QUEUE, "a\\b", (108,), (text("x"),)),
            marks=pytest.mark.req("MQDS-3.1.4.9-01"),
        ),
        pytest.param(
            dscomm.SET_PROPS_GUID,
            dscomm.SetPropsGuid(QUEUE, ORDERS, (108,), (text("x"),)),
            marks=pytest.mark.req("MQDS-3.1.4.9-01"),
        ),
        pytest.param(
            dscomm.QM_SET_MACHINE_PROPERTIES,
            dscomm.SetMachineProperties("C14", (214,), (ui4(1),), 1),
            marks=pytest.mark.req("MQDS-3.1.4.16-03"),
        ),
        pytest.param(dscomm2.GET_PROPS_EX, None, marks=pytest.mark.req("MQDS-3.3.4-01")),
    ],
    ids=lambda value: value.name if isinstance(value, Operation) else "",
)
@pytest.mark.req("MQDS-3.1.4-01")
@scenario
async def test_no_properties_and_too_many(operation: Operation[Any, Any], request_: object) -> None:
    """cp 0 and cp 129 do not reach the method; cp 1 does."""
    async with serving() as served, served.caller(ADMIN, transfers=[NDR20]) as caller:
        request = request_ or dscomm.GetProps(MACHINE, "C14", (239,), (NULL,), caller.auth, 16)
        stub = operation.request.encode(request, Syntax.NDR20)
        await sent(caller, operation, stub)
        propid = request.ids[0].to_bytes(4, "little")  # type: ignore[attr-defined]
        one = b"\1\0\0\0" * 2 + propid  # cp, maximum count, the identifier
        for count in (0, 2, 129, 0xFFFFFFFF):
            wrong = _patched(stub, one, count.to_bytes(4, "little") + one[4:])
            assert await fault_of(sent(caller, operation, wrong)) == BAD_STUB
        assert served.rpc.connections == 1  # the connection goes on
        await sent(caller, operation, stub)


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(dscomm.GET_PROPS, marks=pytest.mark.req("MQDS-3.1.6.6-01")),
        pytest.param(dscomm2.GET_PROPS_EX, marks=pytest.mark.req("MQDS-3.3.4-01")),
    ],
    ids=lambda operation: operation.name,
)
@scenario
async def test_empty_arrays_that_agree_with_their_count(operation: Operation[Any, Any]) -> None:
    """Only the range of cp forbids them: nothing in such a stub contradicts itself."""
    unlimited: Parameters[dscomm.GetProps] = Parameters(
        dscomm.GetProps,
        object_type=dscomm.OBJECT_TYPE,
        path=Ref(WSTRING),
        cp=U32,
        ids=dscomm.PROPERTY_IDS,
        types=dscomm.PROPERTY_TYPES,
        **dscomm.AUTH,
    )
    async with serving() as served, served.caller(ADMIN, transfers=[NDR20]) as caller:
        one = dscomm.GetProps(MACHINE, "C14", (239,), (NULL,), caller.auth, 16)
        stub = unlimited.encode(one, Syntax.NDR20)
        assert stub == operation.request.encode(one, Syntax.NDR20)
        await sent(caller, operation, stub)
        none = unlimited.encode(replace(one, ids=(), types=()), Syntax.NDR20)
        assert await fault_of(sent(caller, operation, none)) == BAD_STUB


@pytest.mark.req("MQDS-3.3.4-01")
@pytest.mark.parametrize("number", [0, 59, 0xFFFFFFFF])
@scenario
async def test_object_types_of_dscomm2_out_of_range(number: int) -> None:
    async with serving() as served, served.caller(ADMIN, transfers=[NDR20]) as caller:
        request = dscomm.GetProps(MACHINE, "C14", (239,), (NULL,), caller.auth, 16)
        stub = dscomm2.GET_PROPS_EX.request.encode(request, Syntax.NDR20)
        wrong = number.to_bytes(4, "little") + stub[4:]
        assert await fault_of(sent(caller, dscomm2.GET_PROPS_EX, wrong)) == BAD_STUB


@pytest.mark.req("MQDS-2.2.8-01", "MQDS-3.1.4-01")
@pytest.mark.parametrize("number", [0, 59, 0xFFFFFFFF])
@pytest.mark.parametrize("transfer", [NDR20, NDR64])
@scenario
async def test_object_types_out_of_range(number: int, transfer: SyntaxId) -> None:
    syntax = Syntax.NDR20 if transfer == NDR20 else Syntax.NDR64
    stub = dscomm.DELETE_OBJECT.request.encode(dscomm.ByPath(QUEUE, "a\\b"), syntax)
    wrong = number.to_bytes(4, "little") + stub[4:]
    async with serving() as served, served.caller(ADMIN, transfers=[transfer]) as caller:
        assert await fault_of(sent(caller, dscomm.DELETE_OBJECT, wrong)) == BAD_STUB


@pytest.mark.req("MQDS-3.1.4-02", "MQDS-3.1.4.13-03")
@scenario
async def test_null_descriptors_with_a_length() -> None:
    create = dscomm.CreateObject(QUEUE, None, None, (108,), (text("x"),), None)
    first = dscomm.CREATE_OBJECT.request.encode(create, Syntax.NDR20)
    change = dscomm.SetSecurityGuid(QUEUE, ORDERS, 4, None)
    second = dscomm.SET_OBJECT_SECURITY_GUID.request.encode(change, Syntax.NDR20)
    async with serving() as served, served.caller(ADMIN, transfers=[NDR20]) as caller:
        assert first[8:16] == bytes(8)  # dwSDLength, null
        wrong = first[:8] + b"\4\0\0\0" + first[12:]
        assert await fault_of(sent(caller, dscomm.CREATE_OBJECT, wrong)) == BAD_STUB
        assert second[-8:] == bytes(8)  # null, nLength
        wrong = second[:-4] + b"\4\0\0\0"
        assert await fault_of(sent(caller, dscomm.SET_OBJECT_SECURITY_GUID, wrong)) == BAD_STUB


@pytest.mark.req("MQDS-2.2.22-01", "MQDS-2.2.21-01", "MQDS-2.2-02")
@scenario
async def test_buffers_that_are_too_large() -> None:
    async with serving() as served, served.caller(transfers=[NDR20]) as caller:
        begin = dscomm.LookupBegin(None, None, ColumnSet((101,)), None, caller.auth)
        handle = (await caller.call(dscomm.LOOKUP_BEGIN, begin)).handle
        request = dscomm.LookupNext(handle, 128, caller.auth, 131_072)
        stub = dscomm.LOOKUP_NEXT.request.encode(request, Syntax.NDR20)
        await sent(caller, dscomm.LOOKUP_NEXT, stub)
        wide = _patched(stub, b"\x80\0\0\0", b"\x81\0\0\0")
        assert await fault_of(sent(caller, dscomm.LOOKUP_NEXT, wide)) == BAD_STUB
        signed = stub[:-4] + (131_073).to_bytes(4, "little")
        assert await fault_of(sent(caller, dscomm.LOOKUP_NEXT, signed)) == BAD_STUB


@pytest.mark.req("MQDS-3.3.4-01")
@scenario
async def test_dscomm2_is_as_strict() -> None:
    async with serving() as served, served.caller(transfers=[NDR20]) as caller:
        request = dscomm2.GetComputerSites("C14", caller.auth, 16)
        stub = dscomm2.GET_COMPUTER_SITES.request.encode(request, Syntax.NDR20)
        await sent(caller, dscomm2.GET_COMPUTER_SITES, stub)
        for wrong in (
            stub[:-4] + (131_073).to_bytes(4, "little"),
            stub[:-1],
            _patched(stub, b"\4\0\0\0\0\0\0\0\4\0\0\0", b"\4\0\0\0\0\0\0\0\5\0\0\0"),
            b"",
        ):
            fault = await fault_of(sent(caller, dscomm2.GET_COMPUTER_SITES, wrong))
            assert fault in (BAD_STUB, FaultStatus.INVALID_BOUND)


@pytest.mark.parametrize(
    ("interface", "opnum"),
    [
        *(
            pytest.param(dscomm.SYNTAX, n, marks=pytest.mark.req("MQDS-3.1.4-05"))
            for n in (9, 15, 16, 17, 18, 24, 25, 26, 28)
        ),
        *(pytest.param(dscomm2.SYNTAX, n, marks=pytest.mark.req("MQDS-3.3.4-02")) for n in (7, 9)),
    ],
)
@scenario
async def test_numbers_that_no_method_has(interface: SyntaxId, opnum: int) -> None:
    async with serving() as served, served.caller(ADMIN) as caller:
        call = caller.rpc.call(interface, opnum, b"", timeout_s=DEADLINE_S)
        assert await fault_of(call) == FaultStatus.OP_RNG_ERROR


@pytest.mark.req("MQDS-3.1.4.1-01")
@pytest.mark.parametrize("number", [2, 0xFFFFFFFF])
@scenario
async def test_ports_of_other_protocols(number: int) -> None:
    async with serving() as served, served.caller() as caller:
        stub = number.to_bytes(4, "little")
        assert await fault_of(sent(caller, dscomm.GET_SERVER_PORT, stub)) == BAD_STUB


@pytest.mark.req("MQDS-3-01")
@scenario
async def test_success_is_zero_and_failure_is_not() -> None:
    async with serving() as served, served.caller(ADMIN) as caller:
        good = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (text("x"),))
        assert (await caller.call(dscomm.SET_PROPS, good)).result == OK == 0
        bad = dscomm.SetProps(QUEUE, "C14\\orders", (108,), (blob(b"x"),))
        assert (await caller.call(dscomm.SET_PROPS, bad)).result != 0
