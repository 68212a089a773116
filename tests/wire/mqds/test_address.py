"""TA_ADDRESS and the packed list of a machine's addresses."""

from __future__ import annotations

from ipaddress import AddressValueError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import machine_address
from mqis.wire.mqds.machine_address import AddressList, AddressType, TaAddress
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer
from tests.strategies.mqds import address_lists, ta_addresses

NETWORK = Guid.parse("03020100-0504-0706-0809-0a0b0c0d0e0f")
RAS = TaAddress(AddressType.IP_RAS, bytes([192, 168, 0, 1]))
VECTORS = [
    ("0400 0100 0a000102", TaAddress.ip("10.0.1.2"), "IP 10.0.1.2"),
    (
        "0400 0200 c0a80001",
        RAS,
        "IP_RAS 192.168.0.1",
    ),
    (
        "0a00 0300 0000000a 0123456789ab",
        TaAddress(AddressType.IPX, bytes.fromhex("0000000a 0123456789ab")),
        "IPX 0000000a:0123456789ab",
    ),
    (
        "1000 0500 000102030405060708090a0b0c0d0e0f",
        TaAddress.foreign(NETWORK),
        f"FOREIGN {NETWORK}",
    ),
    ("0300 0900 aabbcc", TaAddress(9, b"\xaa\xbb\xcc"), "type 9: aabbcc"),
    ("0000 0400", TaAddress(4, b""), "type 4: "),
]
PACKED = bytes.fromhex("".join(digits for digits, _, _ in VECTORS))


def encoded(value: TaAddress) -> bytes:
    writer = Writer()
    value.encode(writer)
    return writer.getvalue()


@pytest.mark.req("MQDS-3.1.4.21.8.1-04")
@pytest.mark.parametrize(("digits", "value", "text"), VECTORS)
def test_layout(digits: str, value: TaAddress, text: str) -> None:
    reader = Reader(bytes.fromhex(digits))
    assert TaAddress.decode(reader) == value
    reader.expect_end("the address")
    assert encoded(value) == bytes.fromhex(digits)


@pytest.mark.parametrize(("digits", "value", "text"), VECTORS)
def test_text(digits: str, value: TaAddress, text: str) -> None:
    assert str(value) == text


@pytest.mark.req("MQDS-3.1.4.21.8.1-04")
def test_a_list_is_packed_without_padding() -> None:
    value = AddressList(tuple(value for _, value, _ in VECTORS))
    assert AddressList.from_bytes(PACKED) == value
    assert value.to_bytes() == PACKED


def test_the_empty_list_has_no_bytes() -> None:
    assert AddressList.from_bytes(b"") == AddressList(())
    assert AddressList(()).to_bytes() == b""


def test_text_of_a_list() -> None:
    value = AddressList((TaAddress.ip("10.0.1.2"), RAS))
    assert str(value) == "IP 10.0.1.2, IP_RAS 192.168.0.1"
    assert str(AddressList(())) == ""


@pytest.mark.parametrize("kind", AddressType)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_known_type_has_its_size(kind: AddressType, change: int) -> None:
    sizes = {"IP": 4, "IP_RAS": 4, "IPX": 10, "FOREIGN": 16}
    size = sizes[kind.name] + change
    data = size.to_bytes(2, "little") + kind.to_bytes(2, "little") + bytes(size)
    with pytest.raises(WireError, match=f"{kind.name} address has") as caught:
        AddressList.from_bytes(PACKED + data)
    assert caught.value.offset == len(PACKED)
    with pytest.raises(ValueError, match=f"{kind.name} address has"):
        TaAddress(kind, bytes(size))


@pytest.mark.parametrize(
    ("kind", "size"), [(-1, 0), (0x10000, 0), (9, machine_address.MAX_ADDRESS_BYTES + 1)]
)
def test_what_the_fields_cannot_hold(kind: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"16 bits|at most"):
        TaAddress(kind, bytes(size))


@pytest.mark.parametrize("text", ["", "10.0.1", "10.0.1.256", "::1", "host"])
def test_text_that_is_no_ip_address(text: str) -> None:
    with pytest.raises(AddressValueError):
        TaAddress.ip(text)


def test_the_number_of_addresses_is_limited() -> None:
    limit = machine_address.MAX_ADDRESSES
    one = TaAddress(9, b"")
    assert len(AddressList.from_bytes(encoded(one) * limit).addresses) == limit
    with pytest.raises(WireError, match="more than 1024 addresses") as caught:
        AddressList.from_bytes(encoded(one) * (limit + 1))
    assert caught.value.offset == 4 * limit
    with pytest.raises(ValueError, match="at most 1024 addresses"):
        AddressList((one,) * (limit + 1))


@given(address_lists())
def test_round_trip(value: AddressList) -> None:
    assert AddressList.from_bytes(value.to_bytes()) == value


@given(st.binary(max_size=80))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    try:
        value = AddressList.from_bytes(data)
    except WireError:
        return
    assert value.to_bytes() == data


@given(ta_addresses())
def test_every_proper_prefix_of_an_address_is_refused(value: TaAddress) -> None:
    data = encoded(value)
    for size in range(len(data)):
        with pytest.raises(WireError):
            TaAddress.decode(Reader(data[:size]))


@given(address_lists())
def test_a_prefix_of_a_list_is_refused_unless_it_ends_with_an_address(value: AddressList) -> None:
    # The list has neither count nor length, so nothing tells that addresses are missing.
    data = value.to_bytes()
    ends = {
        len(AddressList(value.addresses[:count]).to_bytes()): count
        for count in range(len(value.addresses) + 1)
    }
    for size in range(len(data)):
        if size in ends:
            read = AddressList.from_bytes(data[:size])
            assert read.addresses == value.addresses[: ends[size]]
        else:
            with pytest.raises(WireError):
                AddressList.from_bytes(data[:size])
