"""Files are safe from other users of the computer, and from a stranger's backup."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from shutil import disk_usage
from typing import Any

import pytest

from mqis.admin.backup.manifest import Content, FileEntry, Manifest
from mqis.config.errors import ConfigError
from mqis.config.stores import open_store
from mqis.pipeline.locations import write_output
from mqis.server.founding import found
from mqis.wire.errors import MqisError
from tests.cli.commands import process, run
from tests.cli.running import serving

SECRET = "hunter2"


def modes(home: Path) -> dict[str, int]:
    """Of everything below a directory, and of itself."""
    found = [home, *home.rglob("*")]
    return {str(path.relative_to(home)): stat.S_IMODE(path.stat().st_mode) for path in found}


def open_to_others(home: Path) -> dict[str, int]:
    return {name: mode for name, mode in modes(home).items() if mode & 0o077}


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that keeps nothing from anybody."""
    before = os.umask(0)
    yield
    os.umask(before)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.req("SEC-9-03")
@pytest.mark.usefixtures("careless")
def test_what_init_and_serve_make_is_for_their_user_alone(tmp_path: Path) -> None:
    """Configuration, store with its log, key and journal."""
    home = tmp_path / "etc" / "mqis"
    made = run(
        *("init", "--path", home / "mqis.toml", "--enterprise", "Acme", "--site", "Delft"),
        *("--name", "pec1"),
    )
    assert made.exit_code == 0, made.output
    assert set(modes(home)) == {".", "mqis.toml", "mqis.db", "signing.key"}
    assert open_to_others(home.parent) == {}
    text = (home / "mqis.toml").read_text().replace("port = 1801", "port = 0")
    text = text.replace("mapper_port = 135", "mapper_port = 0")
    text = text.replace('journal = ""', 'journal = "journal"')
    (home / "mqis.toml").write_text(text)
    with serving(home, "--json"):
        made_later = {"mqis.db-wal", "mqis.db-shm", "mqis.db.lock", "signing.key", "journal"}
        assert made_later <= set(modes(home))
        assert set(open_to_others(home)) <= {"log"}  # the test's own


@pytest.mark.req("SEC-9-03")
@pytest.mark.usefixtures("careless")
def test_a_store_and_its_copies_are_for_their_user_alone(tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "a.db"), create=True)) as store:
        store.copy_to(tmp_path / "b.db")  # type: ignore[attr-defined]
        assert not {name for name in open_to_others(tmp_path) if name != "."}


@pytest.mark.req("SEC-12-10")
@pytest.mark.usefixtures("careless")
def test_what_is_written_about_a_directory_is_for_its_user_alone(tmp_path: Path) -> None:
    """Others wait with links: the draft of a file has a name that they can guess."""
    store, victim, out = tmp_path / "a.db", tmp_path / "victim", tmp_path / "out"
    with closing(open_store(str(store), create=True)) as opened:
        found(opened, "Acme", "Delft", "pec1")
    victim.write_text("precious")
    out.mkdir()
    names = ("export.jsonl", "page.html", "map.svg", "report.html")
    for name in names:
        for draft in (f".{name}.part", f"{name}.part"):
            (out / draft).symlink_to(victim)
    export, page, picture, report = (out / name for name in names)
    assert run("export", export, "--store", store).exit_code == 0
    assert run("diff", export, store, "--html", page).exit_code == 0
    assert run("map", "--svg", picture, "--store", store).exit_code == 0
    write_output(report, b"<p>x")
    assert victim.read_text() == "precious"
    modes = {name: stat.S_IMODE((out / name).lstat().st_mode) for name in names}
    assert modes == dict.fromkeys(names, 0o600)


# --- passwords ------------------------------------------------------------------------------------

URLS = (
    f"postgresql://me:{SECRET}@127.0.0.1:1/d",
    f"postgres://127.0.0.1:1/d?user=me&password={SECRET}",
    f"postgresql://127.0.0.1:1/d?%70assword={SECRET}",
    f"postgresql://127.0.0.1:1/d?sslpassword={SECRET}",
)
COMMANDS = (
    ("serve", "--store"),
    ("get", "site", "x", "-s"),
    ("export", "-s"),
    ("import", "/dev/null", "-s"),
    ("store", "check", "-s"),
    ("console", "--store"),
)


@pytest.mark.req("SEC-9-04")
@pytest.mark.parametrize("command", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_a_password_in_a_store_url_on_the_command_line_is_refused(
    command: tuple[str, ...],
) -> None:
    for url in URLS:
        error = run(*command, url).exception
        assert isinstance(error, ConfigError), url
        assert "a password on the command line is shown to everybody" in str(error)
        assert "~/.pgpass" in str(error)
        assert SECRET not in str(error)


@pytest.mark.req("SEC-9-04")
def test_a_password_in_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mqis.toml"
    file.write_text(f'[store]\nurl = "{URLS[0]}"\n')
    file.chmod(0o644)
    done = process("serve", directory=tmp_path)
    assert done.returncode == 1
    assert b"chmod 600" in done.stderr
    assert SECRET.encode() not in done.stderr
    file.chmod(0o600)
    allowed = process("serve", directory=tmp_path)
    assert b"cannot connect" in allowed.stderr
    assert SECRET.encode() not in allowed.stderr


# --- backups --------------------------------------------------------------------------------------


@dataclass
class Forged:
    """A backup that nobody made: the manifest may say anything, members may be anything."""

    path: Path
    members: list[tuple[tarfile.TarInfo, bytes]] = field(default_factory=list)
    files: list[FileEntry] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, data: bytes, **said: Any) -> None:
        """A member, and what the manifest says of it."""
        info = tarfile.TarInfo(name)
        info.size = len(data)
        self.members.append((info, data))
        entry = FileEntry(name, len(data), hashlib.sha256(data).hexdigest())
        self.files.append(replace(entry, **said))

    def write(self) -> Path:
        manifest = Manifest(
            *("2026-01-01T00:00:00+00:00", "1", "Acme", "pec1", "pec", "Delft", "", "sqlite"),
            *(3, 0, {}, (), tuple(self.files)),
        )
        content = json.dumps(manifest.to_json() | self.changes).encode()
        return self.pack(content)

    def pack(self, manifest: bytes) -> Path:
        digest = hashlib.sha256(manifest).hexdigest().encode()
        with tarfile.open(self.path, "w:gz", compresslevel=6, format=tarfile.GNU_FORMAT) as tar:
            for name, data in (("manifest.json", manifest), ("manifest.sha256", digest)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, BytesIO(data))
            for info, data in self.members:
                tar.fileobj.write(info.tobuf(tarfile.GNU_FORMAT))
                tar.fileobj.write(data + bytes(-len(data) % 512))
        return self.path


@pytest.fixture
def forged(tmp_path: Path) -> Forged:
    return Forged(tmp_path / "stranger.mqisbackup")


def refusal(backup: Path) -> str:
    """The error of 'mqis restore', which must leave no files behind."""
    home = backup.parent / "home"
    error = run("restore", backup, "--config", home / "mqis.toml").exception
    assert isinstance(error, MqisError), error
    assert not home.exists()
    return str(error)


@pytest.mark.req("SEC-9-05")
@pytest.mark.parametrize("name", [Content.STORE, Content.ACCOUNTS])
def test_a_small_backup_does_not_unpack_to_gigabytes(forged: Forged, name: str) -> None:
    size = 160 << 20 if name == Content.STORE else 65 << 20
    forged.add(name, bytes(size))
    backup = forged.write()
    assert backup.stat().st_size < size // 200
    text = refusal(backup)
    assert "unpacks to more than 200 times its size" in text or "which is too much" in text


@pytest.mark.req("SEC-9-05")
def test_a_backup_that_says_it_is_larger_than_the_disk_is_not_begun(forged: Forged) -> None:
    forged.add(Content.STORE, b"x", size=disk_usage(forged.path.parent).free + (1 << 40))
    assert "free; free some space" in refusal(forged.write())


@pytest.mark.req("SEC-9-05")
@pytest.mark.parametrize("size", [-1, "12", 1.5, True, None, [[]]])
def test_a_size_that_is_none_is_refused(forged: Forged, size: Any) -> None:
    forged.add(Content.STORE, b"x", size=size)
    assert "the manifest cannot be read: size is not a number" in refusal(forged.write())


@pytest.mark.req("SEC-9-05")
@pytest.mark.parametrize("said", [1, 1000])
def test_a_member_that_lies_about_its_size_is_refused(forged: Forged, said: int) -> None:
    forged.add(Content.STORE, bytes(100), size=said)
    assert "store.db has another size than its manifest says" in refusal(forged.write())


@pytest.mark.req("SEC-9-05")
def test_members_without_end_are_not_read(forged: Forged) -> None:
    forged.add(Content.STORE, b"x")
    forged.members += [(tarfile.TarInfo(f"more{i}"), b"") for i in range(1000)]
    assert "it holds more than its manifest lists" in refusal(forged.write())


@pytest.mark.req("SEC-9-05")
@pytest.mark.parametrize("padding", [b"\0" * (1 << 20), b"more"])
def test_nothing_hides_behind_the_end(forged: Forged, padding: bytes) -> None:
    forged.add(Content.STORE, b"x")
    forged.members.append((_Raw(bytes(1024) + padding), b""))
    assert "it holds more than its manifest lists" in refusal(forged.write())


class _Raw(tarfile.TarInfo):
    """Bytes in the place of a header."""

    def __init__(self, data: bytes) -> None:
        super().__init__("raw")
        self.data = data

    def tobuf(self, *_options: Any, **_more: Any) -> bytes:
        return self.data


@pytest.mark.req("SEC-9-05")
@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, b"L"]
)
def test_links_and_sparse_files_in_a_backup_are_refused(forged: Forged, kind: bytes) -> None:
    info = tarfile.TarInfo(Content.STORE)
    info.type, info.linkname, info.size = kind, "/etc/passwd", 1 << 40
    forged.add(Content.STORE, b"x")
    forged.members[0] = (info, b"")
    text = refusal(forged.write())
    assert "in it is not a plain file" in text or "store.db is missing" in text


@pytest.mark.req("SEC-9-05")
@pytest.mark.parametrize("size", [1 << 30, 5000, -1])
def test_an_extended_header_is_not_read_whatever_its_size(forged: Forged, size: int) -> None:
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, size
    forged.add(Content.STORE, b"x")
    forged.members.insert(0, (info, b""))
    assert "it has an extended header that is too long" in refusal(forged.write())


@pytest.mark.req("SEC-9-05")
def test_a_manifest_without_bottom_is_refused(forged: Forged) -> None:
    assert "the manifest cannot be read" in refusal(forged.pack(b"[" * 1_000_000))


@pytest.mark.req("SEC-9-05")
def test_a_configuration_without_bottom_is_refused(forged: Forged) -> None:
    forged.add(Content.CONFIG, b"x = " + b"[" * 100_000)
    assert "is not TOML" in refusal(forged.write())


@pytest.mark.req("SEC-9-05")
def test_a_manifest_whose_texts_are_none_is_refused(forged: Forged) -> None:
    forged.changes = {"server": {"lower": 1}}
    assert "server is not a text" in refusal(forged.write())


def test_a_report_does_not_replace_a_store(tmp_path: Path) -> None:
    store = tmp_path / "mqis.db"
    with closing(sqlite3.connect(store)) as database:
        database.execute("CREATE TABLE objects (id)")
    before = store.read_bytes()
    with pytest.raises(MqisError, match="a store or another database is there"):
        write_output(store, b"<p>x")
    assert store.read_bytes() == before
