"""A directory is there as a whole, flushed and for its owner, or what was there before is."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from mqis.files import draft_directory, whole_directory


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_it_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "copy"
    with whole_directory(path) as draft:
        (draft / "a").write_text("a")
        (draft / "below").mkdir()
        (draft / "below" / "b").write_text("b")
        assert not path.exists()
    assert (path / "below" / "b").read_text() == "b"
    assert names(tmp_path / "deep") == ["copy"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def breaks(draft: Path) -> None:
        (draft / "half").write_text("x")
        raise RuntimeError

    with pytest.raises(RuntimeError), whole_directory(tmp_path / "copy") as draft:
        breaks(draft)
    assert names(tmp_path) == []


def test_a_failure_leaves_what_was_to_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    path.mkdir()
    (path / "old").write_text("old")
    with pytest.raises(RuntimeError), whole_directory(path, replace=True):
        raise RuntimeError
    assert names(path) == ["old"]
    with whole_directory(path, replace=True) as draft:
        (draft / "new").write_text("new")
    assert names(path) == ["new"]
    assert names(tmp_path) == ["copy"]


def test_an_empty_directory_may_be_there_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    path.mkdir()
    with whole_directory(path) as draft:
        (draft / "first").write_text("1")
    with pytest.raises(OSError, match="not empty"), whole_directory(path) as draft:
        (draft / "second").write_text("2")
    assert names(path) == ["first"]


def test_everything_is_flushed_before_the_name_and_the_name_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power failure could leave a directory that lacks files, or their content."""
    calls: list[str] = []
    fsync, rename = os.fsync, os.rename

    def flushed(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        calls.append("directory" if is_directory else f"{os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    def renamed(*paths: Path) -> None:
        calls.append("name")
        rename(*paths)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "rename", renamed)
    with whole_directory(tmp_path / "copy") as draft:
        (draft / "file").write_bytes(b"content")
        (draft / "below").mkdir()
        (draft / "below" / "file").write_bytes(b"more")
    assert calls == ["7 bytes", "directory", "4 bytes", "directory", "name", "directory"]


def test_what_a_killed_process_left_is_removed_first(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from mqis.files import draft_directory\n"
        "with draft_directory(Path(sys.argv[1])) as draft:\n"
        "    (draft / 'left').mkdir(); (draft / 'left' / 'file').touch(); (draft / 'x').touch()\n"
        "    (draft / 'link').symlink_to(sys.argv[2]); os.kill(os.getpid(), 9)\n"
    )
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "precious").touch()
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "a", kept], check=False)
    assert done.returncode == -signal.SIGKILL
    assert names(tmp_path / ".a.part") == ["left", "link", "x"]
    with draft_directory(tmp_path / "a") as draft:
        assert names(draft) == []
    assert names(tmp_path) == ["kept"]
    assert names(kept) == ["precious"]


def test_two_processes_do_not_mix(tmp_path: Path) -> None:
    with draft_directory(tmp_path / "a") as draft:
        (draft / "mine").touch()
        refused = pytest.raises(BlockingIOError, match="another process is writing it")
        with refused, draft_directory(tmp_path / "a"):
            pass
        assert names(draft) == ["mine"]


def test_a_draft_of_the_next_one_stays(tmp_path: Path) -> None:
    """The end of the first finds the draft of the second, and leaves it alone."""
    path, began, go_on = tmp_path / "copy", Event(), Event()

    def second() -> None:
        with draft_directory(path) as draft:
            began.set()
            assert go_on.wait(10)
            (draft / "mine").touch()

    other = Thread(target=second)
    with draft_directory(path) as draft:
        draft.rename(path)
        other.start()
        assert began.wait(10)
    assert names(tmp_path / ".copy.part") == []
    go_on.set()
    other.join()
    assert names(tmp_path) == ["copy"]


def test_a_link_in_place_of_the_draft_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "precious").touch()
    (tmp_path / ".a.part").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"), draft_directory(tmp_path / "a"):
        pass
    assert names(tmp_path / "theirs") == ["precious"]
