"""The files that ``path`` chooses: lists, wildcards, and what a wildcard does not choose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqis.pipeline.sources.files import paths_in
from mqis.wire.errors import MqisError
from tests.s3server import S3Server

_FILES = ("run/a/1.mqj", "run/a/deep/2.mqj", "run/a/notes.txt", "run/b/3.mqj", "run/_old/4.mqj")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in (*_FILES, "run/.hidden/5.mqj", "elsewhere/6.mqj"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "run" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "run" / "b" / "7.mqj").symlink_to(tmp_path / "elsewhere" / "6.mqj")
    return tmp_path


def found(place: str, **more: str) -> list[str]:
    return [path.name for path in paths_in({"path": place, **more}, "segments", "*.mqj")]


def test_a_wildcard_chooses_files_and_directories(place: Path) -> None:
    assert found(f"{place}/run/*") == ["1.mqj", "2.mqj", "3.mqj", "7.mqj"]
    assert found(f"{place}/run/[ab]/*.mqj") == ["1.mqj", "3.mqj"]
    assert found(f"{place}/run/?/deep") == ["2.mqj"]
    assert found(f"{place}/*/a") == ["1.mqj", "2.mqj"]
    assert found(f"{place}/run/_*") == ["4.mqj"]


def test_a_directory_stands_for_what_is_not_hidden(place: Path) -> None:
    """Tables keep records of their own there, and earlier versions."""
    assert found(f"{place}/run") == ["1.mqj", "2.mqj", "3.mqj", "7.mqj"]
    assert found(f"{place}/run/.hidden") == ["5.mqj"]


def test_a_wildcard_follows_no_link_and_a_name_does(place: Path) -> None:
    with pytest.raises(MqisError, match="no file or directory has such a name"):
        found(f"{place}/run/l*")
    assert found(f"{place}/run/linked") == ["6.mqj"]


@pytest.mark.parametrize("pattern", ["run/z*", "run/*/nothing", "run/a/1.mqj/*"])
def test_a_wildcard_that_chooses_nothing_is_told(place: Path, pattern: str) -> None:
    with pytest.raises(MqisError, match="no file or directory has such a name"):
        found(f"{place}/{pattern}")


def test_a_name_with_a_wildcard_in_it_is_a_name(place: Path) -> None:
    (place / "run" / "a" / "[x].mqj").write_text("")
    assert found(f"{place}/run/a/[x].mqj") == ["[x].mqj"]


def test_a_list_is_taken_name_by_name(place: Path) -> None:
    (place / "one, two").mkdir()
    (place / "one, two" / "8.mqj").write_text("")
    listed = json.dumps([f"{place}/one, two", f"{place}/run/b/3.mqj"])
    assert found("", paths=listed) == ["8.mqj", "3.mqj"]
    with pytest.raises(MqisError, match="no path to segments was given"):
        found("", paths="[]")


@pytest.mark.interop
def test_wildcards_choose_the_same_in_a_store(place: Path, s3: S3Server) -> None:
    for name in _FILES:
        path = s3.root / "bucket" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert found(s3.uri("bucket/run/*")) == ["1.mqj", "2.mqj", "3.mqj"]
    assert found(s3.uri("bucket/run")) == ["1.mqj", "2.mqj", "3.mqj"]
    assert found(s3.uri("bucket/run/_old")) == ["4.mqj"]
    assert found(s3.uri("bucket/run/[ab]/*.mqj")) == ["1.mqj", "3.mqj"]
    assert found(s3.uri("bucket/run/_*")) == ["4.mqj"]
    with pytest.raises(MqisError, match="there are no segments in it"):
        found(s3.uri("bucket/run/z*"))
