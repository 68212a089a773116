"""``mqis import`` and ``mqis export``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mqis.protocol.directory.export_format import ExportError
from mqis.protocol.errors import StorageError
from mqis.wire.errors import MqisError
from tests.cli.commands import process, run

_COUNTS = {
    "enterprise": 1,
    "site": 3,
    "network": 3,
    "link": 3,
    "user": 5,
    "machine": 20,
    "queue": 60,
}


@pytest.fixture(scope="module")
def file(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "demo.jsonl"
    assert run("export", path, "--store", demo_store).exit_code == 0
    return path


def test_export_restore_export_is_the_same_file(
    demo_store: Path, file: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    imported = process("import", file, "--store", copy, "--restore")
    assert imported.returncode == 0, imported.stderr
    assert b"60 queues, 1 tombstone" in imported.stdout
    to_stdout = process("export", "--store", copy)
    assert to_stdout.stdout == file.read_bytes()
    assert to_stdout.stderr == b""
    assert run("export", "-", "--store", demo_store).stdout_bytes == file.read_bytes()
    again = run("export", tmp_path / "again.jsonl", "--store", copy, "--json")
    lines = file.read_bytes().count(b"\n") - 2  # the first and the last are about all of them
    assert json.loads(again.stdout) == {"file": str(tmp_path / "again.jsonl"), "objects": lines}


def test_import_tells_what_it_did(file: Path, tmp_path: Path) -> None:
    result = run("import", file, "--store", tmp_path / "d.db", "--json")
    assert json.loads(result.stdout) == {
        "objects": _COUNTS,
        "tombstones": 0,
        "skipped": 1,
        "doubt": None,
    }
    text = run("import", file, "--store", tmp_path / "e.db").stdout
    assert "60 queues; skipped 1 tombstone\n" in text


def test_a_broken_line_imports_nothing(file: Path, tmp_path: Path) -> None:
    lines = file.read_text(encoding="ascii").splitlines()
    lines[80] = lines[80].replace('"vt":"VT_LPWSTR"', '"vt":"VT_WRONG"', 1)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join(lines), encoding="ascii")
    error = run("import", broken, "--store", tmp_path / "d.db").exception
    assert isinstance(error, ExportError)
    expected = f"{broken}: line 81, props.103.vt: 'VT_WRONG' is not a variant type"
    assert str(error).startswith(expected)
    assert not (tmp_path / "d.db").exists()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write whatever the mode says, so root steps down."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_store_that_may_not_be_written(file: Path) -> None:
    with TemporaryDirectory() as name:
        directory, store = Path(name), Path(name) / "d.db"
        assert run("import", file, "--store", store).exit_code == 0
        readable = directory / "demo.jsonl"
        readable.write_bytes(file.read_bytes())
        store.chmod(0o444)
        directory.chmod(0o555)
        before = store.read_bytes()
        with as_nobody():
            error = run("import", readable, "--store", store).exception
        directory.chmod(0o755)
        assert isinstance(error, StorageError)
        assert str(error).startswith(f"{store}: the file is read-only, nothing was written")
        assert store.read_bytes() == before


def test_an_export_into_a_directory_that_is_not_there(demo_store: Path, tmp_path: Path) -> None:
    error = run("export", tmp_path / "absent" / "x.jsonl", "--store", demo_store).exception
    assert isinstance(error, StorageError)
    assert "absent/x.jsonl: cannot be written: No such file or directory" in str(error)


def test_an_export_needs_a_store_that_is_there(tmp_path: Path) -> None:
    error = run("export", "--store", tmp_path / "absent.db").exception
    assert isinstance(error, StorageError)
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.parametrize("content", [b"", b"garbage\n", None])
def test_a_failed_import_leaves_no_store(tmp_path: Path, content: bytes | None) -> None:
    file, store = tmp_path / "x.jsonl", tmp_path / "d.db"
    if content is not None:
        file.write_bytes(content)
    before = set(tmp_path.iterdir())
    assert isinstance(run("import", file, "--store", store).exception, MqisError)
    assert set(tmp_path.iterdir()) == before


def test_a_failed_import_leaves_a_store_that_was_there(file: Path, tmp_path: Path) -> None:
    store = tmp_path / "d.db"
    assert run("import", file, "--store", store).exit_code == 0
    kept = run("export", "--store", store).stdout
    assert run("import", tmp_path / "absent", "--store", store).exception is not None
    assert run("export", "--store", store).stdout == kept


def test_a_terminal_sees_a_bar(file: Path, tmp_path: Path) -> None:
    """On stderr, if that is a terminal; stdout has the result alone."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mqis.cli.main", "import", file, "-s", tmp_path / "d.db"],
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
            check=True,
        )
        shown = os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"importing" in shown
    assert done.stdout.startswith(b"imported 1 enterprise")
