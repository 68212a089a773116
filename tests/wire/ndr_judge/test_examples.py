"""The judge itself: known octets, and stubs that it refuses.

Samba's libndr writes the same octets, except for the narrow arm: that one follows the rule of
MS-RPCE 2.2.5.3.4.4 by hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.wire.ndr_judge.drawing import Drawing
from tests.wire.ndr_judge.idl import METHODS
from tests.wire.ndr_judge.kinds import Enumeration, Handle, Identifier, Number, Text
from tests.wire.ndr_judge.shapes import Array, Pointer, Structure, Union
from tests.wire.ndr_judge.streams import Kind, Misread
from tests.wire.ndr_judge.stub import decode, encode
from tests.wire.ndr_judge.variant import PROPVARIANT, blank

GUID = "a1b2c3d4-0001-0002-0304-05060708090a"
SHORT, ULONG, STRING = Number(2), Number(4), Pointer(Text())


def structure(**members: Kind) -> Structure:
    return Structure("example", members)


def variant(vt: int, value: Any) -> dict[str, Any]:
    return {**blank(vt), "_varUnion": value}


INNER = structure(text=STRING, small=SHORT)
VARIANTS = structure(n=ULONG, v=Pointer(Array(PROPVARIANT, "n")))
ARM = {1: Number(1), 2: Number(8)}
BLOB, UI4 = variant(65, {"cbSize": 5, "pBlobData": b"\1\2\3\4\5"}), variant(19, 0x11223344)

#: Parameters, values, NDR20, NDR64.
EXAMPLES: dict[str, tuple[dict[str, Kind], dict[str, Any], str, str]] = {
    "end gap": (
        {"s": structure(a=ULONG, b=SHORT)},
        {"s": {"a": 0x01020304, "b": 0x0506}},
        "040302010605",
        "0403020106050000",
    ),
    "enumeration": (
        {"s": structure(a=Enumeration((2,)), b=SHORT)},
        {"s": {"a": 2, "b": 0x1234}},
        "02003412",
        "0200000034120000",
    ),
    "two strings": (
        {"s": structure(a=SHORT, b=STRING, c=SHORT, d=STRING)},
        {"s": {"a": 0x1111, "b": "A", "c": 0x2222, "d": "BC"}},
        (
            "11110000000002002222000004000200020000000000000002000000410000000300000000000000"
            "03000000420043000000"
        ),
        (
            "11110000000000000000020000000000222200000000000004000200000000000200000000000000"
            "00000000000000000200000000000000410000000000000003000000000000000000000000000000"
            "0300000000000000420043000000"
        ),
    ),
    "depth first": (
        {"s": structure(a=Pointer(INNER), b=Pointer(ULONG))},
        {"s": {"a": {"text": "x", "small": 7}, "b": 0x99}},
        "000002000400020008000200070000000200000000000000020000007800000099000000",
        (
            "00000200000000000400020000000000080002000000000007000000000000000200000000000000"
            "000000000000000002000000000000007800000099000000"
        ),
    ),
    "request": (
        {"n": SHORT, "v": Array(SHORT, "n"), "s": STRING, "h": Handle()},
        {"n": 3, "v": [1, 2, 3], "s": "hi", "h": GUID},
        (
            "03000000030000000100020003000000000002000300000000000000030000006800690000000000"
            "00000000d4c3b2a101000200030405060708090a"
        ),
        (
            "03000000000000000300000000000000010002000300000000000200000000000300000000000000"
            "00000000000000000300000000000000680069000000000000000000d4c3b2a10100020003040506"
            "0708090a"
        ),
    ),
    "narrow arm of a wide union": (
        {"s": structure(tag=SHORT, u=Union(SHORT, "tag", dict(ARM)), z=Number(1))},
        {"s": {"tag": 1, "u": 5, "z": 9}},
        "010001000509",
        "010000000000000001000000000000000509000000000000",
    ),
    "variants": (
        {"s": VARIANTS},
        {"s": {"n": 3, "v": [BLOB, UI4, variant(31, "abc")]}},
        (
            "03000000000002000300000000000000410000000000000041000000050000000400020000000000"
            "130000000000000013000000443322111f000000000000001f000000080002000500000001020304"
            "050000000400000000000000040000006100620063000000"
        ),
        (
            "03000000000000000000020000000000030000000000000041000000000000004100000000000000"
            "05000000000000000400020000000000130000000000000013000000000000004433221100000000"
            "1f000000000000001f00000000000000080002000000000005000000000000000102030405000000"
            "0400000000000000000000000000000004000000000000006100620063000000"
        ),
    ),
    "guid": (
        {"v": PROPVARIANT},
        {"v": variant(72, GUID)},
        "48000000000000004800000000000200d4c3b2a101000200030405060708090a",
        "480000000000000048000000000000000000020000000000d4c3b2a101000200030405060708090a",
    ),
    "no value": ({"v": PROPVARIANT}, {"v": blank(0)}, "00" * 10, "00" * 16),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("wide", [False, True], ids=["ndr20", "ndr64"])
def test_known_octets(name: str, wide: bool) -> None:
    kinds, values, narrow_form, wide_form = EXAMPLES[name]
    octets = bytes.fromhex(wide_form if wide else narrow_form)
    assert encode(kinds, values, wide).hex() == octets.hex()
    assert decode(kinds, octets, wide) == values


@pytest.mark.parametrize("wide", [False, True], ids=["ndr20", "ndr64"])
def test_the_judge_reads_nothing_that_is_cut_or_longer(wide: bool) -> None:
    for method in METHODS:
        request, _ = Drawing(Random(method.name)).call(method)
        stub = encode(method.request, request, wide)
        with pytest.raises(Misread):
            decode(method.request, stub + b"\0", wide)
        if stub:
            with pytest.raises(Misread):
                decode(method.request, stub[:-1], wide)


def test_the_judge_compares_counts() -> None:
    kinds: dict[str, Kind] = {"n": ULONG, "v": Array(Identifier(), "n", "n")}
    stub = encode(kinds, {"n": 1, "v": [GUID]}, False)
    with pytest.raises(Misread, match="n is 2"):
        decode(kinds, b"\2" + stub[1:], False)


def test_the_judge_shares_no_code_with_mqis() -> None:
    """Only ``ours`` translates between the two; tests compare them."""
    for path in Path(__file__).parent.glob("*.py"):
        if path.name != "ours.py" and not path.name.startswith("test_"):
            imports = re.findall(r"^(?:from|import) (\S+)", path.read_text(), re.MULTILINE)
            assert not [name for name in imports if name.startswith("mqis")], path.name
            assert "tests.wire.ndr_judge.ours" not in imports, path.name
