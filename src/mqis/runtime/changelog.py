"""The change log: one line for each step of a change, to trace it through an enterprise.

==================  =====================================  =======================================
event               logged by                              identifiers
==================  =====================================  =======================================
change made         the authority, for its own client      change
change forwarded    another server, for its own client     request
change relayed      the PSC of a backup controller         request
change decided      the authority, for another server      request, change
change answered     the server of the client               request
change applied      every other server                     change (all that came in one message)
==================  =====================================  =======================================

``change`` and ``request`` are those of ``protocol.replication.identity``. See docs/logs.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, islice
from threading import local
from typing import Any

from mqis.protocol.authentication import name_of
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.replication.effects import ChangeApplied, RequestDecided, RequestPassedOn
from mqis.protocol.replication.outgoing_changes import change_id, request_id
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.hresult import HResult

log = logging.getLogger("mqis.change")

_OPERATIONS = {kind: kind.name.lower() for kind in ChangeKind}
#: Changes in one line: those of a message share it, up to a readable length.
_IN_LINE = 50
#: The most characters of a user's name in the journal.
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class Origin:
    """The user who asked for a change, and the user's address."""

    user: str
    peer: str

    @classmethod
    def of(cls, call: IncomingCall) -> Origin:
        return cls(name_of(call.identity), call.peer)

    @property
    def name(self) -> str:
        """The user as the journal names it; empty for a change of the server itself."""
        return self.user[:_LONGEST_NAME] if self.peer else ""


#: The origin of a server's own changes, such as the publication of its key.
SELF = Origin("this server", "")


def is_on() -> bool:
    return log.isEnabledFor(logging.INFO)


def made(change: OwnChange, origin: Origin) -> None:
    if is_on():
        fields = {"change": change_id_of(change), **_about(change), "user": origin.user}
        if origin.peer:
            fields["peer"] = origin.peer
        _write("change made", fields)


def forwarded(request: str, change: OwnChange, to: str, origin: Origin) -> None:
    if is_on():
        fields = {"request": request, "partition": str(change.obj.partition), "to": to}
        author = {"user": origin.user, "peer": origin.peer}
        _write("change forwarded", {**fields, **_about(change), **author})


def answered(request: str, result: int, seconds: float) -> None:
    if is_on():
        fields = {"request": request, "result": _result(result), "ms": round(1000 * seconds, 1)}
        _write("change answered", fields)


def relayed(passed_on: RequestPassedOn) -> None:
    if is_on():
        request = request_id(passed_on.requester, passed_on.number)
        fields = {"request": request, "to": passed_on.machine}
        _write("change relayed", fields)


def decided(decision: RequestDecided) -> None:
    if not is_on():
        return
    fields = {
        "request": request_id(decision.requester, decision.number),
        "result": _result(decision.result),
    }
    for change in decision.changes:
        change_fields = {**fields, "change": change_id_of(change), **_about(change)}
        _write("change decided", change_fields)
    if not decision.changes:
        _write("change decided", fields)


def applied(changes: Iterable[ChangeApplied]) -> None:
    """Logs the changes of one sender in one line; a line for each would cost too much."""
    if not is_on():
        return
    for sender, group in groupby(changes, lambda one: one.sender):
        while some := [change_id(c.partition, c.seq) for c in islice(group, _IN_LINE)]:
            fields = {"change": some[0] if len(some) == 1 else some, "sender": sender}
            _write("change applied", fields)


# --- writing --------------------------------------------------------------------------------------


class _Turn(local):
    """Lines of one turn of this thread's event loop, which are written together.

    Clients whose changes shared a commit are answered in one turn: each gets a line, but the
    logging package is called and the file written only once for all of them.
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def add(self, event: str, details: dict[str, Any]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is not self.loop:  # the previous loop has ended without a further turn
            self.flush()
        self.lines.append((event, details))
        if loop is None:
            self.flush()
        elif self.loop is None:
            self.loop = loop
            loop.call_soon(self.flush)

    def flush(self) -> None:
        self.loop, lines, self.lines = None, self.lines, []
        if lines:
            log.info("changes", extra={"lines": lines})


_turn = _Turn()
_write = _turn.add


# --- what lines have in common --------------------------------------------------------------------


def change_id_of(change: OwnChange) -> str:
    obj, tombstone = change.obj, change.tombstone
    return change_id(obj.partition, obj.seq if tombstone is None else tombstone.seq)


def _about(change: OwnChange) -> dict[str, Any]:
    obj = change.obj
    fields = {
        "operation": _OPERATIONS[change.kind],
        "type": obj.type.label,
        "id": str(obj.id),
    }
    path = obj.path
    if path is not None:
        fields["object"] = path
    return fields


def _result(result: int) -> str:
    try:
        return HResult(result).name
    except ValueError:
        return f"0x{result & 0xFFFFFFFF:08x}"
