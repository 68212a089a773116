"""Values as people read them: one spelling each, at every boundary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from mqis.texts import (
    agreeing,
    and_more,
    clock,
    counted,
    day,
    duration,
    file_stamp,
    host_port,
    iso_moment,
    joined,
    meant,
    microseconds,
    minute,
    moment,
    parse_moment,
    shortened,
    size,
    some,
    tick_text,
)

#: 2026-03-01 14:05:09 UTC.
AT = 1_772_373_909


def test_numbers_with_nouns() -> None:
    assert [counted(n, "queue") for n in (0, 1, 2300)] == ["0 queues", "1 queue", "2,300 queues"]
    assert [counted(n, "copy", "copies") for n in (1, 2)] == ["1 copy", "2 copies"]
    assert [agreeing(n, "has", "have") for n in (0, 1, 2)] == ["have", "has", "have"]


def test_lists_are_cut_off_and_counted() -> None:
    names = [str(n) for n in range(7)]
    assert some(names, 5) == "0, 1, 2, 3, 4 and 2 more"
    assert some(names[:3]) == "0, 1, 2"
    assert some(names[:4]) == "0, 1, 2 and 1 more"
    assert some([]) == ""
    assert and_more(1200) == "and 1,200 more"
    assert [and_more(n, "session") for n in (1, 2)] == ["and 1 more session", "and 2 more sessions"]
    assert [joined(names[:n]) for n in range(4)] == ["", "0", "0 and 1", "0, 1 and 2"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (0, "0 s"),
        (0.0004, "0.4 ms"),
        (0.35, "350 ms"),
        (0.9994, "999 ms"),
        (0.9999, "1 s"),
        (1.5, "1.5 s"),
        (59.7, "60 s"),
        (119, "119 s"),
        (120, "2 min"),
        (210, "3.5 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (9000, "2.5 h"),
        (172_800, "2 days"),
        (1e6, "12 days"),
        (1e9, "11,574 days"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (3_565_158, "3.4 MiB"),
        (12 << 30, "12 GiB"),
        (5 << 40, "5 TiB"),
        (5000 << 40, "5,000 TiB"),
    ],
)
def test_sizes(number: int, text: str) -> None:
    assert size(number) == text


def test_moments_name_their_zone() -> None:
    assert moment(AT + 0.9) == "2026-03-01 14:05:09 UTC"
    assert moment(AT, to_minute=True) == "2026-03-01 14:05 UTC"
    assert (day(AT), clock(AT)) == ("2026-03-01", "14:05:09 UTC")
    found = [iso_moment(AT * 1_000_000 + 123_456, digits) for digits in (0, 3, 6)]
    assert found == [f"2026-03-01T14:05:09{end}Z" for end in ("", ".123", ".123456")]
    assert file_stamp(AT) == "20260301T140509Z"
    assert minute(datetime.fromtimestamp(AT, UTC)) == "1 March 2026, 14:05"


def test_moments_outside_the_calendar() -> None:
    assert moment(1e15) == "1000000000000000 s"
    assert iso_moment(1 << 62) == f"{1 << 62} us"
    assert iso_moment(-(1 << 62)) == f"-{1 << 62} us"


def test_ticks_of_an_axis() -> None:
    assert tick_text(AT, 3 * 86_400, first=True) == "01 Mar"
    assert tick_text(AT, 300, first=True) == "14:05:09"
    found = [tick_text(AT, 3600, first=first) for first in (True, False)]
    assert found == ["01 Mar 14:05", "14:05"]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T14:05:09",
        "2026-03-01 14:05:09 UTC",
        "2026-03-01T14:05:09Z",
        "2026-03-01T15:05:09+01:00",
        " 2026-03-01T140509 ",
    ],
)
def test_parsing_moments(text: str) -> None:
    found = parse_moment(text)
    assert microseconds(found) == AT * 1_000_000
    assert found.tzinfo is not None


def test_what_is_shown_can_be_typed() -> None:
    for written in (moment(AT), iso_moment(AT * 1_000_000, 0)):
        assert microseconds(parse_moment(written)) == AT * 1_000_000


def test_no_moments() -> None:
    with pytest.raises(ValueError, match=r"'yesterday' is no time: write 2024-03-05T12:00"):
        parse_moment("yesterday")
    with pytest.raises(ValueError, match="has no time zone"):
        parse_moment("2026-03-01T14:05:09", zoned=True)


def test_microseconds_are_exact() -> None:
    east = timezone(timedelta(hours=9))
    assert microseconds(datetime(9999, 12, 31, 23, 59, 59, 999_999, east)) == (
        253_402_300_799_999_999 - 9 * 3_600_000_000
    )


def test_an_address_with_its_port() -> None:
    assert host_port("dir1", 1801) == "dir1:1801"
    assert host_port("fd00::1", 1801) == "[fd00::1]:1801"
    assert host_port("fd00::1", None) == "[fd00::1]"


def test_a_long_text_has_its_length_and_tells_that_there_is_more() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"


def test_an_unknown_word_gets_the_nearest_or_all() -> None:
    known = ("listen", "port")
    assert meant("prot", known, "rpc.") == "did you mean rpc.port?"
    assert meant("zzz", known) == "known: listen, port"
