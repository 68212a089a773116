"""A copy by rows has every row, wherever a page of them ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from mqis.storage.copying import copy_rows
from mqis.storage.sql_store import PAGE
from mqis.storage.sqlite import SqliteStore
from tests.builders import OTHER_SITE, SITE, guid, partition, tombstone


def test_a_page_may_end_between_two_tombstones_of_one_identifier(tmp_path: Path) -> None:
    with (
        closing(SqliteStore(tmp_path / "a.db")) as source,
        closing(SqliteStore(tmp_path / "b.db")) as target,
    ):
        with source.write() as transaction:
            for id_ in (SITE, OTHER_SITE):
                transaction.put_partition(partition(id_))
            for number in range(1, PAGE + 1):
                transaction.bury(tombstone(number))
            transaction.bury(tombstone(PAGE, partition=OTHER_SITE))
        copy_rows(source, target)
        with target.read() as view:
            found = {gone.partition for gone in view.tombstones(guid(PAGE))}
            assert found == {SITE, OTHER_SITE}
