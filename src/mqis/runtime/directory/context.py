"""The state that both interfaces of a directory server share."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

from mqis.protocol.authentication import (
    Authenticator,
    CallerTicket,
    Identity,
    name_of,
    token_for,
)
from mqis.protocol.directory.change_notification import (
    ChangeNotice,
    LocalQueueManager,
    notice_of,
    notice_of_delete,
)
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.directory.guard import DEFAULTS, Allowance, DeferringGuard, Denial, Guard
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.errors import ChangedMeanwhile, DirectoryError, StorageError
from mqis.protocol.ports import AnswerMemory, Entropy, Store, Transaction, View, WatchedView
from mqis.runtime import changelog
from mqis.runtime.budgets import Budgets
from mqis.runtime.changelog import Origin
from mqis.runtime.directory.handles import HandleTable
from mqis.runtime.directory.readers import CallerViews, StoreReaders, ThreadedWalks
from mqis.runtime.directory.shortcuts import remember_answer
from mqis.runtime.directory.spending import Spending
from mqis.runtime.directory.views import SharedViews
from mqis.runtime.directory.walks import LookupWalks, ViewSource
from mqis.runtime.node.driver import NodeDriver
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.writer import GroupCommitWriter
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.ndr import ContextHandle
from mqis.wire.security.sid import Sid

T = TypeVar("T")
A = TypeVar("A")

#: Changes the directory in a transaction.
Operation = Callable[[Transaction], T]

audit = logging.getLogger("mqis.audit")

#: Attempts of one change of which others, by other servers, come in between.
MOST_TRIES = 5
#: Guards cached, one for each caller and address seen lately.
MAX_GUARDS = 256


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """The settings of a directory server, where the text leaves its behaviour open."""

    administrators: frozenset[Sid] = frozenset()
    machine_policy: MachinePolicy = MachinePolicy.EVERYONE
    #: Clients may create queues and machines with other names than those of the text.
    unicode_names: bool = False
    own_site: Guid | None = None
    #: Challenge machines to prove their key before S_DSQM* calls; the text advises against it.
    challenge_machines: bool = False
    #: The port that S_DSGetServerPort returns, dynamic or not; 0 means none.
    port: int = 0
    #: True if Everyone includes anonymous callers.
    anonymous_in_everyone: bool = True
    #: The global catalogs that S_DSGetGCListInDomain returns, by domain. This server is none.
    global_catalogs: Mapping[str, tuple[ServerSpec, ...]] = field(default_factory=dict)
    #: The share of the directory that one caller may use.
    allowance: Allowance = DEFAULTS
    clock: Callable[[], float] = time.time


@dataclass(slots=True)
class DirectoryContext:
    """One directory server: its store, its writer, and the access checks of its callers."""

    store: Store
    writer: GroupCommitWriter
    entropy: Entropy
    settings: DirectorySettings = field(default_factory=DirectorySettings)
    #: Creates the contexts of S_DSValidateServer; None: only the empty context.
    gss: Authenticator | None = None
    #: The budgets of callers, shared with the RPC server.
    budgets: Budgets = field(default_factory=Budgets)
    handles: HandleTable = field(init=False)
    walks: LookupWalks = field(init=False)
    #: The queue manager of this server; without one, no change is notified.
    local: LocalQueueManager | None = None
    #: The node that forwards changes to their authority; None for a server on its own.
    node: NodeDriver | None = None
    #: The threads that read a store which waits for a network; None: the event loop reads it.
    readers: StoreReaders | None = None
    #: The directory's own judgement of callers, in place of ours; None: the server's account acts.
    callers: CallerViews | None = None
    #: Called with each change notification, once its change is committed.
    notify: Callable[[ChangeNotice], None] = lambda _notice: None
    #: Calls that access checks have refused since the start.
    denials: int = 0
    #: Counts the changes of the settings: what a caller may see can be another thing then.
    rights: int = 0
    #: The store, if it remembers answers.
    memory: AnswerMemory | None = field(init=False)
    _guard: Callable[[Identity | None, str], Guard] = field(init=False)
    _judge: Callable[[Identity | None], Guard] = field(init=False)
    _views: SharedViews = field(init=False)
    _quick: SharedViews = field(init=False)

    def __post_init__(self) -> None:
        self._forget_guards()
        self._views = self._quick = SharedViews(self.store.read)
        self.handles = HandleTable(self.budgets)
        self.memory = self.store if isinstance(self.store, AnswerMemory) else None
        if self.readers is None:
            self.walks = LookupWalks(self.view, self.budgets.walks)
        else:
            if self.memory is not None:
                self._quick = SharedViews(self.memory.remembered)
            quick = None if self.memory is None else self.quick_view
            self.walks = ThreadedWalks(self.store, self.readers, self.budgets.walks, quick)

    def reconfigure(self, settings: DirectorySettings) -> None:
        """Replaces the settings, from the next call on."""
        self.settings = settings
        self.rights += 1
        self._forget_guards()

    def listens_on(self, port: int) -> None:
        """Sets the port that S_DSGetServerPort returns, also a static one (E-MQDS-03)."""
        self.settings = replace(self.settings, port=port)

    def guard(self, call: IncomingCall) -> Guard:
        """The access checks for a caller, whose denials name the caller's address."""
        return self._guard(call.identity, call.peer)

    def _forget_guards(self) -> None:
        self._guard = lru_cache(MAX_GUARDS)(self._new_guard)
        self._judge = lru_cache(MAX_GUARDS)(self._new_judge)

    def _new_guard(self, identity: Identity | None, peer: str) -> Guard:
        return self._judge(identity).with_audit(partial(self._denied, peer))

    def _new_judge(self, identity: Identity | None) -> Guard:
        """The guard of a caller without an address; its guards by address share its data."""
        settings = self.settings
        token = token_for(identity, anonymous_in_everyone=settings.anonymous_in_everyone)
        kind = Guard if self.callers is None else DeferringGuard
        return kind(token, settings.administrators, allowance=settings.allowance)

    def _denied(self, peer: str, denial: Denial) -> None:
        self.denials += 1
        audit.warning("%s", denial, extra={"details": {"peer": peer}})

    def view(self) -> AbstractContextManager[View]:
        """A view of the committed state; all calls of one turn of the event loop share it."""
        return self._views.view()

    def quick_view(self) -> AbstractContextManager[View]:
        """The same, but what is in memory alone if the store waits for a network."""
        return self._quick.view()

    def reads(self, call: IncomingCall) -> ViewSource | None:
        """The views of a caller, where the directory itself decides what each may read."""
        if self.callers is None:
            return None
        return partial(self.callers.read, self._ticket(call), call.peer)

    def _ticket(self, call: IncomingCall) -> CallerTicket:
        """What the server acts as a caller with. Its own account is no substitute for one."""
        ticket = call.ticket
        if ticket is None:
            self.denials += 1
            text = "denied: %s has no Kerberos ticket that this server may act with"
            audit.warning(text, name_of(call.identity), extra={"details": {"peer": call.peer}})
            raise DirectoryError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                "this server acts with its callers' Kerberos tickets: log on by Kerberos, and not "
                "by NTLM or anonymously",
            )
        return ticket

    async def look(self, question: Callable[[View], T], call: IncomingCall) -> T:
        """Returns what a function reads from a view."""
        if self.readers is not None:
            return await self.readers.ask(question, self.reads(call))
        with self.view() as view:
            return question(view)

    def answer(
        self, call: IncomingCall, question: Callable[[View], T], answer_of: Callable[[T], A]
    ) -> A | Awaitable[A]:
        """The answer that is made of what ``question`` reads: at once, or as soon as it comes."""
        if self.readers is not None:
            return self._answer_later(self.readers, question, answer_of, self.reads(call))
        with self.view() as view:
            watched = self.watched(call, view)
            found = question(view if watched is None else watched)
        answer = answer_of(found)
        if watched is not None:
            call.keep = partial(remember_answer, watched, call.question)
        return answer

    def recall(self, question: Hashable, *, stranger: bool) -> Any:
        """The remembered answer to a question; None: it is not known, or the store has failed."""
        if self.memory is None:
            return None
        try:
            moment = self._quick.moment(self.memory)
            return self.memory.recall(question, moment, stranger=stranger)
        except StorageError:
            return None

    def standing(self, call: IncomingCall, view: View | None = None) -> Hashable:
        """Equal as long as the rights of a caller and the objects that they are to are the same.

        ``view``: of the moment that it shows, instead of this turn's.
        """
        moment: object
        if self.memory is None:
            # Another logon of the same name may have other rights, where the directory decides.
            moment = call.ticket if self.readers is not None else object()
        else:
            known = self._quick.moment(self.memory) if view is None else self.memory.moment(view)
            moment = known if known >= 0 else object()  # nobody tells whether it is still the same
        return self.rights, call.identity, moment

    def watched(self, call: IncomingCall, view: View) -> WatchedView | None:
        """The view for an answer that is to be remembered; None: it is not."""
        if call.question is None or self.memory is None:
            return None
        return self.memory.watch(view, stranger=call.caller.stranger)

    async def _answer_later(
        self,
        readers: StoreReaders,
        question: Callable[[View], T],
        answer_of: Callable[[T], A],
        read: ViewSource | None,
    ) -> A:
        return answer_of(await readers.ask(question, read))

    async def change(
        self, operation: Callable[[DirectoryEvents], T], call: IncomingCall | None = None
    ) -> T:
        """Runs ``operation`` in the writer; the change is durable when this returns.

        A change of which another server is the authority is requested there. Notifies the owners.
        The caller's budget pays for it.
        """
        spending = None if call is None else self._spending(call)
        if spending is None:
            return await self._change(operation, call)
        try:
            return await self._change(spending.charging(operation), call)
        except StorageError:  # the commit failed, after the change was charged
            spending.give_back()
            raise

    def _spending(self, call: IncomingCall) -> Spending | None:
        """The charges of a call; None: an administrator's is not charged."""
        guard = self.guard(call)
        if guard.is_administrator:
            return None
        settings = self.settings
        origin, now = Origin.of(call), settings.clock()
        return Spending(self.budgets, settings.allowance, guard.account, origin, now)

    async def _change(
        self, operation: Callable[[DirectoryEvents], T], call: IncomingCall | None
    ) -> T:
        origin = changelog.SELF if call is None else Origin.of(call)
        if self.node is not None:
            return await self.node.change(operation, self._announce, origin)
        settings = self.settings
        now = int(settings.clock())
        made: list[OwnChange] = []

        def run(tx: Transaction) -> T:
            made.clear()  # of a first attempt
            return operation(
                DirectoryEvents(tx, now, self.entropy, settings.own_site, observe=made.append)
            )

        result = await self._retried(self._execution(call), run)
        for change in made:
            changelog.made(change, origin)
            self._announce(change)
        return result

    def _execution(self, call: IncomingCall | None) -> Callable[[Operation[T]], Awaitable[T]]:
        """Runs operations in the writer, or with the caller's own rights where these decide.

        Nothing is gained from one writer there: Active Directory has no transactions, and a
        caller's changes need not wait for another's.
        """
        callers, readers = self.callers, self.readers
        if callers is None or readers is None or call is None:
            return self.writer.enqueue
        ticket, peer = self._ticket(call), call.peer

        def run(operation: Operation[T]) -> T:
            with callers.write(ticket, peer) as transaction:
                return operation(transaction)

        return lambda operation: readers.run(partial(run, operation))

    async def _retried(
        self, execute: Callable[[Operation[T]], Awaitable[T]], operation: Operation[T]
    ) -> T:
        """Executes an operation, again if what it read was changed by another server."""
        for _ in range(MOST_TRIES - 1):
            try:
                return await execute(operation)
            except ChangedMeanwhile:
                continue
        return await execute(operation)

    def _announce(self, change: OwnChange) -> None:
        self._notify(None if self.local is None else notice_of(self.local, change))

    def deleted(self, queue: DirectoryObject) -> None:
        """Notifies the owner of a queue that a client reports as deleted (3.3.4.5)."""
        self._notify(None if self.local is None else notice_of_delete(self.local, queue))

    def _notify(self, notice: ChangeNotice | None) -> None:
        if notice is not None:
            self.notify(notice)

    def server_auth(self, call: IncomingCall, handle: ContextHandle) -> ServerAuth:
        """The object behind an auth handle; a fault if the handle is none."""
        return self.handles.find(call, handle, ServerAuth)
