"""Exports say whose they are and whether they were edited; older ones and edited ones are read."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from mqis.admin.transfer import export_file
from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import ExportedServer, ExportError, parse_header
from mqis.protocol.directory.export_lines import remember_server
from mqis.wire.guid import Guid
from tests.cli.commands import run

VERSION_1 = Path(__file__).parents[1] / "data" / "export" / "version1.jsonl"
SERVER = ExportedServer(Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), "Ams-Dir1")
MARK = b"\xef\xbb\xbf"
EDITED = "it was edited after mqis wrote it: its lines do not match the digest in its last line"

Edit = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def file(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of a store that a server has used."""
    directory = tmp_path_factory.mktemp("edited")
    shutil.copy(demo_store, directory / "demo.db")
    with closing(open_store(str(directory / "demo.db"), claim=True)) as store:
        with store.write() as tx:
            remember_server(tx, SERVER)
        export_file(store, directory / "ams-dir1.jsonl")
    return directory / "ams-dir1.jsonl"


def relabelled(data: bytes) -> bytes:
    """What ``sed`` does: the same number of lines, one of them with another value."""
    found = re.search(rb'"108":\{"vt":"VT_LPWSTR","value":"([^"]+)"', data)
    assert found is not None
    return data[: found.start(1)] + b"another label" + data[found.end(1) :]


def doubled(data: bytes, number: int) -> bytes:
    """A line twice, and the count of lines corrected."""
    lines = data.splitlines(keepends=True)
    lines.insert(number, lines[number - 1])
    lines[0] = re.sub(rb'"lines":\d+', b'"lines":%d' % (len(lines) - 1), lines[0])
    return b"".join(lines)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_an_export_names_its_server_and_ends_with_its_digest(file: Path) -> None:
    *lines, last = file.read_bytes().splitlines(keepends=True)
    header = parse_header(lines[0].decode("ascii"))
    assert (header.server, header.version) == (SERVER, 2)
    assert header.lines == len(lines)
    digest = sha256(b"".join(lines)).hexdigest()
    assert last == b'{"type":"end","sha256":"%s"}\n' % digest.encode("ascii")


def test_a_restore_keeps_the_identity(file: Path, tmp_path: Path) -> None:
    restored = run("import", file, "--store", tmp_path / "copy.db", "--restore")
    assert restored.exit_code == 0, restored.output
    assert EDITED not in restored.stderr
    run("export", tmp_path / "again.jsonl", "--store", tmp_path / "copy.db")
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("how", [[], ["--restore"]])
def test_an_edited_export_is_imported_with_a_warning(
    file: Path, tmp_path: Path, how: list[str]
) -> None:
    changed = written(tmp_path / "changed.jsonl", relabelled(file.read_bytes()))
    done = run("import", changed, "--store", tmp_path / "d.db", *how)
    assert done.exit_code == 0, done.output
    assert f"{changed}: {EDITED}" in " ".join(done.stderr.split())
    assert "another label" in run("export", "--store", tmp_path / "d.db").stdout
    told = json.loads(run("import", changed, "--store", tmp_path / "e.db", *how, "--json").stdout)
    assert told["doubt"].startswith("edited after mqis wrote it")
    right = json.loads(run("import", file, "--store", tmp_path / "f.db", *how, "--json").stdout)
    assert right["doubt"] is None


def test_an_export_without_its_last_line_is_doubted(file: Path, tmp_path: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    fewer = re.sub(rb'"lines":\d+', b'"lines":%d' % (len(lines) - 2), lines[0])
    cut = written(tmp_path / "cut.jsonl", b"".join([fewer, *lines[1:-1]]))
    told = json.loads(run("import", cut, "--store", tmp_path / "d.db", "--json").stdout)
    assert told["doubt"].startswith("edited or cut off after mqis wrote it")


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: MARK + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: MARK + data.replace(b"\n", b"\r\n"),
    ],
)
def test_what_editors_on_windows_add_is_no_edit(file: Path, tmp_path: Path, edit: Edit) -> None:
    same = written(tmp_path / "same.jsonl", edit(file.read_bytes()))
    told = run("import", same, "--store", tmp_path / "d.db", "--restore", "--json")
    assert json.loads(told.stdout)["doubt"] is None
    compared = run("diff", file, same)
    assert (compared.exit_code, compared.stderr) == (0, "")
    assert run("check", same, "--json").stdout == run("check", file, "--json").stdout


def test_diff_warns_of_an_edited_export(file: Path, tmp_path: Path) -> None:
    changed = written(tmp_path / "changed.jsonl", relabelled(file.read_bytes()))
    compared = run("diff", file, changed)
    assert compared.exit_code == 1
    assert "another label" in compared.stdout
    warnings = " ".join(compared.stderr.split())
    assert f"{changed}: {EDITED}" in warnings
    assert str(file) not in warnings


def test_check_says_that_an_export_was_edited(file: Path, tmp_path: Path) -> None:
    changed = written(tmp_path / "changed.jsonl", relabelled(file.read_bytes()))

    def unknown(*paths: Path) -> list[str]:
        return [u["reason"] for u in json.loads(run("check", *paths, "--json").stdout)["unknown"]]

    doubt = f"{changed} was edited after mqis wrote it"
    assert [reason.startswith(doubt) for reason in unknown(changed)].count(True) == 1
    assert not [reason for reason in unknown(file) if "edited" in reason]
    together = unknown(file, changed)
    assert [reason.startswith(doubt) for reason in together].count(True) == 1
    assert f"{changed} and {file} are both exports of Ams-Dir1" in together


@pytest.mark.parametrize("how", [[], ["--restore"]])
@pytest.mark.parametrize("number", [2, 40, -2])
def test_a_line_that_stands_twice_is_refused(
    file: Path, tmp_path: Path, number: int, how: list[str]
) -> None:
    """The enterprise, a queue, and the last tombstone."""
    count = len(file.read_bytes().splitlines())
    line = number if number > 0 else count + number + 1
    twice = written(tmp_path / "twice.jsonl", doubled(file.read_bytes(), line))
    error = run("import", twice, "--store", tmp_path / "d.db", *how).exception
    assert isinstance(error, ExportError)
    assert str(error).startswith(f"{twice}: line {line + 1}, ")
    assert str(error).endswith(f" is on line {line} already")


def test_check_refuses_a_line_that_stands_twice(file: Path, tmp_path: Path) -> None:
    twice = written(tmp_path / "twice.jsonl", doubled(file.read_bytes(), 40))
    done = run("check", twice)
    assert done.exit_code == 2
    assert "line 41, id: " in done.output
    assert "is on line 40 already" in " ".join(done.output.split())


def test_an_export_of_version_1_is_read(tmp_path: Path) -> None:
    """It was written before exports had a digest."""
    assert b'"version":1' in VERSION_1.read_bytes()
    for how in ([], ["--restore"]):
        store = tmp_path / f"d{len(how)}.db"
        told = json.loads(run("import", VERSION_1, "--store", store, *how, "--json").stdout)
        assert told["doubt"] is None
        assert told["objects"]["queue"] == 3
    run("export", tmp_path / "new.jsonl", "--store", tmp_path / "d1.db")
    compared = run("diff", VERSION_1, tmp_path / "new.jsonl")
    assert (compared.exit_code, compared.stderr) == (0, "")
    new = (tmp_path / "new.jsonl").read_bytes().splitlines()
    assert new[1:-1] == VERSION_1.read_bytes().splitlines()[1:]
    assert parse_header(new[0].decode("ascii")).server is None
