"""The IXnRemote service: passes calls to the state machine, and decides who may call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from mqis.protocol.authentication import Identity
from mqis.protocol.cmpo.events import ContextAnswer
from mqis.protocol.cmpo.partner import Partner
from mqis.protocol.cmpo.partner_security import admits
from mqis.protocol.cmpo.partner_session import SETTING_UP, CmpoSession
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.oletx.partner_binding import Security
from mqis.runtime.peers import source_of
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import TypedService
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that the machine answers later; the machine's token for it."""

    incoming: IncomingCall
    answer: asyncio.Future[Any]


class Driver(Protocol):
    """The driver of the partner that the calls are for."""

    machine: Partner
    security: Security
    callers: Callers

    def act(self) -> None:
        """Carries out what the machine wants, after each use of it."""

    def identify(self, session: CmpoSession, identity: Identity | None) -> None:
        """Notes who the caller of a session is."""

    def issue(self, session: CmpoSession, call: IncomingCall) -> Guid:
        """Makes the handle of a session, in the caller's association."""

    def revoke(self, session: CmpoSession) -> None:
        """Closes the handle of a session."""


class IXnRemoteService(TypedService):
    """The eight methods. Most calls other than BuildContext are answered at once."""

    #: Decode all stubs at once: they are octets, and the order of messages matters.
    decoded_at_once = 1 << 32

    def __init__(self, transport: Driver) -> None:
        self._transport = transport
        self._machine = transport.machine
        self._loop = asyncio.get_running_loop()
        super().__init__(
            idl.IXN_REMOTE,
            {
                idl.POKE: self._poke,
                idl.POKE_W: self._poke,
                idl.BUILD_CONTEXT: self._build_context,
                idl.BUILD_CONTEXT_W: self._build_context,
                idl.NEGOTIATE_RESOURCES: self._negotiate_resources,
                idl.SEND_RECEIVE: self._send_receive,
                idl.TEAR_DOWN_CONTEXT: self._tear_down_context,
                idl.BEGIN_TEAR_DOWN: self._begin_tear_down,
            },
        )

    # --- set-up -----------------------------------------------------------------------------------

    def _poke(self, call: IncomingCall, request: idl.Poke) -> idl.RemoteResult:
        if not self._admit_caller(call, request.caller):
            return idl.RemoteResult(CmResult.SERVER_TOO_BUSY)
        result = self._machine.poke(request, self._loop.time())
        self._note_caller(call, request.caller)
        self._transport.act()
        return idl.RemoteResult(result)

    def _build_context(
        self, call: IncomingCall, request: idl.BuildContext
    ) -> idl.ContextBuilt | Awaitable[idl.ContextBuilt]:
        if not self._admit_caller(call, request.caller):
            return self.context_built(call, ContextAnswer(CmResult.SERVER_TOO_BUSY))
        token = OpenCall(call, self._loop.create_future())
        answer = self._machine.build_context(request, token, self._loop.time())
        session = self._note_caller(call, request.caller)
        if session is not None and (answer is None or answer.session is session):
            # A refused call does not show whose session this is.
            self._transport.identify(session, call.identity)
        if answer is not None:
            built = self.context_built(call, answer)
            self._transport.act()
            return built
        self._transport.act()
        return self._wait_for(token)

    def context_built(self, call: IncomingCall, answer: ContextAnswer) -> idl.ContextBuilt:
        """The answer on the wire, with a handle for the session if there is one."""
        handle = ContextHandle.NULL
        if answer.session is not None:
            handle = ContextHandle(self._transport.issue(answer.session, call))
        return idl.ContextBuilt(answer.guid_out, answer.bound, handle, answer.result)

    async def _wait_for(self, token: OpenCall) -> Any:
        try:
            return await token.answer
        except asyncio.CancelledError:  # the caller is gone
            self._machine.abandoned(token, self._loop.time())
            self._transport.act()
            raise

    # --- traffic ----------------------------------------------------------------------------------

    def _negotiate_resources(
        self, call: IncomingCall, request: idl.NegotiateResources
    ) -> idl.ResourcesNegotiated | Awaitable[idl.ResourcesNegotiated]:
        session = self._session_of(call, request.handle)
        token = OpenCall(call, self._loop.create_future())
        answer = self._machine.negotiate_resources(session, request, token, self._loop.time())
        self._transport.act()
        return self._wait_for(token) if answer is None else answer

    def _send_receive(
        self, call: IncomingCall, request: idl.SendReceive
    ) -> idl.RemoteResult | Awaitable[idl.RemoteResult]:
        session = self._session_of(call, request.handle)
        token = OpenCall(call, self._loop.create_future())
        result = self._machine.send_receive(session, request, token, self._loop.time())
        self._transport.act()
        return self._wait_for(token) if result is None else idl.RemoteResult(result)

    # --- teardown ---------------------------------------------------------------------------------

    def _tear_down_context(
        self, call: IncomingCall, request: idl.TearDownContext
    ) -> idl.ContextTornDown:
        session = self._session_of(call, request.handle)
        self._transport.revoke(session)
        result = self._machine.tear_down_context(session, request, self._loop.time())
        self._transport.act()
        return idl.ContextTornDown(ContextHandle.NULL, result)

    def _begin_tear_down(self, call: IncomingCall, request: idl.BeginTearDown) -> idl.RemoteResult:
        session = self._session_of(call, request.handle)
        result = self._machine.begin_tear_down(session, self._loop.time())
        self._transport.act()
        return idl.RemoteResult(result)

    # --- who --------------------------------------------------------------------------------------

    def _session(self, caller: str) -> CmpoSession | None:
        try:
            return self._machine.session(Guid.parse(caller))
        except ValueError:
            return None

    def _admit_caller(self, call: IncomingCall, caller: str) -> bool:
        """Returns whether there is room for a caller; ``RpcFault`` if it may not call at all."""
        session = self._session(caller)
        self._admit(call, initiated_here=session is not None and session.initiated_here)
        return session is not None or self._transport.callers.may_ask(call.peer)

    def _note_caller(self, call: IncomingCall, caller: str) -> CmpoSession | None:
        session = self._session(caller)
        if session is not None:
            self._transport.callers.add(session, call.peer)
        return session

    def _session_of(self, call: IncomingCall, handle: ContextHandle) -> CmpoSession:
        session = call.group.handle(handle.uuid, call.interface)
        assert isinstance(session, CmpoSession)  # handles are strict: all of this interface
        self._admit(call, initiated_here=session.initiated_here)
        return session

    def _admit(self, call: IncomingCall, *, initiated_here: bool) -> None:
        level = self._transport.security.level
        if not admits(level, call.level, call.identity, initiated_here=initiated_here):
            raise RpcFault(FaultStatus.ACCESS_DENIED, "the call is not authenticated at privacy")


class Callers:
    """The sessions that partners asked for, by address."""

    def __init__(self, settings: CmpoSettings) -> None:
        self._settings = settings
        self._address: dict[CmpoSession, str] = {}
        self._sessions: dict[str, set[CmpoSession]] = {}

    def may_ask(self, address: str) -> bool:
        """Returns whether one more session may be asked for from this address."""
        held = self._sessions.get(source_of(address), set())
        setups = sum(session.state in SETTING_UP for session in held)
        limits = self._settings
        return (
            len(held) < limits.max_sessions_per_address and setups < limits.max_setups_per_address
        )

    def add(self, session: CmpoSession, address: str) -> None:
        """Notes the address that first asked for a session, unless this side did."""
        if not session.initiated_here and session not in self._address:
            self._address[session] = address
            self._sessions.setdefault(source_of(address), set()).add(session)

    def address(self, session: CmpoSession) -> str | None:
        """The address of the call that began a session; None if this side began it."""
        return self._address.get(session)

    def forget(self, session: CmpoSession) -> None:
        address = self._address.pop(session, None)
        if address is None:
            return
        key = source_of(address)
        self._sessions[key].discard(session)
        if not self._sessions[key]:
            del self._sessions[key]
