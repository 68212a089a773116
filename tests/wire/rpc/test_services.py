"""Endpoint mapper and management stubs in both transfer syntaxes, byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from mqis.wire.rpc.tower import Tower

DSCOMM = SyntaxId(Guid.parse("77df7a80-f298-11d0-8358-00a024c480a8"), 1)
TOWER = epmapper.TowerOctets(Tower.tcp(DSCOMM, 2105, "192.0.2.10").to_bytes())
OCTETS = TOWER.octets.hex()
NULL = "00" * 20
UUID = "807adf7798f2d011835800a024c480a8"
HANDLE = ContextHandle(Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"))
HANDLE_BYTES = "00000000 d4c3b2a1 0100 0200 030405060708090a"

REQUESTS: list[tuple[Operation[Any, Any], Any, str]] = [
    (
        epmapper.EPT_LOOKUP,
        epmapper.LookupAsked(0, None, None, 1, ContextHandle.NULL, 500),
        f"00000000 00000000 00000000 01000000 {NULL} f4010000",
    ),
    (
        epmapper.EPT_LOOKUP,
        epmapper.LookupAsked(3, DSCOMM.uuid, mgmt.InterfaceId(DSCOMM.uuid, 1, 0), 3, HANDLE, 1),
        f"03000000 00000200 {UUID} 04000200 {UUID} 0100 0000 03000000 {HANDLE_BYTES} 01000000",
    ),
    (
        epmapper.EPT_MAP,
        epmapper.MapAsked(Guid.NULL, TOWER, ContextHandle.NULL, 4),
        f"00000200 {'00' * 16} 04000200 4b000000 4b000000 {OCTETS} 00 {NULL} 04000000",
    ),
    (epmapper.EPT_LOOKUP_HANDLE_FREE, epmapper.HandleAsked(HANDLE), HANDLE_BYTES),
    (mgmt.INQ_IF_IDS, mgmt.Nothing(), ""),
    (mgmt.INQ_STATS, mgmt.StatisticsAsked(4), "04000000"),
    (mgmt.INQ_PRINC_NAME, mgmt.PrincipalAsked(10, 16), "0a000000 10000000"),
]
RESPONSES: list[tuple[Operation[Any, Any], Any, dict[str, int], str]] = [
    (
        epmapper.EPT_LOOKUP,
        epmapper.LookupFound(HANDLE, (epmapper.EndpointEntry(Guid.NULL, TOWER, "DS"),), 0),
        {"max_entries": 5},
        (
            f"{HANDLE_BYTES} 01000000 05000000 00000000 01000000"
            f"{'00' * 16} 00000200 00000000 03000000 445300 00"
            f"4b000000 4b000000 {OCTETS} 00 00000000"
        ),
    ),
    (
        epmapper.EPT_MAP,
        epmapper.MapFound(ContextHandle.NULL, (TOWER,), 0),
        {"max_towers": 4},
        (
            f"{NULL} 01000000 04000000 00000000 01000000 00000200 4b000000 4b000000 {OCTETS} 00"
            "00000000"
        ),
    ),
    (
        epmapper.EPT_MAP,
        epmapper.MapFound(ContextHandle.NULL, (), 0x16C9A0D6),
        {"max_towers": 4},
        f"{NULL} 00000000 04000000 00000000 00000000 d6a0c916",
    ),
    (
        mgmt.INQ_IF_IDS,
        mgmt.InqIfIds(mgmt.InterfaceIds((mgmt.InterfaceId(DSCOMM.uuid, 1, 2),)), 0),
        {},
        f"00000200 01000000 01000000 04000200 {UUID} 0100 0200 00000000",
    ),
    (
        mgmt.INQ_STATS,
        mgmt.StatisticsGiven((1, 2, 3, 4), 0),
        {},
        "04000000 04000000 01000000 02000000 03000000 04000000 00000000",
    ),
    (mgmt.IS_SERVER_LISTENING, mgmt.Listening(0, 1), {}, "00000000 01000000"),
    (mgmt.STOP_SERVER_LISTENING, mgmt.Status(5), {}, "05000000"),
    (
        mgmt.INQ_PRINC_NAME,
        mgmt.Principal("me", 0),
        {"size": 16},
        "10000000 00000000 03000000 6d6500 00 00000000",
    ),
]


@pytest.mark.parametrize(("operation", "value", "stub"), REQUESTS)
def test_requests(operation: Operation[Any, Any], value: Any, stub: str) -> None:
    data = bytes.fromhex(stub)
    assert operation.request.encode(value, Syntax.NDR20).hex() == data.hex()
    assert operation.request.decode(data, Syntax.NDR20) == value
    wide = operation.request.encode(value, Syntax.NDR64)
    assert operation.request.decode(wide, Syntax.NDR64) == value


@pytest.mark.parametrize(("operation", "value", "given", "stub"), RESPONSES)
def test_responses(
    operation: Operation[Any, Any], value: Any, given: dict[str, int], stub: str
) -> None:
    data = bytes.fromhex(stub)
    assert operation.response.encode(value, Syntax.NDR20, given=given).hex() == data.hex()
    assert operation.response.decode(data, Syntax.NDR20, given=given) == value
    wide = operation.response.encode(value, Syntax.NDR64, given=given)
    assert operation.response.decode(wide, Syntax.NDR64, given=given) == value


@pytest.mark.parametrize(
    ("operation", "stub"),
    [
        (epmapper.EPT_LOOKUP, f"00000000 00000000 00000000 01000000 {NULL} f5010000"),
        (epmapper.EPT_MAP, f"00000000 00000000 {NULL} f5010000"),
        (mgmt.INQ_STATS, "33000000"),
        (mgmt.INQ_PRINC_NAME, "0a000000 01100000"),
        (epmapper.EPT_MAP, f"00000000 00000200 d1070000 d1070000 {'00' * 2004} {NULL} 01000000"),
        (epmapper.EPT_MAP, f"00000000 00000200 04000000 05000000 {'00' * 8} {NULL} 01000000"),
    ],
    ids=["entries", "towers", "statistics", "name", "tower too long", "tower lies"],
)
def test_numbers_outside_of_their_range(operation: Operation[Any, Any], stub: str) -> None:
    with pytest.raises(WireError):
        operation.request.decode(bytes.fromhex(stub), Syntax.NDR20)


@pytest.mark.parametrize("description", [epmapper.EPMAPPER, mgmt.MGMT])
def test_opnums_are_within_the_interface(description: InterfaceDescription) -> None:
    numbers = [operation.opnum for operation in description.operations]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < description.opnums == 5
