"""Attacks on a journal at rest, by somebody who may write its files but has not the server's key.

The attacker knows the format: checksums of changed records and headers are made right again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from mqis.runtime.node.signer import MachineKey
from mqis.storage.journal import Journal
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segment_name, segments, snapshot_name
from mqis.storage.journal.journal_reader import Segment
from mqis.storage.journal.keeping import retain
from mqis.storage.journal.sealing import file_digest
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, Whole, encode_record
from mqis.wire.journal.layout import COVERED_AT
from mqis.wire.security.keyinfo import key_pem
from tests.cli.commands import run

SERVER = Guid(b"s" * 16)
LAST = 20


@cache
def own() -> MachineKey:
    return MachineKey.generate()


@cache
def attackers() -> MachineKey:
    return MachineKey.generate()


def record(lsn: int) -> tuple[int, bytes]:
    body = f"payment {lsn:03} of 100 guilders".encode()
    return lsn, encode_record(
        lsn, JournalRecord(lsn, RecordKind.CHANGE, RecordState.LOCAL, body=body)
    )


def write(directory: Path, key: MachineKey | None, first: int = 1, last: int = LAST) -> None:
    with closing(Journal(directory, "PSC1", SERVER, segment_bytes=900, key=key)) as journal:
        journal.append([record(lsn) for lsn in range(first, last + 1)])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five segments; the third begins at a snapshot, and the last has records 17 to 20."""
    place = tmp_path_factory.mktemp("evidence") / "journal"
    write(place, own(), last=8)
    (place / snapshot_name(8)).write_text("{}\n")
    write(place, own(), first=9)
    assert len(segments(place)) == 5
    return place


@pytest.fixture
def journal(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "journal")


def found(directory: Path) -> list[tuple[str, str]]:
    """The states and files of the faults, as the command reports them."""
    public = directory.parent / "psc1.pub"
    public.write_text(key_pem(own().public))
    result = run("journal", "check", directory, "--key", public, "--json")
    content = json.loads(result.stdout)
    assert result.exit_code == (0 if content["ok"] else 1)
    assert len(content["faults"]) == sum(f["fault"] for f in content["findings"])
    return [(f["state"], f["file"]) for f in content["findings"] if f["fault"]]


def edit_record(path: Path, index: int = 1) -> None:
    """Changes an amount, and makes the record's checksum right again."""
    segment = Segment.load(path)
    entry = [e for e in segment.entries() if isinstance(e, Whole)][index]
    data = bytearray(segment.bytes_of(entry).replace(b"100", b"900"))
    data[4:8] = crc32(data[COVERED_AT:]).to_bytes(4, "little")
    end = entry.offset + entry.length
    path.write_bytes(segment.data[: entry.offset] + bytes(data) + segment.data[end:])


def edit_header(path: Path, edit: Callable[[Segment], bytes]) -> None:
    segment = Segment.load(path)
    path.write_bytes(edit(segment) + segment.data[segment.records_at :])


def test_a_journal_that_nobody_touched(journal: Path) -> None:
    assert found(journal) == []
    result = check_journal(journal, [own().public])
    assert (result.findings, result.records, result.sealed_lsn) == ((), LAST, 16)


def test_a_changed_record_with_a_right_checksum(journal: Path) -> None:
    edit_record(journal / segment_name(2))
    assert found(journal) == [("tampered", segment_name(2))]
    (fault,) = check_journal(journal, [own().public]).faults
    assert "this is no disk error" in fault.what


@pytest.mark.parametrize("offset", [30, -40])
def test_a_flipped_byte_in_the_middle(journal: Path, offset: int) -> None:
    """Once in the header, which then cannot be read, and once in a record."""
    path = journal / segment_name(3)
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    states = [state for state, file in found(journal) if file == segment_name(3)]
    assert sorted(set(states)) == ["corrupt", "tampered"]
    faults = check_journal(journal, [own().public]).faults
    assert any("perhaps the disk failed" in fault.what for fault in faults)


def test_the_first_and_the_last_sealed_segment_are_covered(journal: Path) -> None:
    edit_record(journal / segment_name(1), 0)
    edit_record(journal / segment_name(4), -1)
    assert found(journal) == [("tampered", segment_name(1)), ("tampered", segment_name(4))]


def test_two_segments_are_swapped(journal: Path) -> None:
    one, other = journal / segment_name(2), journal / segment_name(4)
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    tampered = {file for state, file in found(journal) if state == "tampered"}
    assert tampered == {segment_name(2), segment_name(4)}


@pytest.mark.parametrize(("gone", "where"), [((3,), 4), ((2, 3, 4), 5), ((1,), 2), ((1, 2, 3), 4)])
def test_segments_are_removed(journal: Path, gone: tuple[int, ...], where: int) -> None:
    for number in gone:
        (journal / segment_name(number)).unlink()
    assert set(found(journal)) == {("missing", segment_name(where))}


def test_a_removed_segment_is_hidden_by_other_numbers(journal: Path) -> None:
    """The segments behind the gap are renamed and their headers renumbered."""
    (journal / segment_name(3)).unlink()
    for number in (4, 5):
        path = (journal / segment_name(number)).rename(journal / segment_name(number - 1))
        edit_header(path, lambda s: replace(s.header, number=s.header.number - 1).to_bytes())
    assert ("tampered", segment_name(3)) in found(journal)
    faults = check_journal(journal, [own().public]).faults
    assert any((f.first, f.last) == (3, 4) and "signature" in f.what for f in faults)
    assert segment_name(2) not in {f.where for f in faults}, "it is as the server left it"


def test_a_segment_is_duplicated_over_another(journal: Path) -> None:
    shutil.copyfile(journal / segment_name(2), journal / segment_name(3))
    states = found(journal)
    assert ("tampered", segment_name(3)) in states, "its header has another number"
    assert ("missing", segment_name(4)) in states


def test_a_segment_is_duplicated_at_the_end(journal: Path) -> None:
    shutil.copyfile(journal / segment_name(5), journal / segment_name(6))
    assert ("tampered", segment_name(6)) in found(journal)


def test_a_segment_is_replaced_by_a_directory(journal: Path) -> None:
    (journal / segment_name(3)).unlink()
    (journal / segment_name(3)).mkdir()
    states = found(journal)
    assert ("corrupt", segment_name(3)) in states
    assert {state for state, _ in states} <= {"corrupt", "missing"}


@pytest.mark.parametrize("cut", [1, 170, 500])
def test_a_sealed_segment_is_cut_off(journal: Path, cut: int) -> None:
    """It is no torn end: the next segment says how long it was."""
    path = journal / segment_name(2)
    path.write_bytes(path.read_bytes()[:-cut])
    states = found(journal)
    assert ("tampered", segment_name(2)) in states
    assert "torn" not in dict(states)


def test_a_torn_end_is_told_from_all_that(journal: Path) -> None:
    path = journal / segment_name(5)
    path.write_bytes(path.read_bytes()[:-1])
    assert found(journal) == [("torn", segment_name(5))]


def test_a_journal_is_written_anew_and_signed_with_another_key(tmp_path: Path) -> None:
    forged = tmp_path / "journal"
    write(forged, attackers())
    assert found(forged) == [("foreign", segment_name(1))]


def test_the_end_is_signed_with_another_key(journal: Path) -> None:
    edit_record(journal / segment_name(4))
    key = attackers()

    def sealed(segment: Segment) -> bytes:
        digest = file_digest(journal / segment_name(4))
        assert segment.header.seal is not None
        seal = replace(segment.header.seal, previous_digest=digest)
        header = replace(segment.header, seal=seal)
        return header.signed_with(key.key_id, key.sign_sha256).to_bytes()

    edit_header(journal / segment_name(5), sealed)
    assert found(journal) == [("foreign", segment_name(5))]


def test_the_seal_is_replaced_without_a_key(journal: Path) -> None:
    """The header claims the server's key but has a signature of other contents."""
    edit_record(journal / segment_name(4))

    def sealed(segment: Segment) -> bytes:
        assert segment.header.seal is not None
        digest = file_digest(journal / segment_name(4))
        seal = replace(segment.header.seal, previous_digest=digest)
        return replace(segment.header, seal=seal).to_bytes()

    edit_header(journal / segment_name(5), sealed)
    assert found(journal) == [("tampered", segment_name(5))]


def test_signatures_are_removed(journal: Path) -> None:
    """From the end that is a fault; from everything, it looks like a server without a key."""

    def stripped(segment: Segment) -> bytes:
        assert segment.header.seal is not None
        seal = replace(segment.header.seal, key_id=bytes(32), signature=b"")
        return replace(segment.header, seal=seal).to_bytes()

    edit_header(journal / segment_name(5), stripped)
    assert found(journal) == [("tampered", segment_name(5))]


def test_a_journal_without_signatures_fails_where_they_are_required(tmp_path: Path) -> None:
    forged = tmp_path / "journal"
    write(forged, None)
    assert found(forged) == []
    result = run("journal", "check", forged)
    assert result.exit_code == 0
    assert "unsigned: " in result.stdout
    assert run("journal", "check", forged, "--signed").exit_code == 1


def test_the_format_is_set_back(journal: Path) -> None:
    edit_header(
        journal / segment_name(4), lambda s: replace(s.header, seal=None, indexed=False).to_bytes()
    )
    assert ("tampered", segment_name(4)) in found(journal)


def test_a_snapshot_is_changed_or_removed(journal: Path) -> None:
    snapshot = journal / snapshot_name(8)
    snapshot.write_text("{ }\n")
    assert found(journal) == [("tampered", snapshot.name)]
    snapshot.unlink()
    assert set(found(journal)) == {("missing", segment_name(n)) for n in (3, 4, 5)}


def test_retention_is_told_from_removal(journal: Path) -> None:
    assert len(retain(journal, 1)) == 2
    assert found(journal) == []
    (notice,) = check_journal(journal, [own().public]).notices
    assert (notice.check, notice.first, notice.last) == ("pruned", 1, 2)


def test_a_running_server_does_not_seal_what_others_wrote(tmp_path: Path) -> None:
    """The digest is that of the bytes that the server wrote, not of the file when it is full."""
    place = tmp_path / "journal"
    with closing(Journal(place, "PSC1", SERVER, segment_bytes=900, key=own())) as journal:
        journal.append([record(1), record(2)])
        journal.sync()
        edit_record(place / segment_name(1), 0)
        for lsn in range(3, 8):
            journal.append([record(lsn)])
        journal.sync()
    assert found(place) == [("tampered", segment_name(1))]
