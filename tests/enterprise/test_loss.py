"""What a server of a run directory has lost, as a look at its files tells it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.stores import open_store
from mqis.enterprise.lost_servers import fault_of
from tests.server.enterprises import Site


@pytest.fixture
def place(tmp_path: Path) -> NodePlace:
    """A PEC that is stopped, alone in its run directory."""
    (tmp_path / "servers").mkdir()
    home = Site(tmp_path / "servers").found("pec1")
    made = NodePlace(
        *("pec1", "pec", "Delft", "127.77.1.1", 2879, 135, 1801, 1801, 9364),
        *(str(home), str(home / "mqis.toml"), str(home / "d.db")),
        *(str(home / "journal"), str(home / "log")),
    )
    save_nodes(tmp_path, Nodes("Acme", (made,)))
    return made


def foreign(store: Path) -> None:
    store.unlink()
    with closing(sqlite3.connect(store)) as other:
        other.execute("CREATE TABLE notes (text)")


def bare(store: Path) -> None:
    """An SQLite file without any table."""
    store.unlink()
    with closing(sqlite3.connect(store)) as other:
        other.execute("VACUUM")
        other.execute("PRAGMA user_version=0")


def cut(size: int) -> Callable[[Path], object]:
    return lambda store: store.write_bytes(store.read_bytes()[:size])


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda store: store.write_text("my notes\n" * 200), "is not an mqis store"),
        (lambda store: store.write_bytes(b"\0" * 8192), "is not an mqis store"),
        (foreign, "is an SQLite file, but not an mqis store"),
        (bare, "there is no store in it"),
        (cut(50), "d.db: "),
        (cut(4096), "the file is damaged"),
        (cut(20_000), "the file is damaged"),
    ],
)
def test_a_file_that_is_no_store_is_told_with_the_ways_back(
    place: NodePlace, spoil: Callable[[Path], object], text: str
) -> None:
    store = Path(place.store)
    spoil(store)
    before = {path.name: path.read_bytes() for path in store.parent.iterdir()}
    told = fault_of(place)
    assert told is not None
    assert told.startswith(f"{store}: ")
    assert text in told
    assert f"; restore a backup of it: mqis restore FILE --config {place.config} --force" in told
    assert {path.name: path.read_bytes() for path in store.parent.iterdir()} == before


def test_a_sound_store_has_no_fault(place: NodePlace, tmp_path: Path) -> None:
    """Stopped, in use, locked, left by a killed server, and of an earlier version."""
    store = Path(place.store)
    files = {path.name for path in store.parent.iterdir()}
    assert fault_of(place) is None
    assert {path.name for path in store.parent.iterdir()} == files  # no log was made
    with closing(open_store(str(store), claim=True)) as live, live.read():
        assert fault_of(place) is None
    with closing(sqlite3.connect(store)) as alone:
        alone.execute("PRAGMA locking_mode=EXCLUSIVE")
        alone.execute("BEGIN EXCLUSIVE")
        assert fault_of(place) is None
    with closing(sqlite3.connect(store)) as earlier:
        earlier.execute("PRAGMA user_version=1")
    assert fault_of(place) is None


def test_a_store_that_is_still_in_the_log_alone_has_no_fault(
    place: NodePlace, tmp_path: Path
) -> None:
    """A server was killed before the log of its first changes was moved into the file."""
    new, store = tmp_path / "new.db", Path(place.store)
    with closing(open_store(str(new), create=True)):
        for end in ("", "-wal"):
            copy = Path(f"{new}{end}").read_bytes()
            Path(f"{store}{end}").write_bytes(copy)
    header = store.read_bytes()[68:72]
    assert header != b"mqis"
    assert fault_of(place) is None


def test_without_another_server_only_a_backup_is_left(place: NodePlace) -> None:
    Path(place.store).unlink()
    told = fault_of(place)
    assert told is not None
    assert told.endswith("mqis.toml --force, then 'mqis start pec1'")


def test_the_site_has_the_better_copy(place: NodePlace, tmp_path: Path) -> None:
    """It has also the queues that only the site has; and a name that is taken is not printed."""
    Path(place.store).unlink()
    (tmp_path / "there.db").touch()
    others = [
        replace(place, name=name, role=role, site=site, store=str(tmp_path / store), config=name)
        for name, role, site, store in (
            ("far", "psc", "Leiden", "there.db"),
            ("lost", "bsc", "Delft", "gone.db"),
            ("near", "bsc", "Delft", "there.db"),
        )
    ]
    save_nodes(tmp_path, Nodes("Acme", (place, *others)))
    Path(f"{place.home}.lost1").mkdir()
    told = fault_of(place)
    assert told is not None
    assert told.endswith(
        f"or rebuild it from the copy of near: mv {place.home} {place.home}.lost2 && mqis promote "
        f"--rebuild pec1 --to {place.home} --config near --key {place.home}.lost2/signing.key && "
        "mqis up"
    )
