"""Rows as tables of the page, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from mqis.pipeline.report.wording import heading, phrase
from mqis.texts import microseconds, moment

Rows = Sequence[Mapping[str, Any]]
#: The rows of a table that are shown; a page with more cannot be read or printed.
SHOWN = 100
#: With more rows, a table is folded.
_SHORT = 15
#: The columns of tables that have too many for a page.
_CHOSEN = {
    "divergence": (
        *("server", "type", "path", "difference", "properties", "cause", "reason", "source"),
        *("target", "id"),
    )
}
#: A text with more characters is broken into lines.
_LONG = 50
_HIDDEN = frozenset({"partition_id"})


@dataclass(frozen=True, slots=True)
class RowTable:
    """The rows of a table that the page shows, in words."""

    KIND: ClassVar[str] = "row_table"

    #: (heading, is a number) of each column.
    columns: tuple[tuple[str, bool], ...]
    #: (text, mark) of each cell.
    rows: tuple[tuple[tuple[str, str], ...], ...]
    #: The number of all rows.
    total: int
    is_open: bool

    @classmethod
    def of(cls, name: str, rows: Rows, total: int = 0, *, unfolded: bool = False) -> RowTable:
        """A table of the first rows; ``total`` counts all of them, if there are more."""
        columns = [column for column in _columns(name, rows) if _says_something(rows, column)]
        count = max(total, len(rows))
        return cls(
            tuple((heading(column), _is_number(rows[0][column])) for column in columns),
            tuple(
                tuple(_cell(phrase(column, row[column])) for column in columns)
                for row in rows[:SHOWN]
            ),
            count,
            unfolded or count <= _SHORT,
        )


def _columns(name: str, rows: Rows) -> list[str]:
    chosen = [column for column in _CHOSEN.get(name, ()) if column in rows[0]]
    return chosen or [column for column in rows[0] if column not in _HIDDEN]


def _says_something(rows: Rows, column: str) -> bool:
    """True if the column is not empty in all rows that are shown."""
    return any(row[column] not in (None, "", [], 0) or row[column] is False for row in rows[:SHOWN])


def _cell(value: object) -> tuple[str, str]:
    text = text_of(value)
    return text, "number" if _is_number(value) else "long" if len(text) > _LONG else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_of(value: object) -> str:
    """A value as text, without the marks of a programming language."""
    for kind, convert in _TEXTS:
        if isinstance(value, kind):
            return convert(value)
    return str(value)


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


#: Conversions by type; the first match counts, as a boolean is an integer too.
_TEXTS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (type(None), lambda _: ""),
    (bool, lambda value: "yes" if value else "no"),
    (float, lambda value: f"{value:,.6g}"),
    (int, lambda value: f"{value:,}"),
    (datetime, lambda value: moment(microseconds(_in_utc(value)) / 1e6)),
    (dict, lambda value: ", ".join(f"{key}: {text_of(item)}" for key, item in value.items())),
    ((list, tuple), lambda value: ", ".join(map(text_of, value))),
)
