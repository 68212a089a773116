"""``mqis capture`` as people and programs use it."""

from __future__ import annotations

import gzip
import json
import os
import re
import struct
from pathlib import Path

import pytest

from mqis.testing.pcap import Ends, udp_frame, write_pcap
from mqis.wire.errors import MqisError
from tests.cli.commands import process, run
from tests.protocol.capture.made import MQQB, STRANGE, ack, capture, frames_of
from tests.protocol.capture.recordings import oletx


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "oletx.pcap"
    path.write_bytes(oletx())
    return path


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A session, a strange connection, a strange flow, and a cut end."""
    path = tmp_path / "mixed.pcap"
    frames = frames_of(MQQB, [(True, ack(1)), (False, ack(2))])
    frames += frames_of(STRANGE, [(True, b"GET / HTTP/1.1\r\n\r\n")])
    frames += [udp_frame(Ends("10.0.0.7", 5000, "10.0.0.8", 53), True, b"?"), b"cut"]
    path.write_bytes(capture(frames)[:-1])
    return path


def lines(*arguments: str | Path) -> list[str]:
    result = run("capture", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def objects(*arguments: str | Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines(*arguments, "--json")]


def test_messages_line_by_line(session: Path) -> None:
    head, first, *rest = lines(session)
    assert head.split() == ["frame", "time", "source", "destination", "protocol", "what"]
    assert re.fullmatch(
        r" +4  \S{26}  10\.0\.1\.1:\d+ +10\.0\.0\.1:49664 +rpc +bind IXnRemote in NDR20", first
    )
    assert any("cmp        USER_MESSAGE connection 1, type 0x1, 7 bytes" in line for line in rest)


def test_rows_for_programs(session: Path) -> None:
    found = objects(session, "-p", "cmp")
    assert [row["kind"] for row in found][:2] == ["CONNECTION_REQ", "USER_MESSAGE"]
    row = found[1]
    assert row["file"] == str(session)
    assert (row["transport"], row["carrier"], row["protocol"]) == ("tcp", "rpc", "cmp")
    assert row["detail"] == {
        "is_master": 1,
        "connection_id": 1,
        "user_msg_type": 1,
        "data": b"prepare".hex(),
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", str(row["time"]))


def test_a_summary_for_people_and_programs(session: Path) -> None:
    text = "\n".join(lines(session, "--summary"))
    assert re.search(r"10\.0\.1\.1 +10\.0\.0\.1 +49664/tcp +cmp in rpc +1 +3 ", text)
    (document,) = json.loads("\n".join(lines(session, "--summary", "--json")))
    assert document["damage"] == []
    by_protocol = {(c["client"], c["protocol"]): c for c in document["conversations"]}
    assert by_protocol["10.0.1.1", "cmp"]["messages"] == 3
    assert by_protocol["10.0.1.1", "cmp"]["first"] <= by_protocol["10.0.1.1", "cmp"]["last"]


def test_filters(mixed: Path) -> None:
    assert [row["kind"] for row in objects(mixed)] == ["SessionAck", "SessionAck", "packet"]
    everything = [row["kind"] for row in objects(mixed, "--all")]
    assert everything.count("unrecognised") == 2
    assert [row["protocol"] for row in objects(mixed, "--protocol", "TCP")] == [None, "tcp"]
    assert [row["source"] for row in objects(mixed, "--all", "-a", "10.0.0.8/32")] == [
        None,
        "10.0.0.7:5000",
    ]
    (row,) = objects(mixed, "--errors")
    assert row["error"] == "the file ends 1 bytes before the end of packet 20"
    assert (row["time"], row["source"], row["detail"]) == (None, None, None)


def test_what_was_left_out_and_what_is_damaged_is_said(mixed: Path) -> None:
    told = lines(mixed)
    assert told[-1] == "19 packets; 2 other conversations of unknown protocols: --all shows them"
    assert "at offset" in told[-2]
    summary = lines(mixed, "--summary", "--all")
    assert any("unrecognised" not in line and "udp" in line for line in summary)
    assert summary[-1].startswith("at offset ")


def test_several_files_and_directories(mixed: Path, session: Path) -> None:
    inner = mixed.parent / "below"
    inner.mkdir()
    (inner / "other.cap").write_bytes(session.read_bytes())
    found = objects(mixed.parent)
    assert {Path(str(row["file"])).name for row in found} == {"mixed.pcap", "other.cap"}
    assert any(line.startswith("other.cap ") for line in lines(mixed.parent))
    summary = lines(mixed, session, "--summary")
    assert summary[0] == str(mixed)
    assert str(session) in summary


def test_addresses_of_ipv6(tmp_path: Path) -> None:
    head = struct.pack(">IHBB", 6 << 28, 20 + len(ack(1)), 6, 64)
    ends = bytes.fromhex("fe80" + "00" * 13 + "01" + "fe80" + "00" * 13 + "02")
    tcp = struct.pack(">HHIIBBHHH", 4000, 1801, 1, 0, 5 << 4, 0, 0, 0, 0) + ack(1)
    path = tmp_path / "six.pcap"
    path.write_bytes(write_pcap([(0, head + ends + tcp)], link_type=101))
    (row,) = objects(path)
    assert (row["source"], row["destination"]) == ("[fe80::1]:4000", "[fe80::2]:1801")


def test_a_bar_is_for_terminals(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many packets, few enough for a test; nothing of it in the output."""
    monkeypatch.setattr("mqis.cli.capture._STEP", 1)
    assert not run("capture", session).stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "the file is empty"), (b"%PDF-1.7", "neither a pcap nor a pcapng file")],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "strange.pcap"
    path.write_bytes(content)
    error = run("capture", path).exception
    assert isinstance(error, MqisError)
    assert reason in str(error)
    assert str(path) in str(error)


def test_a_file_that_must_not_be_read(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    error = run("capture", session).exception
    assert str(error) == f"{session}: cannot be read: Permission denied"


def test_what_is_not_there(tmp_path: Path) -> None:
    missing = run("capture", tmp_path / "none.pcap").exception
    assert isinstance(missing, MqisError)
    assert "none.pcap: no such file or directory" in str(missing)
    empty = run("capture", tmp_path).exception
    assert "this directory holds no capture files (*.pcap, *.pcapng, *.cap)" in str(empty)


def test_options_that_are_wrong(session: Path) -> None:
    strange = run("capture", session, "--protocol", "http")
    assert strange.exit_code == 2
    assert "unknown protocol 'http'; known are mqqb, rpc" in strange.stderr.replace(
        "\n", " "
    ).replace("│ ", "")
    address = run("capture", session, "--address", "here")
    assert address.exit_code == 2
    assert "here" in address.stderr


# --- the standard input, pipes, and gzip ----------------------------------------------------------


def test_a_packed_capture_is_as_the_file(session: Path, tmp_path: Path) -> None:
    packed = tmp_path / "oletx.pcap.gz"
    packed.write_bytes(gzip.compress(session.read_bytes()))
    assert lines(packed) == lines(session)
    assert lines(tmp_path) == lines(session)


@pytest.mark.parametrize("packed", [False, True])
def test_the_standard_input(session: Path, packed: bool) -> None:
    content = session.read_bytes()
    done = process("capture", "-", stdin=gzip.compress(content) if packed else content)
    assert done.stderr == b""
    assert done.stdout.decode().splitlines() == lines(session)


def test_a_pipe_as_a_file(session: Path) -> None:
    """As a shell makes of ``mqis capture <(zcat ...)``."""
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "wb") as out:
        out.write(session.read_bytes()[:60_000])
    try:
        assert lines(f"/dev/fd/{ours}")[1:] == lines(session)[1:]
    finally:
        os.close(ours)


def test_a_packed_file_that_was_cut_shows_what_is_there(session: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(session.read_bytes())[:-200])
    result = run("capture", cut)
    assert result.exit_code == 0
    assert "bytes could be unpacked" in result.stderr
    assert "bind IXnRemote" in result.stdout


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8bgarbage" * 9, gzip.compress(b"text")])
def test_packed_garbage_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.pcap.gz"
    path.write_bytes(content)
    error = run("capture", path).exception
    assert isinstance(error, MqisError)
    assert str(error).startswith(f"{path}: ")
