"""Attributes with many values, which Active Directory sends in parts (MS-ADTS 3.1.1.3.1.3.3).

Of a long list of values a server sends some and names the attribute ``member;range=0-1499``. The
client asks for ``member;range=1500-*``, and so on, until the upper end is ``*``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mqis.protocol.ldap.errors import LdapViolation
from mqis.wire.ldap.attributes import Values
from mqis.wire.ldap.responses import SearchEntry

_RANGE = re.compile(r"(?P<name>[^;]+);range=(?P<low>[0-9]{1,9})-(?P<high>[0-9]{1,9}|\*)", re.I)
#: Values of one attribute. The largest groups of real directories are far smaller.
MAXIMUM_VALUES: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class ValueRange:
    """A part of the values of an attribute; ``high`` is None for the last part."""

    attribute: str
    low: int
    high: int | None

    @classmethod
    def parse(cls, description: str) -> ValueRange | None:
        """Reads the name of an attribute in an answer; None if it has no range."""
        match = _RANGE.fullmatch(description)
        if match is None:
            return None
        high = None if match["high"] == "*" else int(match["high"])
        return cls(match["name"], int(match["low"]), high)

    @property
    def next(self) -> str | None:
        """The name under which the next part is asked for; None if this one is the last."""
        return None if self.high is None else f"{self.attribute};range={self.high + 1}-*"


class RangedEntry:
    """Collects the parts of an entry's long attributes, until nothing is missing."""

    def __init__(self, entry: SearchEntry) -> None:
        self.name = entry.name
        self._values: dict[str, list[bytes]] = {}
        self._missing: dict[str, ValueRange] = {}
        for description, values in entry.attributes:
            part = ValueRange.parse(description)
            if part is None:
                self._values.setdefault(description, []).extend(values)
            else:
                self._append(part, values, expected=0)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names under which to ask for the next parts."""
        return tuple(part.next for part in self._missing.values() if part.next)

    def add(self, entry: SearchEntry) -> None:
        """Takes the answer to ``missing``; a part that is no longer there has no more values."""
        waiting, self._missing = self._missing, {}
        for description, values in entry.attributes:
            part = ValueRange.parse(description)
            before = waiting.get(part.attribute.lower()) if part else None
            if part is not None and before is not None and before.high is not None:
                known = ValueRange(before.attribute, part.low, part.high)
                self._append(known, values, expected=before.high + 1)

    def entry(self) -> SearchEntry:
        rows = tuple((name, tuple(values)) for name, values in self._values.items())
        return SearchEntry(self.name, rows)

    def _append(self, part: ValueRange, values: Values, *, expected: int) -> None:
        if part.low != expected or (part.high is not None and part.high < part.low):
            raise LdapViolation(
                f"{self.name}: the server sends values {part.low} to {part.high} of "
                f"{part.attribute}, not those from {expected} on"
            )
        found = self._values.setdefault(part.attribute, [])
        found.extend(values)
        if len(found) > MAXIMUM_VALUES:
            raise LdapViolation(f"{self.name}: {part.attribute} has too many values")
        if part.high is not None:
            self._missing[part.attribute.lower()] = part


def has_ranges(entry: SearchEntry) -> bool:
    return any(";range=" in name.lower() for name, _ in entry.attributes)
