"""Gathering the pipeline's input from a run directory whose servers are stopped."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.stores import open_store
from mqis.enterprise.pipeline_input import gather
from mqis.lab import demo
from mqis.storage.journal.journal_reader import records
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, SegmentHeader, encode_record

RECORD = JournalRecord(1, RecordKind.CHANGE, RecordState.LOCAL)


def segment(number: int, first: int, count: int) -> bytes:
    header = SegmentHeader("a", Guid(b"the server......"), number, first).to_bytes()
    return header + b"".join(encode_record(first + n, RECORD) for n in range(count))


def node(run: Path, name: str, pid: int | None = None) -> NodePlace:
    home = run / "servers" / name
    ports = (1, 2, 3, 4, 5)
    return NodePlace(
        name,
        "psc",
        "Delft",
        "127.0.0.1",
        *ports,
        str(home),
        str(home / "mqis.toml"),
        f"sqlite:{home / 'directory.db'}",
        str(home / "journal"),
        str(home / "log"),
        pid,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two servers; the first has a directory and a journal of two segments, the second nothing."""
    directory = tmp_path / "run"
    home = directory / "servers" / "a"
    (home / "journal").mkdir(parents=True)
    directory.chmod(0o700)
    with closing(open_store(f"sqlite:{home / 'directory.db'}", create=True)) as store:
        demo.build(store)
    (home / "journal" / "segment-0000000001.mqj").write_bytes(segment(1, 1, 3))
    (home / "journal" / "segment-0000000002.mqj").write_bytes(segment(2, 4, 2) + b"\x50\0\0")
    save_nodes(directory, Nodes("Acme", (node(directory, "a"), node(directory, "b"))))
    return directory


def test_a_stopped_enterprise_is_read_and_what_is_missing_is_told(run: Path) -> None:
    found = gather(run)
    assert found.servers == ("a",)
    assert len(found.problems) == 1
    assert found.problems[0].startswith("b: ")
    assert (found.exports / "a.jsonl").read_text().count("\n") > 10
    assert found.journals is not None
    copies = sorted((found.journals / "a").iterdir())
    assert [path.name for path in copies] == ["segment-0000000001.mqj", "segment-0000000002.mqj"]
    source = run / "servers" / "a" / "journal"
    for copy in copies:  # the torn end of a stopped server's journal is evidence and stays
        assert copy.read_bytes() == (source / copy.name).read_bytes()
    assert copies[0].samefile(source / copies[0].name)
    assert not copies[1].samefile(source / copies[1].name)


def test_a_record_that_is_being_written_is_cut_off(run: Path) -> None:
    save_nodes(run, Nodes("Acme", (node(run, "a", pid=1),)))
    drain(run)
    found = gather(run)
    assert found.journals is not None
    copy = found.journals / "a" / "segment-0000000002.mqj"
    assert copy.read_bytes() == segment(2, 4, 2)
    assert [entry.lsn for entry in records(found.journals / "a")] == [1, 2, 3, 4, 5]


def drain(run: Path) -> None:
    """Leaves nothing in the outbox, as a server that has copied it."""
    url = f"sqlite:{run / 'servers' / 'a' / 'directory.db'}"
    with closing(open_store(url, create=True)) as store, store.write() as tx:
        tx.trim_outbox(1 << 40)


def test_the_next_time_replaces_the_last(run: Path) -> None:
    first = gather(run)
    (first.exports / "old.jsonl").write_text("old")
    again = gather(run)
    assert sorted(path.name for path in again.exports.iterdir()) == ["a.jsonl"]


def test_servers_without_journals_give_exports(run: Path) -> None:
    shutil.rmtree(run / "servers" / "a" / "journal")
    found = gather(run)
    assert (found.servers, found.journals) == (("a",), None)


def test_nothing_at_all_is_an_error_and_leaves_nothing(run: Path) -> None:
    (run / "servers" / "a" / "directory.db").unlink()
    with pytest.raises(NodesError, match="no server's directory can be read: a: "):
        gather(run)
    assert [path.name for path in run.iterdir() if "gathered" in path.name] == []


@pytest.mark.req("SEC-10-07")
def test_a_directory_that_others_can_write_to_is_refused(run: Path) -> None:
    run.chmod(0o777)
    with pytest.raises(NodesError, match="others can write"):
        gather(run)
