"""What stands on its own as a run of bytes: both ways between those and a value.

A structure says how to ``decode`` itself from a reader and ``encode`` itself to a writer; as a
whole value it also has ``from_bytes``, which takes all bytes or none, and ``to_bytes``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from mqis.wire.reader import Reader
from mqis.wire.writer import Writer


class Structure(ABC):
    """Base of frozen, slotted dataclasses; ``NAME`` is what errors call it."""

    __slots__ = ()
    NAME: ClassVar[str]

    @classmethod
    @abstractmethod
    def decode(cls, reader: Reader) -> Self:
        """The value that stands next in ``reader``; ``WireError`` if none does."""

    @abstractmethod
    def encode(self, writer: Writer) -> None:
        """Append the value to ``writer``."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The value that ``data`` holds, and nothing after it."""
        reader = Reader(data)
        value = cls.decode(reader)
        reader.expect_end(cls.NAME)
        return value

    def to_bytes(self) -> bytes:
        writer = Writer()
        self.encode(writer)
        return writer.getvalue()
