"""A partner of MS-CMPO: its sessions, as a state machine without I/O.

The driver passes in incoming calls and the results of outgoing ones, and carries out ``effects``;
``LevelTwo`` is the protocol above. Time is an argument.
"""

from __future__ import annotations

from typing import Any

from mqis.protocol.cmpo.events import ContextAnswer, Effect, LevelTwo
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import SETTING_UP, CallKind, CmpoSession, VersionLimits
from mqis.protocol.cmpo.session_setup import SessionSetup, is_setup
from mqis.protocol.cmpo.session_table import SessionTable
from mqis.protocol.cmpo.session_teardown import SessionTeardown
from mqis.protocol.cmpo.session_traffic import SessionTraffic
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.protocol.ports import Entropy
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import TeardownType
from mqis.wire.guid import Guid


class Partner:
    """The state of one partner (3.2.1.1) and the events that change it."""

    def __init__(
        self,
        name: NameObject,
        level_two: LevelTwo,
        entropy: Entropy,
        *,
        versions: VersionLimits | None = None,
        settings: CmpoSettings | None = None,
    ) -> None:
        self.name = name
        self.versions = versions or VersionLimits()
        self.settings = settings or CmpoSettings()
        self._table = SessionTable(name, self.settings)
        self._teardown = SessionTeardown(self._table, level_two)
        self._traffic = SessionTraffic(self._table, level_two, self._teardown.problem)
        self._setup = SessionSetup(
            self._table, self.versions, level_two, entropy, self._traffic.answer_held
        )

    @property
    def sessions(self) -> tuple[CmpoSession, ...]:
        return tuple(self._table.sessions.values())

    def session(self, cid: Guid) -> CmpoSession | None:
        """The session with the partner of this CID, in any state."""
        return self._table.sessions.get(cid)

    def effects(self) -> list[Effect]:
        """The effects for the driver, in order. It calls this after every other method."""
        effects, self._table.effects = self._table.effects, []
        return effects

    # --- the level above --------------------------------------------------------------------------

    def request_session(self, name: NameObject, now: float) -> CmpoSession:
        """Returns a session with a partner; ``session_up`` or ``session_failed`` follows.

        ``SessionError`` if there can be none.
        """
        return self._setup.request(name, now)

    def tear_down(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        self._teardown.request(session, teardown, now)

    def allocate(self, session: CmpoSession, count: int) -> None:
        """Asks the partner for connections; ``granted`` reports the result."""
        self._traffic.allocate(session, count)

    def send(self, session: CmpoSession, messages: int, boxcar: bytes) -> None:
        """Sends a boxcar; the next one may be sent after ``sent``."""
        self._traffic.send(session, messages, boxcar)

    def release(self, session: CmpoSession, now: float) -> None:
        """Completes the SendReceive for which ``LevelTwo.receive`` returned None."""
        self._traffic.release(session, now)

    # --- calls in ---------------------------------------------------------------------------------

    def poke(self, request: idl.Poke, now: float) -> int:
        return int(self._setup.poke(request, now))

    def build_context(
        self, request: idl.BuildContext, token: object, now: float
    ) -> ContextAnswer | None:
        """The answer to BuildContext; None: it comes as an effect with ``token``."""
        return self._setup.build_context(request, token, now)

    def negotiate_resources(
        self, session: CmpoSession, request: idl.NegotiateResources, token: object, now: float
    ) -> idl.ResourcesNegotiated | None:
        return self._traffic.negotiate_resources(session, request, token, now)

    def send_receive(
        self, session: CmpoSession, request: idl.SendReceive, token: object, now: float
    ) -> int | None:
        return self._traffic.send_receive(session, request, token, now)

    def tear_down_context(
        self, session: CmpoSession, request: idl.TearDownContext, now: float
    ) -> int:
        return int(self._teardown.tear_down_context(session, request.teardown, now))

    def begin_tear_down(self, session: CmpoSession, now: float) -> int:
        return int(self._teardown.begin_tear_down(session, now))

    def rundown(self, session: CmpoSession, now: float) -> None:
        """Handles the loss of the partner's association (3.3.6.1)."""
        self._teardown.lost(session, now)

    def abandoned(self, token: object, now: float) -> None:
        """Handles the loss of the caller of an open call."""
        self._setup.abandoned(token, now)

    # --- ends of calls out ------------------------------------------------------------------------

    def returned(self, call: int, request: Any, answer: Any, now: float) -> None:
        """Handles the answer to a call of ``Invoke``."""
        found = self._table.ended(call)
        if found is None:
            return
        session, kind = found
        if kind is CallKind.SEND:
            self._traffic.sent(session, request, answer.result, now)
        elif kind is CallKind.ALLOCATE:
            self._traffic.negotiated(session, request, answer, now)
        elif kind is CallKind.POKE:
            self._setup.poked(session, answer.result, now)
        elif kind is CallKind.BUILD:
            self._setup.built(session, answer, now)
        elif kind is CallKind.BUILD_BACK:
            self._setup.built_back(session, answer, now)
        else:
            self._teardown.ended(session, kind, answer.result != 0, now)

    def failed(self, call: int, request: Any, result: int, now: float) -> None:
        """Handles a failed call of ``Invoke``: a fault, no connection, or no answer in time."""
        found = self._table.ended(call)
        if found is None:
            return
        session, kind = found
        if is_setup(kind):
            self._setup.failed(session, kind, result, now)
        elif kind in (CallKind.SEND, CallKind.ALLOCATE):
            self._traffic.failed(session, kind, request, result, now)
        else:
            self._teardown.ended(session, kind, True, now)

    # --- time -------------------------------------------------------------------------------------

    def next_timer(self) -> float | None:
        return self._table.timers.next()

    def handle_timer(self, now: float) -> None:
        for session in self._table.timers.pop_expired(now):
            if session.state in SETTING_UP:
                self._setup.handle_timer(session, now)
            else:
                self._teardown.handle_timer(session, now)
                self._traffic.handle_timer(session, now)
            self._table.arm(session)
