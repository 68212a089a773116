"""Sessions and calls: the counters that servers tell, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqis.views.console.polling import Polled


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    #: As text, by server in their order; empty where one does not tell.
    values: tuple[str, ...]


def counters(polled: Sequence[Polled]) -> list[Counter]:
    """Every name that any server tells."""
    told = [each.status.counters if each.status is not None else {} for each in polled]
    names = sorted({name for each in told for name in each})
    return [
        Counter(name, tuple(_shown(each[name]) if name in each else "" for each in told))
        for name in names
    ]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
