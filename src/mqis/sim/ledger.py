"""Who asked for each change that an authority makes, and that each was asked for once.

An authority makes a change because a client calls it, or because a server asks for it with a
change request. The ledger sees clients and the requests that servers send themselves, never what
a stranger sends in their names or again. A change that nobody asked for, or that was made once
already, is a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, name_key
from mqis.protocol.directory.types.catalogue import by_role
from mqis.protocol.directory.types.columns import PropertyRole
from mqis.protocol.replication.convergence import Held
from mqis.protocol.replication.settings import DEFAULTS
from mqis.sim.history import Made, Version
from mqis.sim.violation import Violation
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import ChangeRequest, Operation, decode_message

#: A request that was on its way when its authority lost its disk may be executed once more.
_ON_ITS_WAY_S = 90.0
#: The authority gives them, or stores them in another form.
_OWN_VALUES: frozenset[int] = frozenset(
    {*by_role(PropertyRole.MODIFY_TIME).values(), PropId.U_SIGN_CERT}
)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change that an authority made, and what the object was before."""

    authority: str
    version: Version
    before: Version | None
    at: float


@dataclass(eq=False, slots=True)
class _Request:
    """A change that a server asked for under one number."""

    change: DirectoryChange
    #: When its author sent it first, and last.
    since: float
    sent: float
    made: _Change | None = None


@dataclass(slots=True)
class Ledger:
    """Every change request of every partition."""

    _requests: dict[Guid, list[_Request]] = field(default_factory=dict)
    _known: dict[tuple[str, int, bytes], _Request] = field(default_factory=dict)
    #: When each server last lost its disk.
    _restored: dict[str, float] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def keep(self) -> None:
        self._undo.clear()

    def drop(self) -> None:
        while self._undo:
            self._undo.pop()()

    # --- what is asked for ------------------------------------------------------------------------

    def sent(self, sender: str, body: bytes, now: float) -> None:
        """A server sends a message; what it passes on for others they have sent themselves."""
        if operation_in(body) == Operation.CHANGE_REQUEST:
            request = decode_message(body)
            assert isinstance(request, ChangeRequest)
            if name_key(request.requester) == name_key(sender):
                self.asked(request, now)

    def asked(self, request: ChangeRequest, now: float) -> None:
        """A server asks for a change, for the first time or again."""
        key = name_key(request.requester), request.request_id, request.change.encoded
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Request(request.change, now, now)
            self._requests.setdefault(request.partition, []).append(known)
        known.sent = now
        if known.made is not None and known.made.at < self._restored.get(known.made.authority, 0):
            known.made = None  # what came of it may be lost: whoever asks again may get it again

    def restored(self, server: str, now: float) -> None:
        """A server has lost its disk, and what it decided with it."""
        self._restored[server] = now
        for requests in self._requests.values():
            for request in requests:
                by_server = request.made is not None and request.made.authority == server
                if by_server and request.sent + _ON_ITS_WAY_S > now:
                    request.made = None

    # --- what is made -----------------------------------------------------------------------------

    def made(self, authority: str, made: list[Made], now: float) -> None:
        """An authority has made changes in one operation, and no client of its own called it."""
        if not _are_lost_deletions(made):
            for change in made:
                one = _Change(authority, change.version, change.replaced, now)
                self._account(self._requests.get(change.partition, []), one)

    def _account(self, requests: list[_Request], change: _Change) -> None:
        if self._assign(requests, change, set()):
            return
        authority, version = change.authority, change.version
        if any(_fits(request, change) for request in requests):
            raise Violation("no request twice", f"{authority} made {version} again")
        raise Violation("only what was asked for", f"{authority} made {version}, for nobody")

    def _assign(self, requests: list[_Request], change: _Change, tried: set[int]) -> bool:
        """Find the request for a change, if need be by another one for an earlier change.

        Two requests can ask for the same: which of them it was, nobody can tell from outside.
        """
        for request in requests:
            if id(request) in tried or not _fits(request, change):
                continue
            tried.add(id(request))
            earlier = request.made
            if earlier is None or self._assign(requests, earlier, tried):
                self._undo.append(partial(setattr, request, "made", earlier))
                request.made = change
                return True
        return False


def _are_lost_deletions(made: list[Made]) -> bool:
    """A restored authority makes deletions whose numbers are lost, behind those that it skips."""
    if any(change.version.held is not None for change in made):
        return False
    first = min(made, key=lambda change: change.version.seq)
    return first.version.seq.value - first.before.value > DEFAULTS.restore_jump // 2


def _fits(request: _Request, change: _Change) -> bool:
    """Whether a change is what a request asks for, and came after it."""
    wanted, version = request.change, change.version
    held = version.held
    if request.since > change.at:
        return False
    if wanted.command is Command.DELETE or held is None:
        return wanted.command is Command.DELETE and held is None and wanted.guid == version.id
    if wanted.command is Command.CREATE:
        identity = dict(wanted.properties).get(IDENTIFIER_PROPERTY[held.type])
        return identity is not None and identity.value == version.id
    return wanted.guid == version.id and _is_update(wanted, held, change.before)


def _is_update(wanted: DirectoryChange, held: Held, before: Version | None) -> bool:
    """Whether an object has the values that were asked for, and is otherwise what it was."""
    asked = dict(wanted.properties)
    old = held.content if before is None or before.held is None else before.held.content
    return all(
        value == asked.get(propid, old.get(propid))
        for propid, value in held.content.items()
        if propid not in _OWN_VALUES
    )
