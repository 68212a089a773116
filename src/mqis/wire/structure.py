"""The base of values with an encoding of their own.

A structure can ``decode`` itself from a reader and ``encode`` itself to a writer. From these it
gets ``from_bytes``, which requires all bytes to be used, and ``to_bytes``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from mqis.wire.reader import Reader
from mqis.wire.writer import Writer


class Structure(ABC):
    """The base of frozen, slotted dataclasses; errors call them by ``NAME``."""

    __slots__ = ()
    NAME: ClassVar[str]

    @classmethod
    @abstractmethod
    def decode(cls, reader: Reader) -> Self:
        """Decodes the next value in ``reader``; raises ``WireError`` if it is malformed."""

    @abstractmethod
    def encode(self, writer: Writer) -> None:
        """Appends the value to ``writer``."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Decodes ``data``, which is exactly one value."""
        reader = Reader(data)
        value = cls.decode(reader)
        reader.expect_end(cls.NAME)
        return value

    def to_bytes(self) -> bytes:
        writer = Writer()
        self.encode(writer)
        return writer.getvalue()
