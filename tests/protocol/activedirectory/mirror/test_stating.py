"""What a mirror says of itself, and what it remembers of objects that it lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.activedirectory.mirror.cursor import state_of
from mqis.protocol.activedirectory.mirror.leftout import LeftOut, LeftOutReason, nameless
from mqis.protocol.errors import StorageError
from mqis.texts import shortened
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.activedirectory.mirror.test_cursor import CURSOR

LACKED = LeftOut(LeftOutReason.HOST, "no host", ObjectType.QUEUE, "a\\q", Guid(b"H" * 16))


@pytest.mark.parametrize(
    ("compared_s", "differed", "left_out", "told"),
    [
        (0, 0, 0, "equal to dc1.corp.example up to change 1000, as far as numbers of changes"),
        (60, 0, 0, "equal to dc1.corp.example up to change 1000"),
        (60, 3, 0, "up to change 1000; 3 differed when it was compared at 1970-01-01 00:01:00 UTC"),
        (60, 0, 2, "but for 2 left out (2 whose queue manager is left out)"),
    ],
)
def test_a_mirror_says_how_equal_it_is(
    compared_s: int, differed: int, left_out: int, told: str
) -> None:
    cursor = replace(CURSOR, compared_s=compared_s, differed=differed)
    text = state_of(cursor, {nameless(str(number)): LACKED for number in range(left_out)})
    assert told in text
    assert text.endswith(told) or not compared_s


@pytest.mark.parametrize("item", [LACKED, LeftOut(LeftOutReason.UNREAD, "x" * 1000)])
def test_what_is_left_out_is_read_back(item: LeftOut) -> None:
    shown = LeftOut.from_bytes(item.to_bytes())
    assert replace(shown, detail="") == replace(item, detail="")
    assert shown.detail == shortened(item.detail, 400)
    assert item.as_json(Guid.NULL)["name"] == (item.name or None)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"reason": "name"}', b'{"reason": "x"}'])
def test_a_damaged_list_is_told(data: bytes) -> None:
    with pytest.raises(StorageError, match="mirror into a new store"):
        LeftOut.from_bytes(data)
