"""The views behind the pages, tested without a page: the search in a journal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mqis.storage.journal.files import segment_name
from mqis.views.console import journal
from mqis.views.console.journal import RecordFilter, journal_page, record_page
from mqis.views.console.places import PlacesError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    SegmentHeader,
    encode_record,
)

OBJECT = Guid(b"o" * 16)


def records() -> list[JournalRecord]:
    made = []
    for n in range(100):
        kind = RecordKind.CHANGE if n % 3 else RecordKind.MESSAGE
        state = RecordState(n % 8 + 1)
        peer = ("", "ber-dir1", "chi-dir1")[n % 3]
        record = JournalRecord(n, kind, state, peer, operation=n % 3, object_type=1)
        made.append(replace(record, object_id=OBJECT) if n % 10 == 7 else record)
    return made


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A hundred records in segments of 7, 20, 30 and 43."""
    listed = list(enumerate(records(), 1))
    for number, (begin, end) in enumerate(pairwise((0, 7, 27, 57, 100)), 1):
        header = SegmentHeader("s1", Guid(b"s" * 16), number, begin + 1)
        data = header.to_bytes() + b"".join(encode_record(*each) for each in listed[begin:end])
        (tmp_path / segment_name(number)).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize(
    "wanted",
    [
        RecordFilter(),
        RecordFilter(kind="message"),
        RecordFilter(state="refused"),
        RecordFilter(what="update"),
        RecordFilter(peer="BER"),
        RecordFilter(object=str(OBJECT)),
        RecordFilter(kind="change", state="local", peer="chi"),
    ],
)
def test_pages_have_every_record_once(
    written: Path, wanted: RecordFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However soon a search stops, whoever goes on where it stopped misses nothing."""
    monkeypatch.setattr(journal, "MOST_DECODED", 9)
    monkeypatch.setattr(journal, "MOST_SEGMENTS", 2)
    expected = [n for n, record in enumerate(records(), 1) if wanted.takes(record)][::-1]
    found: list[int] = []
    before = None
    for _ in range(100):
        page = journal_page(written, wanted, before, size=4)
        assert len(page.lines) <= 4
        found += [line.lsn for line in page.lines]
        before = page.older
        if before is None:
            break
    assert found == expected
    assert (page.server, page.first) == ("s1", 1)


def test_one_record_is_found_in_any_segment(written: Path) -> None:
    for lsn in (1, 7, 8, 57, 58, 100):
        assert record_page(written, lsn).record["lsn"] == lsn
    for lsn in (-1, 0, 101, 1 << 70):
        with pytest.raises(PlacesError):
            record_page(written, lsn)


def test_a_record_that_is_being_written_is_no_damage(written: Path) -> None:
    last = written / segment_name(4)
    last.write_bytes(last.read_bytes()[:-5])
    page = journal_page(written, RecordFilter())
    assert page.damage == ()
    assert page.lines[0].lsn == 99
