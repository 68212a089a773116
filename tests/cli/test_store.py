"""``mqis store check``."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mqis.protocol.errors import StorageError
from tests.cli.commands import process, run


@pytest.fixture
def damaged(demo_store: Path, tmp_path: Path) -> Path:
    """A store in which one queue has lost its name."""
    path = Path(shutil.copy(demo_store, tmp_path / "damaged.db"))
    with closing(sqlite3.connect(path)) as database, database:
        changed = database.execute(
            "UPDATE objects SET path_key=x'00' WHERE rowid=(SELECT max(rowid) FROM objects)"
        )
        assert changed.rowcount == 1
    return path


def test_a_sound_store(demo_store: Path) -> None:
    result = run("store", "check", "--store", demo_store)
    assert result.exit_code == 0
    assert result.stdout == (
        "ok: 1 enterprise, 3 sites, 3 networks, 3 links, 5 users, 20 machines, 60 queues, "
        "4 partitions\n"
    )


def test_a_sound_store_as_json(demo_store: Path) -> None:
    content = json.loads(run("store", "check", "--json", "--store", demo_store).stdout)
    assert content["ok"] is True
    assert content["counts"]["queue"] == 60
    assert content["faults"] == []


def test_a_damaged_store(damaged: Path) -> None:
    done = process("store", "check", "--store", damaged)
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert "path_key" in lines[0]
    assert lines[-1] == "1 fault"


def test_a_damaged_store_as_json(damaged: Path) -> None:
    result = run("store", "check", "--json", "--store", damaged)
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["ok"] is False
    assert len(content["faults"]) == 1


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, and enough of them to fill a header" * 20, encoding="ascii")
    error = run("store", "check", "--store", path).exception
    assert isinstance(error, StorageError)
    assert "notes.txt: is not an mqis store" in str(error)
    assert path.read_text(encoding="ascii").startswith("these are notes")


def test_the_console_tells_at_once_that_a_store_is_not_there(tmp_path: Path) -> None:
    error = run("console", "--store", tmp_path / "nope.db", "--port", "0").exception
    assert "there is no store" in str(error)
    assert not (tmp_path / "nope.db").exists()
