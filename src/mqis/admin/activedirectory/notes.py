"""Remarks of an import or export: one about many entries is told once, with examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

#: Names that are kept of each remark, and different remarks that are kept at all.
_EXAMPLES: Final = 3
_MOST: Final = 1000


@dataclass(slots=True)
class TransferNote:
    """A remark, the number of entries that it is about, and the names of some of them."""

    what: str
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shown = ", ".join(self.examples)
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{self.count} x {self.what}: {shown}{more}"


class TransferNotes:
    """The remarks of one run, in the order in which they first came."""

    def __init__(self) -> None:
        self._notes: dict[str, TransferNote] = {}

    def tell(self, what: str, name: str) -> None:
        """Adds an entry to a remark. A hostile file cannot make more than ``_MOST`` of them."""
        if what not in self._notes and len(self._notes) >= _MOST:
            what = "further remarks, which are not listed"
        note = self._notes.setdefault(what, TransferNote(what))
        note.count += 1
        if len(note.examples) < _EXAMPLES:
            note.examples.append(name)

    def __iter__(self) -> Iterator[TransferNote]:
        return iter(self._notes.values())

    def __bool__(self) -> bool:
        return bool(self._notes)
