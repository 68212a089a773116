"""Periods as users write them: a day, a minute, or from one moment to another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mqis.texts import microseconds
from mqis.wire.errors import MqisError

#: Formats from coarse to fine, and the length of the period that each names.
_FORMATS = (
    ("%Y-%m-%d", timedelta(days=1)),
    ("%Y-%m-%dT%H", timedelta(hours=1)),
    ("%Y-%m-%dT%H:%M", timedelta(minutes=1)),
    ("%Y-%m-%dT%H:%M:%S", timedelta(seconds=1)),
    ("%Y-%m-%dT%H:%M:%S.%f", timedelta(microseconds=1)),
)


def parse_period(text: str) -> tuple[int | None, int | None]:
    """Returns the first microsecond since 1970 and the first after it; None: no limit.

    ``2026-03-01`` is a day, ``2026-03-01T14:05`` a minute. ``FROM..TO`` includes all of TO;
    ``FROM..`` and ``..TO`` have one end. Times are UTC.
    """
    first, dots, last = text.partition("..")
    if not dots:
        first = last = text
    if not first.strip() and not last.strip():
        raise _wrong(text)
    since = _bounds(first)[0] if first.strip() else None
    until = _bounds(last)[1] if last.strip() else None
    if since is not None and until is not None and since >= until:
        raise MqisError(f"{text!r} ends before it begins")
    return since, until


def _bounds(text: str) -> tuple[int, int]:
    written = text.strip().replace(" ", "T").removesuffix("Z")
    for form, length in _FORMATS:
        try:
            moment = datetime.strptime(written, form).replace(tzinfo=UTC)
            return microseconds(moment), microseconds(moment + length)
        except (ValueError, OverflowError):
            continue
    raise _wrong(text)


def _wrong(text: str) -> MqisError:
    return MqisError(
        f"{text!r} is no time: write 2026-03-01, 2026-03-01T14:05, FROM..TO or FROM.. (UTC)"
    )
