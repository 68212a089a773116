"""A pass-through server and, beside it, a server with a store of its own that holds the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.directory.readers import StoreReaders
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.settings import LdapSettings
from mqis.storage.memory_store import MemoryStore
from mqis.testing.activedirectory import ScriptedDomain
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.directory.serving import ADMIN, Caller, Served, serving
from tests.waiting import DEADLINE_S


@dataclass
class Passing:
    """``through`` calls the pass-through server, ``own`` the other one."""

    estate: Estate
    store: ActiveDirectoryStore
    through: Caller
    own: Caller


def settings_for(server: ScriptedDomain) -> LdapSettings:
    return LdapSettings(
        (LdapUrl.parse(server.url),), connect_timeout_s=DEADLINE_S, operation_timeout_s=DEADLINE_S
    )


async def copied(server: ScriptedDomain) -> MemoryStore:
    """A store of our own with everything that the directory has."""
    store, client = MemoryStore(), LdapDirectoryClient(DomainControllers(settings_for(server)))
    reader = await ForestReader.open(client)
    with store.write() as tx:
        async for obj in EstateReader.of([reader]).objects():
            tx.insert(obj)
    await client.close()
    return store


@dataclass
class Through:
    """A pass-through server alone; ``caller`` is an administrator."""

    estate: Estate
    store: ActiveDirectoryStore
    served: Served
    caller: Caller

    @property
    def server(self) -> ScriptedDomain:
        return self.estate.server


@asynccontextmanager
async def through(domain: type[ScriptedDomain] = ScriptedDomain) -> AsyncIterator[Through]:
    async with domain.of() as server:
        estate = Estate(server)
        store = ActiveDirectoryStore(settings_for(server), sites_allowed=True)
        readers = StoreReaders(store, 4)
        try:
            async with (
                serving(store=store, readers=readers) as served,
                served.caller(ADMIN) as caller,
            ):
                yield Through(estate, store, served, caller)
        finally:
            readers.close()
            store.close()


@asynccontextmanager
async def passing() -> AsyncIterator[Passing]:
    async with ScriptedDomain.of() as server:
        estate = Estate(server)
        own = await copied(server)
        store = ActiveDirectoryStore(settings_for(server), sites_allowed=True)
        readers = StoreReaders(store, 4)
        try:
            async with (
                serving(store=store, readers=readers) as far,
                serving(store=own) as near,
                far.caller(ADMIN) as through,
                near.caller(ADMIN) as beside,
            ):
                yield Passing(estate, store, through, beside)
        finally:
            readers.close()
            store.close()
