"""SEQUENCE_NUMBER (MC-MQDSRP 2.2.2): eight bytes, most significant first.

Everything else in these protocols is little-endian; a sequence number is an array of bytes that
compares from its first to its last, which makes it an unsigned 64-bit big-endian number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

_MODULUS = 1 << 64


@dataclass(frozen=True, slots=True, order=True)
class SequenceNumber:
    """A point in the history of a partition. Arithmetic wraps, as the text has it."""

    value: int

    MIN: ClassVar[SequenceNumber]
    MAX: ClassVar[SequenceNumber]
    SIZE: ClassVar[int] = 8

    def __post_init__(self) -> None:
        if not 0 <= self.value < _MODULUS:
            raise ValueError(f"a sequence number is 0..2^64-1, not {self.value}")

    @classmethod
    def decode(cls, reader: Reader) -> SequenceNumber:
        return cls.from_bytes(reader.bytes(cls.SIZE, "SEQUENCE_NUMBER"))

    @classmethod
    def from_bytes(cls, data: bytes) -> SequenceNumber:
        """Reads what ``to_bytes`` gives; fewer bytes are a smaller number."""
        return cls(int.from_bytes(data, "big"))

    def encode(self, writer: Writer) -> None:
        writer.bytes(self.to_bytes())

    @classmethod
    def parse(cls, text: str) -> SequenceNumber:
        """From the sixteen hexadecimal digits that ``str`` gives."""
        if len(text) != 16 or not all(c in "0123456789abcdef" for c in text.lower()):
            raise ValueError(f"{text!r} is not a sequence number (16 hexadecimal digits)")
        return cls(int(text, 16))

    def to_bytes(self) -> bytes:
        return self.value.to_bytes(8, "big")

    def increment(self) -> SequenceNumber:
        return self + 1

    def decrement(self) -> SequenceNumber:
        return self - 1

    def __add__(self, steps: int) -> SequenceNumber:
        return SequenceNumber((self.value + steps) % _MODULUS)

    def __sub__(self, steps: int) -> SequenceNumber:
        return SequenceNumber((self.value - steps) % _MODULUS)

    def saturating_sub(self, steps: int) -> SequenceNumber:
        """Subtract but stop at MIN: the purge rule must not wrap to a huge number (E22)."""
        return SequenceNumber(max(0, self.value - steps))

    def __str__(self) -> str:
        return f"{self.value:016x}"


SequenceNumber.MIN = SequenceNumber(0)
SequenceNumber.MAX = SequenceNumber(_MODULUS - 1)
