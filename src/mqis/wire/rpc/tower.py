"""Protocol towers: the endpoint of an interface, as the endpoint mapper writes it.

    u16 floors, each: u16 length, left side (protocol and its data), u16 length, right side

Unaligned and little-endian, except for the port of a TCP floor. Floors of an unknown kind are
kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.writer import Writer

MAX_FLOORS = 6
MAX_TOWER = 2000

_UUID = 0x0D
_CONNECTION_ORIENTED = 0x0B
_TCP = 0x07
_IP = 0x09


@dataclass(frozen=True, slots=True)
class Floor:
    """One protocol of a tower: its number is first on the left side, its address on the right."""

    left: bytes
    right: bytes

    @property
    def protocol(self) -> int:
        return self.left[0] if self.left else -1

    @classmethod
    def of_syntax(cls, syntax: SyntaxId) -> Floor:
        major = syntax.major.to_bytes(2, "little")
        return cls(bytes([_UUID]) + syntax.uuid.raw + major, syntax.minor.to_bytes(2, "little"))

    def syntax(self) -> SyntaxId | None:
        """The interface or transfer syntax of this floor, or None."""
        if self.protocol != _UUID or len(self.left) != 19 or len(self.right) != 2:
            return None
        major = int.from_bytes(self.left[17:], "little")
        return SyntaxId(Guid(self.left[1:17]), major, int.from_bytes(self.right, "little"))


@dataclass(frozen=True, slots=True)
class Tower:
    """twr_octet_string: an interface with its transfer syntax and endpoint."""

    floors: tuple[Floor, ...]

    @classmethod
    def tcp(cls, interface: SyntaxId, port: int, address: str, transfer: SyntaxId = NDR20) -> Tower:
        """The tower of an interface on TCP/IP; port 0 and address 0.0.0.0 make a query."""
        if not 0 <= port <= 0xFFFF:
            raise ValueError(f"{port} is not a port number")
        return cls(
            (
                Floor.of_syntax(interface),
                Floor.of_syntax(transfer),
                Floor(bytes([_CONNECTION_ORIENTED]), bytes(2)),
                Floor(bytes([_TCP]), port.to_bytes(2, "big")),
                Floor(bytes([_IP]), IPv4Address(address).packed),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Tower:
        reader = Reader(data)
        count = reader.u16()
        if count > MAX_FLOORS:
            raise WireError(f"a tower has at most {MAX_FLOORS} floors, not {count}", 0)
        floors = tuple(
            Floor(reader.bytes(reader.u16(), "floor"), reader.bytes(reader.u16(), "floor"))
            for _ in range(count)
        )
        reader.expect_end("the tower")
        return cls(floors)

    def to_bytes(self) -> bytes:
        writer = Writer()
        writer.u16(len(self.floors))
        for floor in self.floors:
            writer.u16(len(floor.left))
            writer.bytes(floor.left)
            writer.u16(len(floor.right))
            writer.bytes(floor.right)
        return writer.getvalue()

    @property
    def interface(self) -> SyntaxId | None:
        return self.floors[0].syntax() if self.floors else None

    @property
    def transfer(self) -> SyntaxId | None:
        return self.floors[1].syntax() if len(self.floors) > 1 else None

    @property
    def protocols(self) -> tuple[int, ...]:
        """The protocol numbers of the floors below the syntaxes."""
        return tuple(floor.protocol for floor in self.floors[2:])

    @property
    def port(self) -> int | None:
        found = next((f for f in self.floors[2:] if f.protocol == _TCP), None)
        return int.from_bytes(found.right, "big") if found and len(found.right) == 2 else None

    @property
    def address(self) -> str | None:
        found = next((f for f in self.floors[2:] if f.protocol == _IP), None)
        return str(IPv4Address(found.right)) if found and len(found.right) == 4 else None


#: The protocols in a query for TCP/IP, below the syntaxes.
TCP_PROTOCOLS = (_CONNECTION_ORIENTED, _TCP, _IP)
