"""Objects that a store gives again instead of making them anew, and secondary keys in bulk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.storage import row_conversion
from mqis.storage.keyrows import MAX_WAITING
from mqis.storage.row_conversion import (
    MAX_BODY_BYTES,
    ObjectRow,
    cached_object,
    object_row,
    read_object,
    remember,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tests.builders import OTHER_SITE, guid, queue, user


def row_of(obj: DirectoryObject) -> ObjectRow:
    """As a database gives it: bytes of its own."""
    kind, id_, _, _, partition, seq, body = cast(Any, object_row(obj))
    return kind, bytes([*id_]), bytes([*partition]), bytes([*seq]), bytes([*body])


def test_equal_rows_are_one_object() -> None:
    first, again = cached_object(row_of(queue(1))), cached_object(row_of(queue(1)))
    assert first is again
    assert first == queue(1)


@pytest.mark.parametrize(
    "changed",
    [
        replace(queue(1), id=guid(2)),
        replace(queue(1), partition=OTHER_SITE),
        replace(queue(1), seq=SequenceNumber(77)),
        queue(1, label="another"),
        replace(queue(1), type=ObjectType.MACHINE),
    ],
    ids=["id", "partition", "seq", "body", "type"],
)
def test_rows_that_differ_anywhere_are_not(changed: DirectoryObject) -> None:
    assert cached_object(row_of(queue(1))) == queue(1)
    assert cached_object(row_of(changed)) == changed


def test_no_more_are_remembered_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_conversion, "_known", dict(row_conversion._known))
    remember(2)
    first = cached_object(row_of(queue(1)))
    assert cached_object(row_of(queue(1))) is first
    for number in (2, 3):
        cached_object(row_of(queue(number)))
    assert cached_object(row_of(queue(1))) is not first


def test_a_large_object_is_made_each_time() -> None:
    large = queue(1, label="x" * MAX_BODY_BYTES)
    first, again = cached_object(row_of(large)), cached_object(row_of(large))
    assert first is not again
    assert first == again == large


def test_a_damaged_row_is_damaged_each_time() -> None:
    kind, id_, partition, seq, body = row_of(queue(1))
    for damaged in (
        (9, id_, partition, seq, body),
        (kind, id_[1:], partition, seq, body),
        (kind, id_, partition, seq[1:], body),
        (kind, id_, partition, seq, b""),
        (kind, id_, partition, seq, "text"),
    ):
        for read in (cached_object, cached_object, read_object):
            with pytest.raises(StorageError, match="is damaged"):
                read(cast(ObjectRow, damaged))


@pytest.mark.parametrize("count", [1, 250, MAX_WAITING, MAX_WAITING + 1])
def test_every_element_of_a_long_list_is_a_key(store: Store, count: int) -> None:
    digests = tuple(guid(number) for number in range(1, count + 1))
    owner = user(digests=digests)
    with store.write() as transaction:
        transaction.insert(owner)
    with store.read() as view:
        for digest in (digests[0], digests[count // 2], digests[-1]):
            assert list(view.having(ObjectType.USER, PropId.U_DIGEST, digest.raw)) == [owner]
