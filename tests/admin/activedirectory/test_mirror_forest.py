"""A mirror of a forest: one controller of each domain, and one store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mqis.admin.activedirectory.mirror.following import DirectoryWatch
from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.protocol.activedirectory.mirror.cursor import MirrorCursor, read_cursor
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.reading import read_forest
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.settings import LdapSettings
from mqis.storage.memory_store import MemoryStore
from mqis.testing.followed import FollowedDomain
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AttributeChange, DeleteEntry, ModifyEntry, ModifyKind
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchEntry
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory.test_mirror import WAYS
from tests.waiting import DEADLINE_S

CHILD = "DC=child,DC=corp,DC=example"


class TwoDomains:
    """Berlin with SRV1 in the parent's domain, Paris with SRV2 in the child's, and a link.

    The controllers do not know the objects of the other domain: the parent refers to the child.
    """

    def __init__(self, **way: Any) -> None:
        self.parent, self.child = FollowedDomain.of(), FollowedDomain.of(CHILD)
        for server in (self.parent, self.child):
            for name, value in way.items():
                setattr(server, name, value)
        self.child.invocation = Guid(b"C" * 16)
        self.child._numbers = 1000  # identifiers are unique in a forest
        self.berlin, self.paris = (self.parent.add_site(name) for name in ("Berlin", "Paris"))
        self.machines = {
            "SRV1": self.machine(self.parent, "SRV1", self.berlin),
            "SRV2": self.machine(self.child, "SRV2", self.paris),
        }
        gates = [self.place(server, name) for server, name in self._servers()]
        # The parent has the name of the child's gate, and nothing else of it.
        self.parent.entries.append(
            SearchEntry(gates[1], (("objectGUID", (self.machines["SRV2"].raw,)),))
        )
        sites = [f"CN={n},CN=Sites,{self.parent.configuration}" for n in ("Berlin", "Paris")]
        self.parent.put(
            f"CN=link,CN=MsmqServices,CN=Services,{self.parent.configuration}",
            objectClass=b"mSMQSiteLink",
            mSMQCost=b"3",
            mSMQSite1=sites[0].encode(),
            mSMQSite2=sites[1].encode(),
            mSMQSiteGates=[gate.encode() for gate in gates],
        )
        self.parent.on_message = self._refer
        self.share()

    def _servers(self) -> list[tuple[FollowedDomain, str]]:
        return [(self.parent, "SRV1"), (self.child, "SRV2")]

    def place(self, server: FollowedDomain, name: str) -> str:
        return f"CN=msmq,CN={name},CN=Computers,{server.root}"

    def machine(self, server: FollowedDomain, name: str, site: Guid) -> Guid:
        server.add_computer(name)
        made = server.put(
            self.place(server, name), objectClass=b"mSMQConfiguration", mSMQSites=site.raw
        )
        self.queue(server, name, "orders")
        return made

    def queue(self, server: FollowedDomain, machine: str, name: str) -> Guid:
        at = f"CN={name},{self.place(server, machine)}"
        return server.put(at, objectClass=b"mSMQQueue")

    def share(self) -> None:
        """The configuration of the forest is on the child's controller as well."""
        child, parent = self.child, self.parent
        own = f"CN=Configuration,{child.root}"
        kept = [e for e in child.entries if not e.name.endswith(own) or "NTDS" in e.name]
        shared = [e for e in parent.entries if e.name.endswith(parent.configuration)]
        known = {e.name for e in kept}
        child.entries = kept + [e for e in shared if e.name not in known]
        contexts = {
            "configurationNamingContext": parent.configuration.encode(),
            "rootDomainNamingContext": parent.root.encode(),
        }
        child._replace("", **contexts)

    def set(self, server: FollowedDomain, guid: Guid, attribute: str, *values: bytes) -> None:
        found = server.by_guid(guid)
        assert found is not None
        change = AttributeChange(ModifyKind.REPLACE, attribute, values)
        server.change(ModifyEntry(found.name, (change,)))

    def delete(self, server: FollowedDomain, guid: Guid) -> None:
        found = server.by_guid(guid)
        assert found is not None
        server.change(DeleteEntry(found.name, True))

    def _refer(self, message: LdapMessage) -> ScriptedAnswer | None:
        asked = message.operation
        if isinstance(asked, SearchRequest) and str(self.machines["SRV2"]) in asked.base:
            to = f"ldap://child.corp.example/{asked.base}"
            return [SearchDone(LdapResult(ResultCode.REFERRAL, referrals=(to,)))]
        return None


class Copy:
    """A mirror of both domains."""

    def __init__(self, domains: TwoDomains, clients: list[LdapDirectoryClient]) -> None:
        self.domains, self.clients, self.store = domains, clients, MemoryStore()
        self.mirror = self.process()

    def process(self, *, order: int = 1, store: MemoryStore | None = None) -> EstateMirror:
        first, *others = self.clients[::order]
        held = store or self.store
        return EstateMirror(first, held, "corp.example", others=others, sweep_share=float("inf"))

    def paths(self, kind: ObjectType = ObjectType.QUEUE) -> dict[str, Guid]:
        with self.store.read() as view:
            return {obj.path or "": obj.id for obj in view.objects(kind)}

    def value(self, kind: ObjectType, guid: Guid, propid: int) -> object:
        with self.store.read() as view:
            found = view.get(kind, guid)
            return None if found is None else found.value(propid)


def copied(test: Callable[[Copy], Awaitable[None]], **way: Any) -> None:
    async def run() -> None:
        made = TwoDomains(**way)
        async with made.parent, made.child:
            clients = [
                LdapDirectoryClient(DomainControllers(LdapSettings((LdapUrl.parse(server.url),))))
                for server in (made.parent, made.child)
            ]
            try:
                await test(Copy(made, clients))
            finally:
                for client in clients:
                    await client.close()

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


@pytest.mark.parametrize("way", WAYS)
def test_both_domains_are_mirrored_and_followed(way: dict[str, Any]) -> None:
    async def test(copy: Copy) -> None:
        made = copy.domains
        await copy.mirror.round()
        assert copy.paths(ObjectType.MACHINE) == made.machines
        assert sorted(copy.paths()) == ["srv1\\orders", "srv2\\orders"]
        for site, name in ((made.berlin, "SRV1"), (made.paris, "SRV2")):
            gates = copy.value(ObjectType.SITE, site, PropId.S_GATES)
            assert gates == (made.machines[name],)

        late = made.queue(made.child, "SRV2", "late")
        made.set(made.parent, copy.paths()["srv1\\orders"], "mSMQLabelEx", b"changed")
        done = await copy.mirror.round()
        assert done.fresh == ""
        assert (done.counts.created, done.counts.updated, done.counts.deleted) == (1, 1, 0)
        assert copy.paths()["srv2\\late"] == late

        made.delete(made.child, made.machines["SRV2"])
        done = await copy.mirror.round()
        assert sorted(copy.paths()) == ["srv1\\orders"]
        assert copy.value(ObjectType.SITE, made.paris, PropId.S_GATES) == ()
        again = await copy.process().round(compare=True)  # another process goes on there
        assert (again.differences, again.counts.written) == ([], 0)

    copied(test, **way)


def test_an_object_that_moves_to_the_other_domain_keeps_its_identifier() -> None:
    async def test(copy: Copy) -> None:
        made = copy.domains
        moved = made.queue(made.parent, "SRV1", "moving")
        await copy.mirror.round()
        made.delete(made.parent, moved)
        at = f"CN=moved,{made.place(made.child, 'SRV2')}"
        made.child.put(at, objectClass=b"mSMQQueue", objectGUID=moved.raw)
        done = await copy.mirror.round()
        assert done.counts.deleted == 0
        assert copy.paths()["srv2\\moved"] == moved

    copied(test)


def test_a_domain_that_is_away_or_shows_nothing_loses_nothing() -> None:
    async def test(copy: Copy) -> None:
        made = copy.domains
        await copy.mirror.round()
        before = copy.paths()
        held = made.child.entries
        made.child.entries = [
            e
            for e in held
            if not {b"site", b"mSMQQueue", b"mSMQConfiguration"}.intersection(
                e.values("objectClass")
            )
        ]
        with pytest.raises(LdapError, match="the account sees no site"):
            await copy.mirror.round()
        assert copy.paths() == before
        made.child.entries = held
        made.child.restore(made.child.usn)
        assert "was restored" in (await copy.mirror.round()).fresh
        assert copy.paths() == before

    copied(test)


def test_other_domains_than_before_are_compared_as_a_whole() -> None:
    async def test(copy: Copy) -> None:
        await copy.mirror.round()
        alone = EstateMirror(copy.clients[0], copy.store, "corp.example")
        done = await alone.round()
        assert done.fresh == "other domains are named than before"
        assert sorted(copy.paths()) == ["srv1\\orders"]
        with copy.store.read() as view:
            cursor = read_cursor(view)
        assert cursor is not None
        assert cursor.others == ()
        assert (await copy.mirror.round()).fresh
        assert sorted(copy.paths()) == ["srv1\\orders", "srv2\\orders"]
        with copy.store.read() as view:
            cursor = read_cursor(view)
        assert cursor is not None
        assert MirrorCursor.from_bytes(cursor.to_bytes()) == cursor
        assert len(cursor.others) == 1

    copied(test)


def test_one_domain_twice_is_refused() -> None:
    async def test(copy: Copy) -> None:
        twice = EstateMirror(
            copy.clients[0], MemoryStore(), "corp.example", others=[copy.clients[0]]
        )
        with pytest.raises(ProtocolError, match="two of these are controllers of"):
            await twice.round()

    copied(test)


def test_every_domain_is_watched() -> None:
    async def test(copy: Copy) -> None:
        watched = [(client, await read_forest(client)) for client in copy.clients]
        watch = DirectoryWatch(watched)
        bases = set[str]()
        while len(bases) < 3:
            await asyncio.sleep(0.01)
            for server in (copy.domains.parent, copy.domains.child):
                asked = server.operations(SearchRequest)
                bases |= {op.base for op in asked if op.base and "NTDS" not in op.base}  # type: ignore[union-attr]
        await watch.close()
        assert bases == {copy.domains.parent.root, CHILD, copy.domains.parent.configuration}

    copied(test)
