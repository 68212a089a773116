"""Whoever comes second to a store is refused, by whatever path."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from mqis.config.claims import claimed_file, claimed_store, lock_of
from mqis.protocol.errors import StorageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "d.db"
    with claimed_store(str(path), create=True):
        pass
    return path


def test_a_claim_is_taken_and_given_back(file: Path) -> None:
    for _ in range(2):
        with claimed_store(str(file)):
            assert lock_of(file).read_text() == f"{os.getpid()}\n"
            expected = f"d.db: process {os.getpid()} uses this store; stop it first"
            with pytest.raises(StorageError, match=expected), claimed_store(str(file)):
                pass
        assert not lock_of(file).exists()


def test_every_path_leads_to_the_same_claim(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, directory = tmp_path / "link.db", tmp_path / "directory"
    link.symlink_to(file)
    directory.symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    paths = (
        "d.db",
        "sqlite:./d.db",
        str(link),
        str(directory / "d.db"),
        f"{tmp_path}/../{tmp_path.name}/d.db",
    )
    with claimed_file(file):
        for url in paths:
            with pytest.raises(StorageError, match="uses this store"), claimed_store(url):
                pass


def test_a_lock_that_a_dead_process_left_is_nobodys(file: Path) -> None:
    lock_of(file).write_text("1\n")
    with claimed_store(str(file)):
        pass


def test_a_store_in_memory_is_everybodys_own() -> None:
    with ExitStack() as stack:
        stores = [stack.enter_context(claimed_store("memory:")) for _ in range(2)]
    assert stores[0] is not stores[1]


def test_where_no_store_can_be_the_store_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match="there is no store"),
        claimed_store(f"{tmp_path}/x/d.db"),
    ):
        pass
