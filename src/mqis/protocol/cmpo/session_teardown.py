"""Session teardown (3.3.4.5, 3.3.4.6, 3.4.6.2, 3.4.6.3).

    forced by the primary      TearDownContext(1) ->, answered; then <- TearDownContext(2)
    forced by the secondary    BeginTearDown ->, answered; then as above
    a problem, either side     TearDownContext(own rank, problem) ->, and that is all

Errors are ignored. The receiver of TearDownContext acts by its own rank, not by the caller's
claim, so that the session ends in any case: its handle is null from then on.
"""

from __future__ import annotations

from mqis.protocol.cmpo.events import LevelTwo
from mqis.protocol.cmpo.partner_session import (
    ENDING,
    SETTING_UP,
    CallKind,
    CmpoSession,
    SessionState,
)
from mqis.protocol.cmpo.session_table import SessionTable
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, TeardownType


class SessionTeardown:
    """The part of a partner that ends sessions."""

    def __init__(self, table: SessionTable, level_two: LevelTwo) -> None:
        self._table = table
        self._level_two = level_two

    # --- the level above --------------------------------------------------------------------------

    def request(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        """Handles Forced or Problem Session Teardown Requested."""
        if teardown is TeardownType.PROBLEM:
            self.problem(session, now)
            return
        if session.state is not SessionState.ACTIVE:
            raise ValueError(f"the session with {session.name} is not active")
        self._forced(session, now)

    def problem(self, session: CmpoSession, now: float) -> None:
        """Ends a broken session: reports it above at once, and tries to call the partner."""
        if session.state is SessionState.CLOSED:
            return
        if session.state in SETTING_UP:
            self._table.remove(session, CmResult.SESSION_DOWN)
            self._level_two.session_failed(session, CmResult.SESSION_DOWN, now)
            return
        self._table.cancel_calls(session)
        self._enter(session, SessionState.TEARDOWN, now)
        self._tear_down(session, TeardownType.PROBLEM)
        self._report_down(session, TeardownType.PROBLEM, now)

    def _forced(self, session: CmpoSession, now: float) -> None:
        if session.is_primary:
            self._enter(session, SessionState.TEARDOWN, now)
            self._tear_down(session, TeardownType.FORCE)
            return
        self._enter(session, SessionState.REQUESTING_TEARDOWN, now)
        request = idl.BeginTearDown(session.handle, TeardownType.FORCE)
        self._table.invoke(session, CallKind.BEGIN_TEARDOWN, idl.BEGIN_TEAR_DOWN, request)

    def _enter(self, session: CmpoSession, state: SessionState, now: float) -> None:
        """Enters a state and starts the timer, in Requesting Teardown too (E-CMPO-10)."""
        session.state = state
        session.retries.clear()
        if session.teardown_due is None:
            session.teardown_due = now + self._table.settings.teardown_s
        self._table.arm(session)

    def _tear_down(self, session: CmpoSession, teardown: TeardownType) -> None:
        request = idl.TearDownContext(session.handle, session.rank, teardown)
        self._table.invoke(session, CallKind.TEARDOWN, idl.TEAR_DOWN_CONTEXT, request)

    # --- calls in ---------------------------------------------------------------------------------

    def tear_down_context(self, session: CmpoSession, teardown: int, now: float) -> int:
        """Handles TearDownContext; its handle is already invalid, whatever this returns."""
        if session.state is SessionState.CLOSED:
            return CmResult.OK
        if teardown == TeardownType.PROBLEM or session.state in SETTING_UP:
            self.lost(session, now)
        elif session.is_primary:
            self._end(session, TeardownType.FORCE, now)
        elif session.state is not SessionState.TEARDOWN:
            # Answer first, call back after (E-CMPO-11).
            self._enter(session, SessionState.TEARDOWN, now)
            self._tear_down(session, TeardownType.FORCE)
        return CmResult.OK

    def begin_tear_down(self, session: CmpoSession, now: float) -> int:
        """Handles BeginTearDown, with which the secondary asks this primary to begin."""
        if not session.is_primary:
            return CmResult.INVALID_ARGUMENT
        if session.state in SETTING_UP:
            return CmResult.SERVER_NOT_READY
        if session.state is SessionState.ACTIVE:
            self._forced(session, now)
        return CmResult.OK

    # --- ends -------------------------------------------------------------------------------------

    def ended(self, session: CmpoSession, kind: CallKind, failed: bool, now: float) -> None:
        """Handles the end of a teardown call; after a failed one no callback is expected."""
        if kind is CallKind.BEGIN_TEARDOWN:  # then the primary calls, or has done so already
            if failed and session.state is SessionState.REQUESTING_TEARDOWN:
                self._end(session, TeardownType.FORCE, now)
        elif failed or not session.is_primary or session.reported_down:
            self._end(session, TeardownType.FORCE, now)

    def handle_timer(self, session: CmpoSession, now: float) -> None:
        """Handles the Session Teardown timer (3.2.5.2)."""
        if session.teardown_due is not None and session.teardown_due <= now:
            self._end(session, TeardownType.FORCE, now, CmResult.FAIL)

    def lost(self, session: CmpoSession, now: float) -> None:
        """Ends a session whose partner dropped it or is gone (3.3.4.5.1, 3.3.6.1)."""
        if session.state in SETTING_UP:
            self._table.remove(session, CmResult.SESSION_DOWN)
            self._level_two.session_failed(session, CmResult.SESSION_DOWN, now)
        elif session.state is not SessionState.CLOSED:
            cause = TeardownType.FORCE if session.state in ENDING else TeardownType.PROBLEM
            self._end(session, cause, now)

    def _end(
        self,
        session: CmpoSession,
        teardown: TeardownType,
        now: float,
        result: CmResult = CmResult.SESSION_DOWN,
    ) -> None:
        self._table.remove(session, result)
        self._report_down(session, teardown, now)

    def _report_down(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        if not session.reported_down:
            session.reported_down = True
            self._level_two.session_down(session, teardown, now)
