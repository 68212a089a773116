"""Targets for a whole MS-CMPO partner with hostile calls, answers, losses and silence.

    python -m fuzz.cmpo_targets        write the corpus of these targets again

The input is a script of steps: kind (u8), length (u16), data. Whatever it is, the machine raises
nothing, answers every call once, and holds nothing after a long enough silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mqis.protocol.cmpo.events import AnswerCall, Cancel, ContextAnswer, Invoke
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner import Partner
from mqis.protocol.cmpo.partner_session import CmpoSession, SessionState
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, SessionRank, TeardownType
from mqis.wire.cmpo.ixnremote import BindVersionSet, BoundVersionSet
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle, Syntax

HIGH = NameObject("Machine_1", Guid.parse("b51996ef-c434-4f79-a288-56efd302fc8e"))
LOW = NameObject("Machine_2", Guid.parse("a3afb37b-f64a-4e6c-9017-f6a96ba6f166"))
HANDLE = ContextHandle(Guid(bytes(range(16))))
#: The kinds of steps after the eight methods.
RETURN, FAIL, TIME, RUNDOWN, WANT, TEAR_DOWN, SEND, RELEASE = range(8, 16)
STEPS = 16
_SETTINGS = CmpoSettings(max_sessions=4, max_held=2)
_STATES = frozenset(SessionState)


class _Numbers:
    def __init__(self) -> None:
        self._last = 0

    def guid(self) -> Guid:
        self._last += 1
        return Guid(self._last.to_bytes(16, "big"))


class _Above:
    """An upper layer that accepts everything, but makes every other boxcar wait for room."""

    def __init__(self) -> None:
        self.up: set[CmpoSession] = set()
        self.kept: list[CmpoSession] = []
        self._boxcars = 0

    def session_up(self, session: CmpoSession, now: float) -> None:
        assert session.state is SessionState.ACTIVE
        assert session not in self.up
        self.up.add(session)

    def session_failed(self, session: CmpoSession, result: int, now: float) -> None:
        assert session not in self.up
        assert result != 0

    def session_down(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        self.up.remove(session)

    def grant(self, session: CmpoSession, requested: int, now: float) -> int:
        return requested // 2

    def granted(self, session: CmpoSession, accepted: int, result: int, now: float) -> None:
        assert accepted == 0 or result == 0

    def receive(self, session: CmpoSession, messages: int, boxcar: bytes, now: float) -> int | None:
        assert session.state is SessionState.ACTIVE
        self._boxcars += 1
        if self._boxcars % 2:
            return CmResult.OK
        self.kept.append(session)
        return None

    def sent(self, session: CmpoSession, now: float) -> None:
        assert session in self.up


class _World:
    """The machine, and the state that its driver would keep."""

    def __init__(self, name: NameObject) -> None:
        self.above = _Above()
        self.machine = Partner(name, self.above, _Numbers(), settings=_SETTINGS)
        self.other = LOW if name is HIGH else HIGH
        self.now = 0.0
        self.calls: dict[int, Invoke] = {}
        self.open: set[object] = set()
        self.known: list[CmpoSession] = []

    def act(self) -> None:
        while effects := self.machine.effects():
            for effect in effects:
                if isinstance(effect, Invoke):
                    self.calls[effect.call] = effect
                elif isinstance(effect, Cancel):
                    del self.calls[effect.call]
                elif isinstance(effect, AnswerCall):
                    self.open.remove(effect.token)
                    _check_answer(effect.answer)
        self.known += [s for s in self.machine.sessions if s not in self.known]

    def step(self, what: int, data: bytes) -> None:
        if what < len(idl.IXN_REMOTE.operations):
            self._call(what, data)
        elif what in (RETURN, FAIL):
            self._end(what, data)
        elif what == TIME:
            self.now += int.from_bytes(data, "little") % 200 / 10
            self.machine.handle_timer(self.now)
        else:
            self._local(what, data)
        self.act()

    def _call(self, opnum: int, data: bytes) -> None:
        operation = idl.IXN_REMOTE.operations[opnum]
        try:
            request = operation.request.decode(data, Syntax.NDR20)
        except WireError:
            return
        token = object()
        answer = self._dispatch(request, token)
        if answer is None:
            self.open.add(token)
        else:
            _check_answer(answer)

    def _dispatch(self, request: Any, token: object) -> Any:
        machine, now = self.machine, self.now
        if isinstance(request, idl.Poke):
            return machine.poke(request, now)
        if isinstance(request, idl.BuildContext):
            return machine.build_context(request, token, now)
        session = self._session(request.handle.uuid.raw)
        if session is None:
            return 0
        if isinstance(request, idl.NegotiateResources):
            return machine.negotiate_resources(session, request, token, now)
        if isinstance(request, idl.SendReceive):
            return machine.send_receive(session, request, token, now)
        return self._teardown(session, request)

    def _teardown(self, session: CmpoSession, request: Any) -> int:
        if isinstance(request, idl.TearDownContext):
            return self.machine.tear_down_context(session, request, self.now)
        return self.machine.begin_tear_down(session, self.now)

    def _session(self, raw: bytes) -> CmpoSession | None:
        return self.known[raw[0] % len(self.known)] if self.known else None

    def _end(self, what: int, data: bytes) -> None:
        """Ends the oldest call as the bytes determine."""
        if not self.calls:
            return
        call = self.calls.pop(min(self.calls))
        answer: Any = None
        if what == RETURN:
            answer = self._answer(call, data)
        if answer is None:
            result = int.from_bytes(data[:4], "little") or CmResult.SERVER_UNAVAILABLE
            self.machine.failed(call.call, call.request, result, self.now)
        else:
            self.machine.returned(call.call, call.request, answer, self.now)

    def _answer(self, call: Invoke, data: bytes) -> Any:
        if not data and isinstance(call.request, idl.BuildContext):  # the right one
            return idl.ContextBuilt(call.request.guid_in, BoundVersionSet(2, 1, 5), HANDLE, 0)
        try:
            return call.operation.response.decode(data, Syntax.NDR20)
        except WireError:
            return None

    def _local(self, what: int, data: bytes) -> None:
        session = self._session(data[:1] or b"\0")
        if what == WANT:
            self._want()
        elif session is None:
            return
        elif what == RUNDOWN:
            self.machine.rundown(session, self.now)
        elif what == RELEASE:
            self._release()
        elif what == TEAR_DOWN:
            problem = session.state is not SessionState.ACTIVE or len(data) > 1
            kind = TeardownType.PROBLEM if problem else TeardownType.FORCE
            self.machine.tear_down(session, kind, self.now)
        elif session.state is SessionState.ACTIVE:
            self.machine.send(session, 1, bytes(40))
            self.machine.allocate(session, 1 + len(data) % 999)

    def _want(self) -> None:
        try:
            self.machine.request_session(self.other, self.now)
        except SessionError:
            assert len(self.machine.sessions) == _SETTINGS.max_sessions

    def _release(self) -> None:
        while self.above.kept:
            self.machine.release(self.above.kept.pop(), self.now)
            self.act()

    def finish(self) -> None:
        """Lets all timers run out in silence, then removes the partners."""
        for _ in range(40):
            self.now += 20.0
            self.machine.handle_timer(self.now)
            self.act()
        for session in self.machine.sessions:
            assert session.state is SessionState.ACTIVE, f"{session.state} outlived its timers"
            self.machine.rundown(session, self.now)
        self.act()
        assert not self.machine.sessions
        assert not self.open, "a call has no answer"
        assert not self.calls, "a call outlived its session"
        assert not self.above.up
        self.machine.handle_timer(self.now + 100.0)
        assert self.machine.next_timer() is None


def _check_answer(answer: Any) -> None:
    """Checks that an error carries no handle, no versions and no GUID (T-41 of the methods)."""
    if isinstance(answer, ContextAnswer) and answer.result:
        assert answer == ContextAnswer(answer.result)


def _steps(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 3], "little") % 1024
        yield data[at] % STEPS, data[at + 3 : at + 3 + size]
        at += 3 + size


def _play(name: NameObject, data: bytes) -> None:
    world = _World(name)
    for what, part in _steps(data):
        world.step(what, part)
        assert len(world.machine.sessions) <= _SETTINGS.max_sessions
    world.finish()


def primary(data: bytes) -> None:
    _play(HIGH, data)


def secondary(data: bytes) -> None:
    _play(LOW, data)


#: Name, function, and the errors that it may raise: none.
CMPO_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("cmpo-primary", primary, ()),
    ("cmpo-secondary", secondary, ()),
)


# --- the corpus -----------------------------------------------------------------------------------


def _step(what: int, data: bytes = b"") -> bytes:
    return bytes([what]) + len(data).to_bytes(2, "little") + data


def _stub(operation: Any, request: Any) -> bytes:
    stub: bytes = operation.request.encode(request, Syntax.NDR20)
    return _step(operation.opnum, stub)


def _build(rank: SessionRank, to: NameObject, by: NameObject, guid: Guid) -> bytes:
    blob = bytes.fromhex("08000000 21000000")
    none = BoundVersionSet.NONE
    versions = BindVersionSet(1, 2, 1, 1, 1, 5)
    names = (str(to.cid), by.host_name, str(by.cid))
    request = idl.BuildContext(rank, versions, *names, str(guid), idl.NO_GUID, none, blob)
    return _stub(idl.BUILD_CONTEXT_W, request)


def _traffic() -> bytes:
    return b"".join(
        (
            _stub(idl.NEGOTIATE_RESOURCES, idl.NegotiateResources(HANDLE, 0, 100)),
            _stub(idl.SEND_RECEIVE, idl.SendReceive(HANDLE, 1, bytes(40))),
            _stub(idl.SEND_RECEIVE, idl.SendReceive(HANDLE, 1, bytes(40))),
            _step(RELEASE),
            _step(SEND, b"\0"),
            _step(RETURN, bytes(4)),
            _step(RETURN, (1).to_bytes(4, "little") + bytes(4)),
        )
    )


def _ends() -> Iterator[bytes]:
    """Scripts of the ways in which a session may end."""
    yield _step(RUNDOWN)
    yield _step(TIME, b"\x60")
    yield (
        _step(TEAR_DOWN)
        + _step(RETURN, bytes(24))
        + _stub(idl.TEAR_DOWN_CONTEXT, idl.TearDownContext(HANDLE, 2, 0))
    )
    yield _step(TEAR_DOWN, b"\0\0") + _step(FAIL)
    yield _stub(idl.TEAR_DOWN_CONTEXT, idl.TearDownContext(HANDLE, 1, 0)) + _step(RETURN, bytes(24))
    yield _stub(idl.BEGIN_TEAR_DOWN, idl.BeginTearDown(HANDLE, 0)) + _step(RETURN, bytes(24))
    yield _stub(idl.TEAR_DOWN_CONTEXT, idl.TearDownContext(HANDLE, 1, 2))


def seeds() -> dict[str, list[bytes]]:
    """Scripts in which sessions come up and end, for both ranks."""
    numbers = _Numbers()
    first = numbers.guid()
    blob = bytes.fromhex("08000000 21000000")
    poke = _stub(idl.POKE_W, idl.Poke(2, str(HIGH.cid), LOW.host_name, str(LOW.cid), blob))
    callback = _build(SessionRank.SECONDARY, HIGH, LOW, first)
    outer = _build(SessionRank.PRIMARY, LOW, HIGH, first)
    up = {
        "cmpo-primary": [_step(WANT) + callback + _step(RETURN), poke + callback + _step(RETURN)],
        "cmpo-secondary": [outer + _step(RETURN), _step(WANT) + outer + _step(RETURN, bytes(4))],
    }
    return {
        name: [start + _traffic() + end for start in starts for end in _ends()]
        for name, starts in up.items()
    }


def main() -> None:
    for name, scripts in seeds().items():
        directory = Path(__file__).parent / "corpus" / name
        directory.mkdir(exist_ok=True)
        for number, script in enumerate(scripts, 1):
            (directory / f"seed-{number:02}").write_bytes(script)


if __name__ == "__main__":
    main()
