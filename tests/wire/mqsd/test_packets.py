"""Discovery packets: the examples, both ways, and everything that is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.decoders import DECODERS
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.mqsd.discovery_packet import (
    Packet,
    TopologyServerReply,
    decode_packet,
    with_correlation,
)
from mqis.wire.mqsd.request import MAX_NETWORKS, TopologyClientRequest, TopologyPacketHeader
from tests.wire.mqsd.vectors import (
    CLIENT_SITE,
    ENTERPRISE,
    NETWORK,
    OTHER_SITE,
    OTHER_SITE_BYTES,
    OTHER_SITE_REPLY,
    OWN_SITE_BYTES,
    OWN_SITE_REPLY,
    REQUEST,
    REQUEST_BYTES,
    REQUEST_ID,
)

guids = st.binary(min_size=16, max_size=16).map(Guid)
#: Any unit but comma and NUL, surrogates that stand alone included; a pair is one character.
names = (
    st.text(st.characters(exclude_characters=",\0"), min_size=1, max_size=20)
    .map(
        lambda text: text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    )
    .filter(bool)
)
specs = st.builds(ServerSpec, names, st.booleans(), st.booleans())
requests = st.builds(
    TopologyClientRequest,
    *(guids, guids, guids),
    st.lists(st.integers(0, 2**32 - 1), max_size=MAX_NETWORKS).map(tuple),
)
networks = st.lists(guids, min_size=1, max_size=MAX_NETWORKS).map(tuple)
own_site_replies = st.builds(TopologyServerReply, guids, networks, st.integers(0, 2**32 - 1))
other_site_replies = st.builds(
    TopologyServerReply,
    *(guids, networks, st.integers(0, 2**32 - 1), guids),
    st.lists(specs, min_size=1, max_size=8).map(tuple),
)
packets: st.SearchStrategy[Packet] = st.one_of(requests, own_site_replies, other_site_replies)


# --- the examples of section 4 --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packet", "data", "size"),
    [
        pytest.param(
            REQUEST,
            REQUEST_BYTES,
            52,
            marks=pytest.mark.req("MQSD-2.2.2-01", "MQSD-2.2.1-04"),
        ),
        pytest.param(OWN_SITE_REPLY, OWN_SITE_BYTES, 48, marks=pytest.mark.req("MQSD-2.2.1-04")),
        pytest.param(
            OTHER_SITE_REPLY,
            OTHER_SITE_BYTES,
            82,
            marks=pytest.mark.req("MQSD-2.2.3-08", "MQSD-2.2.3-01"),
        ),
    ],
    ids=["request", "own site", "other site"],
)
@pytest.mark.req("MQSD-4-01")
def test_the_examples_both_ways(packet: Packet, data: bytes, size: int) -> None:
    assert len(data) == size
    assert packet.to_bytes() == data
    assert type(packet).from_bytes(data) == packet
    assert decode_packet(data) == packet


def test_a_decoder_of_the_command_knows_them() -> None:
    (decoder,) = (d for d in DECODERS if d.name == "mqsd")
    assert decoder.decode(OTHER_SITE_BYTES) == OTHER_SITE_REPLY


# --- header ---------------------------------------------------------------------------------------


@pytest.mark.req("MQSD-2.2.1-01")
def test_the_header_by_its_offsets() -> None:
    header = TopologyPacketHeader(0x22, version=0x11, reserved=0x4433)
    assert header.to_bytes() == bytes.fromhex("11223344")
    assert TopologyPacketHeader.from_bytes(bytes.fromhex("11223344")) == header


@given(packets)
@pytest.mark.req("MQSD-2.2.1-02", "MQSD-2.2.1-04")
def test_what_is_sent_has_zeros_around_its_type(packet: Packet) -> None:
    wanted = 1 if isinstance(packet, TopologyClientRequest) else 2
    assert packet.to_bytes()[:4] == bytes([0, wanted, 0, 0])


@given(packets, st.integers(0, 255), st.integers(0, 0xFFFF))
@pytest.mark.req("MQSD-2.2.1-03")
def test_version_and_reserved_are_ignored(packet: Packet, version: int, reserved: int) -> None:
    data = bytearray(packet.to_bytes())
    data[0], data[2:4] = version, reserved.to_bytes(2, "little")
    assert decode_packet(bytes(data)) == packet


@pytest.mark.parametrize("type_", [0, 3, 255])
def test_another_type_is_no_packet(type_: int) -> None:
    data = bytes([0, type_]) + REQUEST_BYTES[2:]
    with pytest.raises(WireError, match=f"{type_} is neither a request nor a reply at offset 1"):
        decode_packet(data)


def test_a_request_is_no_reply_and_the_other_way_round() -> None:
    with pytest.raises(WireError, match=r"packet type 1 is not 2 \(REPLY\) at offset 1"):
        TopologyServerReply.from_bytes(REQUEST_BYTES)
    with pytest.raises(WireError, match=r"packet type 2 is not 1 \(REQUEST\) at offset 1"):
        TopologyClientRequest.from_bytes(OTHER_SITE_BYTES)
    with pytest.raises(WireError, match=r"packet type 2 is not 1 \(REQUEST\) at offset 1"):
        TopologyClientRequest.received(OTHER_SITE_BYTES)


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.req("MQSD-2.2.2-02", "MQSD-2.2.2-03", "MQSD-2.2.2-04", "MQSD-2.2.2-05")
def test_the_fields_of_a_request_over_ip() -> None:
    data = TopologyClientRequest(ENTERPRISE, REQUEST_ID, CLIENT_SITE).to_bytes()
    assert data[4:20] == ENTERPRISE.raw
    assert data[20:36] == REQUEST_ID.raw
    assert data[36:] == CLIENT_SITE.raw


@pytest.mark.req("MQSD-2.2.2-06")
def test_the_ipx_part() -> None:
    request = replace(REQUEST, ipx_networks=(0x0A0B0C0D, 1))
    part = bytes.fromhex("02000000 0D0C0B0A 01000000")
    assert request.to_bytes() == REQUEST_BYTES + part
    assert TopologyClientRequest.from_bytes(REQUEST_BYTES + part) == request
    assert TopologyClientRequest.received(REQUEST_BYTES + part, ipx=True) == request


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("00000000 00000000", "IPXNetworkCount is 0, at least 1 is required at offset 52"),
        ("21000000" + "00000000" * 33, "33 items, at most 32 are allowed at offset 52"),
        ("02000000 00000000", "2 items do not fit in 4 bytes at offset 52"),
    ],
)
@pytest.mark.req("MQSD-2.2.2-06")
def test_a_wrong_ipx_part(part: str, reason: str) -> None:
    data = REQUEST_BYTES + bytes.fromhex(part)
    for read in (
        TopologyClientRequest.from_bytes,
        lambda octets: TopologyClientRequest.received(octets, ipx=True),
    ):
        with pytest.raises(WireError, match=reason):
            read(data)
    with pytest.raises(ValueError, match="at most 32 networks, not 33"):
        replace(REQUEST, ipx_networks=(1,) * 33)


@pytest.mark.parametrize("size", range(52, 60))
@pytest.mark.req("MQSD-3.2.5.1-01")
def test_below_sixty_bytes_there_is_no_ipx_part(size: int) -> None:
    data = (REQUEST_BYTES + b"\xff" * 8)[:size]
    assert TopologyClientRequest.received(data, ipx=True) == REQUEST
    assert TopologyClientRequest.received(data) == REQUEST


@pytest.mark.req("MQSD-3.2.5.1-03")
def test_over_ip_more_bytes_are_not_looked_at() -> None:
    assert TopologyClientRequest.received(REQUEST_BYTES + b"\xff" * 200) == REQUEST


@pytest.mark.parametrize("size", range(52))
def test_a_request_that_is_cut(size: int) -> None:
    for read in (TopologyClientRequest.from_bytes, TopologyClientRequest.received):
        with pytest.raises(WireError):
            read(REQUEST_BYTES[:size])


# --- replies --------------------------------------------------------------------------------------


@pytest.mark.req("MQSD-2.2.3-03")
def test_a_reply_has_one_to_thirty_two_networks() -> None:
    most = replace(OWN_SITE_REPLY, connected_networks=(NETWORK,) * 32)
    assert TopologyServerReply.from_bytes(most.to_bytes()) == most
    assert len(most.to_bytes()) == 32 + 16 * 32
    for count in (0, 33):
        with pytest.raises(ValueError, match=f"1 to 32 networks, not {count}"):
            replace(OWN_SITE_REPLY, connected_networks=(NETWORK,) * count)


def _changed(data: bytes, at: int, value: str) -> bytes:
    octets = bytes.fromhex(value)
    return data[:at] + octets + data[at + len(octets) :]


def _listing(text: str, size: int | None = None) -> bytes:
    """The other site's reply with another array, and its size if not told otherwise."""
    array = text.encode("utf-16-le", "surrogatepass")
    told = len(array) if size is None else size
    return _changed(OTHER_SITE_BYTES[:64], 28, told.to_bytes(4, "little").hex()) + array


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(
            _changed(OWN_SITE_BYTES, 20, "00000000"),
            "Count is 0",
            id="no network",
            marks=pytest.mark.req("MQSD-2.2.3-03"),
        ),
        pytest.param(
            _changed(OWN_SITE_BYTES, 20, "21000000") + bytes(16 * 32),
            "33 items",
            id="33 networks",
            marks=pytest.mark.req("MQSD-2.2.3-03"),
        ),
        pytest.param(_changed(OWN_SITE_BYTES, 20, "02000000"), "2 items do not fit", id="too few"),
        pytest.param(OWN_SITE_BYTES[:-1], "needs 16 bytes, 15 left", id="one byte short"),
        pytest.param(OWN_SITE_BYTES + b"\0", "1 bytes after the end", id="one byte more"),
        pytest.param(OTHER_SITE_BYTES[:-1], "needs 18 bytes, 17 left", id="cut array"),
        pytest.param(OTHER_SITE_BYTES + b"\0\0", "2 bytes after the end", id="longer than told"),
        pytest.param(
            _listing("10nt4pec\0", 17)[:-1], "an even number of bytes, not 17", id="odd size"
        ),
        pytest.param(_listing("10nt4pec"), "no terminating zero", id="no NUL"),
        pytest.param(
            _listing("10a\x0010b\0"),
            "8 bytes after the end",
            id="a NUL inside",
            marks=pytest.mark.req("MQSD-2.2.3-08"),
        ),
        pytest.param(_listing("\0"), "begins with 0 or 1 for IP at offset 64", id="no entry"),
        pytest.param(_listing("1\0"), "0 or 1 for IPX at offset 66", id="one flag"),
        pytest.param(_listing("10\0"), "name is empty at offset 68", id="no name"),
        pytest.param(_listing("20a\0"), "0 or 1 for IP at offset 64", id="IP flag"),
        pytest.param(
            _listing("12NAME\0"),
            "0 or 1 for IPX at offset 66",
            id="IPX flag",
            marks=pytest.mark.req("MQSD-2.2.3-09"),
        ),
        pytest.param(_listing("10a,\0"), "0 or 1 for IP at offset 72", id="comma at the end"),
        pytest.param(_listing("10\U0001f600,2\0"), "for IP at offset 74", id="a pair of units"),
        pytest.param(OTHER_SITE_BYTES[:40], "needs 16 bytes", id="cut network"),
    ],
)
def test_what_is_no_reply(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        TopologyServerReply.from_bytes(data)


@pytest.mark.req("MQSD-2.2.3-05", "MQSD-2.2.3-08")
def test_the_size_counts_the_nul() -> None:
    servers = (ServerSpec("PSC1"), ServerSpec("X", supports_ip=False, supports_ipx=True))
    reply = replace(OTHER_SITE_REPLY, servers=servers)
    data = reply.to_bytes()
    assert data[28:32] == (22).to_bytes(4, "little")
    assert data[64:].decode("utf-16-le") == "10PSC1,01X\0"
    assert reply.size == len(data) == 64 + 22


@pytest.mark.parametrize(
    ("ip", "ipx", "flags"),
    [(False, False, "00"), (False, True, "01"), (True, False, "10"), (True, True, "11")],
)
@pytest.mark.req("MQSD-2.2.3-09")
def test_the_flags_of_an_entry(ip: bool, ipx: bool, flags: str) -> None:
    server = ServerSpec("n", ip, ipx)
    data = _listing(f"{flags}n\0")
    assert TopologyServerReply.from_bytes(data).servers == (server,)
    assert replace(OTHER_SITE_REPLY, servers=(server,)).to_bytes() == data


@pytest.mark.parametrize("unit", ["\u2c00", "\u002d", "\u0100", "\u002b", "\u2c2c", "\ud800"])
@pytest.mark.req("MQSD-2.2.3-10")
def test_separators_are_units_not_bytes(unit: str) -> None:
    """Each holds a byte of a comma or of a NUL, on either side of another character."""
    servers = (ServerSpec(f"{unit}a{unit}"), ServerSpec(f"b{unit}"))
    data = replace(OTHER_SITE_REPLY, servers=servers).to_bytes()
    assert TopologyServerReply.from_bytes(data).servers == servers
    for forbidden in (",", "\0"):
        with pytest.raises(ValueError, match="cannot hold"):
            ServerSpec(f"a{forbidden}")


@pytest.mark.req("MQSD-2.2.3-11")
def test_a_site_goes_with_at_least_one_server() -> None:
    with pytest.raises(ValueError, match="both a site and its servers, or neither"):
        TopologyServerReply(REQUEST_ID, (NETWORK,), 0, OTHER_SITE)
    with pytest.raises(ValueError, match="both a site and its servers, or neither"):
        TopologyServerReply(REQUEST_ID, (NETWORK,), 0, None, (ServerSpec("x"),))


def test_a_reply_fits_in_a_datagram() -> None:
    name = "x" * 249
    fits = replace(OTHER_SITE_REPLY, servers=(ServerSpec(name),) * 129)
    assert len(fits.to_bytes()) == fits.size < 65_507
    with pytest.raises(ValueError, match="does not fit in a datagram"):
        replace(OTHER_SITE_REPLY, servers=(ServerSpec(name),) * 130)
    array = ",".join([f"10{name}"] * 130) + "\0"
    with pytest.raises(WireError, match="does not fit in a datagram"):
        TopologyServerReply.from_bytes(_listing(array))


@pytest.mark.req("MQSD-3.1.5.2-09")
def test_only_the_size_says_that_it_is_the_own_site() -> None:
    assert OWN_SITE_REPLY.own_site
    assert not OTHER_SITE_REPLY.own_site
    masked = _changed(OWN_SITE_BYTES, 24, "ffffffff")
    assert TopologyServerReply.from_bytes(masked).own_site


@given(st.one_of(own_site_replies, other_site_replies), guids)
def test_a_reply_for_another_request(reply: TopologyServerReply, request_id: Guid) -> None:
    other = replace(reply, correlation_id=request_id)
    assert with_correlation(reply.to_bytes(), request_id.raw) == other.to_bytes()


# --- all of them ----------------------------------------------------------------------------------


@given(packets)
def test_round_trip(packet: Packet) -> None:
    assert decode_packet(packet.to_bytes()) == packet


@given(packets, st.data())
def test_no_part_of_a_packet_is_one(packet: Packet, data: st.DataObject) -> None:
    octets = packet.to_bytes()
    size = data.draw(st.integers(0, len(octets) - 1))
    if isinstance(packet, TopologyClientRequest) and size == 52:
        size = 51  # a request over IPX begins with one over IP
    with pytest.raises(WireError):
        decode_packet(octets[:size])


@given(st.binary(max_size=120), st.sampled_from([0, 1, 2]))
def test_garbage_is_an_error_of_its_own_or_a_packet(data: bytes, type_: int) -> None:
    data = bytes([0, type_]) + data
    try:
        packet = decode_packet(data)
    except WireError:
        return
    assert packet.to_bytes()[4:] == data[4:]
