"""The position of a mirror: written, read back, damaged, doubted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.activedirectory.mirror.cursor import (
    MIRROR_CURSOR,
    MIRROR_FAMILY,
    MIRROR_IDENTITY,
    MirrorCursor,
    MirrorMode,
    ServerIdentity,
    is_mirror,
    read_cursor,
)
from mqis.protocol.errors import StorageError
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid

SERVER = ServerIdentity(Guid(b"I" * 16), "dc1.corp.example", 1000, Guid(b"D" * 16))
CURSOR = MirrorCursor(SERVER, MirrorMode.DIRSYNC, (b"one", b"two"))

cursors = st.builds(
    MirrorCursor,
    st.builds(
        ServerIdentity,
        st.binary(min_size=16, max_size=16).map(Guid),
        st.text(max_size=20),
        st.integers(0, 2**64 - 1),
        st.binary(min_size=16, max_size=16).map(Guid),
    ),
    st.sampled_from(MirrorMode),
    st.lists(st.binary(max_size=200), max_size=2).map(tuple),
    st.booleans(),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)


@given(cursors)
def test_a_position_is_read_back(cursor: MirrorCursor) -> None:
    assert MirrorCursor.from_bytes(cursor.to_bytes()) == cursor


@given(st.binary(max_size=200))
def test_garbage_is_told(data: bytes) -> None:
    with pytest.raises(StorageError, match="mirror into a new store"):
        MirrorCursor.from_bytes(data)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"version": 1', b'"version": 2'),
        (b'"usn": 1000', b'"usn": "many"'),
        (b'"mode": "dirsync"', b'"mode": "guess"'),
        (b"b25l", b"%%%%"),
        (b'"cookies"', b'"biscuits"'),
    ],
)
def test_a_damaged_field_is_told(before: bytes, after: bytes) -> None:
    data = CURSOR.to_bytes()
    assert before in data
    with pytest.raises(StorageError, match="is damaged"):
        MirrorCursor.from_bytes(data.replace(before, after))


def doubt(found: ServerIdentity, *, sees_deletions: bool = CURSOR.sees_deletions) -> str:
    return CURSOR.doubt(found, sees_deletions=sees_deletions)


def test_doubts() -> None:
    assert doubt(SERVER) == ""
    assert doubt(replace(SERVER, usn=2**63)) == ""
    other = replace(SERVER, invocation=Guid(b"J" * 16))
    assert doubt(other) == "dc1.corp.example was restored from a backup"
    exchanged = replace(other, host="dc2.corp.example")
    assert doubt(exchanged) == "dc2.corp.example answers instead of dc1.corp.example"
    assert "gone back from change 1000 to 999" in doubt(replace(SERVER, usn=999))


def test_other_rights_are_a_doubt() -> None:
    seeing = replace(CURSOR, sees_deletions=True)
    assert seeing.doubt(SERVER, sees_deletions=True) == ""
    lost = "the account sees no deleted objects now"
    assert seeing.doubt(SERVER, sees_deletions=False) == lost
    blind = replace(CURSOR, sees_deletions=False)
    assert blind.doubt(SERVER, sees_deletions=False) == ""
    assert blind.doubt(SERVER, sees_deletions=True) == "the account sees deleted objects now"


def test_a_position_of_an_older_mqis_is_read_and_compared_at_once() -> None:
    old = json.loads(CURSOR.to_bytes())
    del old["compared_s"], old["differed"]
    old["waiting"] = [str(Guid(b"W" * 16))]
    read = MirrorCursor.from_bytes(json.dumps(old).encode())
    assert read == CURSOR
    assert read.is_due(1_800_000_000)


def test_everything_is_compared_once_a_day() -> None:
    compared = CURSOR.compared(1_800_000_000.7, 3)
    assert (compared.compared_s, compared.differed) == (1_800_000_000, 3)
    assert not compared.is_due(1_800_000_000 + 86_399)
    assert compared.is_due(1_800_000_000 + 86_400)
    assert compared.is_due(1_799_999_999)  # the clock was put back
    assert compared.compared(1_800_086_400).differed == 0


def test_a_position_moves_on() -> None:
    moved = CURSOR.moved(1001, (b"three", b"four"))
    assert moved == replace(CURSOR, server=replace(SERVER, usn=1001), cookies=(b"three", b"four"))


def test_a_store_tells_whether_a_mirror_writes_it_and_how_far_it_is() -> None:
    store = MemoryStore()
    cursor = MirrorCursor(SERVER, MirrorMode.DIRSYNC, (b"cookie",), True)
    with store.read() as view:
        assert not is_mirror(view)
        assert read_cursor(view) is None
    with store.write() as tx:
        tx.put_state(MIRROR_FAMILY, MIRROR_IDENTITY, b"somebody")
        tx.put_state(MIRROR_FAMILY, MIRROR_CURSOR, cursor.to_bytes())
    with store.read() as view:
        assert is_mirror(view)
        assert read_cursor(view) == cursor
