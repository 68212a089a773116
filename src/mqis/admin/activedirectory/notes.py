"""Remarks of an import or export: one about many entries is told once, with examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mqis.findings import Finding, Gravity, Subject

#: Names that are kept of each remark, and different remarks that are kept at all.
_EXAMPLES: Final = 3
_MOST: Final = 1000


class TransferNotes:
    """The remarks of one run, in the order in which they first came."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def tell(self, what: str, name: str) -> None:
        """Adds an entry to a remark. A hostile file cannot make more than ``_MOST`` of them."""
        if what not in self._counts and len(self._counts) >= _MOST:
            what = "further remarks, which are not listed"
        self._counts[what] = self._counts.get(what, 0) + 1
        examples = self._examples.setdefault(what, [])
        if len(examples) < _EXAMPLES:
            examples.append(name)

    def __iter__(self) -> Iterator[Finding]:
        for what, count in self._counts.items():
            names = self._examples[what]
            shown = ", ".join([*names, "..."] if count > len(names) else names)
            entries = tuple(Subject("entry", name) for name in names)
            told = "transfer", Gravity.NOTE, what
            yield Finding(*told, detail=shown, objects=entries, count=count)

    def __bool__(self) -> bool:
        return bool(self._counts)
