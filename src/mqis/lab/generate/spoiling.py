"""Spoils finished journals and exports: removes, copies and damages files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from mqis.lab.generate.delivery import Book, change_record
from mqis.lab.generate.planted_faults import JournalDamage, PlantedEvidence
from mqis.protocol.directory.export_format import parse_entry
from mqis.protocol.directory.objects import DirectoryObject, Partition
from mqis.storage.journal import Journal
from mqis.storage.journal.journal_files import segments
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordState, Whole, segment_header, walk
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.seqnum import SequenceNumber

#: Somewhere in the header of a record, behind its checksum.
_WITHIN = 60
_UNFINISHED = 90
#: The number of lines that are cut from an export.
_CUT = 3
_STRANGER = "stranger"


def whole_records(path: Path) -> list[Whole]:
    data = path.read_bytes()
    _, start = segment_header(data)
    return [entry for entry in walk(data, start) if isinstance(entry, Whole)]


# --- journals -------------------------------------------------------------------------------------


def damage_journal(directory: Path, server: str) -> list[JournalDamage]:
    """Damages a journal of at least four segments, and removes two of them.

    Changes a record of the last but three, removes the last but two, adds a record whose write did
    not finish to the last but one, and removes the last.
    """
    first, middle, end, last = list(segments(directory).values())[-4:]
    middle.unlink()
    last.unlink()
    return [_corrupt(first, server), _tear(end, server)]


def lost_segment(directory: Path, server: str) -> Iterator[PlantedEvidence]:
    """The segment that ``damage_journal`` will remove from the middle, and its records."""
    found = segments(directory)
    number, path = list(found.items())[-3]
    lost, file = whole_records(path), str(found[number + 1])
    yield PlantedEvidence("missing_segments", server, file, None, number, number)
    yield PlantedEvidence("missing_records", server, file, None, lost[0].lsn, lost[-1].lsn)


def _corrupt(path: Path, server: str) -> JournalDamage:
    data, found = bytearray(path.read_bytes()), whole_records(path)
    victim = found[len(found) // 2]
    data[victim.offset + _WITHIN] ^= 0xFF
    path.write_bytes(data)
    return JournalDamage(server, str(path), victim.offset, "corrupt")


def _tear(path: Path, server: str) -> JournalDamage:
    data, last = path.read_bytes(), whole_records(path)[-1]
    end = last.offset + last.length  # a segment has its index when nothing more is written to it
    path.write_bytes(data[:end] + data[last.offset : last.offset + _UNFINISHED])
    return JournalDamage(server, str(path), end, "torn")


def copy_journal(journals: Path, server: str) -> Iterator[PlantedEvidence]:
    """Puts a second copy of a journal beside the others."""
    shutil.copytree(journals / server, journals / "zz-copy" / server)
    for path in segments(journals / "zz-copy" / server).values():
        first = whole_records(path)[0].lsn
        yield PlantedEvidence("duplicate_segment", server, str(path), None, first)


def add_stranger(
    journals: Path, id_: Guid, like: DirectoryObject, state: Partition, now_us: int
) -> PlantedEvidence:
    """Adds the journal of a server that nobody knows, which claims changes of a partition."""
    place = journals / _STRANGER
    book = Book(Journal(place, _STRANGER, id_))
    listed = tuple(props({PropId.Q_LABEL: "made by nobody"}).items())
    for number in range(state.last_seq.value, state.last_seq.value + _CUT):
        numbers = SequenceNumber(number - 1), SequenceNumber(number), SequenceNumber.MIN
        change = DirectoryChange(Command.UPDATE, None, like.id, state.id, *numbers, listed)
        about = change, int(like.type), like.id
        book.write(change_record(now_us, RecordState.LOCAL, *about, body=change.encoded))
    book.close()
    return PlantedEvidence("stranger", _STRANGER, str(place))


# --- exports --------------------------------------------------------------------------------------


def misname_export(exports: Path, whose: str, name: str) -> PlantedEvidence:
    """Copies the export of one server to a file named after another."""
    path = exports / "zz-moved" / f"{name}.jsonl"
    path.parent.mkdir()
    shutil.copy(exports / f"{whose}.jsonl", path)
    return PlantedEvidence("misnamed_export", name, str(path))


def garble_line(path: Path, id_: Guid) -> JournalDamage:
    """Makes the line of an object invalid UTF-8."""
    lines = path.read_bytes().splitlines(keepends=True)
    named = f'"id":"{id_}"'.encode("ascii")
    number = next(index for index, line in enumerate(lines) if named in line)
    head, mark, tail = lines[number].partition(b'"value":"')
    lines[number] = head + mark + b"\xff" + tail[1:]
    path.write_bytes(b"".join(lines))
    return JournalDamage(path.stem, str(path), sum(map(len, lines[:number])), "not UTF-8")


def cut_export(path: Path) -> tuple[JournalDamage, list[DirectoryObject]]:
    """Removes the last lines of an export; returns the objects in them."""
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    # The line behind them has the digest.
    kept, lost = lines[: -_CUT - 1], lines[-_CUT - 1 : -1]
    path.write_text("".join(kept), encoding="ascii")
    entries = [parse_entry(line, 0) for line in lost]
    objects = [entry for entry in entries if isinstance(entry, DirectoryObject)]
    return JournalDamage(path.stem, str(path), path.stat().st_size, "cut"), objects
