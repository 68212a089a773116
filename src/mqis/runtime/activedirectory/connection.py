"""One connection to an Active Directory that plain functions of many threads share.

A domain controller that is lost gives ``DirectoryNotConnected``. The next call connects again, to
the next controller if there are several. While none answers, calls fail at once and only one in
``retry_s`` tries to connect, so that callers do not wait for a dead server one after the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeVar

from mqis.protocol.authentication import CallerTicket
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError
from mqis.runtime.activedirectory.bridge import LoopThread
from mqis.runtime.activedirectory.errors import AccountRefused, DirectoryNotConnected, translated
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_connection import LdapConnection
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings
from mqis.wire.hresult import HResult
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import Filter
from mqis.wire.mqds.objecttype import ObjectType

T = TypeVar("T")

log = logging.getLogger(__name__)
audit = logging.getLogger("mqis.audit")

#: Seconds after a failure in which calls fail without trying again.
RETRY_S: Final = 1.0
#: Seconds after which the same refusal is logged again, and refusals that are remembered.
TOLD_S: Final = 60.0
_MOST_TOLD: Final = 100

#: Asks the directory something.
Question = Callable[[ForestReader], Awaitable[T]]


class ForestConnection:
    """Questions to one forest; thread-safe."""

    def __init__(
        self, settings: LdapSettings, *, retry_s: float = RETRY_S, loop: LoopThread | None = None
    ) -> None:
        """``loop``: another connection's, which ends with that one."""
        self._settings = settings
        self._retry_s = retry_s
        self._loop = LoopThread("mqis-ldap") if loop is None else loop
        self._client: LdapDirectoryClient | None = None
        self._reader: ForestReader | None = None
        self._opening = asyncio.Lock()
        self._condition = Lock()
        #: Why the directory is not connected, and until when nobody tries; None while it is.
        self._outage: tuple[str, float] | None = None
        #: Refusals that were logged, and when.
        self._told: dict[str, float] = {}

    @property
    def outage(self) -> str | None:
        """Why the directory does not answer; None while it does."""
        return None if self._outage is None else self._outage[0]

    @property
    def where(self) -> str:
        """The domain controller that is connected; the configured ones if none is."""
        connected = "" if self._client is None else self._client.where
        return connected or ", ".join(map(str, self._settings.servers))

    def ask(self, object_type: ObjectType, question: Question[T]) -> T:
        """Waits for the answer. Errors are ``DirectoryError``, those of the object's type."""
        self._check_outage()
        try:
            with translated(object_type):
                answer = self._loop.run(self._answer(question))
        except DirectoryNotConnected as error:
            self._lost(error)
            raise
        except AccountRefused as error:
            self._refused(error)
            raise
        self._works()
        return answer

    def search(
        self,
        object_type: ObjectType,
        condition: Filter | None = None,
        *,
        base: str | None = None,
        scope: SearchScope = SearchScope.SUBTREE,
    ) -> Iterator[DirectoryObject]:
        """Yields the objects that meet a condition, page after page."""
        self._check_outage()
        found = self._search(object_type, condition, base, scope)
        try:
            with translated(object_type):
                yield from self._loop.iterate(found)
        except DirectoryNotConnected as error:
            self._lost(error)
            raise
        except AccountRefused as error:
            self._refused(error)
            raise
        self._works()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins work in the thread of the connection, until that is closed."""
        self._loop.begin(work)

    def close(self) -> None:
        self._loop.close(self._end())

    # --- in the loop of the connection ------------------------------------------------------------

    async def _answer(self, question: Question[T]) -> T:
        return await question(await self._opened())

    async def _search(
        self,
        object_type: ObjectType,
        condition: Filter | None,
        base: str | None,
        scope: SearchScope,
    ) -> AsyncGenerator[DirectoryObject, None]:
        reader = await self._opened()
        async with aclosing(reader.search(object_type, condition, base=base, scope=scope)) as found:
            async for obj in found:
                yield obj

    async def _opened(self) -> ForestReader:
        """The reader of the forest, whose contexts are read once."""
        async with self._opening:
            if self._client is None:
                self._client = LdapDirectoryClient(self._controllers())
            if self._reader is None:
                self._reader = await self._new_reader(self._client)
            return self._reader

    def _controllers(self) -> DomainControllers:
        return DomainControllers(self._settings)

    async def _new_reader(self, client: LdapDirectoryClient) -> ForestReader:
        return await ForestReader.open_for_callers(client)

    async def _end(self) -> None:
        if self._client is not None:
            await self._client.close()

    # --- outages ----------------------------------------------------------------------------------

    def _check_outage(self) -> None:
        """Fails at once while the directory is known to be lost, except for one call in a while."""
        with self._condition:
            outage = self._outage
            if outage is None:
                return
            reason, until = outage
            if monotonic() >= until:
                self._outage = reason, monotonic() + self._retry_s  # this call tries
                return
        raise DirectoryNotConnected(reason)

    def _lost(self, error: DirectoryNotConnected) -> None:
        with self._condition:
            known = self._outage is not None
            self._outage = error.detail, monotonic() + self._retry_s
        if not known:
            log.error("the directory does not answer: %s", error.detail)

    def _refused(self, error: AccountRefused) -> None:
        """Tells an administrator which right the account lacks, each one once in a while."""
        told = f"{error.detail}; the account {self.account} needs the right {error.right}"
        with self._condition:
            now = monotonic()
            if len(self._told) >= _MOST_TOLD:
                self._told = {text: at for text, at in self._told.items() if now < at + TOLD_S}
            known = now < self._told.get(told, -TOLD_S) + TOLD_S or len(self._told) >= _MOST_TOLD
            if not known:
                self._told[told] = now
        if not known:
            log.error("%s", told)

    @property
    def account(self) -> str:
        """The account that the server uses; whoever the tickets belong to if it names none."""
        return self._settings.login.user or "of the ticket cache"

    def _works(self) -> None:
        with self._condition:
            known, self._outage = self._outage, None
        if known is not None:
            log.info("the directory answers again: %s", self.where)


# --- connections of callers -----------------------------------------------------------------------


class CallerConnection(ForestConnection):
    """The questions of one logon, which Active Directory judges by the caller's own rights.

    Nothing in it is shared with another caller but the thread and the knowledge of an outage.
    """

    def __init__(self, server: ForestConnection, ticket: CallerTicket, peer: str) -> None:
        """``peer`` is where the caller logged on from, for the audit trail."""
        login = LdapLogin(ticket.principal, method=BindMethod.KERBEROS, ticket=ticket)
        super().__init__(replace(server._settings, login=login), loop=server._loop)
        self._server = server
        self.principal = ticket.principal
        self._peer = peer

    def leave(self) -> None:
        """Ends the connection, without waiting for that."""
        self._loop.begin(self._end())

    def close(self) -> None:
        self._loop.run(self._end())

    def _controllers(self) -> DomainControllers:
        return _CallerControllers(self._settings, self._peer)

    async def _new_reader(self, client: LdapDirectoryClient) -> ForestReader:
        """Permissions that the caller may not read are no reason to hide an object."""
        reader = await ForestReader.open_for_callers(client)
        return replace(reader, hidden=True, skipped=_skipped_for_caller)

    def _check_outage(self) -> None:
        self._server._check_outage()

    def _lost(self, error: DirectoryNotConnected) -> None:
        self._server._lost(error)

    def _works(self) -> None:
        self._server._works()

    def _refused(self, error: AccountRefused) -> None:
        """Raises the refusal as the caller's own: the directory has judged the caller."""
        detail = f"the directory refuses {self.principal}: {error.reason}"
        text = f"{detail}; it takes the right {error.right}"
        audit.warning("denied: %s", text, extra={"details": {"peer": self._peer}})
        raise DirectoryError(HResult.MQ_ERROR_ACCESS_DENIED, detail) from error


class _CallerControllers(DomainControllers):
    """Domain controllers at which a caller's logon may fail without being an outage."""

    def __init__(self, settings: LdapSettings, peer: str) -> None:
        super().__init__(settings)
        self._peer = peer

    async def connect(self) -> LdapConnection:
        try:
            return await super().connect()
        except LdapConnectionLost:
            raise
        except LdapError as error:
            detail = f"this server cannot act as the caller: {error}"
            audit.warning("denied: %s", detail, extra={"details": {"peer": self._peer}})
            raise DirectoryError(HResult.MQ_ERROR_ACCESS_DENIED, detail) from error


def _skipped_for_caller(_type: ObjectType, _entry: LdapEntry, reason: ProtocolError) -> None:
    log.debug("an entry is left out for a caller: %s", reason)
