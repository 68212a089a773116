"""Partners joined without sockets: calls, answers and losses one at a time, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mqis.protocol.cmpo.events import AnswerCall, AnyAnswer, Cancel, ContextAnswer, Invoke, Revoke
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner import Partner
from mqis.protocol.cmpo.partner_session import CmpoSession, SessionState, VersionLimits
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, TeardownType
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle

#: The partners of MS-CMPO 4.1.
PRIMARY = NameObject("Machine_1", Guid.parse("b51996ef-c434-4f79-a288-56efd302fc8e"))
SECONDARY = NameObject("Machine_2", Guid.parse("a3afb37b-f64a-4e6c-9017-f6a96ba6f166"))

OK = int(CmResult.OK)


class Numbers:
    """Entropy that counts."""

    def __init__(self) -> None:
        self._last = 0

    def guid(self) -> Guid:
        self._last += 1
        return Guid(self._last.to_bytes(16, "big"))


@dataclass(slots=True)
class Above:
    """The level above: remembers what it is told, and decides as a test wants."""

    heard: list[tuple[str, Any]] = field(default_factory=list)
    boxcars: list[bytes] = field(default_factory=list)
    grant_at_most: int = 1000
    result: int | None = OK

    def session_up(self, session: CmpoSession, now: float) -> None:
        assert session.state is SessionState.ACTIVE
        self.heard.append(("up", session))

    def session_failed(self, session: CmpoSession, result: int, now: float) -> None:
        assert session.state is SessionState.CLOSED
        self.heard.append(("failed", result))

    def session_down(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        self.heard.append(("down", teardown))

    def grant(self, session: CmpoSession, requested: int, now: float) -> int:
        return min(requested, self.grant_at_most)

    def granted(self, session: CmpoSession, accepted: int, result: int, now: float) -> None:
        self.heard.append(("granted", (accepted, result)))

    def receive(self, session: CmpoSession, messages: int, boxcar: bytes, now: float) -> int | None:
        assert session.state is SessionState.ACTIVE
        self.boxcars.append(boxcar)
        return self.result

    def sent(self, session: CmpoSession, now: float) -> None:
        self.heard.append(("sent", session))

    @property
    def words(self) -> list[str]:
        return [word for word, _ in self.heard]


@dataclass(slots=True, eq=False)
class Call:
    """A call under way: who made it, and whether anybody waits for its end."""

    caller: Node
    number: int
    session: CmpoSession
    operation: Any
    request: Any
    wanted: bool = True


class Node:
    """A partner, its handles, and what its associations would do."""

    def __init__(
        self, net: Net, name: NameObject, versions: VersionLimits, settings: CmpoSettings
    ) -> None:
        self.net = net
        self.name = name
        self.above = Above()
        self.partner = Partner(name, self.above, net.numbers, versions=versions, settings=settings)
        #: Handle to (session, the caller's session: its association).
        self.handles: dict[Guid, tuple[CmpoSession, CmpoSession]] = {}
        self.calls: dict[int, Call] = {}
        #: The operations that it has no longer, or never had.
        self.lacks: set[str] = set()

    @property
    def session(self) -> CmpoSession:
        (session,) = self.partner.sessions
        return session

    @property
    def state(self) -> SessionState | None:
        return self.session.state if self.partner.sessions else None

    def want(self, other: Node) -> CmpoSession:
        session = self.partner.request_session(other.name, self.net.now)
        self.act()
        return session

    def tear_down(self, kind: TeardownType) -> None:
        self.partner.tear_down(self.session, kind, self.net.now)
        self.act()

    def act(self) -> None:
        while effects := self.partner.effects():
            for effect in effects:
                self._perform(effect)

    def _perform(self, effect: Any) -> None:
        if isinstance(effect, Invoke):
            call = Call(self, effect.call, effect.session, effect.operation, effect.request)
            self.calls[effect.call] = call
            self.net.asked(call)
        elif isinstance(effect, Cancel):
            self.calls.pop(effect.call).wanted = False
        elif isinstance(effect, AnswerCall):
            assert isinstance(effect.token, Call)
            self.net.answered(effect.token, self.on_wire(effect.token, effect.answer))
        else:
            self._revoke(effect.session)
            if not isinstance(effect, Revoke):
                self.net.closed(self, effect.session)

    def _revoke(self, session: CmpoSession) -> None:
        self.handles = {id_: pair for id_, pair in self.handles.items() if pair[0] is not session}

    # --- as a server ------------------------------------------------------------------------------

    def serve(self, call: Call) -> None:
        answer = self.method(call)
        if answer is not None:
            self.net.answered(call, self.on_wire(call, answer))
        self.act()

    def method(self, call: Call) -> AnyAnswer | idl.ContextTornDown | int | None:
        """The answer; None: later; a number: a fault."""
        partner, now, request = self.partner, self.net.now, call.request
        if call.operation.name in self.lacks:
            return int(CmResult.PROCNUM_OUT_OF_RANGE)
        if isinstance(request, idl.Poke):
            return idl.RemoteResult(partner.poke(request, now))
        if isinstance(request, idl.BuildContext):
            return partner.build_context(request, call, now)
        return self._on_handle(call)

    def _on_handle(self, call: Call) -> AnyAnswer | idl.ContextTornDown | int | None:
        partner, now, request = self.partner, self.net.now, call.request
        session, _ = self.handles.get(request.handle.uuid, (None, None))
        if session is None:
            return 0x1C00_001A  # context mismatch
        if isinstance(request, idl.NegotiateResources):
            return partner.negotiate_resources(session, request, call, now)
        if isinstance(request, idl.SendReceive):
            result = partner.send_receive(session, request, call, now)
            return None if result is None else idl.RemoteResult(result)
        if isinstance(request, idl.TearDownContext):
            self._revoke(session)
            result = partner.tear_down_context(session, request, now)
            return idl.ContextTornDown(ContextHandle.NULL, result)
        return idl.RemoteResult(partner.begin_tear_down(session, now))

    def on_wire(self, call: Call, answer: Any) -> Any:
        if not isinstance(answer, ContextAnswer):
            return answer
        handle = ContextHandle.NULL
        if answer.session is not None:
            self._revoke(answer.session)
            handle = ContextHandle(self.net.numbers.guid())
            self.handles[handle.uuid] = (answer.session, call.session)
        return idl.ContextBuilt(answer.guid_out, answer.bound, handle, answer.result)

    def association_lost(self, session: CmpoSession) -> None:
        """The caller's association with this side, that of its ``session``, is gone."""
        lost = {id_: mine for id_, (mine, theirs) in self.handles.items() if theirs is session}
        for id_, mine in lost.items():
            del self.handles[id_]
            self.partner.rundown(mine, self.net.now)
            self.act()

    # --- as a client ------------------------------------------------------------------------------

    def ended(self, call: Call, answer: Any) -> None:
        """An answer, or the number of a fault."""
        if not call.wanted:
            return
        call.wanted = False
        del self.calls[call.number]
        if isinstance(answer, int):
            self.partner.failed(call.number, call.request, answer, self.net.now)
        else:
            self.partner.returned(call.number, call.request, answer, self.net.now)
        self.act()


class Net:
    """Everything that is under way. ``step`` lets one thing happen, ``run`` all."""

    def __init__(self) -> None:
        self.now = 0.0
        self.numbers = Numbers()
        self.nodes: dict[Guid, Node] = {}
        self.pending: list[Callable[[], None]] = []
        #: What has been called, in order: (host, method).
        self.log: list[tuple[str, str]] = []
        self.requests: list[Any] = []
        #: Calls that never get an answer.
        self.silent: Callable[[Call], bool] = lambda _call: False

    def node(
        self,
        name: NameObject,
        versions: VersionLimits | None = None,
        settings: CmpoSettings | None = None,
    ) -> Node:
        node = Node(self, name, versions or VersionLimits(), settings or CmpoSettings())
        self.nodes[name.cid] = node
        return node

    def kill(self, node: Node) -> None:
        """A process dies: its associations and its port are gone."""
        del self.nodes[node.name.cid]
        for session in node.partner.sessions:
            self.closed(node, session)
        for other in self.nodes.values():
            for call in list(other.calls.values()):
                if call.session.name == node.name:
                    self.pending.append(lambda call=call: call.caller.ended(call, 0x6BA))  # type: ignore[misc]

    # --- what nodes do ----------------------------------------------------------------------------

    def asked(self, call: Call) -> None:
        self.log.append((call.caller.name.host_name, call.operation.name))
        self.requests.append(call.request)
        self.pending.append(lambda: self._serve(call))

    def _serve(self, call: Call) -> None:
        target = self.nodes.get(call.session.name.cid)
        if target is None:
            call.caller.ended(call, int(CmResult.SERVER_UNAVAILABLE))
        elif call.wanted and not self.silent(call):
            target.serve(call)

    def answered(self, call: Call, answer: Any) -> None:
        self.pending.append(lambda: call.caller.ended(call, answer))

    def closed(self, node: Node, session: CmpoSession) -> None:
        target = self.nodes.get(session.name.cid)
        if target is not None:
            self.pending.append(lambda: target.association_lost(session))

    # --- what happens -----------------------------------------------------------------------------

    def step(self, index: int = 0) -> bool:
        if not self.pending:
            return False
        self.pending.pop(index % len(self.pending))()
        return True

    def run(self) -> None:
        while self.step():
            pass

    def wait(self, seconds: float) -> None:
        """Time passes; timers ring when they are due and everything else goes on at once."""
        until = self.now + seconds
        self.run()
        while due := min(
            (t for n in self.nodes.values() if (t := n.partner.next_timer()) is not None),
            default=None,
        ):
            if due > until:
                break
            self.now = max(self.now, due)
            for node in self.nodes.values():
                node.partner.handle_timer(self.now)
                node.act()
            self.run()
        self.now = until


def pair() -> tuple[Net, Node, Node]:
    net = Net()
    return net, net.node(PRIMARY), net.node(SECONDARY)


def active_pair() -> tuple[Net, Node, Node]:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.run()
    assert primary.state is secondary.state is SessionState.ACTIVE
    return net, primary, secondary
