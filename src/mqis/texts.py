"""Values as people read them: numbers with nouns, lists, durations, sizes and moments.

Each has one spelling, in commands, the console, the report, findings and messages of errors. Times
are shown in UTC and name it; a text that a user types has its zone, or means UTC too. Formats that
programs read (JSON, journals, LDAP) belong to their own modules.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: (below this many seconds, seconds of the unit, unit).
_DURATIONS = (
    (0.9995, 0.001, "ms"),
    (120.0, 1, "s"),
    (7_200.0, 60, "min"),
    (172_800.0, 3_600, "h"),
)
_DAY_S = 86_400
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
#: The most names of a list that are shown, unless its place has more room.
MOST_NAMES = 3


# --- numbers and lists ----------------------------------------------------------------------------


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 queue``, ``2,300 queues``."""
    return f"{number:,} {agreeing(number, noun, plural or f'{noun}s')}"


def agreeing(number: int, one: str, many: str) -> str:
    """The form of a word that goes with a number: ``has`` or ``have``."""
    return one if number == 1 else many


def some(names: Sequence[str], most: int = MOST_NAMES, separator: str = ", ") -> str:
    """The first names, and the number of the others: ``a, b, c and 4 more``."""
    shown = separator.join(names[:most])
    return f"{shown} {and_more(len(names) - most)}" if len(names) > most else shown


def and_more(number: int, noun: str = "") -> str:
    """The end of a list that is cut off: ``and 4 more``, ``and 4 more sessions``."""
    return f"and {number:,} more" + (f" {agreeing(number, noun, f'{noun}s')}" if noun else "")


def joined(names: Sequence[str], most: int | None = None) -> str:
    """Names as in a sentence: ``a, b and c``, or ``a, b and 4 more`` with ``most``."""
    if most is not None and len(names) > most:
        return some(names, most)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# --- durations and sizes --------------------------------------------------------------------------


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters; the last one tells that there are more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def meant(word: str, known: Sequence[str], prefix: str = "") -> str:
    """The hint behind a word that is not known: the nearest one, or all of them."""
    from difflib import get_close_matches  # noqa: PLC0415 -- only errors need it

    near = get_close_matches(word, known, n=1)
    return f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(known)}"


def host_port(host: str, port: int | None) -> str:
    """``HOST:PORT`` as URLs have it, with brackets around an IPv6 address."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def duration(seconds: float) -> str:
    """A duration in the unit that people would choose: 350 ms, 12 s, 3.5 min, 5 h, 2 days."""
    if seconds <= 0:
        return "0 s"
    for limit_s, unit_s, unit in _DURATIONS:
        if seconds < limit_s:
            return f"{_short(seconds / unit_s)} {unit}"
    return f"{_short(seconds / _DAY_S)} days"


def size(number: float) -> str:
    """A number of bytes: 512 B, 3.4 MiB, 12 GiB."""
    for unit_bytes, unit in _SIZES:
        if number >= unit_bytes:
            return f"{_short(number / unit_bytes)} {unit}"
    return f"{number:.0f} B"


def _short(amount: float) -> str:
    """The amount with two digits, or all before the point."""
    text = f"{amount:.1f}"
    return text.removesuffix(".0") if len(text) < 4 else f"{amount:,.0f}"


# --- moments --------------------------------------------------------------------------------------


def moment(unix: float, *, to_minute: bool = False) -> str:
    """A moment for people: ``2026-03-01 14:05:09 UTC``."""
    when = _at_us(int(unix) * 1_000_000)
    if when is None:
        return f"{unix:.0f} s"
    return f"{when:%Y-%m-%d %H:%M} UTC" if to_minute else f"{when:%Y-%m-%d %H:%M:%S} UTC"


def iso_moment(time_us: int, digits: int = 6) -> str:
    """A moment for JSON, files and copying, in ISO 8601 with 0, 3 or 6 digits of the second."""
    when = _at_us(time_us)
    if when is None:
        return f"{time_us} us"
    fraction = f".{when.microsecond:06}"[: digits + 1] if digits else ""
    return f"{when:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def minute(when: datetime) -> str:
    """A moment in a sentence that names the zone: ``1 March 2026, 14:05``."""
    return f"{when.day} {when:%B %Y, %H:%M}"


def day(unix: float) -> str:
    """The day of a moment: ``2026-03-01``."""
    return moment(unix).partition(" ")[0]


def clock(unix: float) -> str:
    """The time of the day, for what lasts less than one: ``14:05:09 UTC``."""
    return moment(unix).partition(" ")[2]


def tick_text(unix: float, span_s: float, *, first: bool) -> str:
    """A moment at an axis that shows so many seconds; the first one names its day."""
    when = _EPOCH + timedelta(seconds=unix)
    if span_s > 2 * _DAY_S:
        return f"{when:%d %b}"
    if 0 < span_s < 600:
        return f"{when:%H:%M:%S}"
    return f"{when:%d %b %H:%M}" if first else f"{when:%H:%M}"


def file_stamp(unix: float) -> str:
    """A moment in the name of a file: ``20260301T140509Z``."""
    return f"{_EPOCH + timedelta(seconds=int(unix)):%Y%m%dT%H%M%SZ}"


def parse_moment(text: str, *, zoned: bool = False) -> datetime:
    """Parses a moment of ISO 8601, as ``moment`` writes it too; without a zone it is in UTC.

    A program writes its zone: what lacks one with ``zoned`` was not written by one of ours.
    """
    try:
        found = datetime.fromisoformat(text.strip().replace(" UTC", "Z"))
    except ValueError:
        raise ValueError(
            f"{text!r} is no time: write 2024-03-05T12:00, in UTC if it names no zone"
        ) from None
    if zoned and not found.tzinfo:
        raise ValueError(f"{text} has no time zone")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def microseconds(when: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (when - _EPOCH) // timedelta(microseconds=1)


def _at_us(time_us: int) -> datetime | None:
    """None if the calendar does not reach there."""
    try:
        return _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return None


def visible(text: str) -> str:
    """Escapes characters that would control a terminal or cannot be encoded.

    Names and labels come from anywhere: escape sequences and lone surrogates show as ``\\x1b``.
    """
    return "".join(c if _is_visible(c) else ascii(c)[1:-1] for c in text)


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
