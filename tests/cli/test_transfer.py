"""``mqis import`` and ``mqis export``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

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
    assert process("export", "-", "--store", demo_store).stdout == file.read_bytes()


def test_import_tells_what_it_did(file: Path, tmp_path: Path) -> None:
    result = run("import", file, "--store", tmp_path / "d.db", "--json")
    assert json.loads(result.stdout) == {"objects": _COUNTS, "tombstones": 0, "skipped": 1}
    text = run("import", file, "--store", tmp_path / "e.db").stdout
    assert "60 queues; skipped 1 line" in text


def test_a_broken_line_imports_nothing(file: Path, tmp_path: Path) -> None:
    lines = file.read_text(encoding="ascii").splitlines()
    lines[80] = lines[80].replace('"vt":"VT_LPWSTR"', '"vt":"VT_WRONG"', 1)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join(lines), encoding="ascii")
    done = process("import", broken, "--store", tmp_path / "d.db")
    assert done.returncode == 1
    expected = f"mqis: {broken}: line 81, props.103.vt: 'VT_WRONG' is not a variant type"
    assert done.stderr.decode().startswith(expected)
    assert run("store", "check", "--store", tmp_path / "d.db").stdout == "ok: empty\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a user cannot take another's identity")
def test_a_store_that_may_not_be_written(file: Path) -> None:
    """As nobody, because root may write whatever the mode says."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        run("import", file, "--store", directory / "d.db")
        readable = directory / "demo.jsonl"
        readable.write_bytes(file.read_bytes())
        before = (directory / "d.db").read_bytes()
        done = subprocess.run(
            [sys.executable, "-m", "mqis.cli.main", "import", readable, "-s", directory / "d.db"],
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
        if b"mqis: " not in done.stderr:
            pytest.skip(f"nobody cannot run this Python: {done.stderr[-200:]!r}")
        assert done.returncode == 1
        assert f"mqis: {directory}/d.db: ".encode() in done.stderr
        assert b"Traceback" not in done.stderr
        assert (directory / "d.db").read_bytes() == before


def test_an_export_into_a_directory_that_is_not_there(demo_store: Path, tmp_path: Path) -> None:
    done = process("export", tmp_path / "absent" / "x.jsonl", "--store", demo_store)
    assert done.returncode == 1
    assert b"absent/x.jsonl: cannot be written: No such file or directory" in done.stderr


def test_an_export_needs_a_store_that_is_there(tmp_path: Path) -> None:
    assert process("export", "--store", tmp_path / "absent.db").returncode == 1
    assert not (tmp_path / "absent.db").exists()


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
