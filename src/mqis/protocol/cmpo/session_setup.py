"""Session set-up: New Session Requested, Poke, BuildContext (3.3.4.1, 3.3.4.2, 3.4.6.1).

    secondary                        primary
                    <- requested, or PokeW ->
                                     Connecting
    Confirming      <- BuildContextW(1)
                    BuildContextW(2) ->
                                     Confirming
                    <- 0, handle
    Active          0, handle ->     Active

Both calls carry the same GUID. A session has one BuildContextW under way, however often the
partner pokes (E-CMPO-08). A failure is final only if its code is or the retries are used up
(E-CMPO-04); success is 0 and nothing else (E-CMPO-06).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqis.protocol.cmpo.events import ContextAnswer, LevelTwo, Revoke
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import (
    SETTING_UP,
    CallKind,
    CmpoSession,
    SessionState,
    VersionLimits,
)
from mqis.protocol.cmpo.session_table import SessionTable
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ports import Entropy
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, ComProtocol, SessionRank, result_text
from mqis.wire.cmpo.ixnremote import BindInfo, BoundVersionSet
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid

FINAL = frozenset(
    {
        CmResult.VERSION_SET_NOT_SUPPORTED,
        CmResult.PROTOCOL_NOT_SUPPORTED,
        CmResult.TIMED_OUT,
    }
)
_SETUP_CALLS = frozenset({CallKind.POKE, CallKind.BUILD, CallKind.BUILD_BACK})


class SessionError(ProtocolError):
    """A session cannot be set up, or is lost; ``result`` is the reason."""

    def __init__(self, result: int, detail: str) -> None:
        super().__init__(f"{detail}: {result_text(result)}")
        self.result = int(result)
        self.detail = detail

    def __reduce__(self) -> tuple[type[SessionError], tuple[int, str]]:
        return type(self), (self.result, self.detail)


@dataclass(frozen=True, slots=True)
class _Bind:
    """A bind attempt of a primary: its name, its GUID, and the common versions."""

    name: NameObject
    guid: Guid
    bound: BoundVersionSet | None


class SessionSetup:
    """The part of a partner that sets sessions up. ``activated`` handles the calls held back."""

    def __init__(
        self,
        table: SessionTable,
        versions: VersionLimits,
        level_two: LevelTwo,
        entropy: Entropy,
        activated: Callable[[CmpoSession, float], None],
    ) -> None:
        self._table = table
        self._versions = versions
        self._level_two = level_two
        self._entropy = entropy
        self._activated = activated
        self._blob = BindInfo(table.name.protocols).to_bytes()

    # --- the level above --------------------------------------------------------------------------

    def request(self, name: NameObject, now: float) -> CmpoSession:
        """New Session Requested (3.4.6.1): returns the existing session, or a new one."""
        table = self._table
        found = table.sessions.get(name.cid)
        if found is not None:
            if found.name != name:
                raise SessionError(
                    CmResult.INVALID_ARGUMENT, f"{name.cid} is at {found.name.host_name}"
                )
            return found
        if name.cid == table.name.cid:
            detail = f"{name} has the contact identifier of this side"
            raise SessionError(CmResult.INVALID_ARGUMENT, detail)
        if not _common(name.protocols):
            raise SessionError(CmResult.PROTOCOL_NOT_SUPPORTED, f"{name} does not offer TCP")
        if table.full:
            raise SessionError(CmResult.SERVER_TOO_BUSY, "too many sessions")
        session = table.create(name, initiated_here=True)
        self._start(session, now)
        return session

    def _start(self, session: CmpoSession, now: float) -> None:
        session.setup_due = now + self._table.settings.setup_s
        self._call(session)
        self._table.arm(session)

    def _call(self, session: CmpoSession) -> None:
        """Makes the next call of the set-up, which depends on rank and state."""
        if session.state is SessionState.CONFIRMING:
            self._build(session, CallKind.BUILD_BACK)
        elif session.is_primary:
            session.bind_guid = self._entropy.guid()
            self._build(session, CallKind.BUILD)
        else:
            self._poke(session)

    def _poke(self, session: CmpoSession) -> None:
        mine = self._table.name
        request = idl.Poke(
            SessionRank.SECONDARY, str(session.name.cid), mine.host_name, str(mine.cid), self._blob
        )
        operation = idl.POKE if session.narrow else idl.POKE_W
        self._table.invoke(session, CallKind.POKE, operation, request)

    def _build(self, session: CmpoSession, kind: CallKind) -> None:
        mine = self._table.name
        request = idl.BuildContext(
            session.rank,
            self._versions.offered,
            str(session.name.cid),
            mine.host_name,
            str(mine.cid),
            str(session.bind_guid),
            idl.NO_GUID,
            BoundVersionSet.NONE,
            self._blob,
        )
        operation = idl.BUILD_CONTEXT if session.narrow else idl.BUILD_CONTEXT_W
        self._table.invoke(session, kind, operation, request)

    # --- calls in ---------------------------------------------------------------------------------

    def poke(self, request: idl.Poke, now: float) -> int:
        """Answers Poke and PokeW (3.3.4.1) at once; BuildContext comes after."""
        name = self._caller(request.callee, request.host_name, request.caller, request.blob)
        if isinstance(name, CmResult):
            return name
        table = self._table
        if name.cid > table.name.cid:  # this side is secondary; to poke back is of old (note 18)
            return CmResult.INVALID_ARGUMENT
        session = table.sessions.get(name.cid)
        if session is not None:
            if session.name != name:
                return CmResult.INVALID_ARGUMENT
            connecting = session.state is SessionState.CONNECTING
            return CmResult.OK if connecting else CmResult.SERVER_NOT_READY
        if table.full:
            return CmResult.SERVER_TOO_BUSY
        self._start(table.create(name, initiated_here=False), now)
        return CmResult.OK

    def build_context(
        self, request: idl.BuildContext, token: object, now: float
    ) -> ContextAnswer | None:
        """BuildContext and BuildContextW (3.3.4.2); None: the answer comes with ``token``."""
        name = self._caller(request.callee, request.host_name, request.caller, request.blob)
        if isinstance(name, CmResult):
            return ContextAnswer(name)
        guid = _guid(request.guid_in)
        higher = name.cid > self._table.name.cid
        if not guid or request.rank != (SessionRank.PRIMARY if higher else SessionRank.SECONDARY):
            return ContextAnswer(CmResult.INVALID_ARGUMENT)
        session = self._table.sessions.get(name.cid)
        if session is not None and session.name != name:
            return ContextAnswer(CmResult.INVALID_ARGUMENT)
        bound = self._versions.bind(request.versions)
        if higher:
            return self._from_primary(_Bind(name, guid, bound), session, token, now)
        return self._from_secondary(session, guid, bound, now)

    def _caller(self, callee: str, host: str, caller: str, blob: bytes) -> NameObject | CmResult:
        """The name object of the caller, or the result that refuses it (3.3.4.1)."""
        mine = self._table.name
        cid = _guid(caller)
        try:
            info = BindInfo.from_bytes(blob)
            if _guid(callee) != mine.cid or cid == mine.cid:
                return CmResult.INVALID_ARGUMENT
            name = NameObject(host, cid, info.effective)
        except (WireError, ValueError):
            return CmResult.INVALID_ARGUMENT
        return name if _common(name.protocols) else CmResult.PROTOCOL_NOT_SUPPORTED

    def _from_primary(
        self, bind: _Bind, session: CmpoSession | None, token: object, now: float
    ) -> ContextAnswer | None:
        """Handles BuildContext as secondary: calls back before answering (3.3.4.2.1)."""
        table, settings = self._table, self._table.settings
        if session is not None and session.state is not SessionState.CONNECTING:
            return ContextAnswer(CmResult.SERVER_NOT_READY)
        if bind.bound is None:
            if session is not None:
                self._fail(session, CmResult.VERSION_SET_NOT_SUPPORTED, now)
            return ContextAnswer(CmResult.VERSION_SET_NOT_SUPPORTED)
        if session is None:
            if table.full:
                return ContextAnswer(CmResult.SERVER_TOO_BUSY)
            session = table.create(bind.name, initiated_here=False)
        session.state = SessionState.CONFIRMING
        session.version, session.bind_guid, session.outer = bind.bound, bind.guid, token
        session.failures, session.retry_due = 0, None
        if session.setup_due is None:
            session.setup_due = now + settings.setup_s
        session.inner_due = now + settings.setup_s / 2
        self._call(session)
        table.arm(session)
        return None

    def _from_secondary(
        self, session: CmpoSession | None, guid: Guid, bound: BoundVersionSet | None, now: float
    ) -> ContextAnswer:
        """Handles BuildContext as primary: the callback inside its own call (3.3.4.2.2).

        The text checks no state. But a callback belongs to the current attempt, by its
        GUID (1.3.3.1 has it verified), and an active session is not to be confirmed again.
        """
        if session is None:
            return ContextAnswer(CmResult.SESSION_DOWN)
        if session.state not in SETTING_UP:
            return ContextAnswer(CmResult.SERVER_NOT_READY)
        if guid != session.bind_guid:
            return ContextAnswer(CmResult.INVALID_ARGUMENT)
        if bound is None:
            self._fail(session, CmResult.VERSION_SET_NOT_SUPPORTED, now)
            return ContextAnswer(CmResult.VERSION_SET_NOT_SUPPORTED)
        session.state, session.version = SessionState.CONFIRMING, bound
        return ContextAnswer(CmResult.OK, session, str(guid), bound)

    # --- ends of calls ----------------------------------------------------------------------------

    def poked(self, session: CmpoSession, result: int, now: float) -> None:
        """Handles the end of PokeW; its result is irrelevant once BuildContext has come."""
        if session.state is SessionState.CONNECTING and result:
            self._retry(session, result, now)

    def built(self, session: CmpoSession, answer: idl.ContextBuilt, now: float) -> None:
        """Handles the end of the primary's call (3.4.6.1.1)."""
        if not _succeeded(answer, session.bind_guid):
            self._retry(session, answer.result or CmResult.SERVER_NOT_READY, now)
        elif session.state is not SessionState.CONFIRMING:  # no callback: half a session
            self._fail(session, CmResult.FAIL, now)
        else:
            self._activate(session, answer, now)

    def built_back(self, session: CmpoSession, answer: idl.ContextBuilt, now: float) -> None:
        """Handles the end of the secondary's call inside the primary's (3.3.4.2.1)."""
        if not _succeeded(answer, session.bind_guid):
            self._retry(session, answer.result or CmResult.SERVER_NOT_READY, now)
            return
        # The handle is given out before the level above can send anything.
        ok = ContextAnswer(CmResult.OK, session, str(session.bind_guid), session.version)
        self._table.answer_outer(session, ok)
        self._activate(session, answer, now)

    def failed(self, session: CmpoSession, kind: CallKind, result: int, now: float) -> None:
        """Handles a call of the set-up that ended in a fault or got no answer."""
        if result == CmResult.PROCNUM_OUT_OF_RANGE and not session.narrow:
            session.narrow = True
            self._call_again(session, kind)
        elif kind is CallKind.POKE:
            self.poked(session, result, now)
        else:
            self._retry(session, result, now)

    def _call_again(self, session: CmpoSession, kind: CallKind) -> None:
        """Repeats a call without W (product note 24)."""
        if kind is CallKind.POKE:
            if session.state is SessionState.CONNECTING:
                self._poke(session)
        else:
            self._build(session, kind)

    def _activate(self, session: CmpoSession, answer: idl.ContextBuilt, now: float) -> None:
        session.state, session.handle = SessionState.ACTIVE, answer.handle
        session.setup_due = session.inner_due = session.retry_due = None
        session.failures = 0
        self._level_two.session_up(session, now)
        self._activated(session, now)

    def _retry(self, session: CmpoSession, result: int, now: float) -> None:
        """Retries after a back-off, unless the failure is final."""
        table, settings = self._table, self._table.settings
        session.failures += 1
        if result in FINAL or session.failures > settings.retries:
            self._fail(session, result, now)
            return
        if session.is_primary:  # a callback that comes late belongs to no attempt
            session.state, session.bind_guid = SessionState.CONNECTING, Guid.NULL
            table.refuse_held(session, CmResult.SERVER_NOT_READY)
            table.effects.append(Revoke(session))
        session.retry_due = now + settings.pause_s(session.failures)
        table.arm(session)

    def _fail(self, session: CmpoSession, result: int, now: float) -> None:
        self._table.remove(session, result)
        self._level_two.session_failed(session, result, now)

    # --- time and losses --------------------------------------------------------------------------

    def handle_timer(self, session: CmpoSession, now: float) -> None:
        """Handles the timers of the set-up (3.2.5.1)."""
        late = [due for due in (session.setup_due, session.inner_due) if due is not None]
        if late and min(late) <= now:
            self._fail(session, CmResult.TIMED_OUT, now)
        elif session.retry_due is not None and session.retry_due <= now:
            session.retry_due = None
            self._call(session)

    def abandoned(self, token: object, now: float) -> None:
        """Fails the session whose primary has given up its BuildContext."""
        for session in self._table.sessions.values():
            if session.outer is token:
                session.outer = None
                self._fail(session, CmResult.SESSION_DOWN, now)
                return


def is_setup(kind: CallKind) -> bool:
    return kind in _SETUP_CALLS


def _succeeded(answer: idl.ContextBuilt, guid: Guid) -> bool:
    """False also for 0 with a null GuidOut, with which old partners refuse (notes 21, 23)."""
    return answer.result == 0 and _guid(answer.guid_out) == guid


def _guid(text: str) -> Guid:
    """The GUID in a text; the null GUID if it is none."""
    try:
        return Guid.parse(text)
    except ValueError:
        return Guid.NULL


def _common(protocols: ComProtocol) -> bool:
    """True if the partner offers TCP, the only protocol of this implementation (2.1.1)."""
    return bool(protocols & ComProtocol.IP_TCP)
