"""Verification trailers by their bytes."""

from __future__ import annotations

import pytest

from mqis.testing.rpc import encode_verification, header_command
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu_header import DREP
from mqis.wire.rpc.verification import Verification, find_verification

INTERFACE = SyntaxId(Guid.parse("77df7a80-f298-11d0-8358-00a024c480a8"), 1, 2)
SIGNATURE = "8ae3137102f43671"
BITMASK = "0100 0400 01000000"
PCONTEXT = (
    "0280 2800 807adf7798f2d011835800a024c480a8 0100 0200 045d888aeb1cc9119fe808002b104860 02000000"
)
HEADER2 = "03c0 1000 00000000 10000000 2a000000 0100 0700"
WHOLE = bytes.fromhex(SIGNATURE + BITMASK + PCONTEXT + HEADER2)
SAID = Verification(True, INTERFACE, NDR20, (0, DREP, 42, 1, 7))


def test_bytes_both_ways() -> None:
    said = Verification(True, INTERFACE, NDR20, header_command(42, 1, 7))
    assert encode_verification(said) == WHOLE
    assert find_verification(WHOLE) == (0, SAID)


@pytest.mark.parametrize("size", [0, 4, 8, 400, 5000])
def test_it_follows_the_stub(size: int) -> None:
    assert find_verification(b"\xab" * size + WHOLE) == (size, SAID)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_only_at_multiples_of_four(size: int) -> None:
    assert find_verification(bytes(size) + WHOLE) is None


def test_none_where_there_is_none() -> None:
    assert find_verification(b"") is None
    assert find_verification(bytes(100)) is None
    assert find_verification(bytes.fromhex(SIGNATURE)[:7]) is None


def test_one_far_before_the_end_is_part_of_the_stub() -> None:
    assert find_verification(WHOLE + bytes(600)) is None


def test_the_last_one_counts() -> None:
    short = bytes.fromhex(SIGNATURE + "0140 0400 00000000")
    assert find_verification(WHOLE + short) == (len(WHOLE), Verification(False))


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ("0140 0400 00000000", Verification(False)),
        ("0140 0400 fe000000", Verification(False)),
        ("0900 0200 ffff 0140 0400 01000000", Verification(True)),
        ("0900 0000 0140 0400 01000000", Verification(True)),
        ("0980 0000 0140 0400 01000000", Verification(True, unknown=True)),
        ("09c0 0000", Verification(unknown=True)),
    ],
)
def test_commands_that_are_not_known(commands: str, said: Verification) -> None:
    assert find_verification(bytes.fromhex(SIGNATURE + commands)) == (0, said)


@pytest.mark.parametrize("size", range(8, len(WHOLE)))
def test_every_prefix_is_refused(size: int) -> None:
    with pytest.raises(WireError):
        find_verification(WHOLE[:size])


@pytest.mark.parametrize(
    "command", ["0140 0300 000000", "0140 0500 0000000000", "0240 0400 00000000"]
)
def test_commands_of_the_wrong_size(command: str) -> None:
    with pytest.raises(WireError):
        find_verification(bytes.fromhex(SIGNATURE + command))
