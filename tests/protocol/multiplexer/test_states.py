"""Every state of a connection against every input: one table, and nothing outside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqis.protocol.multiplexer.events import ConnectionRequested, NotOpen
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer, MultiplexerState
from mqis.testing.cmp import user_message
from mqis.wire.cmp.packet import MsgTag, Packet
from tests.protocol.multiplexer.link import events_of, feed, sent_by, started

# --- ways into a state ----------------------------------------------------------------------------


def _outgoing(
    *packets: Packet, disconnect: bool = False
) -> tuple[Multiplexer, MultiplexedConnection]:
    machine = started(grants=5)
    connection = machine.connect(7)
    if disconnect:
        machine.disconnect(connection)
    sent_by(machine)
    if packets:
        feed(machine, *packets)
    events_of(machine)
    return machine, connection


def _incoming(
    decide: Callable[[Multiplexer, MultiplexedConnection], None],
) -> tuple[Multiplexer, MultiplexedConnection]:
    machine = started(grants=5)
    feed(machine, Packet.connection_req(1, 7))
    (requested,) = events_of(machine)
    decide(machine, requested.connection)
    sent_by(machine)
    events_of(machine)
    return machine, requested.connection


def _waiting() -> tuple[Multiplexer, MultiplexedConnection]:
    machine = started(granted=0, grants=5)
    connection = machine.connect(7)
    machine.effects()
    return machine, connection


def _accept(machine: Multiplexer, connection: MultiplexedConnection) -> None:
    machine.accept(connection, 0.0)


def _accept_and_lose(machine: Multiplexer, connection: MultiplexedConnection) -> None:
    machine.accept(connection, 0.0)
    feed(machine, Packet.disconnect(1, 7))


REACH: dict[str, Callable[[], tuple[Multiplexer, MultiplexedConnection]]] = {
    "waiting": _waiting,
    "open": _outgoing,
    "denied": lambda: _outgoing(Packet.denied(1, 5)),
    "disconnecting": lambda: _outgoing(disconnect=True),
    "gone": lambda: _outgoing(Packet.disconnected(1), disconnect=True),
    "undecided": lambda: _incoming(lambda _machine, _connection: None),
    "accepted": lambda: _incoming(_accept),
    "refused": lambda: _incoming(lambda machine, connection: machine.deny(connection, 5, 0.0)),
    "ended": lambda: _incoming(_accept_and_lose),
}

# --- inputs ---------------------------------------------------------------------------------------

#: All about id 1, which is that of the connection unless it waits and has none.
PACKETS = {
    "REQ": Packet.connection_req(1, 8),
    "MSG from opener": user_message(1, 9, b"x", is_master=True),
    "MSG from acceptor": user_message(1, 9, b"x", is_master=False),
    "DISCONNECT": Packet.disconnect(1, 7),
    "DENIED": Packet.denied(1, 6),
    "DISCONNECTED": Packet.disconnected(1),
    "PING": Packet.ping(),
}
CALLS: dict[str, Callable[[Multiplexer, MultiplexedConnection], object]] = {
    "send": lambda machine, connection: machine.send(connection, 1, b""),
    "disconnect": lambda machine, connection: machine.disconnect(connection),
    "accept": lambda machine, connection: machine.accept(connection, 0.0),
    "deny": lambda machine, connection: machine.deny(connection, 5, 0.0),
    "abandon": lambda machine, connection: machine.abandon(connection),
    "session down": lambda machine, _connection: machine.session_down(0.0),
}

# --- the table ------------------------------------------------------------------------------------

GONE = ConnectionState.GONE
#: (events, tags sent, state afterwards) or the error. What is not here changes nothing.
Outcome = tuple[list[str], list[str], ConnectionState] | type[Exception]
TABLE: dict[str, dict[str, Outcome]] = {
    "waiting": {
        "REQ": (["ConnectionRequested"], [], ConnectionState.WAITING),
        "send": ([], [], ConnectionState.WAITING),
        "disconnect": NotOpen,
        "accept": ValueError,
        "deny": ValueError,
        "abandon": (["ConnectFailed"], [], GONE),
        "session down": (["ConnectFailed"], [], GONE),
    },
    "open": {
        "REQ": (["ConnectionRequested"], [], ConnectionState.OPEN),
        "MSG from acceptor": (["MessageReceived"], [], ConnectionState.OPEN),
        "DENIED": (["Denied"], [], ConnectionState.DENIED),
        "send": ([], ["USER_MESSAGE"], ConnectionState.OPEN),
        "disconnect": ([], ["DISCONNECT"], ConnectionState.DISCONNECTING),
        "accept": ValueError,
        "deny": ValueError,
        "abandon": NotOpen,
        "session down": (["Disconnected"], [], GONE),
    },
    "denied": {
        "REQ": (["ConnectionRequested"], [], ConnectionState.DENIED),
        "MSG from acceptor": (["MessageReceived"], [], ConnectionState.DENIED),
        "DENIED": (["Denied"], [], ConnectionState.DENIED),
        "send": NotOpen,
        "disconnect": ([], ["DISCONNECT"], ConnectionState.DISCONNECTING),
        "accept": ValueError,
        "deny": ValueError,
        "abandon": NotOpen,
        "session down": (["Disconnected"], [], GONE),
    },
    "disconnecting": {
        "REQ": (["ConnectionRequested"], [], ConnectionState.DISCONNECTING),
        "MSG from acceptor": (["MessageReceived"], [], ConnectionState.DISCONNECTING),
        "DENIED": (["Denied"], [], ConnectionState.DISCONNECTING),
        "DISCONNECTED": (["Disconnected"], [], GONE),
        "send": NotOpen,
        "disconnect": NotOpen,
        "accept": ValueError,
        "deny": ValueError,
        "abandon": NotOpen,
        "session down": (["Disconnected"], [], GONE),
    },
    "gone": {
        "REQ": (["ConnectionRequested"], [], GONE),
        "send": NotOpen,
        "disconnect": NotOpen,
        "abandon": NotOpen,
    },
    "undecided": {
        # Everything with the id waits, so nothing is seen of it.
        "send": NotOpen,
        "disconnect": ValueError,
        "accept": ([], [], ConnectionState.OPEN),
        "deny": ([], ["CONNECTION_REQ_DENIED"], ConnectionState.REFUSED),
        "abandon": NotOpen,
        "session down": (["Disconnected"], [], GONE),
    },
    "accepted": {
        "MSG from opener": (["MessageReceived"], [], ConnectionState.OPEN),
        "DISCONNECT": (["Disconnected"], ["DISCONNECTED"], GONE),
        "send": ([], ["USER_MESSAGE"], ConnectionState.OPEN),
        "disconnect": ValueError,
        "accept": ValueError,
        "deny": ValueError,
        "abandon": NotOpen,
        "session down": (["Disconnected"], [], GONE),
    },
    "refused": {
        "DISCONNECT": ([], ["DISCONNECTED"], GONE),
        "send": NotOpen,
        "disconnect": ValueError,
        "accept": ValueError,
        "deny": ValueError,
        "abandon": NotOpen,
        "session down": ([], [], GONE),
    },
    "ended": {
        "REQ": (["ConnectionRequested"], [], GONE),
        "send": NotOpen,
        "disconnect": ValueError,
        "abandon": NotOpen,
    },
}
#: What a row proves besides.
MARKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("gone", "DISCONNECTED"): ("CMP-3.1.5.2-01",),
    ("open", "DISCONNECTED"): ("CMP-3.1.5.2-01",),
    ("gone", "DENIED"): ("CMP-3.1.5.3-01",),
    ("accepted", "DENIED"): ("CMP-3.1.5.3-01",),
    ("ended", "DISCONNECT"): ("CMP-3.1.5.1-01",),
    ("open", "DISCONNECT"): ("CMP-3.1.5.1-01",),
    ("refused", "MSG from opener"): ("CMP-3.1.5.6-02", "CMP-3.1.5.5-06"),
    ("ended", "MSG from opener"): ("CMP-3.1.5.6-02",),
    ("gone", "MSG from acceptor"): ("CMP-3.1.5.6-02",),
    ("open", "PING"): ("CMP-3.1.5.4-02",),
    ("disconnecting", "disconnect"): ("CMP-3.1.1.1-03", "CMP-3.1.4.3-03"),
    ("disconnecting", "send"): ("CMP-3.1.4.1-05",),
    ("denied", "disconnect"): ("CMP-4.2.2-02",),
    ("disconnecting", "DISCONNECTED"): ("CMP-3.1.1.1-03", "CMP-3.1.5.2-01"),
}

CASES = [
    pytest.param(state, name, marks=pytest.mark.req(*MARKS[state, name]))
    if (state, name) in MARKS
    else (state, name)
    for state in REACH
    for name in [*PACKETS, *CALLS]
]


def apply(name: str, machine: Multiplexer, connection: MultiplexedConnection) -> None:
    if name in CALLS:
        CALLS[name](machine, connection)
    else:
        assert feed(machine, PACKETS[name])


@pytest.mark.parametrize(("state", "name"), CASES)
def test_state_and_input(state: str, name: str) -> None:
    machine, connection = REACH[state]()
    before = connection.state
    outcome = TABLE[state].get(name, ([], [], before))
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            apply(name, machine, connection)
        outcome = ([], [], before)
    else:
        apply(name, machine, connection)
    told = [type(event).__name__ for event in events_of(machine)]
    sent = [MsgTag(packet.tag).name for packet in sent_by(machine)]
    assert (told, sent, connection.state) == outcome


@pytest.mark.req("CMP-3.1.1-02", "CMP-3.1.1.1-02")
@pytest.mark.parametrize("state", REACH)
def test_tables_hold_what_they_should(state: str) -> None:
    machine, connection = REACH[state]()
    outgoing = state in ("open", "denied", "disconnecting")
    incoming = state in ("undecided", "accepted", "refused")
    assert dict(machine.outgoing) == ({1: connection} if outgoing else {})
    assert dict(machine.incoming) == ({1: connection} if incoming else {})
    accepted = state in ("open", "denied", "disconnecting", "accepted")
    assert connection.accepted == accepted


def test_what_waits_for_a_decision_is_handled_after_it() -> None:
    """The row of the table that shows nothing, continued."""
    for name, events in {
        "MSG from opener": ["MessageReceived"],
        "DISCONNECT": ["Disconnected"],
        "REQ": [],
        "MSG from acceptor": [],
        "DENIED": [],
        "DISCONNECTED": [],
    }.items():
        machine, connection = REACH["undecided"]()
        apply(name, machine, connection)
        machine.accept(connection, 0.0)
        assert [type(event).__name__ for event in events_of(machine)] == events, name


# --- the session's own states ---------------------------------------------------------------------


def _session(state: MultiplexerState) -> Multiplexer:
    machine = Multiplexer()
    if state is not MultiplexerState.STARTING:
        machine.session_up(0.0)
    if state is MultiplexerState.CLOSING:
        machine.handle_timer(1e9)
        machine.effects()
    if state is MultiplexerState.DOWN:
        machine.session_down(0.0)
    assert machine.state is state
    return machine


@pytest.mark.parametrize("state", [s for s in MultiplexerState if s is not MultiplexerState.UP])
def test_a_session_that_is_not_up_takes_no_boxcars_and_grants_nothing(
    state: MultiplexerState,
) -> None:
    machine = _session(state)
    with pytest.raises(NotOpen):
        feed(machine, Packet.ping())
    assert machine.resources_requested(5) == 0
    assert machine._incoming.granted == 0
    assert machine.effects() == []


@pytest.mark.parametrize("state", [MultiplexerState.CLOSING, MultiplexerState.DOWN])
def test_an_ending_session_takes_no_connections(state: MultiplexerState) -> None:
    machine = _session(state)
    with pytest.raises(NotOpen):
        machine.connect(1)
    machine.resources_granted(5, 0.0)
    machine.resources_refused(0.0)
    assert machine._outgoing.granted == 0
    machine.session_down(0.0)
    machine.session_down(0.0)
    machine.boxcar_delivered(0.0)
    assert events_of(machine) == []
    assert machine.effects() == []
    assert machine.next_timer() is None


@pytest.mark.parametrize(
    "state", [s for s in MultiplexerState if s is not MultiplexerState.STARTING]
)
def test_a_session_starts_once(state: MultiplexerState) -> None:
    with pytest.raises(ValueError, match="the session is"):
        _session(state).session_up(0.0)


@pytest.mark.req("CMP-3.1.4.2-03")
@pytest.mark.parametrize("asked_here", [True, False])
def test_a_new_session_is_empty(asked_here: bool) -> None:
    """Also one that the partner built (E-CMP-17): its idle timer runs as well."""
    machine = Multiplexer()
    if asked_here:
        machine.connect(1)
    machine.session_up(0.0)
    assert not machine.outgoing
    assert not machine.incoming
    assert (machine._outgoing.granted, machine._incoming.granted) == (0, 0)
    assert sent_by(machine) == []
    assert machine._idle_due == machine.limits.idle_s


def test_answers_to_nothing_are_misuse_of_the_driver() -> None:
    machine = started()
    with pytest.raises(ValueError, match="in flight"):
        machine.boxcar_delivered(0.0)
    with pytest.raises(ValueError, match="no request for connections"):
        machine.resources_granted(1, 0.0)
    with pytest.raises(ValueError, match="a request for 0"):
        machine.resources_requested(0)


def test_requested_connections_know_their_type() -> None:
    machine = started()
    feed(machine, Packet.connection_req(77, 0xDEADBEEF))
    (event,) = events_of(machine)
    assert isinstance(event, ConnectionRequested)
    assert (event.connection.id, event.connection.type) == (77, 0xDEADBEEF)
    assert not event.connection.accepted
    assert "0xdeadbeef, neither accepted" in repr(event.connection)
