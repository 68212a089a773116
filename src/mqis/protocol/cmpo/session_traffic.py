"""NegotiateResources and SendReceive, both ways (3.3.4.3, 3.3.4.4, 3.4.6.4, 3.4.6.5).

The secondary is active a moment before the primary. Calls that it makes in that moment are held
until the primary is active; a caller that gets "not ready" retries (E-CMPO-07).
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.cmpo.events import LevelTwo
from mqis.protocol.cmpo.partner_session import ENDING, CallKind, CmpoSession, SessionState
from mqis.protocol.cmpo.session_table import SessionTable, refusal
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, ResourceType

#: The text says both "below 1000" and "1 to 1000": send below, accept 1000 (E-CMPO-13).
MOST_REQUESTED = 999
MOST_TAKEN = 1000


class SessionTraffic:
    """The part of a partner that serves active sessions. ``problem`` ends a broken one."""

    def __init__(
        self,
        table: SessionTable,
        level_two: LevelTwo,
        problem: Callable[[CmpoSession, float], None],
    ) -> None:
        self._table = table
        self._level_two = level_two
        self._problem = problem

    # --- calls in ---------------------------------------------------------------------------------

    def negotiate_resources(
        self, session: CmpoSession, request: idl.NegotiateResources, token: object, now: float
    ) -> idl.ResourcesNegotiated | None:
        if session.state is SessionState.CONFIRMING:
            return None if self._hold(session, request, token) else _NO_RESOURCES
        return self._negotiate(session, request, now)

    def _negotiate(
        self, session: CmpoSession, request: idl.NegotiateResources, now: float
    ) -> idl.ResourcesNegotiated:
        if session.state is not SessionState.ACTIVE:
            return _NO_RESOURCES
        known = request.resource == ResourceType.CONNECTIONS
        if not known or not 1 <= request.requested <= MOST_TAKEN:
            return idl.ResourcesNegotiated(0, CmResult.INVALID_ARGUMENT)
        accepted = self._level_two.grant(session, request.requested, now)
        if not accepted:
            return idl.ResourcesNegotiated(0, CmResult.OUT_OF_RESOURCES)
        return idl.ResourcesNegotiated(accepted, CmResult.OK)

    def send_receive(
        self, session: CmpoSession, request: idl.SendReceive, token: object, now: float
    ) -> int | None:
        if session.state is SessionState.ACTIVE and session.unreturned is None:
            return self._receive(session, request, token, now)
        waits = session.state in (SessionState.CONFIRMING, SessionState.ACTIVE)
        if waits and self._hold(session, request, token):
            return None
        return CmResult.TEARING_DOWN if session.state in ENDING else CmResult.SERVER_NOT_READY

    def _receive(
        self, session: CmpoSession, request: idl.SendReceive, token: object, now: float
    ) -> int | None:
        session.unreturned = token
        result = self._level_two.receive(session, request.messages, request.boxcar, now)
        if result is None:
            return None
        session.unreturned = None
        return result

    def _hold(
        self, session: CmpoSession, request: idl.NegotiateResources | idl.SendReceive, token: object
    ) -> bool:
        if len(session.held) >= self._table.settings.max_held:
            return False
        session.held.append((token, request))
        return True

    def release(self, session: CmpoSession, now: float) -> None:
        """Completes the open SendReceive: the level above has room again."""
        self._table.return_call(session, CmResult.OK)
        self.answer_held(session, now)

    def answer_held(self, session: CmpoSession, now: float) -> None:
        """Answers the calls held back, in order, until one has to stay open."""
        while session.held and session.unreturned is None:
            token, request = session.held.pop(0)
            if session.state is not SessionState.ACTIVE:  # the level above has ended it
                self._table.answer(token, refusal(request, CmResult.TEARING_DOWN))
            elif isinstance(request, idl.NegotiateResources):
                self._table.answer(token, self._negotiate(session, request, now))
            else:
                result = self._receive(session, request, token, now)
                if result is not None:
                    self._table.answer(token, idl.RemoteResult(result))

    # --- calls out --------------------------------------------------------------------------------

    def allocate(self, session: CmpoSession, count: int) -> None:
        """Resource Allocation Requested (3.4.6.4)."""
        _check_active(session)
        if not 1 <= count <= MOST_REQUESTED:
            raise ValueError(f"{count} connections requested; 1 to {MOST_REQUESTED} are allowed")
        request = idl.NegotiateResources(session.handle, ResourceType.CONNECTIONS, count)
        self._invoke(session, CallKind.ALLOCATE, request)

    def send(self, session: CmpoSession, messages: int, boxcar: bytes) -> None:
        """Message Send Requested (3.4.6.5)."""
        _check_active(session)
        self._invoke(session, CallKind.SEND, idl.SendReceive(session.handle, messages, boxcar))

    def _invoke(
        self,
        session: CmpoSession,
        kind: CallKind,
        request: idl.NegotiateResources | idl.SendReceive,
    ) -> None:
        allocate = kind is CallKind.ALLOCATE
        operation = idl.NEGOTIATE_RESOURCES if allocate else idl.SEND_RECEIVE
        self._table.invoke(session, kind, operation, request)

    def negotiated(
        self,
        session: CmpoSession,
        request: idl.NegotiateResources,
        answer: idl.ResourcesNegotiated,
        now: float,
    ) -> None:
        if self._retry_later(session, CallKind.ALLOCATE, request, answer.result, now):
            return
        accepted = answer.accepted if answer.result == 0 else 0
        self._level_two.granted(session, min(accepted, request.requested), answer.result, now)

    def sent(self, session: CmpoSession, request: idl.SendReceive, result: int, now: float) -> None:
        if self._retry_later(session, CallKind.SEND, request, result, now):
            return
        if result == 0:
            self._level_two.sent(session, now)
        elif session.state is SessionState.ACTIVE:
            self._problem(session, now)

    def failed(
        self,
        session: CmpoSession,
        kind: CallKind,
        request: idl.NegotiateResources | idl.SendReceive,
        result: int,
        now: float,
    ) -> None:
        """Handles a call that ended in a fault or got no answer."""
        if kind is CallKind.ALLOCATE:
            self._level_two.granted(session, 0, result, now)
        elif session.state is SessionState.ACTIVE:
            self._problem(session, now)

    def _retry_later(
        self,
        session: CmpoSession,
        kind: CallKind,
        request: idl.NegotiateResources | idl.SendReceive,
        result: int,
        now: float,
    ) -> bool:
        """Schedules a retry if the partner was not ready yet; returns whether it did."""
        settings = self._table.settings
        ready = result != CmResult.SERVER_NOT_READY or session.state is not SessionState.ACTIVE
        if ready or session.retry_failures >= settings.retries:
            session.retry_failures = 0
            return False
        session.retry_failures += 1
        session.retries.append((now + settings.pause_s(session.retry_failures), kind, request))
        self._table.arm(session)
        return True

    def handle_timer(self, session: CmpoSession, now: float) -> None:
        due = [entry for entry in session.retries if entry[0] <= now]
        session.retries = [entry for entry in session.retries if entry[0] > now]
        for _, kind, request in due:  # leaving ACTIVE has cleared it
            self._invoke(session, kind, request)


_NO_RESOURCES = idl.ResourcesNegotiated(0, CmResult.SERVER_NOT_READY)


def _check_active(session: CmpoSession) -> None:
    if session.state is not SessionState.ACTIVE:
        raise ValueError(f"the session with {session.name} is not active")
