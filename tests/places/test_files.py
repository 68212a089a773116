"""Files in a directory and in a real S3 server: the same operations, the same results."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mqis.places import (
    Place,
    PlaceError,
    RemoteAddress,
    listed,
    open_at,
    parse_place,
    put_at,
    remote,
    size_at,
    stamped,
)
from tests.s3server import KEY, SECRET, S3Server

CONTENT = bytes(range(256)) * 20_000  # more than one read and one part of an upload


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.interop)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "directory":
        return tmp_path / "place"
    server: S3Server = request.getfixturevalue("s3")
    return parse_place(server.uri_with_credential(f"bucket/{tmp_path.name}"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


def test_a_file_is_put_listed_and_read(place: Place, source: Path) -> None:
    assert listed(place) == []
    put_at(source, place / "below" / "b")
    put_at(source, place / "a")
    assert listed(place) == [(place / "a", len(CONTENT))]
    assert [file for file, _ in listed(place, recursive=True)] == [
        place / "a",
        place / "below" / "b",
    ]
    with open_at(place / "a") as file:
        assert file.read() == CONTENT
        file.seek(4_000_001)
        assert file.read(5) == CONTENT[4_000_001:4_000_006]
        file.seek(10)
        assert file.read(1) == CONTENT[10:11]
    assert size_at(place / "none") is None
    assert size_at(place / "below" / "b") == len(CONTENT)


def test_a_file_is_replaced_as_a_whole(place: Place, source: Path) -> None:
    put_at(source, place / "a")
    source.write_bytes(b"")
    put_at(source, place / "a")
    assert size_at(place / "a") == 0
    with open_at(place / "a") as file:
        assert file.read() == b""


def test_a_missing_file_is_an_error_of_its_own(place: Place) -> None:
    with pytest.raises(PlaceError, match="no such file"):
        open_at(place / "none")


def test_a_directory_opens_no_pyarrow(tmp_path: Path) -> None:
    """A server without pyarrow archives to a directory."""
    program = (
        "import sys; from pathlib import Path; from mqis.places import *\n"
        "root = parse_place(sys.argv[1]); (root / 's').write_bytes(b'x')\n"
        "put_at(root / 's', root / 'd' / 'x'); assert listed(root, recursive=True)\n"
        "assert not [name for name in sys.modules if name.startswith('pyarrow')]\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)


def test_an_unfinished_copy_has_no_name(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlaceError, match="No space left"):
        put_at(source, tmp_path / "place" / "a")
    assert listed(tmp_path / "place") == []


def test_a_planted_link_is_not_followed(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "victim"
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "a.part").symlink_to(target)
    put_at(source, tmp_path / "place" / "a")
    assert not target.exists()
    assert (tmp_path / "place" / "a").read_bytes() == CONTENT


# --- what goes wrong with stores ------------------------------------------------------------------


def s3_place(text: str) -> RemoteAddress:
    place = parse_place(text)
    assert isinstance(place, RemoteAddress)
    return place


@pytest.mark.req("SEC-13-02")
@pytest.mark.interop
def test_a_wrong_credential_is_one_clear_error(s3: S3Server) -> None:
    place = s3_place(f"{s3.uri('bucket/x')}&access_key={KEY}&secret_key=quite-wrong")
    with pytest.raises(PlaceError, match="credential is missing, wrong") as caught:
        listed(place)
    assert "quite-wrong" not in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.interop
def test_a_stamp_changes_when_a_file_is_written(s3: S3Server, tmp_path: Path) -> None:
    place = s3_place(s3.uri_with_credential("bucket/stamps"))
    source = tmp_path / "source"
    found = []
    for text in ("one", "one", "two more"):
        source.write_text(text)
        put_at(source, place / "a")
        found.append(stamped(place))
        assert found[-1] == stamped(place)
    assert [[*each] for each in found] == [[place / "a"]] * 3
    assert found[0] != found[2]


@pytest.mark.interop
def test_a_credential_may_come_from_the_environment(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    remote.forget_systems()
    assert listed(s3_place(s3.uri("bucket/nothing-here"))) == []
    remote.forget_systems()


@pytest.mark.interop
def test_a_missing_credential_is_one_clear_error(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    remote.forget_systems()
    with pytest.raises(PlaceError, match="credential is missing, wrong"):
        listed(s3_place(s3.uri("bucket/x")))
    remote.forget_systems()


@pytest.mark.interop
def test_a_missing_bucket_is_one_clear_error(s3: S3Server) -> None:
    with pytest.raises(PlaceError, match="no such bucket"):
        listed(s3_place(s3.uri_with_credential("nowhere/x")))


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_store_that_refuses_is_one_clear_error() -> None:
    pytest.importorskip("pyarrow")
    settings = f"endpoint_override=127.0.0.1:{closed_port()}&scheme=http&region=x"
    place = s3_place(f"s3://bucket/x?{settings}&access_key=AKIA&secret_key=hush-hush")
    with pytest.raises(PlaceError, match="cannot be reached") as caught:
        listed(place)
    assert "hush" not in str(caught.value)


def test_a_store_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(remote, "REQUEST_S", 0.3)
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = f"endpoint_override=127.0.0.1:{silent.getsockname()[1]}&scheme=http&region=x"
        place = s3_place(f"s3://bucket/x?{settings}&access_key=AKIA&secret_key=hush-hush")
        with pytest.raises(PlaceError, match="cannot be reached"):
            listed(place)


def test_without_pyarrow_a_store_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    with pytest.raises(PlaceError, match=r"need pyarrow; install mqis\[pipeline\]"):
        listed(s3_place("s3://bucket/x"))
