"""A small estate on a server for tests, and a mirror of it in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.admin.activedirectory.mirror.running import MirrorPlaces, mirror_once
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.ldap.urls import LdapUrl
from mqis.protocol.ports import Store
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.runtime.ldap.settings import LdapSettings
from mqis.storage.memory_store import MemoryStore
from mqis.testing.followed import FollowedDomain
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AttributeChange, DeleteEntry, ModifyEntry, ModifyKind
from mqis.wire.mqds.objecttype import ObjectType
from tests.waiting import DEADLINE_S

SID = bytes.fromhex("010500000000000515000000010000000200000003000000f4010000")


class MirroredEstate:
    """Two sites with a link; SRV1, a router of Berlin, with queues; a user with a digest."""

    def __init__(self, server: FollowedDomain, store: Store, client: LdapDirectoryClient) -> None:
        self.server, self.store, self.client = server, store, client
        self.mirror = EstateMirror(client, store, "corp.example", sweep_share=float("inf"))
        self.berlin = server.add_site("Berlin")
        self.paris = server.add_site("Paris")
        self.computer = server.add_computer("SRV1")
        account = next(e for e in server.entries if e.name == self.computer)
        self.computer_id = Guid(account.values("objectGUID")[0])
        self.machine = server.put(
            f"CN=msmq,{self.computer}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=self.berlin.raw,
            mSMQRoutingServices=b"TRUE",
            mSMQServiceType=b"1",
        )
        self.orders, self.bills = (self.add_queue(name) for name in ("orders", "bills"))
        names = [f"CN={n},CN=Sites,{server.configuration}".encode() for n in ("Berlin", "Paris")]
        self.link = server.put(
            f"CN=link,CN=MsmqServices,CN=Services,{server.configuration}",
            objectClass=b"mSMQSiteLink",
            mSMQSite1=names[0],
            mSMQSite2=names[1],
            mSMQCost=b"7",
            mSMQSiteGates=f"CN=msmq,{self.computer}".encode(),
        )
        self.user = server.add_user("anna", SID, mSMQDigests=b"d" * 16)

    async def follow(self, store: Store, journal: Path) -> None:
        """Runs ``mqis mirror --once`` into a store of its own, with its journal."""
        options = ConnectingOptions((self.server.url,), method=BindMethod.ANONYMOUS)
        await mirror_once([options], MirrorPlaces(store, journal))

    def add_queue(self, name: str) -> Guid:
        return self.server.put(f"CN={name},CN=msmq,{self.computer}", objectClass=b"mSMQQueue")

    def label(self, queue: Guid, text: bytes) -> None:
        self.set(queue, "mSMQLabelEx", text)

    def set(self, guid: Guid, attribute: str, *values: bytes) -> None:
        found = self.server.by_guid(guid)
        assert found is not None
        change = AttributeChange(ModifyKind.REPLACE, attribute, values)
        self.server.change(ModifyEntry(found.name, (change,)))

    def delete(self, guid: Guid, *, tree: bool = False) -> None:
        found = self.server.by_guid(guid)
        assert found is not None
        self.server.change(DeleteEntry(found.name, tree))

    def held(self) -> dict[str, list[str]]:
        """The names of the store's objects, by type."""
        with self.store.read() as view:
            return {
                kind.label: sorted(obj.path or str(obj.id) for obj in view.objects(kind))
                for kind in ORDER
            }

    def value(self, kind: ObjectType, guid: Guid, propid: int) -> object:
        with self.store.read() as view:
            found = view.get(kind, guid)
            return None if found is None else found.value(propid)

    def records(self) -> Counter[str]:
        """The number of journal records, by operation."""
        with self.store.read() as view:
            return Counter(f"{record.operation}" for _, record in view.outbox(0, 1_000_000))


def mirrored(test: Callable[[MirroredEstate], Awaitable[None]], **options: object) -> None:
    """Runs a test with an estate on real sockets."""

    async def run() -> None:
        async with FollowedDomain.of() as server:
            for name, value in options.items():
                setattr(server, name, value)
            settings = LdapSettings((LdapUrl.parse(server.url),))
            client = LdapDirectoryClient(DomainControllers(settings))
            try:
                await test(MirroredEstate(server, MemoryStore(), client))
            finally:
                await client.close()

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))
