"""What both interfaces of a directory server work with."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from mqis.protocol.authentication import Authenticator, Identity, token_for
from mqis.protocol.directory.allowance import DEFAULTS, Allowance
from mqis.protocol.directory.change_notification import (
    ChangeNotice,
    LocalQueueManager,
    notice_of,
    notice_of_delete,
)
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.directory.guard import Denial, Guard
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.directory.readiness import check_ready
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.errors import REPORTED, DirectoryError, StorageError
from mqis.protocol.ports import Entropy, Store, View
from mqis.runtime import changelog
from mqis.runtime.budgets import Budgets
from mqis.runtime.changelog import Origin
from mqis.runtime.directory.handles import HandleTable
from mqis.runtime.directory.views import SharedViews
from mqis.runtime.directory.walks import Walks
from mqis.runtime.node.driver import NodeDriver
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.writer import GroupCommitWriter
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.ndr import ContextHandle
from mqis.wire.security.sid import Sid

T = TypeVar("T")

log = logging.getLogger(__name__)
audit = logging.getLogger("mqis.audit")

#: Guards kept, one for each caller and address seen lately.
MAX_GUARDS = 256


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """How a directory server behaves where the text leaves it open."""

    administrators: frozenset[Sid] = frozenset()
    machine_policy: MachinePolicy = MachinePolicy.EVERYONE
    own_site: Guid | None = None
    #: Ask machines to prove their key before S_DSQM* calls; the text advises against it.
    challenge_machines: bool = False
    #: The port that S_DSGetServerPort tells, dynamic or not; 0 keeps it to itself.
    port: int = 0
    #: Whether a caller without identity counts as Everyone.
    anonymous_in_everyone: bool = True
    #: Global catalogs that S_DSGetGCListInDomain names, by domain. This server is none.
    global_catalogs: Mapping[str, tuple[ServerSpec, ...]] = field(default_factory=dict)
    #: How much of the directory one caller may take up.
    allowance: Allowance = DEFAULTS
    clock: Callable[[], float] = time.time


@dataclass(slots=True)
class DirectoryContext:
    """One directory server: its store, its writer, and who may ask."""

    store: Store
    writer: GroupCommitWriter
    entropy: Entropy
    settings: DirectorySettings = field(default_factory=DirectorySettings)
    #: Makes the contexts of S_DSValidateServer; None: only the empty context.
    gss: Authenticator | None = None
    #: What callers may hold; shared with the RPC server that calls come through.
    budgets: Budgets = field(default_factory=Budgets)
    handles: HandleTable = field(init=False)
    walks: Walks = field(init=False)
    #: The queue manager beside this server; without one nobody is notified.
    local: LocalQueueManager | None = None
    #: Who decides where this server is not the authority; without it there is no other server.
    node: NodeDriver | None = None
    #: Takes each change notification, once its change is committed.
    notify: Callable[[ChangeNotice], None] = lambda _notice: None
    #: Calls that access checks refused, since the start.
    denials: int = 0
    _guards: OrderedDict[tuple[Identity | None, str], Guard] = field(default_factory=OrderedDict)
    _judges: OrderedDict[Identity | None, Guard] = field(default_factory=OrderedDict)
    _views: SharedViews = field(init=False)

    def __post_init__(self) -> None:
        self._views = SharedViews(self.store)
        self.handles = HandleTable(self.budgets)
        self.walks = Walks(self.view, self.budgets.walks)

    def check_ready(self) -> None:
        """Raise ``DirectoryError`` unless there is a directory to serve (1.5)."""
        with self.view() as view:
            check_ready(view, self.settings.own_site)

    def reconfigure(self, settings: DirectorySettings) -> None:
        """Go on with other settings: the next call is judged by them."""
        self.settings = settings
        self._guards.clear()
        self._judges.clear()

    def listens_on(self, port: int) -> None:
        """What S_DSGetServerPort tells from now on."""
        self.settings = replace(self.settings, port=port)

    def guard(self, call: IncomingCall) -> Guard:
        """The checks for who calls, whose denials name the address that the call came from."""
        key = call.identity, call.peer
        guard = self._guards.get(key)
        if guard is None:
            guard = self._judge(call.identity).with_audit(partial(self._denied, call.peer))
            self._guards[key] = guard
            if len(self._guards) > MAX_GUARDS:
                self._guards.popitem(last=False)
        return guard

    def _judge(self, identity: Identity | None) -> Guard:
        """What the guards of one caller share, wherever it calls from."""
        judge = self._judges.get(identity)
        if judge is None:
            token = token_for(identity, anonymous_in_everyone=self.settings.anonymous_in_everyone)
            settings = self.settings
            judge = Guard(token, settings.administrators, allowance=settings.allowance)
            self._judges[identity] = judge
            if len(self._judges) > MAX_GUARDS:
                self._judges.popitem(last=False)
        return judge

    def _denied(self, peer: str, denial: Denial) -> None:
        self.denials += 1
        audit.warning("%s", denial, extra={"details": {"peer": peer}})

    def view(self) -> AbstractContextManager[View]:
        """What is committed; calls that the loop handles in one turn see the same."""
        return self._views.view()

    async def change(
        self, operation: Callable[[DirectoryEvents], T], call: IncomingCall | None = None
    ) -> T:
        """Run ``operation`` in the writer; it is durable when this returns.

        What another server decides is asked for there. Whoever has to be told is told.
        """
        origin = changelog.SELF if call is None else Origin.of(call)
        if self.node is not None:
            return await self.node.change(operation, self._announce, origin)
        settings = self.settings
        now = int(settings.clock())
        made: list[OwnChange] = []
        result = await self.writer.submit(
            lambda tx: operation(
                DirectoryEvents(
                    tx,
                    now,
                    self.entropy,
                    settings.own_site,
                    observe=made.append,
                )
            )
        )
        for change in made:
            changelog.made(change, origin)
            self._announce(change)
        return result

    def _announce(self, change: OwnChange) -> None:
        self._tell(None if self.local is None else notice_of(self.local, change))

    def deleted(self, queue: DirectoryObject) -> None:
        """A client says that whoever has the queue may be told that it is gone (3.3.4.5)."""
        self._tell(None if self.local is None else notice_of_delete(self.local, queue))

    def _tell(self, notice: ChangeNotice | None) -> None:
        if notice is not None:
            self.notify(notice)

    def server_auth(self, call: IncomingCall, handle: ContextHandle) -> ServerAuth:
        """What an auth handle stands for; a fault for a handle that is none."""
        return self.handles.find(call, handle, ServerAuth)


def result_of(error: Exception) -> int:
    """The HRESULT that a caller gets instead of an exception (MQDS-3.1.4-04)."""
    if isinstance(error, DirectoryError):
        return error.hresult
    if isinstance(error, StorageError):
        if not isinstance(error, REPORTED):
            log.error("the store failed: %s", error)
        return HResult.MQ_ERROR_DS_ERROR
    log.error("a directory call failed", exc_info=error)
    return HResult.MQ_ERROR
