"""Undelete for administrators.

A search of the journal takes seconds, so it runs in a thread of its own, one at a time. Its result
is kept for the caller who asked, until he forgets it, another plan takes its place or it is old.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from mqis.config.logs import details
from mqis.protocol.authentication import name_of
from mqis.protocol.documents import encode
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.replication.server_identity import Server
from mqis.protocol.undeletion.conflicts import bring_back
from mqis.protocol.undeletion.lost import LostObject
from mqis.protocol.undeletion.messages import (
    MOST_RESTORED,
    EntryResult,
    EntryState,
    UndeleteReply,
    UndeleteRequest,
    Verb,
    decode_request,
    fitting,
)
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.server.undeletion.deleted_history import JournalHistory
from mqis.server.undeletion.planning import PlannedObject, plan_undelete
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType

audit = logging.getLogger("mqis.audit")

#: Plans that the server keeps, and seconds after which it forgets one that is not used.
MOST_PLANS = 2
KEPT_S = 900.0
#: Seconds that a call waits for a search; the caller asks again.
ANSWER_S = 5.0
#: Seconds after which a call returns what it has restored so far.
RESTORE_S = 5.0
#: Objects that are restored at once; they share a commit.
_AT_ONCE = 25


#: The answers that mean: the authority could not be asked, and: it has such an object.
_UNREACHED = (
    HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER,
    HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
)
_EXISTS = (HResult.MQ_ERROR_QUEUE_EXISTS, HResult.MQ_ERROR_MACHINE_EXISTS)


@dataclass(slots=True)
class _Plan:
    caller: str
    search: asyncio.Future[list[PlannedObject]]
    used: float


class Undeletion:
    """Undeletes through the directory of one server."""

    def __init__(
        self, directory: DirectoryContext, history: JournalHistory | None, me: Server | None
    ) -> None:
        self._directory = directory
        self._history = history
        self._me = me
        self._thread = ThreadPoolExecutor(1, "mqis-undelete")
        self._plans: OrderedDict[str, _Plan] = OrderedDict()

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)

    async def reply(self, call: IncomingCall, request: bytes) -> bytes:
        """Answers one request of an administrator."""
        return encode(await self._reply(call, request))

    async def _reply(self, call: IncomingCall, request: bytes) -> UndeleteReply:
        guard = self._directory.guard(call)
        guard.check_administrator("undelete in", ObjectType.ENTERPRISE, "")
        message = decode_request(request)
        if message.verb == Verb.PLAN:
            return await self._begin(call, message)
        token, plan = message.token, self._plan(call, message.token)
        if message.verb == Verb.PAGE:
            return await self._page(token, plan, message.first)
        if message.verb == Verb.RESTORE:
            return await self._restore(call, token, plan, message)
        if message.verb == Verb.LOOK:
            return self._look(token, plan, message)
        if message.verb == Verb.FORGET:
            del self._plans[token]
            return UndeleteReply(token)
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"undelete: unknown verb {message.verb[:40]!r}"
        )

    # --- plans ------------------------------------------------------------------------------------

    async def _begin(self, call: IncomingCall, request: UndeleteRequest) -> UndeleteReply:
        history, me = self._history, self._me
        if history is None or me is None:
            raise DirectoryError(
                HResult.MQ_ERROR_DS_ERROR,
                "this server keeps no journal to undelete from: it needs a role (server.role) and "
                "replication.journal, and knows what is deleted from then on",
            )
        self._forget_old()
        if any(not plan.search.done() for plan in self._plans.values()):
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                "the server searches its journal for another undelete; try again in a moment",
            )
        loop = asyncio.get_running_loop()
        search = loop.run_in_executor(self._thread, plan_undelete, history, me, request)
        token = str(self._directory.entropy.guid())
        plan = self._plans[token] = _Plan(name_of(call.identity), search, time.monotonic())
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        return await self._page(token, plan, 0)

    def _forget_old(self) -> None:
        now = time.monotonic()
        for token, plan in list(self._plans.items()):
            if now - plan.used > KEPT_S and plan.search.done():
                del self._plans[token]

    def _plan(self, call: IncomingCall, token: str) -> _Plan:
        plan = self._plans.get(token)
        if plan is None or plan.caller != name_of(call.identity):
            raise DirectoryError(
                HResult.MQ_ERROR_INVALID_PARAMETER, "the plan is not known any more; make it again"
            )
        plan.used = time.monotonic()
        self._plans.move_to_end(token)
        return plan

    async def _page(self, token: str, plan: _Plan, first: int) -> UndeleteReply:
        await asyncio.wait({plan.search}, timeout=ANSWER_S)
        if not plan.search.done():
            return UndeleteReply(token, ready=False)
        try:
            found = plan.search.result()
        except BaseException:
            self._plans.pop(token, None)
            raise
        entries = (planned.entry for planned in islice(found, first, None))
        return UndeleteReply(token, total=len(found), entries=fitting(entries))

    # --- restoring --------------------------------------------------------------------------------

    async def _restore(
        self, call: IncomingCall, token: str, plan: _Plan, request: UndeleteRequest
    ) -> UndeleteReply:
        if not plan.search.done():
            return UndeleteReply(token, ready=False)
        found = plan.search.result()
        last = request.first + min(request.count, MOST_RESTORED)
        wanted = found[request.first : last]
        results: list[EntryResult] = []
        end = time.monotonic() + RESTORE_S
        while len(results) < len(wanted) and (not results or time.monotonic() < end):
            some = _next_batch(wanted[len(results) :])
            results += await asyncio.gather(*(self._restore_one(call, one) for one in some))
        restored = sum(result.state == EntryState.RESTORED for result in results)
        about = details(
            user=name_of(call.identity), peer=call.peer, restored=restored, of=len(results)
        )
        audit.info("undelete", extra=about)
        return UndeleteReply(token, total=len(found), results=tuple(results))

    def _look(self, token: str, plan: _Plan, request: UndeleteRequest) -> UndeleteReply:
        found = plan.search.result() if plan.search.done() else []
        wanted = islice(found, request.first, request.first + min(request.count, MOST_RESTORED))
        with self._directory.view() as view:
            results = tuple(_presence(view, planned.lost) for planned in wanted)
        return UndeleteReply(token, total=len(found), results=results)

    async def _restore_one(self, call: IncomingCall, planned: PlannedObject) -> EntryResult:
        lost, key = planned.lost, str(planned.lost.id)
        with self._directory.view() as view:
            if view.get(lost.type, lost.id) is not None:
                return EntryResult(key, EntryState.PRESENT)
        if lost.obj is None or planned.entry.state == EntryState.CONFLICT:
            return EntryResult(key, EntryState.FAILED, planned.entry.reason)
        try:
            await self._directory.change(lambda events: bring_back(events, lost), call)
        except DirectoryError as error:
            return EntryResult(key, _state_after(error, planned), str(error))
        return EntryResult(key, EntryState.RESTORED)


def _next_batch(wanted: Sequence[PlannedObject]) -> list[PlannedObject]:
    """The next objects that are restored at once; the writer makes them in this order.

    Queues go together. So do a site and the machine of its PSC: the PSC answers as soon as it hears
    of its site, and has to be known then. All else goes one by one.
    """
    some = list(wanted[:1])
    for planned in wanted[1:_AT_ONCE]:
        both_queues = some[-1].lost.type is planned.lost.type is ObjectType.QUEUE
        if not both_queues and some[-1].lost.id != planned.lost.with_site:
            break
        some.append(planned)
    return some


def _state_after(error: DirectoryError, planned: PlannedObject) -> EntryState:
    if error.hresult in _UNREACHED:
        return EntryState.UNREACHED
    if planned.entry.follows and error.hresult in _EXISTS:
        return EntryState.PRESENT  # the site's PSC has it, and will send it
    return EntryState.FAILED


def _presence(view: View, lost: LostObject) -> EntryResult:
    there = view.get(lost.type, lost.id) is not None
    return EntryResult(str(lost.id), EntryState.PRESENT if there else EntryState.MISSING)
