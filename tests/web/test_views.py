"""What pages are made of, apart from any page: the matrix, and the search in a journal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mqis.server.monitoring.status import PartitionStatus, ServerStatus
from mqis.storage.journal.files import segment_name
from mqis.views.console import journal
from mqis.views.console.journal import Filter, journal_page, record_page
from mqis.views.console.places import Place, PlacesError
from mqis.views.console.polling import Polled
from mqis.views.console.replication import Lag, Watch
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    SegmentHeader,
    encode_record,
)

P = "00000000-0000-0000-0000-000000000000"


def polled(
    name: str, last: int | None, *, authority: bool = False, state: str = "normal"
) -> Polled:
    place = Place(name, monitor="http://127.0.0.1:1")
    if last is None:
        return Polled(place, None, False, "does not answer")
    numbers = f"{last:016x}", f"{0:016x}", f"{0:016x}"
    partition = PartitionStatus(P, "enterprise", "a", authority, *numbers, state, 0)
    return Polled(place, ServerStatus(name, "", "", "", 1, 1.0, (partition,), (), {}), True)


def test_a_replica_is_measured_by_its_authority() -> None:
    servers = [
        polled("a", 20, authority=True),
        polled("b", 20),
        polled("c", 17),
        polled("d", 21),
        polled("e", 20, state="sync0"),
        polled("f", None),
    ]
    found = Watch().matrix(servers)
    cells = {cell.server: cell for cell in found.rows[0].cells}
    lags = [cells[name].lag for name in "abcdef"]
    assert lags == [
        Lag.AUTHORITY,
        Lag.LEVEL,
        Lag.BEHIND,
        Lag.AHEAD,
        Lag.SYNCHRONISING,
        Lag.UNKNOWN,
    ]
    assert cells["c"].text == "3 behind"
    assert cells["d"].text == "1 ahead"
    assert cells["e"].text == "gets everything"
    assert found.sentence == (
        "f does not answer; c: 3 changes behind; synchronisation is under way for enterprise"
    )
    assert not found.good


def test_without_the_authority_the_farthest_is_the_measure() -> None:
    found = Watch().matrix([polled("b", 20), polled("c", 17)])
    assert [cell.lag for cell in found.rows[0].cells] == [Lag.LEVEL, Lag.BEHIND]


def test_it_is_told_since_when_a_replica_is_behind() -> None:
    now = 100.0
    watch = Watch(lambda: now)
    late = [polled("a", 20, authority=True), polled("b", 19)]
    assert watch.matrix(late).rows[0].cells[1].text == "1 behind"
    now = 107.0
    assert watch.matrix(late).rows[0].cells[1].text == "1 behind for 7 s"
    level = Watch(lambda: now).matrix([late[0], polled("b", 20)])
    assert level.good
    assert watch.matrix([late[0], polled("b", 20)]).good
    now = 120.0
    assert watch.matrix(late).rows[0].cells[1].text == "1 behind", "it caught up in between"


# --- journal --------------------------------------------------------------------------------------

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
        Filter(),
        Filter(kind="message"),
        Filter(state="refused"),
        Filter(what="update"),
        Filter(peer="BER"),
        Filter(object=str(OBJECT)),
        Filter(kind="change", state="local", peer="chi"),
    ],
)
def test_pages_have_every_record_once(
    written: Path, wanted: Filter, monkeypatch: pytest.MonkeyPatch
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
    page = journal_page(written, Filter())
    assert page.damage == ()
    assert page.lines[0].lsn == 99
