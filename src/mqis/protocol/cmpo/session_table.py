"""The session table (3.2.1.2): sessions, their calls under way, and their clean-up."""

from __future__ import annotations

from itertools import count
from typing import Any

from mqis.protocol.clock import Timers
from mqis.protocol.cmpo.events import (
    AnswerCall,
    AnyAnswer,
    Cancel,
    ContextAnswer,
    Effect,
    Invoke,
    Release,
)
from mqis.protocol.cmpo.nameobject import NameObject, rank_of
from mqis.protocol.cmpo.partner_session import CallKind, CmpoSession, SessionState
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo.codes import CmResult
from mqis.wire.cmpo.ixnremote import (
    NegotiateResources,
    RemoteResult,
    ResourcesNegotiated,
    SendReceive,
)
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import Operation


class SessionTable:
    """Sessions by the CID of the partner, and their effects for the driver."""

    def __init__(self, name: NameObject, settings: CmpoSettings) -> None:
        self.name = name
        self.settings = settings
        self.sessions: dict[Guid, CmpoSession] = {}
        self.timers: Timers[CmpoSession] = Timers()
        self.effects: list[Effect] = []
        self._calls: dict[int, CmpoSession] = {}
        self._numbers = count(1)

    # --- sessions ---------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        return len(self.sessions) >= self.settings.max_sessions

    def create(self, name: NameObject, *, initiated_here: bool) -> CmpoSession:
        session = CmpoSession(name, rank_of(self.name.cid, name.cid), initiated_here)
        self.sessions[name.cid] = session
        return session

    def remove(self, session: CmpoSession, result: int) -> None:
        """Removes a session (3.2.1.3). Open calls of the partner end with ``result``."""
        if session.state is SessionState.CLOSED:
            return
        session.state = SessionState.CLOSED
        del self.sessions[session.name.cid]
        self.cancel_calls(session)
        session.setup_due = session.inner_due = session.retry_due = session.teardown_due = None
        session.retries.clear()
        self.timers.discard(session)
        self.answer_outer(session, ContextAnswer(result))
        self.return_call(session, result)
        self.refuse_held(session, result)
        self.effects.append(Release(session))

    def arm(self, session: CmpoSession) -> None:
        if session.state is not SessionState.CLOSED:
            self.timers.set(session, session.next_due)

    # --- calls out --------------------------------------------------------------------------------

    def invoke(
        self, session: CmpoSession, kind: CallKind, operation: Operation[Any, Any], request: Any
    ) -> None:
        call = next(self._numbers)
        session.calls[call] = kind
        self._calls[call] = session
        self.effects.append(Invoke(call, session, operation, request, self.settings.call_s))

    def ended(self, call: int) -> tuple[CmpoSession, CallKind] | None:
        """The session and purpose of a call that has ended; None if it was cancelled."""
        session = self._calls.pop(call, None)
        return None if session is None else (session, session.calls.pop(call))

    def cancel_calls(self, session: CmpoSession) -> None:
        for call in session.calls:
            del self._calls[call]
            self.effects.append(Cancel(session, call))
        session.calls.clear()

    # --- calls in ---------------------------------------------------------------------------------

    def answer(self, token: object, answer: AnyAnswer) -> None:
        self.effects.append(AnswerCall(token, answer))

    def answer_outer(self, session: CmpoSession, answer: ContextAnswer) -> None:
        """Answers the primary's BuildContext, if it is still open."""
        if session.outer is not None:
            self.answer(session.outer, answer)
            session.outer = None

    def return_call(self, session: CmpoSession, result: int) -> None:
        """Answers the SendReceive that the level above has kept open, if there is one."""
        if session.unreturned is not None:
            self.answer(session.unreturned, RemoteResult(result))
            session.unreturned = None

    def refuse_held(self, session: CmpoSession, result: int) -> None:
        for token, request in session.held:
            self.answer(token, refusal(request, result))
        session.held.clear()


def refusal(
    request: NegotiateResources | SendReceive, result: int = CmResult.SERVER_NOT_READY
) -> ResourcesNegotiated | RemoteResult:
    if isinstance(request, NegotiateResources):
        return ResourcesNegotiated(0, result)
    return RemoteResult(result)
