"""Whole objects out of an Active Directory: the server for tests, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mqis.protocol.activedirectory.entry import BadAttribute
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.ldap.directory import LdapDirectoryClient
from mqis.runtime.ldap.servers import DomainControllers
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedDirectory
from mqis.wire.guid import Guid
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

SID = bytes.fromhex("010500000000000515000000010000000200000003000000f4010000")


class Estate:
    """Two sites with a link; SRV1, a router of Berlin, with two queues; a user with a digest."""

    def __init__(self, server: ScriptedDomain) -> None:
        self.server = server
        self.berlin = server.add_site("Berlin")
        self.paris = server.add_site("Paris", mSMQSiteForeign=b"TRUE")
        self.computer = server.add_computer("SRV1", mSMQSignCertificates=b"certificates")
        self.machine = server.put(
            f"CN=msmq,{self.computer}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=self.berlin.raw,
            mSMQRoutingServices=b"TRUE",
        )
        self.queues = [self.add_queue(name) for name in ("orders", "bills")]
        services = f"CN=MsmqServices,CN=Services,{server.configuration}"
        names = [f"CN={n},CN=Sites,{server.configuration}".encode() for n in ("Berlin", "Paris")]
        self.link = server.put(
            f"CN=link,{services}",
            objectClass=b"mSMQSiteLink",
            mSMQSite1=names[0],
            mSMQSite2=names[1],
            mSMQCost=b"7",
            mSMQSiteGates=f"CN=msmq,{self.computer}".encode(),
        )
        self.user = server.add_user("anna", SID, mSMQDigests=b"d" * 16)
        server.add_user("bert", SID[:-1] + b"!")

    def add_queue(self, name: str) -> Guid:
        return self.server.put(f"CN={name},CN=msmq,{self.computer}", objectClass=b"mSMQQueue")


def read(
    test: Callable[[ForestReader, Estate], Awaitable[None]],
    skipped: Callable[[ProtocolError], None] | None = None,
) -> None:
    async def run() -> None:
        async with ScriptedDomain.of() as server:
            estate = Estate(server)
            settings = LdapSettings((LdapUrl.parse(server.url),))
            client = LdapDirectoryClient(DomainControllers(settings))
            if skipped is None:
                reader = await ForestReader.open(client)
            else:
                reader = await ForestReader.open(client, skipped)
            await test(reader, estate)
            await client.close()

    asyncio.run(asyncio.wait_for(run(), 20))


def test_all_objects_with_what_they_refer_to() -> None:
    async def test(reader: ForestReader, estate: Estate) -> None:
        found = [obj async for obj in reader.objects()]
        assert {obj.id for obj in found if obj.type is ObjectType.QUEUE} == set(estate.queues)
        by_id: dict[Guid, DirectoryObject] = {obj.id: obj for obj in found}
        machine, link = by_id[estate.machine], by_id[estate.link]
        assert machine.path == "SRV1"
        assert machine.value(P.QM_SIGN_PKS) == b"certificates"
        assert machine.partition == estate.berlin
        assert by_id[estate.queues[0]].partition == estate.berlin
        assert by_id[estate.queues[0]].value(P.Q_QMID) == estate.machine
        assert by_id[estate.queues[0]].path == "srv1\\orders"
        assert (link.value(P.L_NEIGHBOR1), link.value(P.L_NEIGHBOR2)) == (
            estate.berlin,
            estate.paris,
        )
        assert link.value(P.L_GATES) == (estate.machine,)
        assert by_id[estate.berlin].value(P.S_GATES) == (estate.machine,)
        assert by_id[estate.paris].value(P.S_GATES) == ()
        (user,) = [obj for obj in found if obj.type is ObjectType.USER]
        assert (user.id, user.value(P.U_SID)) == (estate.user, SID)
        types = [obj.type for obj in found]
        assert types.index(ObjectType.SITE) < types.index(ObjectType.MACHINE)
        assert types.index(ObjectType.MACHINE) < types.index(ObjectType.QUEUE)

    read(test)


def test_one_object_by_identifier_and_by_name() -> None:
    async def test(reader: ForestReader, estate: Estate) -> None:
        queue = await reader.read_one(ObjectType.QUEUE, estate.queues[1])
        assert queue is not None
        assert queue.path == "srv1\\bills"
        assert await reader.find(ObjectType.QUEUE, "SRV1\\bills") == queue
        machine = await reader.find(ObjectType.MACHINE, "srv1.corp.example")
        assert machine is not None
        assert machine.id == estate.machine
        site = await reader.find(ObjectType.SITE, "Berlin")
        assert site is not None
        assert site.id == estate.berlin
        assert await reader.read_one(ObjectType.MACHINE, estate.queues[1]) is None
        assert await reader.find(ObjectType.QUEUE, "nobody\\bills") is None
        assert await reader.find(ObjectType.QUEUE, "srv1\\gone") is None
        assert await reader.read_one(ObjectType.QUEUE, Guid.NULL) is None

    read(test)


def test_pages_bound_what_is_kept() -> None:
    async def test(reader: ForestReader, estate: Estate) -> None:
        for number in range(130):
            estate.add_queue(f"q{number}")
        before = len(estate.server.received)
        small = ForestReader(reader.client, reader.forest, page_size=60)
        queues = small.search(ObjectType.QUEUE)
        await anext(queues)
        searches = [
            m for m in estate.server.received[before:] if isinstance(m.operation, SearchRequest)
        ]
        assert len(searches) == 1  # one page, however many there are
        assert len([obj async for obj in queues]) == 131
        assert len(estate.server.received) - before == 3

    read(test)


def test_an_unsound_entry_is_left_out_and_named() -> None:
    skipped: list[ProtocolError] = []

    async def test(reader: ForestReader, estate: Estate) -> None:
        estate.server.put(
            f"CN=broken,CN=msmq,{estate.computer}", objectClass=b"mSMQQueue", mSMQQueueQuota=b"many"
        )
        found = [obj async for obj in reader.search(ObjectType.QUEUE)]
        assert {obj.id for obj in found} == set(estate.queues)
        (reason,) = skipped
        assert "CN=broken" in str(reason)
        assert "mSMQQueueQuota" in str(reason)
        with pytest.raises(BadAttribute, match="mSMQQueueQuota"):
            await reader.find(ObjectType.QUEUE, "srv1\\broken")

    read(test, skipped.append)


def test_a_server_that_is_no_domain_controller() -> None:
    async def test() -> None:
        async with ScriptedDirectory() as server:
            settings = LdapSettings((LdapUrl.parse(server.url),))
            with pytest.raises(ProtocolError, match="no root entry"):
                await ForestReader.open(LdapDirectoryClient(DomainControllers(settings)))

    asyncio.run(test())
