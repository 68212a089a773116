"""Backups of servers that run, and what becomes of a server that is put back from one."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from mqis.admin.backup import restoring_backup
from mqis.admin.backup.backup_file import Archive
from mqis.admin.backup.collection import backups_in, prune
from mqis.admin.backup.restored_journal import LSN_JUMP
from mqis.admin.backup.restoring_backup import RestoreRequest, plan_restore, restore
from mqis.admin.backup.taking_backup import take_backup
from mqis.config.file import default_toml, load, override, read
from mqis.config.stores import open_store
from mqis.protocol.errors import StorageError
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.server.restoremark import mark_of
from mqis.storage.copying import copy_rows
from mqis.storage.sqlite import SqliteStore
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from tests import waiting
from tests.disks import small_disk
from tests.plugins.stores import PostgresSchema
from tests.server.enterprises import Site, create, create_soon, until

COMMAND = [sys.executable, "-m", "mqis.cli.main"]


def backed_up(home: Path, target: Path, *, secrets: bool = True, force: bool = False) -> Path:
    file = home / "mqis.toml"
    return take_backup(load(file), target, file, secrets=secrets, force=force).path


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The home of a PEC that has never run, with a key and accounts."""
    site = Site(tmp_path)
    home = site.found("pec1")
    (home / "accounts.toml").write_text('domain_sid = "S-1-5-21-1-2-3"\n')
    (home / "accounts.toml").chmod(0o600)
    return home


# --- healing --------------------------------------------------------------------------------------


def test_an_old_copy_of_authority_and_backup_heals_by_sync(tmp_path: Path) -> None:
    """Both are backed up while they run; what came later comes back, nothing is numbered twice."""

    async def run() -> None:
        site = Site(tmp_path, recovery_wait_s=600)  # everyone answers, on a slow machine too
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
            async with site.serving("psc2"):
                await site.join(pec, "bsc3", "bsc", "Leiden", psc="psc2")
            async with site.serving("psc2") as psc, site.serving("bsc3") as bsc:
                await create(psc, "psc2\\early", "kept")
                await until(bsc, "psc2\\early", "kept")
                archives = {n: backed_up(site.homes[n], tmp_path) for n in ("psc2", "bsc3")}
                await create(psc, "psc2\\late", "kept too")
                await until(bsc, "psc2\\late", "kept too")
                await until(pec, "psc2\\late", "kept too")
                last = site.numbers("psc2")["Leiden"]
            for name, archive in archives.items():
                home = site.homes[name]
                restore(plan_restore(archive, RestoreRequest(home / "mqis.toml", force=True)))
                assert site.numbers(name)["Leiden"] < last
            async with site.serving("psc2") as psc, site.serving("bsc3") as bsc:
                await until(psc, "psc2\\late", "kept too")
                await until(bsc, "psc2\\late", "kept too")
                await create_soon(psc, "psc2\\new", "numbered anew")
                await until(bsc, "psc2\\new", "numbered anew")
                assert site.numbers("psc2")["Leiden"] > last + (1 << 20)
                await site.settled(lambda: site.numbers("bsc3") == site.numbers("psc2"))
                await site.settled(lambda: site.mark("psc2") is None and site.mark("bsc3") is None)

    asyncio.run(run())


def test_the_mark_survives_a_server_that_gets_no_answers(tmp_path: Path) -> None:
    """So nobody can forget that the store was put back: it changes nothing before it has asked."""

    async def run() -> None:
        site = Site(tmp_path, recovery_wait_s=600)
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
            async with site.serving("psc2"):
                pass
        archive = backed_up(site.homes["pec1"], tmp_path)
        restore(plan_restore(archive, RestoreRequest(site.homes["pec1"] / "mqis.toml", force=True)))
        for _ in range(2):
            async with site.serving("pec1") as pec:
                with pytest.raises(Exception, match="MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE"):
                    await create(pec, "pec1\\q", "")
                assert site.mark("pec1") is not None

    asyncio.run(run())


# --- what is in it --------------------------------------------------------------------------------


def test_everything_comes_back_with_its_mode(alone: Path, tmp_path: Path) -> None:
    archive = backed_up(alone, tmp_path / "b")
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    manifest = Archive(archive).manifest
    assert (manifest.enterprise, manifest.server, manifest.role) == ("Acme", "pec1", "pec")
    assert [(p.name, p.authority, p.last_seq[-1]) for p in manifest.partitions] == [
        ("enterprise", True, "2"),
        ("Delft", True, "1"),
    ]
    new = tmp_path / "new"
    restore(plan_restore(archive, RestoreRequest(new / "mqis.toml")))
    names = ("mqis.toml", "accounts.toml", "signing.key")
    for name in names:
        assert (new / name).read_bytes() == (alone / name).read_bytes()
        assert stat.S_IMODE((new / name).stat().st_mode) == 0o600
    assert sorted(p.name for p in new.iterdir()) == ["accounts.toml", "d.db", *sorted(names)[1:]]
    with closing(open_store(str(new / "d.db"))) as store:
        assert store.check() == []
        with store.read() as view:
            assert view.find(ObjectType.MACHINE, "pec1") is not None
            assert str(mark_of(view)).startswith("backup of pec1, ")


def test_without_keys_no_secret_is_in_it(alone: Path, tmp_path: Path) -> None:
    file = alone / "mqis.toml"
    note = '# once: url = "postgresql://me:hunter2@db/x"\n'
    file.write_text(note + file.read_text())
    archive = backed_up(alone, tmp_path / "b", secrets=False)
    small = Archive(archive).verify()
    assert set(small) == {"mqis.toml"}
    assert b"postgresql://me@db/x" in small["mqis.toml"]
    assert b"hunter2" not in small["mqis.toml"]


def test_a_directory_gets_a_file_with_name_and_time(alone: Path, tmp_path: Path) -> None:
    assert backed_up(alone, tmp_path).name.startswith("pec1-20")
    assert [p for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_new_journal_begins_behind_the_old_one(alone: Path, tmp_path: Path) -> None:
    config = override(load(alone / "mqis.toml"), {"replication": {"journal": "journal"}}, "test")
    (alone / "mqis.toml").write_text(default_toml(config))

    async def serve() -> None:
        async with DirectoryServer(load(alone / "mqis.toml"), grace_s=1) as pec:
            await create(pec, "pec1\\q", "")

    asyncio.run(serve())
    archive = backed_up(alone, tmp_path / "b")
    asyncio.run(serve_with(alone, "pec1\\r"))
    restore(plan_restore(archive, RestoreRequest(alone / "mqis.toml", force=True)))
    old = [p for p in alone.iterdir() if p.name.startswith("journal.before-")]
    assert list(old[0].glob("segment-*"))
    (snapshot,) = (alone / "journal").iterdir()
    assert int(snapshot.stem.removeprefix("snapshot-")) > LSN_JUMP
    asyncio.run(serve_with(alone, "pec1\\s"))
    done = subprocess.run(
        [*COMMAND, "journal", "check", str(alone / "journal")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((alone / "journal").glob("segment-*"))


def test_the_directories_of_a_new_journal_are_private(alone: Path, tmp_path: Path) -> None:
    """Also those above it, which nobody has made yet."""
    file = alone / "mqis.toml"
    config = override(read(file), {"replication": {"journal": "logs/j"}}, "test")
    file.write_text(default_toml(config))
    archive = backed_up(alone, tmp_path / "b")
    new = tmp_path / "new"
    restore(plan_restore(archive, RestoreRequest(new / "mqis.toml")))
    for directory in (new, new / "logs", new / "logs" / "j"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


async def serve_with(home: Path, path: str) -> None:
    async with DirectoryServer(load(home / "mqis.toml"), grace_s=1) as pec:
        await create_soon(pec, path, "")


# --- refusals -------------------------------------------------------------------------------------


def contents(home: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in home.iterdir() if p.is_file()}


def test_what_is_there_is_not_overwritten(alone: Path, tmp_path: Path) -> None:
    archive = backed_up(alone, tmp_path / "b")
    before = contents(alone)
    with pytest.raises(MqisError, match=r"these files exist already: .*--force moves"):
        plan_restore(archive, RestoreRequest(alone / "mqis.toml"))
    assert contents(alone) == before
    restore(plan_restore(archive, RestoreRequest(alone / "mqis.toml", force=True)))
    old = {p.name.split(".before-")[0]: p for p in alone.iterdir() if ".before-" in p.name}
    assert set(old) == {"mqis.toml", "accounts.toml", "d.db"}
    assert old["d.db"].read_bytes() == before["d.db"]


@pytest.mark.req("SEC-26-04")
def test_the_present_signing_key_stays_and_a_spoiled_one_goes(alone: Path, tmp_path: Path) -> None:
    """It may be newer than that of the backup, which the others refuse by now."""
    archive = backed_up(alone, tmp_path / "b")
    key = alone / "signing.key"
    first = key.read_bytes()
    key.unlink()
    MachineKey.open(key)
    present = key.read_bytes()
    request = RestoreRequest(alone / "mqis.toml", force=True)
    plan = plan_restore(archive, request)
    assert plan.kept_key == key
    restore(plan)
    assert key.read_bytes() == present != first
    key.write_text("rubbish")
    plan = plan_restore(archive, request)
    assert plan.kept_key is None
    restore(plan)
    assert key.read_bytes() == first


def test_a_store_that_a_server_has_open_is_left_alone(alone: Path, tmp_path: Path) -> None:
    archive = backed_up(alone, tmp_path / "b")
    with closing(open_store(str(alone / "d.db"))), pytest.raises(MqisError, match="stop it"):
        plan_restore(archive, RestoreRequest(alone / "mqis.toml", force=True))


# The last one is in the checksum: of the padding before it, other bytes may mean the same zeros.
@pytest.mark.parametrize("where", [40, 0.5, -6])
def test_a_damaged_backup_is_not_used(alone: Path, tmp_path: Path, where: float) -> None:
    archive = backed_up(alone, tmp_path / "b")
    data = bytearray(archive.read_bytes())
    at = int(where * len(data)) if isinstance(where, float) else where
    data[at] ^= 0x10
    archive.write_bytes(data)
    new = tmp_path / "new" / "mqis.toml"
    with pytest.raises(MqisError, match=r"b: (this backup is damaged or incomplete|the manifest)"):
        plan_restore(archive, RestoreRequest(new))
    archive.write_bytes(data[: len(data) // 2])
    with pytest.raises(MqisError, match="this backup is damaged or incomplete"):
        plan_restore(archive, RestoreRequest(new))
    assert not new.parent.exists()


def test_a_damaged_store_makes_no_backup(alone: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(alone / "d.db")) as database, database:
        database.execute(
            "UPDATE objects SET path_key=x'00' WHERE rowid=(SELECT max(rowid) FROM objects)"
        )
    with pytest.raises(MqisError, match=r"store is damaged .*'mqis store check' lists all"):
        backed_up(alone, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_backup_of_another_server_is_refused(alone: Path, tmp_path: Path) -> None:
    archive = backed_up(alone, tmp_path / "b")
    other = override(load(alone / "mqis.toml"), {"server": {"name": "x"}}, "test")
    (tmp_path / "o.toml").write_text(default_toml(other))
    with pytest.raises(MqisError, match=r"is of pec1 \(pec\), but the configuration is of x"):
        plan_restore(archive, RestoreRequest(tmp_path / "o.toml", store_only=True))


@pytest.mark.parametrize("where", ["/{home}/d.db", "../pec1/d.db"])
def test_a_backup_does_not_choose_files_elsewhere(alone: Path, tmp_path: Path, where: str) -> None:
    """Whoever wrote it could have the operator write anywhere."""
    url = where.replace("/{home}", str(alone))
    config = override(read(alone / "mqis.toml"), {"store": {"url": url}}, "test")
    (alone / "mqis.toml").write_text(default_toml(config))
    archive = backed_up(alone, tmp_path / "b")
    new = tmp_path / "new" / "mqis.toml"
    with pytest.raises(MqisError, match=r"puts .*/pec1/d\.db outside"):
        plan_restore(archive, RestoreRequest(new, force=True))
    plan_restore(archive, RestoreRequest(new, force=True, outside=True))


# --- what can happen in between -------------------------------------------------------------------


def test_no_room_leaves_neither_half_a_backup_nor_half_a_server(
    alone: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    archive = backed_up(alone, tmp_path / "b")
    with small_disk(disk, "64k"):
        with pytest.raises((MqisError, StorageError), match="cannot be"):
            backed_up(alone, disk / "b")
        assert list(disk.iterdir()) == []
        with pytest.raises(MqisError, match=r"it unpacks to .* KiB, and .* free; free some"):
            restore(plan_restore(archive, RestoreRequest(disk / "home" / "mqis.toml")))
        assert list(disk.iterdir()) == []


def test_of_backups_of_one_second_the_last_is_the_newest(alone: Path, tmp_path: Path) -> None:
    place = tmp_path / "all"
    place.mkdir()
    data = backed_up(alone, tmp_path / "b").read_bytes()
    stem = "pec1-20261119T172343Z"
    names = [stem, *(f"{stem}-{number}" for number in (1, 2, 10))]
    for name in names:
        (place / f"{name}.mqisbackup").write_bytes(data)
    assert [backup.path.stem for backup in backups_in(place)] == names[::-1]
    assert {path.stem for path in prune(place, 1)} == set(names[:-1])


def test_a_failure_in_the_middle_of_a_restore_undoes_it(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = backed_up(alone, tmp_path / "b")
    before = contents(alone)
    plan = plan_restore(archive, RestoreRequest(alone / "mqis.toml", force=True))
    move, moves = restoring_backup._move, 0

    def failing(*arguments: Any) -> None:
        nonlocal moves
        moves += 1
        if moves == 6:
            raise MqisError("no more")
        move(*arguments)

    monkeypatch.setattr(restoring_backup, "_move", failing)
    with pytest.raises(MqisError, match="no more"):
        restore(plan)
    assert contents(alone) == before


def test_kill_9_in_the_middle_of_a_restore_leaves_no_server_that_starts(
    alone: Path, tmp_path: Path
) -> None:
    """The store comes last: what a kill leaves is without one, and the same again ends it."""
    archive = backed_up(alone, tmp_path / "b")
    script = (
        "import os, sys; from pathlib import Path\n"
        "from mqis.admin.backup import restoring_backup as r\n"
        "move, left = r._move, [int(sys.argv[3])]\n"
        "def dying(*a):\n"
        "    move(*a); left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), 9)\n"
        "r._move = dying\n"
        "wish = r.RestoreRequest(Path(sys.argv[2]), force=True)\n"
        "r.restore(r.plan_restore(Path(sys.argv[1]), wish))\n"
    )
    for moves in (1, 4):
        arguments = [sys.executable, "-c", script, archive, alone / "mqis.toml", str(moves)]
        done = subprocess.run([*map(str, arguments)], capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not (alone / "d.db").exists()
    restore(plan_restore(archive, RestoreRequest(alone / "mqis.toml", force=True)))
    with closing(open_store(str(alone / "d.db"))) as store:
        assert store.check() == []
    assert load(alone / "mqis.toml").server.name == "pec1"


def test_kill_9_in_the_middle_of_a_backup_leaves_the_one_before(
    alone: Path, tmp_path: Path
) -> None:
    target = tmp_path / "b"
    before = backed_up(alone, target).read_bytes()
    script = (
        "import os; from mqis.admin.backup import taking_backup\n"
        "die = lambda draft, *_: (draft.write_bytes(b'x'), os.kill(os.getpid(), 9))\n"
        "taking_backup.write_archive = die\n"
        "from pathlib import Path; from mqis.config.file import load; import sys\n"
        "file = Path(sys.argv[1])\n"
        "taking_backup.take_backup(load(file), Path(sys.argv[2]), file, force=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, alone / "mqis.toml", target], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_bytes() == before
    assert (tmp_path / ".b.part" / "draft").exists()
    backed_up(alone, target, force=True)
    assert not (tmp_path / ".b.part").exists()
    Archive(target).verify()


def test_a_backup_under_load_is_of_one_moment(alone: Path, tmp_path: Path) -> None:
    """Changes go on meanwhile; what is in the copy is every number up to its last."""

    async def run() -> list[Path]:
        async with DirectoryServer(load(alone / "mqis.toml"), grace_s=1) as pec:
            written: list[str] = []
            writing = asyncio.create_task(_write(pec, written))
            made = []
            for number in range(3):
                enough = len(written) + 4
                await waiting.until(partial(lambda least: len(written) >= least, enough))
                made.append(await asyncio.to_thread(backed_up, alone, tmp_path / f"b{number}"))
            writing.cancel()
            return made

    for archive in asyncio.run(run()):
        new = tmp_path / f"{archive.name}-home"
        restore(plan_restore(archive, RestoreRequest(new / "mqis.toml")))
        with closing(open_store(str(new / "d.db"))) as store, store.read() as view:
            machine = view.find(ObjectType.MACHINE, "pec1")
            assert machine is not None
            state = view.partition(machine.partition)
            assert state is not None
            held = [c.seq.value for c in view.changes(state.id, type(state.last_seq).MIN)]
            assert held[-1] == state.last_seq.value
            assert len(held) > 3


async def _write(pec: DirectoryServer, written: list[str]) -> None:
    while True:
        path = f"pec1\\q{len(written)}"
        await create(pec, path, "")
        written.append(path)


# --- a database -----------------------------------------------------------------------------------


def test_postgresql_is_backed_up_and_put_back(
    alone: Path,
    tmp_path: Path,
    postgres_schema: PostgresSchema,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "postgresql:///?" + urlencode(conninfo_to_dict(postgres_schema.conninfo), quote_via=quote)
    with closing(postgres_schema.open()) as database, closing(SqliteStore(alone / "d.db")) as file:
        copy_rows(file, database)
    config = override(read(alone / "mqis.toml"), {"store": {"url": url}}, "test")
    (alone / "mqis.toml").write_text(default_toml(config))
    archive = backed_up(alone, tmp_path / "b")
    manifest = Archive(archive).manifest
    assert (manifest.kind, manifest.objects["machine"]) == ("postgresql", 1)
    new = tmp_path / "new" / "mqis.toml"
    with pytest.raises(MqisError, match="holds a directory already"):
        restore(plan_restore(archive, RestoreRequest(new)))
    assert list(new.parent.iterdir()) == []

    def fail(*_stores: object, replace: bool) -> None:
        raise StorageError("the disk of the database is full")

    with monkeypatch.context() as patched:
        patched.setattr(restoring_backup, "copy_rows", fail)
        with pytest.raises(StorageError, match="the disk of the database is full"):
            restore(plan_restore(archive, RestoreRequest(new, force=True)))
    restore(plan_restore(archive, RestoreRequest(new, force=True)))
    with closing(postgres_schema.open()) as database:
        assert database.check() == []
        with database.read() as view:
            assert view.find(ObjectType.MACHINE, "pec1") is not None
            assert mark_of(view) is not None
