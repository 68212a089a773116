"""Checks that somebody requested each change that an authority makes, and that it is made once.

An authority makes a change because a client calls it, or because a server sends a change request.
The ledger records the requests that servers themselves send, and not what a stranger forges or
replays. A change without a request, or made twice for one request, is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, name_key
from mqis.protocol.directory.types.catalogue import by_role
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.protocol.replication.change_requests import NO_RESPONSE, NOT_REACHED
from mqis.protocol.replication.convergence import HeldObject
from mqis.sim.history import Made, Version
from mqis.sim.run_trace import Violation
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import ChangeRequest, MessageOperation, decode_message

#: A request that was sent so recently before its authority lost its disk may be executed again.
_ON_ITS_WAY_S = 90.0
#: Answers that leave open whether the change was made: no server knows, or an earlier copy of the
#: request took another way.
_UNDECIDED = frozenset(
    {
        HResult.MQ_OK,
        NO_RESPONSE,
        NOT_REACHED,
        HResult.MQDS_UNKNOWN_SOURCE,
        HResult.MQ_ERROR,
    }
)
#: Properties that the authority sets itself, or stores in another form.
_OWN_VALUES: frozenset[int] = frozenset(
    {*by_role(PropertyRole.MODIFY_TIME).values(), PropId.U_SIGN_CERT}
)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change that an authority made, and the object's previous version."""

    authority: str
    version: Version
    before: Version | None
    at: float


@dataclass(eq=False, slots=True)
class _Request:
    """A change that a server requested under one request number."""

    change: DirectoryChange
    #: The times when the requester first and last sent it.
    since: float
    sent: float
    made: _Change | None = None
    #: Its author was told that it failed, so no change may be its work.
    failed: bool = False


@dataclass(slots=True)
class Ledger:
    """All change requests, by partition, and the changes made for them."""

    _requests: dict[Guid, list[_Request]] = field(default_factory=dict)
    _known: dict[tuple[str, int, bytes], _Request] = field(default_factory=dict)
    #: The time when each server last lost its disk.
    _restored: dict[str, float] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def keep(self) -> None:
        self._undo.clear()

    def drop(self) -> None:
        while self._undo:
            self._undo.pop()()

    # --- requests ---------------------------------------------------------------------------------

    def sent(self, sender: str, body: bytes, now: float) -> None:
        """Records a change request that ``sender`` sends in its own name; ignores other messages.

        The requester itself has sent a request that ``sender`` only forwards.
        """
        if operation_in(body) == MessageOperation.CHANGE_REQUEST:
            request = decode_message(body)
            assert isinstance(request, ChangeRequest)
            if name_key(request.requester) == name_key(sender):
                self.asked(request, now)

    def asked(self, request: ChangeRequest, now: float) -> None:
        """Records a change request, which may be a repetition."""
        known = self._known.get(_key(request))
        if known is None:
            known = self._known[_key(request)] = _Request(request.change, now, now)
            self._requests.setdefault(request.partition, []).append(known)
        known.sent = now
        if known.made is not None and known.made.at < self._restored.get(known.made.authority, 0):
            known.made = None  # the change may be lost, so a repeated request may make it again

    def answered(self, request: ChangeRequest, result: int) -> None:
        """Checks that a request which was answered with an error has changed nothing.

        The change that it was assigned to may be another request's.
        """
        known = self._known.get(_key(request))
        if known is None or result in _UNDECIDED:
            return
        known.failed = True
        earlier, known.made = known.made, None
        if earlier is None:
            return
        if not self._assign(self._requests[request.partition], earlier, set()):
            raise Violation(
                "no change behind a failed answer",
                f"{earlier.authority} made {earlier.version} and answered 0x{result:08x}",
            )

    def restored(self, server: str, now: float) -> None:
        """Records that a server has lost its disk, and with it the changes that it made."""
        self._restored[server] = now
        for requests in self._requests.values():
            for request in requests:
                by_server = request.made is not None and request.made.authority == server
                if by_server and request.sent + _ON_ITS_WAY_S > now:
                    request.made = None

    # --- changes ----------------------------------------------------------------------------------

    def made(
        self, authority: str, made: list[Made], now: float, recovered: Collection[Guid] = ()
    ) -> None:
        """Matches the changes that an authority made in one operation to requests.

        The operation was not called by a client of the authority. Before it, the authority was
        being restored in the partitions ``recovered``, and made no changes there.
        """
        for change in made:
            if change.partition not in recovered or not _is_made_again(change):
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
        """Finds a request for a change; may assign another request to an earlier change for that.

        Two requests can ask for the same change, and the ledger cannot see which one it was.
        """
        for request in requests:
            if request.failed or id(request) in tried or not _fits(request, change):
                continue
            tried.add(id(request))
            earlier = request.made
            if earlier is None or self._assign(requests, earlier, tried):
                self._undo.append(partial(setattr, request, "made", earlier))
                request.made = change
                return True
        return False


def _key(request: ChangeRequest) -> tuple[str, int, bytes]:
    return name_key(request.requester), request.request_id, request.change.encoded


def _is_made_again(change: Made) -> bool:
    """True for what a restored authority makes under new numbers when it goes into service.

    These are deletions whose numbers were lost, and objects that replicas held without numbers.
    """
    return change.version.held is None or change.seen_before


def _fits(request: _Request, change: _Change) -> bool:
    """Returns whether a change is what a request asks for, and was made after it."""
    wanted, version = request.change, change.version
    held = version.held
    if request.since > change.at:
        return False
    if wanted.command is Command.DELETE or held is None:
        return wanted.command is Command.DELETE and held is None and wanted.guid == version.id
    if wanted.command is Command.CREATE:
        given = dict(wanted.properties).get(IDENTIFIER_PROPERTY[held.type])
        return given is not None and given.value == version.id
    return wanted.guid == version.id and _is_update(wanted, held, change.before)


def _is_update(wanted: DirectoryChange, held: HeldObject, before: Version | None) -> bool:
    """Returns whether an object has the requested values and otherwise its previous ones."""
    asked = dict(wanted.properties)
    old = held.content if before is None or before.held is None else before.held.content
    return all(
        value == asked.get(propid, old.get(propid))
        for propid, value in held.content.items()
        if propid not in _OWN_VALUES
    )
