"""Shortcuts of the calls that clients make most: known answers, before a request is decoded.

Programs ask the same questions again and again. The answer to one depends on the caller, the bytes
of the request and what the directory holds; the store drops it with the first commit that changes
something it was made of. Only successes are remembered, and only such that no signature is in: a
security context numbers its messages. Whatever is unusual in a request is left to its handler,
before anything has happened.

The auth handle is no part of a question, but it has to be valid each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from mqis.protocol.authentication import has_name
from mqis.protocol.directory.guard import Guard
from mqis.protocol.directory.lookup_walk import LookupPages, LookupState, Walk
from mqis.protocol.directory.read_methods import LookupPlan
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View, WatchedView
from mqis.protocol.rpc.faults import RpcFault
from mqis.runtime.directory.handles import HandleTable
from mqis.runtime.directory.reads import plan_lookup_of, plan_read_of
from mqis.runtime.directory.walks import LookupWalks
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.query_stubs import MAX_ENTRIES
from mqis.wire.mqds.shortstubs import (
    HANDLE_CLOSED,
    NextRequest,
    SplitRequest,
    handle_opened,
    lookup_next_fields,
    only_handle,
    rows_answer,
    split_get_props,
    split_lookup_begin,
)
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.ndr.packed import encode_packed_rows

V = TypeVar("V")

#: The longest request and answer, and the largest lookup, that are remembered.
MAX_REQUEST, MAX_ANSWER, MAX_LOOKUP = 2_048, 16_384, 512 * 1024
#: Questions that were asked once, of which no answer is remembered.
MAX_ASKED = 16_384
#: What the encoded pages of a lookup may take, in multiples of its rows.
PAGES = 4


class Remembering(Protocol):
    """A directory that remembers answers."""

    @property
    def handles(self) -> HandleTable: ...

    @property
    def rights(self) -> int:
        """Another number if callers may see other things than before."""

    @property
    def walks(self) -> LookupWalks: ...

    def standing(self, call: IncomingCall, view: View | None = None) -> Hashable:
        """Equal as long as the rights of a caller are the same."""

    def quick_view(self) -> AbstractContextManager[View]: ...

    def guard(self, call: IncomingCall) -> Guard: ...

    def watched(self, call: IncomingCall, view: View) -> WatchedView | None:
        """The view for an answer that is to be remembered; None: it is not."""

    def recall(self, question: Hashable, *, stranger: bool) -> Any:
        """The remembered answer to a question of a user or a stranger; None if there is none."""


class DirectoryShortcuts:
    """The shortcuts of dscomm over one directory."""

    def __init__(self, directory: Remembering) -> None:
        self._directory = directory
        #: The hashes of questions that were asked since the set was full.
        self._asked: set[int] = set()

    def get_props(self, call: IncomingCall, stub: bytes, syntax: Syntax) -> bytes | None:
        request = split_get_props(stub)
        if request is None or not self._is_unsigned(call, request.auth):
            return None
        found: bytes | None = self._recall(call, request, syntax)
        return self._read(call, request, syntax) if found is None else found

    def _read(self, call: IncomingCall, request: SplitRequest, syntax: Syntax) -> bytes | None:
        planned = plan_read_of(call.opnum, request, syntax)
        if planned is None:
            return None
        plan, name = planned
        guard = self._directory.guard(call)
        with self._directory.quick_view() as view:
            watched = self._directory.watched(call, view)
            answer = plan.answer(view if watched is None else watched, guard, name)
            if answer is not None and watched is not None:
                remember_answer(watched, call.question, answer)
        return answer

    def lookup_begin(self, call: IncomingCall, stub: bytes, syntax: Syntax) -> bytes | None:
        request = split_lookup_begin(stub)
        if request is None or not self._is_unsigned(call, request.auth):
            return None
        found: LookupState | None = self._recall(call, request, syntax)
        if found is None:
            plan = plan_lookup_of(request, syntax)
            handle = None if plan is None else begin_at_once(self._directory, call, plan)
            call.tried_at_once = plan is not None
            return None if handle is None else handle_opened(handle.uuid)
        handles = self._directory.handles
        try:
            charges = handles.lookup(call, found.size)
        except DirectoryError:
            return None
        again = found.again(self._directory.standing(call))
        return handle_opened(handles.open(call, again, charges).uuid)

    def lookup_next(self, call: IncomingCall, stub: bytes, syntax: Syntax) -> bytes | None:
        request = lookup_next_fields(stub)
        if request is None or not self._is_unsigned(call, request.auth):
            return None
        state = self._find(call, request.handle, LookupState)
        if state is None or state.admitted_by != self._directory.standing(call):
            return None
        page = (state.position, request.size, request.signature_size, syntax)
        found = None if state.pages is None else state.pages.known.get(page)
        if found is None:
            found = _copied_page(state, request, syntax)
            if state.pages is not None:
                call.question = page
                if found is not None:
                    state.pages.keep(page, *found)
        if found is None:
            return None
        rows, answer = found
        state.position += rows
        return answer

    def lookup_end(self, call: IncomingCall, stub: bytes, _syntax: Syntax) -> bytes | None:
        uuid = only_handle(stub)
        if uuid is None:
            return None
        try:
            self._directory.handles.close(call, ContextHandle(uuid), LookupState)
        except RpcFault:
            return None
        return HANDLE_CLOSED

    def _recall(self, call: IncomingCall, request: SplitRequest, syntax: Syntax) -> Any:
        """What is remembered of a request; a question for later, if that is nothing.

        To remember an answer takes as long as to make it, so a question is one that was asked
        before.
        """
        if len(request.before) > MAX_REQUEST:
            return None
        asked = (call.opnum, syntax, request.before, request.behind)
        question = (self._directory.rights, call.identity, asked)
        number = hash(question)
        if number not in self._asked:
            if len(self._asked) >= MAX_ASKED:
                self._asked.clear()
            self._asked.add(number)
            return None
        found = self._directory.recall(question, stranger=not has_name(call.identity))
        if found is None:
            call.question = question
        return found

    def _is_unsigned(self, call: IncomingCall, auth: Guid) -> bool:
        """Returns whether this is an auth handle of the caller's, one without a context."""
        found = self._find(call, auth, ServerAuth)
        return found is not None and found.context is None

    def _find(self, call: IncomingCall, uuid: Guid, kind: type[V]) -> V | None:
        try:
            return self._directory.handles.find(call, ContextHandle(uuid), kind)
        except RpcFault:
            return None


def _copied_page(
    state: LookupState, request: NextRequest, syntax: Syntax
) -> tuple[int, bytes] | None:
    """The number of rows and the answer with them; None: its handler answers."""
    if request.size > MAX_ENTRIES or request.signature_size > dscomm.MAX_SIGNATURE:
        return None
    rows = state.packed_page(request.size)
    values = encode_packed_rows(rows, syntax)
    if not rows or values is None:
        return None
    count = len(rows) * len(state.columns)
    answer = rows_answer(values, count, request.size, request.signature_size, syntax)
    return len(rows), answer


def begin_at_once(
    directory: Remembering, call: IncomingCall, plan: LookupPlan
) -> ContextHandle | None:
    """The handle of a new lookup; None, and nothing is charged, if it takes longer."""
    with directory.handles.lookup(call) as charges:
        done = directory.walks.at_once(walk_of(directory, call, plan), charges.memory)
        if done is None:
            charges.end()
            return None
    return directory.handles.open(call, done.value, charges)


def walk_of(directory: Remembering, call: IncomingCall, plan: LookupPlan) -> Callable[[View], Walk]:
    """The walk of a lookup, which notes by which rights its rows were admitted.

    The rows are remembered if the call has a question.
    """
    guard = directory.guard(call)

    def begin(view: View) -> Walk:
        watched = directory.watched(call, view)
        standing = directory.standing(call, view)
        state = yield from plan.walk(view if watched is None else watched, guard)
        state.admitted_by = standing
        if watched is not None:
            remember_lookup(watched, call.question, state)
        return state

    return begin


def remember_answer(view: WatchedView, question: Hashable, answer: bytes) -> None:
    if len(answer) <= MAX_ANSWER:
        view.remember(question, answer, len(answer))


def remember_lookup(view: WatchedView, question: Hashable, state: LookupState) -> None:
    """Lets later lookups share the rows of this one, and the pages that are encoded of them."""
    if state.size <= MAX_LOOKUP:
        room = PAGES * (state.size + 1_024)
        state.pages = LookupPages(room)
        view.remember(question, state.again(state.admitted_by), state.size + room)
