"""The asyncio driver of a partner: its server, its associations and its timer."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from math import inf
from typing import Any

from mqis.protocol.authentication import Identity, has_name
from mqis.protocol.cmpo.events import (
    AnswerCall,
    Cancel,
    ContextAnswer,
    Effect,
    Invoke,
    LevelTwo,
    Release,
    Revoke,
)
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner import Partner
from mqis.protocol.cmpo.partner_security import principal
from mqis.protocol.cmpo.partner_session import SETTING_UP, CmpoSession, SessionState, VersionLimits
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ports import Entropy
from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.protocol.rpc.faults import RpcFault
from mqis.protocol.rpc.groups import AssociationGroup
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.oletx.ixnremote_service import Callers, IXnRemoteService, OpenCall
from mqis.runtime.oletx.partner_binding import (
    LIMITS,
    PartnerBinding,
    PendingCall,
    Security,
    result_of,
)
from mqis.runtime.oletx.resolver import MapperResolver, Resolver
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.cmpo.ixnremote import SYNTAX
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid

log = logging.getLogger(__name__)

ANNOTATION = "MSDTC Connection Manager"


class Transport:
    """One partner on the network. ``start`` it, use ``machine``, and ``act`` after every use."""

    def __init__(
        self,
        name: NameObject,
        level_two: LevelTwo,
        resolve: Resolver,
        *,
        versions: VersionLimits | None = None,
        settings: CmpoSettings | None = None,
        security: Security | None = None,
        entropy: Entropy | None = None,
        limits: RpcLimits | None = None,
    ) -> None:
        entropy = entropy or SystemEntropy()
        self.security = security or Security()
        self.machine = Partner(name, level_two, entropy, versions=versions, settings=settings)
        self._resolve = resolve
        self._loop = asyncio.get_running_loop()
        self._service = IXnRemoteService(self)
        self._server: RpcServer = RpcServer(
            [self._service, ManagementService(lambda: self._server.endpoint)],
            entropy,
            authenticator=self.security.authenticator,
            limits=limits or LIMITS,
            max_connections=2 * self.machine.settings.max_sessions,
            max_connections_per_peer=2 * self.machine.settings.max_sessions_per_address,
        )
        self._registry: EndpointRegistry | None = None
        self._bindings: dict[CmpoSession, PartnerBinding] = {}
        self._issued: dict[CmpoSession, tuple[AssociationGroup, Guid]] = {}
        self._identities: dict[CmpoSession, Identity] = {}
        #: The addresses that asked for sessions.
        self.callers = Callers(self.machine.settings)
        #: Calls under way: tasks during the set-up of a session, faster objects after it.
        self._calls: dict[int, asyncio.Task[None] | PendingCall[Any] | asyncio.Handle] = {}
        self._released: dict[CmpoSession, asyncio.Future[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._acting = False

    # --- life -------------------------------------------------------------------------------------

    async def start(
        self, address: str, port: int = 0, registry: EndpointRegistry | None = None
    ) -> int:
        """Listens and registers the port under the CID (3.3.3); returns the port."""
        bound = await self._server.listen(address, port)
        if registry is not None:
            cid = self.machine.name.cid
            registry.insert(Registration(SYNTAX, bound, address, ANNOTATION, cid))
            self._registry = registry
        return bound

    async def close(self, grace_s: float = 1.0) -> None:
        """Drops all sessions that are left, and stops listening."""
        if self._registry is not None:
            self._registry.delete(SYNTAX, self.machine.name.cid)
        for call in self._calls.values():
            call.cancel()
        await self._finish(call for call in self._calls.values() if isinstance(call, asyncio.Task))
        for session in self.machine.sessions:
            self.machine.rundown(session, self._loop.time())
        self.act()
        await self._finish(self._closing)
        await self._server.close(grace_s)
        self._cancel_timer()

    async def _finish(self, tasks: Any) -> None:
        if pending := list(tasks):
            await asyncio.gather(*pending, return_exceptions=True)

    # --- the machine ------------------------------------------------------------------------------

    def act(self) -> None:
        """Carries out the machine's effects."""
        if self._acting:
            return
        self._acting = True
        try:
            while effects := self.machine.effects():
                for effect in effects:
                    self._perform(effect)
        finally:
            self._acting = False
        self._arm()

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Invoke):
            self._invoke(effect)
        elif isinstance(effect, AnswerCall):
            self._answer(effect)
        elif isinstance(effect, Cancel):
            self._calls.pop(effect.call).cancel()
        elif isinstance(effect, Revoke):
            self.revoke(effect.session)
        else:
            self._release(effect)

    def _invoke(self, effect: Invoke) -> None:
        """Calls the partner; reports the end to the machine unless it is cancelled."""
        session = effect.session
        binding = self._bindings.get(session)
        if binding is None:
            binding = self._bindings[session] = self._bind(session)
        if session.state in SETTING_UP:
            task = self._loop.create_task(self._connect(binding, effect))
            self._calls[effect.call] = task
            return
        ended = partial(self._ended, effect)
        try:
            call = binding.start(effect.operation, effect.request, effect.limit_s, ended)
        except ProtocolError as error:  # reported a turn later: the machine may not be done
            self._calls[effect.call] = self._loop.call_soon(ended, error)
        else:
            self._calls[effect.call] = call

    async def _connect(self, binding: PartnerBinding, effect: Invoke) -> None:
        outcome: object
        try:
            outcome = await binding.call_connecting(
                effect.operation, effect.request, effect.limit_s
            )
        except (ProtocolError, WireError, OSError, TimeoutError) as error:
            outcome = error
        self._ended(effect, outcome)

    def _ended(self, effect: Invoke, outcome: object) -> None:
        """Reports the answer or the error of a call to the machine."""
        call, request, now = effect.call, effect.request, self._loop.time()
        del self._calls[call]
        if isinstance(outcome, Exception):
            log.debug("%s to %s: %s", effect.operation.name, effect.session.name, outcome)
            self.machine.failed(call, request, result_of(outcome), now)
        else:
            self.machine.returned(call, request, outcome, now)
        self.act()

    def _bind(self, session: CmpoSession) -> PartnerBinding:
        resolve, caller = self._resolve, self.callers.address(session)
        if caller is not None and isinstance(resolve, MapperResolver):
            resolve = resolve.calling_back(caller)
        binding = PartnerBinding(session.name, resolve, self.security)
        identity = self._identities.get(session)
        binding.principal = principal(session.name.host_name, identity)
        return binding

    def _answer(self, effect: AnswerCall) -> None:
        token, answer = effect.token, effect.answer
        assert isinstance(token, OpenCall)
        future = token.answer
        if not isinstance(answer, ContextAnswer):
            if not future.done():
                future.set_result(answer)
            return
        try:
            built = self._service.context_built(token.incoming, answer)
        except RpcFault as fault:  # the caller is gone
            if not future.done():
                future.set_exception(fault)
            if answer.session is not None:
                self._loop.call_soon(self._rundown, answer.session)
            return
        if not future.done():
            future.set_result(built)

    def _release(self, effect: Release) -> None:
        self.revoke(effect.session)
        self._identities.pop(effect.session, None)
        self.callers.forget(effect.session)
        binding = self._bindings.pop(effect.session, None)
        if binding is not None:
            task = self._loop.create_task(binding.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        released = self._released.pop(effect.session, None)
        if released is not None:
            released.set_result(None)

    async def released(self, session: CmpoSession) -> None:
        """Waits until a session has ended."""
        if session.state is not SessionState.CLOSED:
            waiter = self._released.setdefault(session, self._loop.create_future())
            await asyncio.shield(waiter)

    # --- context handles --------------------------------------------------------------------------

    def issue(self, session: CmpoSession, call: IncomingCall) -> Guid:
        """Creates a handle for a session; an older one is revoked."""
        self.revoke(session)
        handle = call.create_handle(session, lambda: self._rundown(session, handle))
        self._issued[session] = (call.group, handle)
        return handle

    def revoke(self, session: CmpoSession) -> None:
        group, handle = self._issued.pop(session, (None, None))
        if group is not None and handle in group.handles:
            group.close_handle(handle, self._service.interface)

    def _rundown(self, session: CmpoSession, handle: Guid | None = None) -> None:
        issued = self._issued.get(session)
        if handle is not None and (issued is None or issued[1] != handle):
            return
        self._issued.pop(session, None)
        self.machine.rundown(session, self._loop.time())
        self.act()

    # --- who --------------------------------------------------------------------------------------

    def identify(self, session: CmpoSession, identity: Identity | None) -> None:
        """Remembers the identity of a session's caller."""
        if has_name(identity) and session.state is not SessionState.CLOSED:
            self._identities[session] = identity

    def identity(self, session: CmpoSession) -> Identity | None:
        return self._identities.get(session)

    # --- time -------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Sets a timer that expires no later than the machine's next."""
        due = self.machine.next_timer()
        if due is not None and due < self._due:
            self._cancel_timer()
            self._due = due
            self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer, self._due = None, inf
        self.machine.handle_timer(self._loop.time())
        self.act()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._due = None, inf
