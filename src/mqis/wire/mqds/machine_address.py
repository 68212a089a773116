"""Network addresses of a machine (MS-MQMQ 2.2.4): the value of PROPID_QM_ADDRESS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from typing import ClassVar, Self

from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

#: Limits of the decoder.
MAX_ADDRESSES = 1024
MAX_ADDRESS_BYTES = 0xFFFF


class AddressType(IntEnum):
    """AddressType; unknown numbers are kept."""

    IP = 0x0001
    IP_RAS = 0x0002
    IPX = 0x0003
    FOREIGN = 0x0005


_SIZES: dict[int, int] = {
    AddressType.IP: 4,
    AddressType.IP_RAS: 4,
    AddressType.IPX: 10,
    AddressType.FOREIGN: 16,
}


# TA_ADDRESS (2.2.4)
#   u16  AddressLength   bytes of Address: IP and IP_RAS 4, IPX 10, FOREIGN 16
#   u16  AddressType
#   ...  Address         IP: the four numbers as they are written, first one first
#                        IPX: 4 bytes network, 6 bytes node; FOREIGN: GUID of a connected network
@dataclass(frozen=True, slots=True)
class TaAddress:
    """One transport address, as bytes."""

    address_type: int
    address: bytes

    def __post_init__(self) -> None:
        if not 0 <= self.address_type <= 0xFFFF:
            raise ValueError(f"the address type {self.address_type} does not fit in 16 bits")
        fault = _size_fault(self.address_type, len(self.address))
        if fault is not None:
            raise ValueError(fault)

    @classmethod
    def ip(cls, text: str) -> TaAddress:
        """Makes an IPv4 address of ``a.b.c.d``."""
        return cls(AddressType.IP, IPv4Address(text).packed)

    @classmethod
    def foreign(cls, network: Guid) -> TaAddress:
        """Makes the address of a foreign system: its connected network."""
        return cls(AddressType.FOREIGN, network.raw)

    @classmethod
    def decode(cls, reader: Reader) -> TaAddress:
        at = reader.offset
        size = reader.u16()
        address_type = reader.u16()
        fault = _size_fault(address_type, size)
        if fault is not None:
            raise reader.error(fault, at)
        return cls(address_type, reader.bytes(size, "Address"))

    def encode(self, writer: Writer) -> None:
        writer.u16(len(self.address))
        writer.u16(self.address_type)
        writer.bytes(self.address)

    def __str__(self) -> str:
        """``IP 10.0.0.1``, ``IPX 0000000a:0123456789ab``, ``FOREIGN <guid>``, ``type 9: <hex>``."""
        digits = self.address.hex()
        match self.address_type:
            case AddressType.IP:
                return f"IP {IPv4Address(self.address)}"
            case AddressType.IP_RAS:
                return f"IP_RAS {IPv4Address(self.address)}"
            case AddressType.IPX:
                return f"IPX {digits[:8]}:{digits[8:]}"
            case AddressType.FOREIGN:
                return f"FOREIGN {Guid(self.address)}"
            case other:
                return f"type {other}: {digits}"


def _size_fault(address_type: int, size: int) -> str | None:
    wanted = _SIZES.get(address_type)
    if wanted is not None and size != wanted:
        return f"an {AddressType(address_type).name} address has {wanted} bytes, not {size}"
    if size > MAX_ADDRESS_BYTES:
        return f"an address has at most {MAX_ADDRESS_BYTES} bytes, not {size}"
    return None


@dataclass(frozen=True, slots=True)
class AddressList(Structure):
    """The TA_ADDRESS structures of a blob, one after the other, without count or padding."""

    NAME: ClassVar[str] = "the addresses"

    addresses: tuple[TaAddress, ...]

    def __post_init__(self) -> None:
        if len(self.addresses) > MAX_ADDRESSES:
            raise ValueError(
                f"a list has at most {MAX_ADDRESSES} addresses, not {len(self.addresses)}"
            )

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        addresses: list[TaAddress] = []
        while reader.remaining:
            if len(addresses) == MAX_ADDRESSES:
                raise reader.error(f"more than {MAX_ADDRESSES} addresses")
            addresses.append(TaAddress.decode(reader))
        return cls(tuple(addresses))

    def encode(self, writer: Writer) -> None:
        for address in self.addresses:
            address.encode(writer)

    def __str__(self) -> str:
        return ", ".join(map(str, self.addresses))
