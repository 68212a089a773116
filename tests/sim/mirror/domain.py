"""A domain with two controllers: each has the changes up to some moment, with own numbers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from mqis.testing.followed import FollowedDomain
from mqis.testing.ldap import LdapFault, ScriptedAnswer, name_of
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import (
    AttributeChange,
    EntryChange,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.controls import DIR_SYNC, DirSync, LdapControl, find_control
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import SearchEntry

#: Classes that an account without rights does not see; containers stay visible.
_HIDDEN = frozenset({b"site", b"mSMQQueue", b"mSMQConfiguration", b"mSMQSiteLink", b"user"})


@dataclass(slots=True)
class AccountRights:
    """The rights of the mirror's account, at all controllers."""

    dirsync: bool = False
    deleted: bool = True
    #: False: the account sees containers only.
    contents: bool = True
    #: Entries of which the account sees the name only.
    bare: set[bytes] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        return self.contents and not self.bare


@dataclass
class SimController(FollowedDomain):
    """One controller. ``on_search`` is called before each search that it answers."""

    rights: AccountRights = field(default_factory=AccountRights)
    on_search: Callable[[SimController], None] | None = None
    #: The changes of the domain that it has made; the rest arrives later.
    heard: int = 0
    #: Entries of the next answer that are sent before the connection ends; None: all.
    cut_after: int | None = None
    _holder: socket.socket | None = None
    _whole: list[SearchEntry] | None = None

    async def __aenter__(self) -> Self:
        # A bound socket keeps the port while the controller is down.
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._holder.bind(("127.0.0.1", 0))
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        if self._holder is not None:
            self._holder.close()

    @property
    def port(self) -> int:
        assert self._holder is not None
        port: int = self._holder.getsockname()[1]
        return port

    @property
    def up(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", self.port, reuse_port=True
            )

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.disconnect()

    # --- what the account sees --------------------------------------------------------------------

    def _search(self, request: SearchRequest, controls: tuple[LdapControl, ...]) -> ScriptedAnswer:
        if self.on_search is not None:
            self.on_search(self)
        self.may_dirsync, self.shows_deleted = self.rights.dirsync, self.rights.deleted
        with self._seen(controls):
            answer = list(super()._search(request, controls))
        if self.cut_after is None:
            return answer
        cut, self.cut_after = self.cut_after, None
        return [*answer[: min(cut, len(answer) - 1)], LdapFault.CLOSE]

    @contextmanager
    def _seen(self, controls: tuple[LdapControl, ...]) -> Iterator[None]:
        """Who may replicate gets all changes; everybody else what he may read."""
        asked = find_control(controls, DIR_SYNC)
        if self.rights.whole or (asked is not None and not DirSync.from_bytes(asked).flags):
            yield
            return
        self._whole = self.entries
        self.entries = [seen for e in self.entries if (seen := self._visible(e)) is not None]
        try:
            yield
        finally:
            self.entries, self._whole = self._whole, None

    def _visible(self, found: SearchEntry) -> SearchEntry | None:
        if not self.rights.contents and _HIDDEN & set(found.values("objectClass")):
            return None
        if self.rights.bare & set(found.values("objectGUID")) and not found.values("isDeleted"):
            return SearchEntry(found.name, ())
        return found

    def by_guid(self, guid: Guid) -> SearchEntry | None:
        held = self.entries if self._whole is None else self._whole
        return next((e for e in held if e.values("objectGUID") == (guid.raw,)), None)

    def _entry(self, name: str) -> SearchEntry | None:
        wanted = name_of(name).key
        held = self.entries if self._whole is None else self._whole
        return next((e for e in held if name_of(e.name).key == wanted), None)


@dataclass(frozen=True, slots=True)
class Put:
    """A new entry."""

    name: str
    attributes: tuple[tuple[str, tuple[bytes, ...]], ...]


@dataclass(frozen=True, slots=True)
class Touch:
    """Another descriptor of an entry: nothing of it changes but its number."""

    guid: Guid


DomainChange = Put | Touch | EntryChange | RenameEntry


class SimDomain:
    """``newest`` has all changes; nobody asks it. The controllers are copies of it."""

    def __init__(self, rights: AccountRights) -> None:
        self.rights = rights
        self.newest = _controller(rights, 1)
        self.controllers = tuple(_controller(rights, number) for number in (1, 2))
        self._log: list[DomainChange] = []
        self._backups: dict[int, tuple[list[SearchEntry], int, int, int]] = {}

    def make(self, change: DomainChange) -> None:
        self._log.append(change)
        self._catch_up(self.newest)

    def put(self, name: str, **attributes: bytes | Iterable[bytes]) -> Guid:
        rows = tuple((k, (v,) if isinstance(v, bytes) else tuple(v)) for k, v in attributes.items())
        self.make(Put(name, tuple(row for row in rows if row[1])))
        found = self.newest._entry(name)
        assert found is not None
        return Guid(found.values("objectGUID")[0])

    def spread(self, controller: SimController) -> None:
        """A controller hears of all changes."""
        self._catch_up(controller)

    def _catch_up(self, controller: SimController) -> None:
        """Repeats changes in their order; identifiers are the same everywhere, numbers are not."""
        while controller.heard < len(self._log):
            change = self._log[controller.heard]
            controller.heard += 1
            match change:
                case Put(name, attributes):
                    controller.put(name, **dict(attributes))
                case Touch(guid):
                    controller._touch(guid)
                case _:
                    controller.change(change)

    def equal(self, controller: SimController) -> bool:
        return controller.heard == len(self._log)

    def back_up(self, controller: SimController) -> None:
        kept = list(controller.entries), controller.usn, controller.heard, controller._numbers
        self._backups[controller.port] = kept

    def miss(self, guid: Guid, label: bytes) -> None:
        """Changes an entry everywhere without a number; a restored controller numbers it."""
        for controller in (self.newest, *self.controllers):
            self._catch_up(controller)
        found = self.newest.by_guid(guid)
        assert found is not None
        change = AttributeChange(ModifyKind.REPLACE, "mSMQLabelEx", (label,))
        self._log.append(ModifyEntry(found.name, (change,)))
        for controller in (self.newest, *self.controllers):
            controller._replace(found.name, mSMQLabelEx=label)
            controller.heard += 1

    def roll_back(self, controller: SimController) -> None:
        """Puts an old copy back, which nothing tells: it numbers other changes past its number."""
        invocation, usn = controller.invocation, controller.usn
        self.restore(controller)
        controller.invocation = invocation
        self._catch_up(controller)
        controller.usn = max(controller.usn, usn + 1)

    def restore(self, controller: SimController) -> None:
        """A restored controller hears again of what came after its backup."""
        entries, usn, controller.heard, controller._numbers = self._backups[controller.port]
        controller.restore(usn)
        controller.entries = list(entries)


def _controller(rights: AccountRights, number: int) -> SimController:
    made = SimController.of()
    assert isinstance(made, SimController)
    made.rights = rights
    made.invocation = Guid(bytes([16 * number]) * 16)
    made.usn += 50_000 * (number - 1)
    made._replace("", dnsHostName=f"dc{number}.corp.example".encode())
    return made
