"""UTF-16 texts of a buffer as Arrow arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqis.pipeline import arrays
from mqis.pipeline.decoding.octets import Ints, Octets, running

#: The first units that take two and three bytes of UTF-8, and the surrogates, of which a pair is
#: one character.
_TWO_BYTES, _THREE_BYTES = 0x80, 0x800
_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xE000


@dataclass(frozen=True)
class Texts:
    """Texts that begin at ``at`` and have so many bytes, without their ends."""

    octets: Octets
    at: Ints
    lengths: Ints

    @cached_property
    def _units(self) -> npt.NDArray[np.uint16]:
        return self.octets.joined(self.at, self.lengths).view("<u2")

    @cached_property
    def _highest(self) -> int:
        return int(self._units.max(initial=0))

    def with_surrogates(self) -> Ints:
        """The indexes of texts that have surrogates, which ``array`` cannot take."""
        if self._highest < _SURROGATES:
            return np.zeros(0, np.int64)
        odd = np.flatnonzero((self._units >= _SURROGATES) & (self._units < _BEHIND_SURROGATES))
        return np.unique(np.searchsorted(np.cumsum(self.lengths // 2), odd, side="right"))

    def array(self) -> pa.Array:
        """The texts as an array of strings."""
        if self._highest < _TWO_BYTES:
            ascii_only = self._units.view(np.uint8)[0::2].tobytes()
            return arrays.pieces(ascii_only, self.lengths // 2, pa.string())
        units = self._units
        sizes = 1 + (units >= _TWO_BYTES).astype(np.int64) + (units >= _THREE_BYTES)
        lengths = np.diff(running(sizes)[running(self.lengths // 2)])
        return arrays.pieces(units.tobytes().decode("utf-16-le").encode(), lengths, pa.string())
