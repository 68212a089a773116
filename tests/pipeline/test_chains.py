"""The rules by which the chains of journals are judged, without Spark."""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.lab.generate.filefaults import resign, tamper
from mqis.lab.generate.generated_keys import generated_key, published
from mqis.pipeline.evidence.chains import JournalChain
from mqis.pipeline.evidence.inventory import ExportedKeys, keys_by_server
from mqis.pipeline.sources.checks import checked_segment
from mqis.pipeline.sources.inventory import SegmentFile
from mqis.storage.journal import Journal
from mqis.storage.journal.journal_files import segments, write_snapshot
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from mqis.wire.mqds.keys import RsaPublicKey
from tests.pipeline.journals import journal_files

SERVER = Guid(bytes(range(16)))
KEY, OTHER = generated_key("s001-psc"), generated_key("s002-psc")
KEYS = [KEY.public]

Found = list[tuple[str, str, int | None, int | None]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A journal of four signed segments with ten records each."""
    return write(tmp_path / "psc1", signed=True)


def write(directory: Path, *, signed: bool) -> Path:
    made = Journal(directory, "psc1", SERVER, key=KEY if signed else None)
    record = JournalRecord(5, RecordKind.CHANGE, RecordState.LOCAL)
    for first in range(1, 41, 10):
        made.append([(lsn, encode_record(lsn, record)) for lsn in range(first, first + 10)])
        made.seal()
    made.close()
    return directory


def chain(directory: Path) -> JournalChain:
    """The chain as ingesting reads it."""
    files = journal_files(str(directory))
    rows = {s.path: checked_segment(Path(s.path)) for s in files if s.kept is None}
    read = [with_digests(s, rows[s.path]) for s in files if s.kept is None]
    damaged = [path for path, row in rows.items() if row["damage"]]
    return JournalChain("psc1", read, [s for s in files if s.kept is not None], damaged)


def with_digests(segment: SegmentFile, row: dict[str, object]) -> SegmentFile:
    digests = {name: row[name] for name in ("digest", "snapshot_digest")}
    return replace(segment, **digests)  # type: ignore[arg-type]


def found(directory: Path, keys: Iterable[RsaPublicKey] = KEYS) -> Found:
    findings = chain(directory).findings(list(keys))
    return [(f.check, Path(f.where).name, f.first, f.last) for f in findings]


def name(number: int) -> str:
    return f"segment-{number:010}.mqj"


def test_a_whole_chain(place: Path) -> None:
    assert found(place) == []
    assert chain(place).signature(KEYS) == "valid"
    assert chain(place).signature([]) == "unchecked"
    assert chain(place).signature([OTHER.public]) == "wrong"


def test_a_changed_record_with_a_right_checksum(place: Path) -> None:
    tamper(place, "psc1")
    assert checked_segment(place / name(1))["damage"] == []
    assert found(place) == [("tampered", name(1), 1, 1)]


def test_a_sealed_segment_that_was_cut_is_not_torn(place: Path) -> None:
    """The end of the last segment is open: what is torn there is damage and nothing else."""
    for number in (2, 4):
        path = place / name(number)
        path.write_bytes(path.read_bytes()[:-7])
        assert checked_segment(path)["damage"]
    assert found(place) == [("tampered", name(2), 2, 2)]


def test_another_key(place: Path) -> None:
    resign(place, "psc1")
    (place / name(4)).unlink()  # the header of the last one would seal the former signature
    assert found(place) == [("foreign", name(3), 3, 3)]
    assert chain(place).signature(KEYS) == "wrong"


def test_a_removed_segment(place: Path) -> None:
    (place / name(2)).unlink()
    assert found(place) == [("missing_segments", name(3), 2, 2)]


def test_a_header_that_cannot_be_read_is_not_a_removed_segment(place: Path) -> None:
    path = place / name(2)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    row = checked_segment(path)
    assert row.get("header") is None
    assert row["damage"]
    held = chain(place)
    assert list(replace(held, unreadable={2}).findings(KEYS)) == []
    assert list(held.findings(KEYS)) != []


def test_an_archive_in_another_directory(place: Path, tmp_path: Path) -> None:
    """One chain in two directories, some of it in both; a copy repeats no finding."""
    shutil.copytree(place, tmp_path / "archive")
    (place / name(1)).unlink()
    (tmp_path / "archive" / name(4)).unlink()
    assert found(tmp_path) == []
    shutil.copytree(place, tmp_path / "copy")
    for path in tmp_path.glob(f"*/{name(3)}"):
        path.unlink()
    assert found(tmp_path) == [("missing_segments", name(4), 3, 3)]


def test_two_journals_of_a_server_are_two_chains(place: Path, tmp_path: Path) -> None:
    """A restored server begins a new journal; the one before was set aside."""
    write(tmp_path / "aside", signed=False)
    assert found(tmp_path) == []
    tamper(tmp_path / "aside", "psc1")
    (finding,) = chain(tmp_path).findings(KEYS)
    assert finding.where == str(tmp_path / "aside" / name(1))


def test_a_journal_without_signatures(tmp_path: Path) -> None:
    place = write(tmp_path / "psc1", signed=False)
    assert found(place) == []
    assert chain(place).signature(KEYS) == "unsigned"
    assert set(segments(place)) == {1, 2, 3, 4}


# --- keys -----------------------------------------------------------------------------------------


def exported(server: str, first: str, last: str, key: bytes) -> ExportedKeys:
    return ExportedKeys(server, b64encode(key).decode("ascii"), first, last)


def test_the_own_export_of_a_server_does_not_vouch_for_it() -> None:
    """Somebody who writes a server's journal can write its directory too."""
    own = exported("psc1", "psc1", "psc1", published(OTHER))
    others = exported("psc1", "bsc1", "psc2", published(KEY))
    assert keys_by_server([own, others]) == {"psc1": (KEY.public,)}
    assert keys_by_server([own]) == {"psc1": (OTHER.public,)}


def test_keys_that_cannot_be_read_are_skipped() -> None:
    wrong = exported("psc1", "bsc1", "psc2", b"\x09\x00\x00\x00x")
    assert keys_by_server([wrong]) == {"psc1": ()}
    assert keys_by_server([ExportedKeys("psc1", "?", "a", "b")]) == {"psc1": ()}


def test_a_snapshot_that_was_changed(tmp_path: Path) -> None:
    """A rebuild may begin at it, so it is evidence too."""
    made = Journal(tmp_path / "psc1", "psc1", SERVER, key=KEY)
    record = JournalRecord(5, RecordKind.CHANGE, RecordState.LOCAL)
    made.append([(1, encode_record(1, record))])
    with MemoryStore().read() as view:
        snapshot = write_snapshot(view, tmp_path / "psc1", 1)
    made.seal()
    made.append([(2, encode_record(2, record))])
    made.close()
    assert found(tmp_path) == []
    snapshot.write_bytes(snapshot.read_bytes() + b"\n")
    assert found(tmp_path) == [("tampered", snapshot.name, 2, 2)]
    snapshot.unlink()
    assert found(tmp_path) == []
