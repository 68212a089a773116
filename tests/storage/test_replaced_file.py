"""The file of a store is removed or replaced while a server has it open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mqis.protocol.errors import StorageError
from mqis.server.monitoring.health import trouble_of
from mqis.server.restoremark import put_mark
from mqis.storage.sqlite import SqliteStore
from tests.server.enterprises import Site, create


def replaced(path: Path) -> None:
    other = path.with_name("other.db")
    SqliteStore(other).close()
    other.replace(path)


@pytest.mark.parametrize(
    ("spoil", "what"), [(os.unlink, "removed"), (replaced, "replaced by another one")]
)
def test_no_commit_is_acknowledged_that_would_be_lost(
    tmp_path: Path, spoil: Callable[[Path], None], what: str
) -> None:
    told: list[str] = []
    path = tmp_path / "d.db"
    with closing(SqliteStore(path)) as store:
        store.condition.report = told.append
        with store.write() as tx:
            put_mark(tx, "before")
        assert trouble_of(store) is None
        spoil(path)
        for _ in range(2):
            refused = pytest.raises(StorageError, match=rf"the store is gone \({what}\)")
            with refused, store.write() as tx:
                put_mark(tx, "lost")
        assert what in str(trouble_of(store))
        (line,) = told
        assert f"{path}: the file was {what}; nothing more is written to it" in line
        assert str(path) not in str(trouble_of(store))


def test_health_sees_it_without_a_change(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "d.db")) as store:
        (tmp_path / "d.db").unlink()
        assert "the store is gone (removed)" in str(trouble_of(store))


def test_a_link_and_a_touched_file_are_the_same_file(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "real.db").close()
    (tmp_path / "d.db").symlink_to(tmp_path / "real.db")
    with closing(SqliteStore(tmp_path / "d.db")) as store:
        (tmp_path / "real.db").chmod(0o640)
        os.utime(tmp_path / "real.db")
        with store.write() as tx:
            put_mark(tx, "kept")
        assert trouble_of(store) is None


def test_a_server_refuses_changes_to_a_store_that_is_gone(tmp_path: Path) -> None:
    """Calls were acknowledged, and lost when the server ended."""

    async def run() -> None:
        site = Site(tmp_path)
        home = site.found("pec1")
        async with site.serving("pec1") as pec:
            await create(pec, "pec1\\kept", "")
            (home / "d.db").unlink()
            with pytest.raises(Exception, match="MQ_ERROR"):
                await create(pec, "pec1\\lost", "")

    asyncio.run(run())
