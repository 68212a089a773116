"""Messages in boxcars: what leaves when, and what arrives of malformed ones."""

from __future__ import annotations

from struct import pack, unpack_from

import pytest

from mqis.protocol.multiplexer.events import (
    ConnectionRequested,
    Denied,
    Disconnected,
    MessageReceived,
    SendBoxcar,
)
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.testing.cmp import user_message
from mqis.wire.cmp.boxcar import MAX_MESSAGES, Boxcar
from mqis.wire.cmp.packet import MAX_DATA, RESERVED, MsgTag, Packet
from mqis.wire.errors import WireError
from tests.protocol.multiplexer.link import (
    Link,
    Side,
    boxcar,
    departing,
    events_of,
    feed,
    sent_by,
    started,
)


def bodies(side: Side) -> list[tuple[int | None, bytes]]:
    return [(event.connection.id, bytes(event.body)) for event in side.of(MessageReceived)]


# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.req("CMP-2.2.8-02", "CMP-3.1.5.6-03", "CMP-3.1.7.4.1-01")
@pytest.mark.parametrize("size", [0, 1, 5, 81_877, 81_880])
def test_bodies_arrive_as_they_were(size: int) -> None:
    body = bytes(n * 7 % 256 for n in range(size))
    link = Link().up()
    connection = link.a.multiplexer.connect(1)
    link.a.multiplexer.send(connection, 0xFFFFFFFF, bytearray(body))
    link.run()
    (event,) = link.b.of(MessageReceived)
    assert event.connection is link.b.multiplexer.incoming[1]
    assert event.packet[:4] == (MsgTag.USER_MESSAGE, 1, 1, 0xFFFFFFFF)
    assert (event.packet.user_msg_type, event.body, len(event.body)) == (0xFFFFFFFF, body, size)


@pytest.mark.req("CMP-3.1.4.1-02")
def test_a_body_of_81_881_bytes_is_not_taken() -> None:
    machine = started()
    connection = machine.connect(1)
    with pytest.raises(ValueError, match="81881 bytes, at most 81880"):
        machine.send(connection, 1, bytes(MAX_DATA + 1))
    assert machine.budget.queued == 0
    sent = departing(machine)
    assert sent.count == 1


@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_types_have_32_bits(number: int) -> None:
    machine = started()
    with pytest.raises(ValueError, match="32 bits"):
        machine.connect(number)
    with pytest.raises(ValueError, match="32 bits"):
        machine.send(machine.connect(1), number, b"")


# --- boxcars --------------------------------------------------------------------------------------


@pytest.mark.req(
    "CMP-2.1.1-01", "CMP-2.1.1.3-02", "CMP-3.1.7.1-01", "CMP-3.1.1-05", "CMP-3.1.1.2-01"
)
def test_one_boxcar_is_in_flight_and_the_next_one_fills() -> None:
    machine = started()
    connection = machine.connect(1)
    first = departing(machine)
    for n in range(5):
        machine.send(connection, n, b"%d" % n)
        assert machine.effects() == []
    machine.boxcar_delivered(0.0)
    second = departing(machine)
    assert first.count == 1
    packets = Boxcar.from_bytes(second.data).packets
    assert [(p.user_msg_type, p.data) for p in packets] == [(n, b"%d" % n) for n in range(5)]


@pytest.mark.req("CMP-2.1.1.1-03", "CMP-2.2.8-01", "CMP-2.2.1-02", "CMP-2.2.2-04", "CMP-2.2.2-05")
def test_the_bytes_of_messages_in_both_directions() -> None:
    """Written out by hand: the last boxcar has neither builder nor reader for a judge."""
    machine = started()
    mine = machine.connect(0x101)
    feed(machine, Packet.connection_req(7, 0x102))
    theirs = machine.incoming[7]
    machine.accept(theirs, 0.0)
    for connection, number, body in ((mine, 1, b"abc"), (theirs, 2, b""), (mine, 3, b"12345678")):
        machine.send(connection, 0x2000 + number, body)
    assert departing(machine).data == b"".join(
        (
            pack("<4I", 0, 0, 16 + 24 + 32 + 24 + 32, 4),
            pack("<6I", 5, 1, 1, 0x101, 0, RESERVED),
            pack("<6I", 0xFFF, 1, 1, 0x2001, 3, RESERVED) + b"abc" + bytes(5),
            pack("<6I", 0xFFF, 0, 7, 0x2002, 0, RESERVED),
            pack("<6I", 0xFFF, 1, 1, 0x2003, 8, RESERVED) + b"12345678",
        )
    )


@pytest.mark.req("CMP-3.1.7.1-02", "CMP-3.1.7.1-03")
def test_a_lone_message_does_not_wait_and_nothing_is_sent_for_nothing() -> None:
    machine = started()
    assert machine.effects() == []
    connection = machine.connect(1)
    assert len(machine.effects()) == 1
    machine.boxcar_delivered(0.0)
    assert machine.effects() == []
    machine.send(connection, 1, bytes(MAX_DATA))
    machine.send(connection, 2, b"")  # a second boxcar waits behind the full one
    full = departing(machine)
    assert full.count == 1
    machine.boxcar_delivered(0.0)
    assert len(machine.effects()) == 1


@pytest.mark.req("CMP-2.1.1.2-01", "CMP-2.1.1.2-03", "CMP-2.1.1.3-01", "CMP-3.1.1-05")
def test_the_3413th_message_opens_a_boxcar() -> None:
    machine = started(SessionLimits(connection_queued_bytes=1 << 30))
    connection = machine.connect(1)
    for n in range(MAX_MESSAGES):  # the request is one more
        machine.send(connection, n, b"")
    first = departing(machine)
    machine.boxcar_delivered(0.0)
    second = departing(machine)
    assert (first.count, first.size) == (3412, 81_904)
    assert (second.count, second.size) == (1, 40)
    for sent in (first, second):
        assert unpack_from("<2I", sent.data, 8) == (sent.size, sent.count)
    assert Boxcar.from_bytes(second.data).packets[0].user_msg_type == MAX_MESSAGES - 1


@pytest.mark.req("CMP-2.1.1.2-03", "CMP-2.2.1-03", "CMP-3.1.4.1-05")
def test_a_boxcar_takes_what_fits_in_81920_bytes() -> None:
    machine = started()
    connection = machine.connect(1)
    sizes = [40_000, 41_808, 0, 41_832, 40_000]
    for size in sizes:
        machine.send(connection, size, bytes(size))
    cars = []
    while effects := machine.effects():
        cars += [(e.size, e.count) for e in effects if isinstance(e, SendBoxcar)]
        machine.boxcar_delivered(0.0)
    # header, request, two messages: 16 + 24 + 24 + 40,000 + 24 + 41,808 is 81,896; and one of 24
    assert cars == [(81_920, 4), (41_872 + 40_024, 2)]


@pytest.mark.req("CMP-3.1.7.1-01")
def test_a_packet_that_finds_no_room_opens_a_boxcar() -> None:
    machine = started()
    connection = machine.connect(1)
    sent_by(machine)
    machine.send(connection, 1, bytes(MAX_DATA))
    machine.disconnect(connection)
    assert [p.tag for p in sent_by(machine)] == [MsgTag.USER_MESSAGE, MsgTag.DISCONNECT]


@pytest.mark.req("CMP-3.1.7.1-01")
def test_a_packet_joins_the_last_boxcar_though_an_earlier_one_has_room() -> None:
    machine = started()
    connection = machine.connect(1)
    sent_by(machine)
    machine.send(connection, 1, bytes(60_000))
    machine.send(connection, 2, bytes(40_000))
    machine.disconnect(connection)
    assert [p.tag for p in sent_by(machine)] == [
        MsgTag.USER_MESSAGE,
        MsgTag.USER_MESSAGE,
        MsgTag.DISCONNECT,
    ]


@pytest.mark.req("CMP-2.1.1.2-01")
@pytest.mark.parametrize("count", [0, MAX_MESSAGES + 1, 4095])
def test_a_boxcar_that_names_another_number_of_messages_is_refused(count: int) -> None:
    machine = started()
    data = bytearray(boxcar(Packet.ping())[0])
    data[12:16] = pack("<I", count)
    with pytest.raises(WireError, match=f"{count} messages, 1 to 3412"):
        machine.receive(bytes(data), count, 0.0)
    assert machine.statistics.refused == 1


def test_early_messages_of_a_connection_go_with_its_request() -> None:
    link = Link().up()
    connection = link.a.multiplexer.connect(1)
    for n in range(3):
        link.a.multiplexer.send(connection, n, b"%d" % n)
    assert connection.id is None
    link.run()
    assert len(link.a.boxcars) == 1
    assert bodies(link.b) == [(1, b"0"), (1, b"1"), (1, b"2")]


def test_a_body_may_change_after_it_was_sent() -> None:
    """The message is what was given, whenever its boxcar is written."""
    machine = started()
    connection = machine.connect(1)
    body = bytearray(b"before")
    machine.send(connection, 1, memoryview(body))
    body[:] = b"after!"
    sent = departing(machine)
    assert Boxcar.from_bytes(sent.data).packets[1].data == b"before"


# --- what is malformed ----------------------------------------------------------------------------


@pytest.mark.req("CMP-2.2.2-03", "CMP-3.1.5-05")
@pytest.mark.parametrize("tag", [0, 6, 0xFFE, 0x1000])
def test_an_unknown_tag_mid_boxcar(tag: int) -> None:
    """Packets before the tag count, the rest of the boxcar is dropped, and the session goes on."""
    machine = started()
    own = machine.connect(1)
    events_of(machine)
    returned = feed(
        machine,
        Packet.connection_req(1, 7),
        Packet(tag, 1, 1, 1, b"?"),
        user_message(1, 9, b"lost", is_master=False),
        Packet.connection_req(2, 7),
    )
    assert returned
    (requested,) = events_of(machine)
    assert isinstance(requested, ConnectionRequested)
    assert list(machine.incoming) == [1]
    assert machine.statistics.discarded == 3
    machine.accept(requested.connection, 0.0)
    feed(machine, user_message(1, 9, b"kept", is_master=False))
    (message,) = events_of(machine)
    assert message.connection is own


@pytest.mark.req("CMP-2.1.1.3-01", "CMP-2.2.1-03", "CMP-3.1.5-01")
@pytest.mark.parametrize(("patch", "count"), [((8, 39), 1), ((12, 2), 1), ((12, 0), 0), (None, 2)])
def test_a_header_unlike_the_call_condemns_the_boxcar(
    patch: tuple[int, int] | None, count: int
) -> None:
    machine = started()
    data = bytearray(boxcar(Packet.connection_req(1, 7))[0])
    if patch is not None:
        data[patch[0]] = patch[1]
    with pytest.raises(WireError):
        machine.receive(bytes(data), count, 0.0)
    assert not machine.incoming
    assert events_of(machine) == []
    assert machine.statistics.refused == 1
    assert feed(machine, Packet.connection_req(1, 7))
    assert len(events_of(machine)) == 1


@pytest.mark.req("CMP-3.1.5.3-02")
def test_a_refusal_too_short_for_its_reason_is_dropped_a_longer_one_is_read() -> None:
    machine = started()
    connection = machine.connect(1)
    events_of(machine)
    feed(machine, Packet(MsgTag.CONNECTION_REQ_DENIED, 0, 1, 0, b"abc"))
    assert events_of(machine) == []
    feed(machine, Packet(MsgTag.CONNECTION_REQ_DENIED, 0, 1, 0, b"\5\0\7\x80abc"))
    assert events_of(machine) == [Denied(connection, 0x80070005)]


def test_management_tags_are_read_without_fismaster_and_type() -> None:
    """E-CMP-02, E-CMP-03: the tag says which table."""
    machine = started()
    connection = machine.connect(1)
    machine.disconnect(connection)
    events_of(machine)
    feed(
        machine,
        Packet(MsgTag.CONNECTION_REQ, 0, 1, 7),
        Packet(MsgTag.CONNECTION_REQ_DENIED, 1, 2, 9, b"\1\0\0\0"),
    )
    (requested,) = events_of(machine)
    assert isinstance(requested, ConnectionRequested)
    machine.accept(requested.connection, 0.0)
    feed(machine, Packet(MsgTag.DISCONNECT, 0, 1, 99), Packet(MsgTag.DISCONNECTED, 1, 1, 0x101))
    assert events_of(machine) == [
        Disconnected(requested.connection, session_down=False),
        Disconnected(connection, session_down=False),
    ]
