"""MessageIdentifier (MS-MQMQ 2.2.18.1.3): the queue manager's GUID, then a u32 ordinal."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader


@dataclass(frozen=True, slots=True)
class MessageIdentifier:
    """The permanent identifier of a message; acknowledgements carry it as CorrelationID."""

    source: Guid
    ordinal: int

    def __post_init__(self) -> None:
        if not 0 <= self.ordinal <= 0xFFFFFFFF:
            raise ValueError(f"an ordinal has 32 bits, {self.ordinal} does not fit")

    @classmethod
    def from_bytes(cls, data: bytes) -> MessageIdentifier:
        reader = Reader(data)
        identifier = cls(reader.guid(), reader.u32())
        reader.expect_end("the message identifier")
        return identifier

    def to_bytes(self) -> bytes:
        return self.source.raw + self.ordinal.to_bytes(4, "little")

    def __str__(self) -> str:
        return f"{self.source}\\{self.ordinal}"
