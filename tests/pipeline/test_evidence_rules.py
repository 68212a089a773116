"""The rules by which journals and exports are judged, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqis.findings import Gravity
from mqis.pipeline import schemas
from mqis.pipeline.evidence.clocks import SentAndReceived, wrong_clocks
from mqis.pipeline.evidence.exports import ExportedPartition, misnamed, older
from mqis.pipeline.evidence.extents import (
    Extent,
    JournalInventory,
    inventories,
    is_missing_end,
    missing_between,
)
from mqis.pipeline.evidence.findings import EvidenceKind, evidence, evidence_row
from mqis.pipeline.session import java_off_stdout
from mqis.pipeline.sources.inventory import SegmentFile
from mqis.protocol.journal.numbers import SKIPPED
from mqis.storage.journal import Journal
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from tests.pipeline.journals import journal_files

SERVER = Guid(bytes(range(16)))
P, Q = bytes(16), bytes([1]) * 16


def segment(number: int, first: int) -> SegmentFile:
    return SegmentFile(f"j/segment-{number}", 100, "psc1", SERVER, number, first)


def journal(*parts: tuple[int, int, int], damaged: tuple[int, ...] = ()) -> JournalInventory:
    """A journal of (segment's number, first and last record)."""
    segments = [segment(number, first) for number, first, _ in parts]
    files = {
        s.path: Extent(first, last, last - first + 1, 0, 0)
        for s, (_, first, last) in zip(segments, parts, strict=True)
    }
    spoiled = [f"j/segment-{number}" for number in damaged]
    (found,) = inventories(segments, files, spoiled)
    return found


def missing(held: JournalInventory, damaged: tuple[int, ...] = (), *lsns: int) -> list[object]:
    files = [f"j/segment-{number}" for number in damaged]
    return [(f.first, f.last) for f in missing_between(held, files, lsns)]


def test_a_missing_segment() -> None:
    assert missing(journal((1, 1, 10), (2, 11, 20))) == []
    assert missing(journal((1, 1, 10), (3, 1011, 1020))) == [(11, 1010)]
    assert missing(journal((2, 11, 20))) == [(1, 10)]
    # Retention removed the beginning and kept a snapshot of it.
    assert missing(journal((2, 11, 20)), (), 10) == []


def test_damage_at_the_end_of_a_segment_is_not_a_missing_one() -> None:
    parts = (1, 1, 9), (2, 11, 20)
    assert missing(journal(*parts, damaged=(1,)), (1,)) == []
    # Nothing is damaged: the record was cut out.
    assert missing(journal(*parts)) == [(10, 10)]
    # The next segment's number shows that one is missing beside the damage.
    assert missing(journal((1, 1, 9), (3, 31, 40), damaged=(1,)), (1,)) == [(10, 30)]


def test_a_complete_journal() -> None:
    assert journal((1, 1, 10), (2, 11, 20)).is_complete
    assert not journal((1, 1, 10), (2, 11, 20), damaged=(2,)).is_complete
    assert not journal((1, 2, 10)).is_complete
    thin = journal((1, 1, 10))
    thin.files["j/segment-1"] = Extent(1, 10, 9, 0, 0)
    assert not thin.is_complete
    assert thin.thinned == ["j/segment-1"]


def test_the_end_of_a_journal() -> None:
    assert is_missing_end(232, 312)
    assert not is_missing_end(312, 312)
    assert not is_missing_end(312, 232)
    assert not is_missing_end(None, 312)  # the journal shows nothing of the partition
    assert not is_missing_end(232, 232 + 2 * SKIPPED)  # a restored authority skips numbers


# --- copies ---------------------------------------------------------------------------------------


def write_journal(directory: Path, count: int) -> Path:
    made = Journal(directory, "psc1", SERVER)
    record = JournalRecord(5, RecordKind.CHANGE, RecordState.LOCAL)
    made.append([(lsn, encode_record(lsn, record)) for lsn in range(1, count + 1)])
    made.close()
    return directory / "segment-0000000001.mqj"


def test_copies_of_a_segment_are_left_out(tmp_path: Path) -> None:
    """An older copy is shorter; one that differs is no copy, and all of its records count."""
    whole = write_journal(tmp_path / "a", 20)
    write_journal(tmp_path / "b", 20)
    write_journal(tmp_path / "c", 12)
    other = write_journal(tmp_path / "d", 20)
    data = bytearray(other.read_bytes())
    data[-1] ^= 0xFF
    other.write_bytes(data)
    files = journal_files(str(tmp_path))
    assert {s.path for s in files if s.kept is None} == {str(whole), str(other)}
    assert {(s.path, s.kept) for s in files if s.kept is not None} == {
        (str(tmp_path / name / whole.name), str(whole)) for name in "bc"
    }


def test_a_directory_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    write_journal(tmp_path / "a", 3)
    files = journal_files(f"{tmp_path},{tmp_path / 'a'}")
    assert [s.kept for s in files] == [None]


# --- exports --------------------------------------------------------------------------------------


def state(server: str, partition: bytes, owner: str, last: int = 5) -> ExportedPartition:
    return ExportedPartition(server, f"{server}.jsonl", partition, owner, last)


def test_an_export_under_another_name() -> None:
    states = [state("psc2", P, "psc1"), state("psc2", Q, "psc2")]
    (found,) = misnamed(states, {("psc2.jsonl", P)}, ())
    assert found.names[0] == "psc2"
    assert "an export of psc1" in found.what
    # It has what it owns itself, or what it owned once.
    assert not list(misnamed(states, {("psc2.jsonl", Q)}, ()))
    assert not list(misnamed(states, {("psc2.jsonl", P), ("psc2.jsonl", Q)}, ()))
    assert not list(misnamed(states, {("psc2.jsonl", P)}, {("psc2", P)}))


def test_an_older_export() -> None:
    states = [state("psc1", P, "psc1", 300), state("psc2", P, "psc1", 200)]
    (found,) = older(states, {("psc1", P): 300, ("psc2", P): 300}, {P: 300})
    assert found.names[0] == "psc2"
    # The server has not got the changes: its export is as new as the others, and it is behind.
    assert not list(older(states, {("psc1", P): 300, ("psc2", P): 200}, {P: 300}))
    # The journal goes on, and no other export does.
    assert not list(older(states[:1], {("psc1", P): 400}, {P: 300}))


# --- clocks ---------------------------------------------------------------------------------------

HOUR = 3600 * 1_000_000


def told(*messages: tuple[str, str, int, int]) -> list[tuple[str, str]]:
    return [(f.names[0], f.check) for f in wrong_clocks(SentAndReceived(*m) for m in messages)]


def test_a_clock_that_is_ahead() -> None:
    ahead = [("a", peer, 2 * HOUR, HOUR) for peer in "bcd"]
    right = [("b", "c", HOUR, HOUR + 5), ("c", "d", HOUR, HOUR + 5), ("b", "a", HOUR, 2 * HOUR)]
    assert told(*ahead, *right) == [("a", "clock_ahead")]
    # A server that only talks with the wrong one is not called wrong.
    assert told(*ahead, *right, ("a", "e", 2 * HOUR, HOUR)) == [("a", "clock_ahead")]
    assert told(*right) == []


def test_a_clock_that_is_behind() -> None:
    behind = [(peer, "a", 2 * HOUR, HOUR) for peer in "bcd"]
    right = [("b", "c", HOUR, HOUR + 5), ("c", "d", HOUR, HOUR + 5)]
    assert told(*behind, *right) == [("a", "clock_behind")]


def test_small_differences_of_clocks_are_usual() -> None:
    assert told(("a", "b", 30_000_000, 0), ("a", "c", 30_000_000, 0)) == []
    # Messages that were under way for long show nothing.
    assert told(("a", "b", 0, HOUR), ("b", "a", 0, HOUR)) == []


def test_three_wrong_clocks_of_five_accuse_nobody() -> None:
    """Three clocks are an hour behind, by one mistake; the two right ones are not called wrong."""
    wrong, right = ("a", "b", "c"), ("d", "e")

    def at(server: str) -> int:
        return 5 * HOUR - (HOUR if server in wrong else 0)

    everybody = [*wrong, *right]
    mesh = [(x, y, at(x), at(y) + 5) for x in everybody for y in everybody if x != y]
    star = [message for message in mesh if "d" in message[:2]]
    for messages in (mesh, star):
        found = list(wrong_clocks(SentAndReceived(*message) for message in messages))
        assert [(f.names[0], f.check) for f in found] == [
            (server, "clocks_disagree") for server in everybody
        ]
        texts = {f.names[0]: f.what for f in found}
        assert texts["d"] == (
            "its clock is 60 min ahead of a, b and c, at least, and agrees with e; fewer than two "
            "thirds of 5 servers agree, so none of them is called wrong"
        )
        assert texts["a"].startswith(
            "its clock is 60 min behind d and e, at least, and agrees with b and c; "
        )


def test_two_servers_cannot_tell_whose_clock_is_wrong() -> None:
    assert told(("a", "b", 2 * HOUR, HOUR)) == [("a", "clocks_disagree"), ("b", "clocks_disagree")]


def test_several_wrong_clocks_are_told_if_most_agree() -> None:
    offsets = {"a": HOUR, "b": -3 * HOUR}

    def at(server: str) -> int:
        return 5 * HOUR + offsets.get(server, 0)

    mesh = [(x, y, at(x), at(y)) for x in "abcdef" for y in "abcdef" if x != y]
    (one, other) = wrong_clocks(SentAndReceived(*message) for message in mesh)
    assert [(f.names[0], f.check) for f in (one, other)] == [
        ("a", "clock_ahead"),
        ("b", "clock_behind"),
    ]
    assert one.what == "its clock is 60 min ahead of those of 4 servers that agree, at least"
    assert other.what.startswith("its clock is 3 h behind those of 4 servers")


def test_a_clock_that_was_set_between_two_messages() -> None:
    assert told(("a", "b", 2 * HOUR, HOUR), ("b", "a", 2 * HOUR, HOUR)) == []


# --- Java -----------------------------------------------------------------------------------------


def test_java_does_not_write_to_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    """Java inherits stdout, and would write its warnings among the JSON."""
    with java_off_stdout():
        child = subprocess.Popen([sys.executable, "-c", "print('CodeCache is full')"])
    os.write(1, b"{}")
    assert child.wait() == 0
    out, err = capfd.readouterr()
    assert out == "{}"
    assert "CodeCache is full" in err


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EvidenceKind)
def test_a_row_is_made_from_a_finding_and_a_finding_from_a_row(kind: EvidenceKind) -> None:
    forged = kind in (
        EvidenceKind.TAMPERED,
        EvidenceKind.FOREIGN,
        EvidenceKind.CONFLICTING_RECORDS,
    )
    found = evidence(kind, "psc1", "why", "a.mqj", partition="p", first=3, last=1 << 64)
    bare = evidence(kind, "psc2", "why not")
    assert found.gravity is bare.gravity is (Gravity.ERROR if forged else Gravity.WARNING)
    row = evidence_row(found)
    assert row == {
        "kind": kind.value,
        "server": "psc1",
        "explanation": "why",
        "file": "a.mqj",
        "partition": "p",
        "first": 3,
        "last": (1 << 63) - 1,
    }
    assert row.keys() == set(schemas.EVIDENCE.fieldNames())
    assert evidence_row(evidence(**(row | {"kind": kind}))) == row
    nothing = dict.fromkeys(("file", "partition", "first", "last"))
    assert evidence_row(bare) == {
        "kind": kind.value,
        "server": "psc2",
        "explanation": "why not",
        **nothing,
    }
