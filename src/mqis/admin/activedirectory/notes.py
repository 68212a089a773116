"""Remarks of an import or export: one about many entries is told once, with all their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mqis.findings import Finding, Gravity, Subject
from mqis.texts import and_more

#: Names that a line of text shows of each remark.
_EXAMPLES: Final = 3
#: Different remarks that are kept at all, and names of all of them; the rest is counted.
_MOST: Final = 1000
_MOST_NAMES: Final = 500_000


class TransferNotes:
    """The remarks of one run, in the order in which they first came."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._names: dict[str, list[str]] = {}
        self._kept = 0

    def tell(self, what: str, name: str, detail: str = "") -> None:
        """Adds an entry to a remark. A hostile file cannot make more than ``_MOST`` of them."""
        if what not in self._counts and len(self._counts) >= _MOST:
            what = "further remarks, which are not listed"
        self._counts[what] = self._counts.get(what, 0) + 1
        names = self._names.setdefault(what, [])
        if self._kept < _MOST_NAMES:
            names.append(f"{name} ({detail})" if detail else name)
            self._kept += 1

    def __iter__(self) -> Iterator[Finding]:
        for what, count in self._counts.items():
            names = self._names[what]
            first = names[:_EXAMPLES]
            shown = ", ".join(first)
            if count > len(first):
                shown += f" {and_more(count - len(first))}"
            entries = tuple(Subject("entry", name) for name in names)
            told = "transfer", Gravity.NOTE, what
            yield Finding(*told, detail=shown, objects=entries, count=count)

    def __bool__(self) -> bool:
        return bool(self._counts)
