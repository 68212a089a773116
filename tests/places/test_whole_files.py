"""A file is there whole, flushed and for its owner, or what was there before is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqis.files import output_file, whole_file, write_whole


def test_old_content_stays_until_the_new_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    write_whole(path, "old")
    with whole_file(path) as out:
        out.write(b"new")
        out.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["known.json"]


def test_a_failure_leaves_the_old_content_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    write_whole(path, b"old")

    def halves() -> Iterator[bytes]:
        yield b"half of the n"
        raise RuntimeError

    with pytest.raises(RuntimeError), whole_file(path) as out:
        out.writelines(halves())
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["known.json"]


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    with whole_file(path) as first:
        first.write(b"1" * 9000)
        with whole_file(path) as second:
            second.write(b"2" * 10)
        assert path.read_bytes() == b"2" * 10
    assert path.read_bytes() == b"1" * 9000


def test_the_first_of_two_wins_where_nothing_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"

    def overtaken() -> None:
        with whole_file(path, replace=False) as late:
            late.write(b"late")
            write_whole(path, "first", replace=False)

    with pytest.raises(FileExistsError):
        overtaken()
    assert path.read_bytes() == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["signing.key"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o700])
def test_the_mode_is_the_callers_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077 if mode == 0o640 else 0)
    try:
        write_whole(tmp_path / "file", b"", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_servers_file_stays_the_servers(tmp_path: Path) -> None:
    path = tmp_path / "accounts.toml"
    write_whole(path, "old")
    os.chown(path, 12345, 23456)
    write_whole(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_the_content_is_flushed_before_the_name_and_the_name_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power failure could leave a name without content, or the old file."""
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        calls.append("directory" if is_directory else f"{os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    def renamed(*names: Any) -> None:
        calls.append("name")
        replace(*names)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    write_whole(tmp_path / "file", b"content")
    assert calls == ["7 bytes", "name", "directory"]


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with output_file(path) as out:
            out.write(b"line\n")
        assert os.read(reading, 100) == b"line\n"
    finally:
        os.close(reading)
    assert stat.S_ISFIFO(path.stat().st_mode)
