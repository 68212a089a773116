"""From what a user writes to a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.config.stores import file_of, open_store, relative_to
from mqis.protocol.errors import StorageError
from mqis.storage.memory_store import MemoryStore
from mqis.storage.sqlite import SqliteStore


@pytest.mark.parametrize("prefix", ["", "sqlite:"])
def test_a_file(tmp_path: Path, prefix: str) -> None:
    url = f"{prefix}{tmp_path}/d.db"
    with pytest.raises(StorageError, match=r"d\.db: there is no store"):
        open_store(url)
    store = open_store(url, create=True)
    assert isinstance(store, SqliteStore)
    store.close()
    open_store(url).close()
    assert file_of(url) == tmp_path / "d.db"


def test_memory() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    assert file_of("memory:") is None


def test_a_server_that_nobody_answers_at() -> None:
    with pytest.raises(StorageError):
        open_store("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")


@pytest.mark.parametrize("url", ["", "sqlite:", "memory:x", "postgresql:x", "mysql://h/d", "http:"])
def test_no_store(url: str) -> None:
    with pytest.raises(ValueError, match="names no store: write sqlite:PATH"):
        open_store(url)


def test_relative_paths() -> None:
    base = Path("/srv")
    assert relative_to("sqlite:d.db", base) == "sqlite:/srv/d.db"
    assert relative_to("d.db", base) == "sqlite:/srv/d.db"
    assert relative_to("sqlite:/x/d.db", base) == "sqlite:/x/d.db"
    assert relative_to("postgresql://h/d", base) == "postgresql://h/d"
    assert relative_to("memory:", base) == "memory:"
