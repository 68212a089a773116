"""Links: each joins a session and its multiplexer."""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import Protocol

from mqis.protocol.authentication import Identity
from mqis.protocol.cmpo.partner_session import ENDING, CmpoSession
from mqis.protocol.cmpo.partner_session import SessionState as TransportState
from mqis.protocol.multiplexer.events import (
    AskForConnections,
    ConnectFailed,
    ConnectionOpened,
    ConnectionRequested,
    Denied,
    Disconnected,
    Effect,
    Event,
    MessageReceived,
    NotOpen,
    ReleaseCall,
    SendBoxcar,
    Writable,
)
from mqis.protocol.multiplexer.multiplexed import (
    ConnectionState,
    MultiplexedConnection,
    Notification,
)
from mqis.protocol.multiplexer.multiplexer import Multiplexer, MultiplexerState
from mqis.runtime.oletx.application_connection import (
    BOXCARS_AHEAD,
    ConnectionClosed,
    OleTxConnection,
)
from mqis.runtime.oletx.partner_driver import Transport
from mqis.wire.cmpo.codes import CmResult, TeardownType, result_text
from mqis.wire.errors import WireError

log = logging.getLogger(__name__)


class LinkOwner(Protocol):
    """The partner whose sessions the links are."""

    @property
    def transport(self) -> Transport: ...

    def wake_others(self) -> None:
        """Lets links send that waited for memory."""

    def requested(self, link: SessionLink, raw: MultiplexedConnection) -> None:
        """Decides whether a connection that the session's partner wants is accepted."""


class SessionLink:
    """Passes the multiplexer's effects to the session, and its events to the connections."""

    def __init__(self, endpoint: LinkOwner, session: CmpoSession, mux: Multiplexer) -> None:
        self._endpoint = endpoint
        self._transport = endpoint.transport
        self._machine = endpoint.transport.machine
        self._loop = asyncio.get_running_loop()
        self.session = session
        self.mux = mux
        #: Done when the session is up, or could not be set up.
        self.up: asyncio.Future[None] = self._loop.create_future()
        #: True if the session was ended by a forced teardown of either side.
        self.torn_down = False
        self.touched = False
        self._draining: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._pings: list[asyncio.Future[None]] = []

    @property
    def identity(self) -> Identity | None:
        return self._transport.identity(self.session)

    @property
    def usable(self) -> bool:
        """True if a connection may still be opened."""
        ended = self.session.state in ENDING or self.session.state is TransportState.CLOSED
        return not ended and self.mux.state in (MultiplexerState.STARTING, MultiplexerState.UP)

    # --- the connections --------------------------------------------------------------------------

    def open(self, connection_type: int) -> OleTxConnection:
        connection = OleTxConnection(self, self.mux.connect(connection_type))
        self.touch()
        return connection

    def disconnect(self, connection: OleTxConnection) -> None:
        raw = connection.raw
        if raw.state is ConnectionState.WAITING:
            self.mux.abandon(raw)
        elif raw.state in (ConnectionState.OPEN, ConnectionState.DENIED) or not raw.outgoing:
            self.mux.disconnect(raw)
        self.touch()

    async def ping(self) -> None:
        """Sends a PING and waits until the partner has it."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._pings.append(waiter)
        self.mux.ping()
        self.flush()
        await waiter

    def resume(self, connection: OleTxConnection) -> None:
        if connection.raw.paused:
            self.mux.resume(connection.raw)
            self.touch()

    def touch(self) -> None:
        """Schedules a send at the end of this turn of the loop, to share boxcars."""
        if not self.touched:
            self.touched = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        self.touched = False
        self.pump()
        self._transport.act()

    async def drain(self) -> None:
        """Waits until few enough boxcars wait, or the session is down."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._draining.append(waiter)
        await waiter

    def _drained(self) -> None:
        draining, self._draining = self._draining, []
        for waiter in draining:
            if not waiter.done():
                waiter.set_result(None)

    # --- the multiplexer --------------------------------------------------------------------------

    def pump(self) -> None:
        """Passes on events and effects until there are none left."""
        mux, deliver, next_event = self.mux, self._deliver, self.mux.next_event
        while True:
            while (event := next_event()) is not None:
                if type(event) is MessageReceived:  # nearly all of them
                    raw = event.connection
                    if raw.interface is not None:
                        raw.interface.received(raw, event.packet)
                else:
                    deliver(event)
            effects = mux.effects()
            if not effects:
                break
            for effect in effects:
                self._perform(effect)
        self._arm()
        self._endpoint.wake_others()

    def _deliver(self, event: Event) -> None:
        connection = event.connection.interface
        if isinstance(event, ConnectionRequested):
            self._endpoint.requested(self, event.connection)
        elif isinstance(connection, OleTxConnection):
            _notify(connection, event)

    def _perform(self, effect: Effect) -> None:
        session, machine = self.session, self._machine
        if isinstance(effect, SendBoxcar):
            if session.state is TransportState.ACTIVE:
                machine.send(session, effect.count, effect.data)
        elif isinstance(effect, AskForConnections):
            if session.state is TransportState.ACTIVE:
                machine.allocate(session, effect.count)
        elif isinstance(effect, ReleaseCall):
            machine.release(session, self._loop.time())
        elif effect.problem or session.state is TransportState.ACTIVE:
            kind = TeardownType.PROBLEM if effect.problem else TeardownType.FORCE
            machine.tear_down(session, kind, self._loop.time())

    def decide(self, raw: MultiplexedConnection, reason: int) -> OleTxConnection | None:
        """Accepts a connection of the partner, or denies it with a reason other than 0."""
        now = self._loop.time()
        if reason:
            self.mux.deny(raw, reason, now)
            return None
        connection = OleTxConnection(self, raw)
        connection.on_opened()
        self.mux.accept(raw, now, connection)
        return connection

    # --- the session ------------------------------------------------------------------------------

    def session_up(self, now: float) -> None:
        self.mux.session_up(now)
        if not self.up.done():
            self.up.set_result(None)
        self.pump()

    def session_down(self, reason: str, now: float, error: Exception | None = None) -> None:
        if not self.up.done():
            if error is None:
                self.up.set_result(None)
            else:
                self.up.set_exception(error)
                self.up.exception()  # marks it as retrieved: perhaps no task waits for it
        self.mux.session_down(reason=reason, now=now)
        self._fail_pings(reason)
        self.pump()
        self._drained()
        self._cancel_timer()

    def receive(self, messages: int, boxcar: bytes, now: float) -> int | None:
        try:
            taken = self.mux.receive(boxcar, messages, now)
        except WireError as error:
            log.warning("a boxcar of %s is refused: %s", self.session.name, error)
            return CmResult.INVALID_ARGUMENT
        except NotOpen:
            return CmResult.TEARING_DOWN
        self.pump()
        return CmResult.OK if taken else None

    def granted(self, accepted: int, result: int, now: float) -> None:
        if result:
            self.mux.resources_refused(reason=result_text(result), now=now)
        else:
            self.mux.resources_granted(accepted, now)
        self.pump()

    def sent(self, now: float) -> None:
        self.mux.boxcar_delivered(now)
        pings, self._pings = self._pings, []
        for ping in pings:
            if not ping.done():
                ping.set_result(None)
        self.pump()
        if self._draining and self.mux.boxcars_waiting <= BOXCARS_AHEAD:
            # A turn later, so that the next boxcar is sent before another one is filled.
            self._loop.call_soon(self._drained)

    def _fail_pings(self, reason: str) -> None:
        for ping in self._pings:
            if not ping.done():
                ping.set_exception(ConnectionClosed(reason))

    # --- time -------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Sets a timer that expires no later than the multiplexer's next."""
        due = self.mux.next_timer()
        if due is not None and due < self._due:
            self._cancel_timer()
            self._due = due
            self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer, self._due = None, inf
        self.mux.handle_timer(self._loop.time())
        self.flush()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._due = None, inf


def _notify(connection: OleTxConnection, event: Event) -> None:
    interface: Notification = connection
    if isinstance(event, ConnectionOpened):
        connection.on_opened()
    elif isinstance(event, Writable):
        connection.writable()
    elif isinstance(event, Denied):
        interface.denied(event.connection, event.reason)
    elif isinstance(event, ConnectFailed):
        connection.lost(event.reason)
    elif isinstance(event, Disconnected):
        if event.session_down:
            connection.lost(f"the session with {connection.partner} is down")
        else:
            interface.disconnected(event.connection)
