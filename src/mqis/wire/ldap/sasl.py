"""The frames of a SASL security layer (RFC 4422 3.7): four octets of length, then a token."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from mqis.wire.errors import WireError

_LENGTH: Final = Struct(">I")
#: Tokens are a little longer than the messages inside.
MAXIMUM_TOKEN: Final = 17 * 1024 * 1024


def frame(token: bytes) -> bytes:
    return _LENGTH.pack(len(token)) + token


class TokenStream:
    """Splits what arrives on a connection into tokens; no more than one is kept."""

    def __init__(self, limit: int = MAXIMUM_TOKEN) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._before = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes the complete tokens out."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > self._limit:
                reason = f"a protected message of {size} bytes; at most {self._limit}"
                raise WireError(reason, self._before)
            end = _LENGTH.size + size
            if len(self._buffer) < end:
                return
            token = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            self._before += end
            yield token
