"""Periods as users write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mqis.views.presentation.periods import parse_period
from mqis.wire.errors import MqisError


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("2026-03-01", us("2026-03-01"), us("2026-03-02")),
        ("2026-03-01T14", us("2026-03-01T14:00:00"), us("2026-03-01T15:00:00")),
        ("2026-03-01 14:05", us("2026-03-01T14:05:00"), us("2026-03-01T14:06:00")),
        ("2026-03-01T14:05:59Z", us("2026-03-01T14:05:59"), us("2026-03-01T14:06:00")),
        ("2026-03-01..2026-03-02", us("2026-03-01"), us("2026-03-03")),
        ("2026-03-01T14:05..", us("2026-03-01T14:05:00"), None),
        ("..2026-03-01", None, us("2026-03-02")),
    ],
)
def test_a_period_is_as_long_as_it_is_written(
    text: str, since: int | None, until: int | None
) -> None:
    assert parse_period(text) == (since, until)


@pytest.mark.parametrize(
    "text", ["", "..", "yesterday", "2026-13-01", "14:05", "2026-03-02..2026-03-01", "9999-12-31"]
)
def test_what_is_no_period(text: str) -> None:
    with pytest.raises(MqisError):
        parse_period(text)
