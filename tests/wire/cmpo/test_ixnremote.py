"""Stubs of IXnRemote: the vectors byte for byte, the ranges, and nothing but ``WireError``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, ComProtocol, SessionRank, TeardownType, result_text
from mqis.wire.cmpo.ixnremote import BindInfo, BindVersionSet, BoundVersionSet
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle, Parameters, Syntax
from mqis.wire.rpc.interfaces import NDR20
from tests.wire.cmpo.stubs import STUBS

OPERATIONS = {operation.name: operation for operation in idl.IXN_REMOTE.operations}
HANDLE = ContextHandle(Guid.parse("0053b710-0000-0000-0000-000000000001"))
PRIMARY, SECONDARY = SessionRank.PRIMARY, SessionRank.SECONDARY
CALLEE = "a3afb37b-f64a-4e6c-9017-f6a96ba6f166"
BLOB = bytes.fromhex("08000000 21000000")


def parameters(name: str) -> Parameters[Any]:
    method, direction = name.split()
    found: Parameters[Any] = getattr(OPERATIONS[method], direction)
    return found


# --- vectors --------------------------------------------------------------------------------------


VALUES: dict[str, Any] = {
    "BuildContextW request": idl.BuildContext(
        PRIMARY,
        BindVersionSet(1, 2, 1, 1, 1, 5),
        CALLEE,
        "Machine_1",
        "b51996ef-c434-4f79-a288-56efd302fc8e",
        "a5acacb4-b766-4074-b45d-ade720d1d8e8",
        idl.NO_GUID,
        BoundVersionSet.NONE,
        BLOB,
    ),
    "BuildContextW response": idl.ContextBuilt(
        "a5acacb4-b766-4074-b45d-ade720d1d8e8",
        BoundVersionSet(2, 1, 5),
        ContextHandle(Guid.parse("00000000-0000-0000-0000-000000000011")),
        0,
    ),
    "PokeW request": idl.Poke(
        SECONDARY, CALLEE, "Machine_1", "474cf518-d7ae-451f-a31f-caad29fa5e9f", BLOB
    ),
    "Poke request": idl.Poke(
        SECONDARY, CALLEE, "Machine_1", "474cf518-d7ae-451f-a31f-caad29fa5e9f", BLOB
    ),
    "NegotiateResources request": idl.NegotiateResources(HANDLE, 0, 100),
    "SendReceive request": idl.SendReceive(HANDLE, 2, STUBS["SendReceive request"][32:]),
    "TearDownContext request": idl.TearDownContext(HANDLE, PRIMARY, TeardownType.FORCE),
    "BeginTearDown request": idl.BeginTearDown(HANDLE, TeardownType.FORCE),
}


@pytest.mark.parametrize("name", VALUES)
def test_vectors_are_byte_exact_both_ways(name: str) -> None:
    assert STUBS.keys() == VALUES.keys()
    travels = parameters(name)
    assert travels.decode(STUBS[name], Syntax.NDR20) == VALUES[name]
    assert travels.encode(VALUES[name], Syntax.NDR20) == STUBS[name]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Poke request", 148),
        ("PokeW request", 228),
        ("BuildContextW request", 440),
        ("BuildContextW response", 124),
        ("NegotiateResources request", 32),
        ("SendReceive request", 160),
        ("TearDownContext request", 24),
        ("BeginTearDown request", 22),
    ],
)
def test_lengths(name: str, size: int) -> None:
    assert len(parameters(name).encode(VALUES[name], Syntax.NDR20)) == size


@pytest.mark.parametrize("kind", TeardownType)
@pytest.mark.parametrize("rank", SessionRank)
def test_teardown_calls_have_enumerations_of_16_bits(rank: SessionRank, kind: TeardownType) -> None:
    """In 32 bits both calls could be made and none be read (E-CMPO-01)."""
    down = idl.TEAR_DOWN_CONTEXT.request.encode(
        idl.TearDownContext(HANDLE, rank, kind), Syntax.NDR20
    )
    assert len(down) == 24
    assert down[20:] == bytes([rank, 0, kind, 0])
    begin = idl.BEGIN_TEAR_DOWN.request.encode(idl.BeginTearDown(HANDLE, kind), Syntax.NDR20)
    assert len(begin) == 22
    assert begin[20:] == bytes([kind, 0])


@pytest.mark.parametrize(
    ("answer", "operation", "size"),
    [
        (idl.RemoteResult(0), idl.POKE, 4),
        (idl.RemoteResult(0), idl.POKE_W, 4),
        (idl.RemoteResult(0), idl.SEND_RECEIVE, 4),
        (idl.RemoteResult(0), idl.BEGIN_TEAR_DOWN, 4),
        (idl.ResourcesNegotiated(100, 0), idl.NEGOTIATE_RESOURCES, 8),
        (idl.ContextTornDown(ContextHandle.NULL, 0), idl.TEAR_DOWN_CONTEXT, 24),
    ],
)
def test_lengths_of_responses(answer: Any, operation: Any, size: int) -> None:
    stub = operation.response.encode(answer, Syntax.NDR20)
    assert len(stub) == size
    assert operation.response.decode(stub, Syntax.NDR20) == answer


def test_narrow_and_wide_differ_in_their_strings_only() -> None:
    value = VALUES["BuildContextW request"]
    narrow = idl.BUILD_CONTEXT.request.encode(value, Syntax.NDR20)
    assert idl.BUILD_CONTEXT.request.decode(narrow, Syntax.NDR20) == value
    # Four GUIDs of 37 characters, padded to 40, and a host of 10, padded to 12.
    assert len(narrow) == 28 + 4 * (12 + 40) + 12 + 12 + 12 + 16


def test_the_interface() -> None:
    described = idl.IXN_REMOTE
    assert str(described.syntax.uuid) == "906b0ce0-c70b-1067-b317-00dd010662da"
    assert (described.syntax.major, described.syntax.minor) == (1, 0)
    assert [operation.opnum for operation in described.operations] == list(range(8))
    assert described.opnums == 8
    assert described.transfer_syntaxes == (NDR20,)
    assert described.strict_context_handles


# --- ranges ---------------------------------------------------------------------------------------


def patched(name: str, offset: int, value: int) -> bytes:
    stub = bytearray(STUBS[name])
    stub[offset : offset + 4] = value.to_bytes(4, "little")
    return bytes(stub)


@pytest.mark.parametrize(
    ("name", "offset", "value"),
    [
        pytest.param("SendReceive request", 20, 0, id="no message"),
        pytest.param("SendReceive request", 20, 4096, id="too many messages"),
        pytest.param("SendReceive request", 24, 39, id="short boxcar"),
        pytest.param("SendReceive request", 24, 0x14001, id="long boxcar"),
        pytest.param("SendReceive request", 28, 127, id="array of another size"),
        pytest.param("PokeW request", 12, 36, id="short GUID"),
        pytest.param("PokeW request", 8, 1, id="offset in a string"),
        pytest.param("PokeW request", 100, 17, id="long host name"),
        pytest.param("PokeW request", 212, 7, id="short blob"),
        pytest.param("PokeW request", 216, 9, id="long blob"),
    ],
)
def test_ranges_are_checked_before_any_method(name: str, offset: int, value: int) -> None:
    with pytest.raises(WireError):
        parameters(name).decode(patched(name, offset, value), Syntax.NDR20)


@pytest.mark.parametrize("messages", [1, 4095])
@pytest.mark.parametrize("size", [40, 0x14000])
def test_the_limits_themselves_are_good(messages: int, size: int) -> None:
    value = idl.SendReceive(HANDLE, messages, bytes(size))
    stub = idl.SEND_RECEIVE.request.encode(value, Syntax.NDR20)
    assert len(stub) == 32 + size
    assert idl.SEND_RECEIVE.request.decode(stub, Syntax.NDR20) == value


def test_what_is_out_of_range_is_not_sent() -> None:
    with pytest.raises(ValueError, match="range"):
        idl.SEND_RECEIVE.request.encode(idl.SendReceive(HANDLE, 1, bytes(39)), Syntax.NDR20)
    with pytest.raises(ValueError, match="with its zero, not 17"):
        idl.POKE_W.request.encode(idl.Poke(SECONDARY, CALLEE, "A" * 16, CALLEE, BLOB), Syntax.NDR20)


# --- the blob and the codes -----------------------------------------------------------------------


def test_bind_info() -> None:
    info = BindInfo.from_bytes(BLOB)
    assert info.protocols == ComProtocol.IP_TCP | ComProtocol.LRPC
    assert info.to_bytes() == BLOB
    nothing = BindInfo.from_bytes(bytes.fromhex("08000000 00000000"))
    assert nothing.protocols == 0
    assert nothing.effective == ComProtocol.IP_TCP
    unknown = bytes.fromhex("08000000 00000080")
    assert BindInfo.from_bytes(unknown).to_bytes() == unknown
    with pytest.raises(WireError, match="of 9 bytes"):
        BindInfo.from_bytes(bytes.fromhex("09000000 01000000"))
    with pytest.raises(WireError):
        BindInfo.from_bytes(BLOB + b"\0")


def test_results_for_people() -> None:
    assert result_text(CmResult.TIMED_OUT).startswith("TIMED_OUT (0x80000124): ")
    assert result_text(0x8000_0999) == "0x80000999"


# --- properties -----------------------------------------------------------------------------------

guids = st.uuids().map(str)
u32 = st.integers(0, 0xFFFF_FFFF)
hosts = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=15)


@given(
    wide=st.booleans(),
    value=st.builds(
        idl.BuildContext,
        st.integers(0, 0x7FFF),
        st.builds(BindVersionSet, u32, u32, u32, u32, u32, u32),
        guids,
        hosts,
        guids,
        guids,
        guids,
        st.builds(BoundVersionSet, u32, u32, u32),
        st.binary(min_size=8, max_size=8),
    ),
)
def test_round_trip(wide: bool, value: idl.BuildContext) -> None:
    travels = (idl.BUILD_CONTEXT_W if wide else idl.BUILD_CONTEXT).request
    assert travels.decode(travels.encode(value, Syntax.NDR20), Syntax.NDR20) == value


@given(name=st.sampled_from(sorted(STUBS)), data=st.binary(max_size=600))
def test_garbage_is_a_wire_error_or_a_value(name: str, data: bytes) -> None:
    with suppress(WireError):
        parameters(name).decode(data, Syntax.NDR20)


@given(name=st.sampled_from(sorted(STUBS)), data=st.data())
def test_damage_is_a_wire_error_or_a_value(name: str, data: st.DataObject) -> None:
    stub = bytearray(STUBS[name])
    for _ in range(data.draw(st.integers(1, 4))):
        stub[data.draw(st.integers(0, len(stub) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(stub)))
    with suppress(WireError):
        parameters(name).decode(bytes(stub[:cut]), Syntax.NDR20)
