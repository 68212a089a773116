"""Reads many places of one buffer at once, with NumPy and Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: An offset beyond the end of every buffer.
NOWHERE = np.int64(1) << 62
#: The widths, in UTF-16 units, in which the end of a text is searched for: most texts are short.
_WIDTHS = (32, 256, 2048)
#: The zeros behind the data, so that a search that begins inside stays inside the buffer.
_PADDING = 2 * _WIDTHS[-1]
#: The order in which a GUID's text shows its packet bytes, and the groups of its digits.
_SHOWN = np.array([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15])
_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
GUID_TEXT = 36


class Octets:
    """A buffer; callers must ask only for places inside it."""

    def __init__(self, data: Bytes) -> None:
        self.data: Bytes = np.concatenate((data, np.zeros(_PADDING, np.uint8)))

    def _at_every_byte(self, form: np.dtype[Any]) -> npt.NDArray[Any]:
        """The values of this type that begin at each byte, as a view."""
        count = len(self.data) - form.itemsize + 1
        return np.ndarray((count,), form, self.data, strides=(1,))

    def rows(self, at: Ints, size: int) -> Bytes:
        """``size`` bytes from each place."""
        found = self._at_every_byte(np.dtype(f"V{size}"))[at]
        return found.view(np.uint8).reshape(len(at), size)

    def numbers(self, at: Ints, kind: str) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self._at_every_byte(np.dtype(kind))[at]
        return found

    def u16(self, at: Ints) -> Ints:
        return self.numbers(at, "<u2").astype(np.int64)

    def u32(self, at: Ints) -> Ints:
        return self.numbers(at, "<u4").astype(np.int64)

    def joined(self, at: Ints, lengths: Ints) -> Bytes:
        """Joins the pieces at ``at``, which must be in order and must not overlap."""
        filled = lengths > 0
        at, lengths = at[filled], lengths[filled]
        if not len(at):
            return np.zeros(0, np.uint8)
        # Arrow copies pieces fast. Its array has each piece and the gap behind it as an item.
        bounds = np.empty(2 * len(at), np.int64)
        bounds[0::2], bounds[1::2] = at, at + lengths
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        both = pa.Array.from_buffers(pa.large_binary(), 2 * len(at) - 1, buffers)
        pieces = both.take(pa.array(np.arange(0, 2 * len(at), 2)))
        return np.frombuffer(pieces.buffers()[2], np.uint8)[: int(lengths.sum())]

    def terminator(self, at: Ints, end: Ints) -> Ints:
        """The offset of the 16-bit zero that ends each text at ``at``; NOWHERE if none is before
        ``end``."""
        found = np.full(len(at), NOWHERE, dtype=np.int64)
        asked, place, step = np.flatnonzero(at < end), at.copy(), 0
        while len(asked):
            width = _WIDTHS[min(step, len(_WIDTHS) - 1)]
            units = self.rows(place[asked], 2 * width).view("<u2")
            zeros = units == 0
            first = zeros.argmax(axis=1)
            known = zeros[np.arange(len(asked)), first]
            found[asked[known]] = place[asked[known]] + 2 * first[known]
            place[asked] += 2 * width
            asked = asked[~known & (place[asked] < end[asked])]
            step += 1
        found[found >= end] = NOWHERE
        return found


def running(lengths: Ints) -> Ints:
    """The sums of the first 0, 1, 2... lengths: the offsets of pieces, and at last the end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))


def guid_texts(raw: Bytes) -> Bytes:
    """The text of each GUID; ``raw`` has sixteen columns."""
    shown = np.ascontiguousarray(raw[:, _SHOWN])
    digits = np.frombuffer(shown.tobytes().hex().encode("ascii"), np.uint8).reshape(-1, 32)
    texts = np.full((len(raw), GUID_TEXT), ord("-"), dtype=np.uint8)
    for dashes, (begin, end) in enumerate(_GROUPS):
        texts[:, begin + dashes : end + dashes] = digits[:, begin:end]
    return texts
