"""Reads many places of one buffer at once, with NumPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: An offset beyond the end of every buffer.
NOWHERE = np.int64(1) << 62
#: The order in which a GUID's text shows its packet bytes, and the positions of its digits.
_SHOWN = np.array([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15])
_PLACES = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
GUID_TEXT = 36


class Octets:
    """A buffer; callers must ask only for places inside it."""

    def __init__(self, data: Bytes) -> None:
        self.data = data

    def rows(self, at: Ints, size: int) -> Bytes:
        """``size`` bytes from each place."""
        found: Bytes = self.data[at[:, None] + np.arange(size)]
        return found

    def numbers(self, at: Ints, kind: str) -> npt.NDArray[Any]:
        form = np.dtype(kind)
        return self.rows(at, form.itemsize).view(form)[:, 0]

    def u16(self, at: Ints) -> Ints:
        return self.numbers(at, "<u2").astype(np.int64)

    def u32(self, at: Ints) -> Ints:
        return self.numbers(at, "<u4").astype(np.int64)

    def joined(self, at: Ints, lengths: Ints) -> Bytes:
        """Joins the pieces at ``at`` with these lengths."""
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        found: Bytes = self.data[np.arange(total) + np.repeat(at - ends + lengths, lengths)]
        return found

    @cached_property
    def _zeros(self) -> tuple[Ints, Ints]:
        """The offsets of two zero bytes: the even ones, the odd ones."""
        none = self.data == 0
        pairs = np.flatnonzero(none[:-1] & none[1:])
        return pairs[pairs % 2 == 0], pairs[pairs % 2 == 1]

    def terminator(self, at: Ints) -> Ints:
        """The offset of the 16-bit zero that ends each text at ``at``; NOWHERE if there is none."""
        found = np.full(len(at), NOWHERE, dtype=np.int64)
        for odd, places in enumerate(self._zeros):
            asked = np.flatnonzero(at % 2 == odd)
            index = np.searchsorted(places, at[asked])
            known = index < len(places)
            found[asked[known]] = places[index[known]]
        return found


def guid_texts(raw: Bytes) -> Bytes:
    """The text of each GUID; ``raw`` has sixteen columns."""
    shown = raw[:, _SHOWN]
    digits = np.empty((len(raw), 32), dtype=np.uint8)
    digits[:, 0::2] = _DIGITS[shown >> 4]
    digits[:, 1::2] = _DIGITS[shown & 15]
    texts = np.full((len(raw), GUID_TEXT), ord("-"), dtype=np.uint8)
    texts[:, _PLACES] = digits
    return texts
