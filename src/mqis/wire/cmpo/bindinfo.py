"""BIND_INFO_BLOB (2.2.1): the protocols by which the sender can be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mqis.wire.cmpo.codes import ComProtocol
from mqis.wire.errors import WireError
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

SIZE = 8


@dataclass(frozen=True, slots=True)
class BindInfo(Structure):
    """u32 dwcbThisStruct = 8, u32 grbitComProtocols. Unknown bits are kept."""

    NAME: ClassVar[str] = "BIND_INFO_BLOB"

    protocols: ComProtocol

    @classmethod
    def decode(cls, reader: Reader) -> BindInfo:
        size = reader.u32()
        if size != SIZE:
            raise WireError(f"BIND_INFO_BLOB of {size} bytes, not {SIZE}", reader.offset - 4)
        return cls(ComProtocol(reader.u32()))

    def encode(self, writer: Writer) -> None:
        writer.u32(SIZE)
        writer.u32(self.protocols)

    @property
    def effective(self) -> ComProtocol:
        """The protocols, or TCP if no bit is set (2.2.4)."""
        return self.protocols or ComProtocol.IP_TCP
