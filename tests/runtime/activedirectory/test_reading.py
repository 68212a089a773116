"""Whole objects out of an Active Directory: the server for tests, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.computers import (
    BELIEVED_S,
    MOST_COMPUTERS,
    KnownComputers,
)
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader, Skipped
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedDirectory
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.runtime.activedirectory.estate import SID, Estate

MACHINE = ObjectType.MACHINE


def read(
    test: Callable[[ForestReader, Estate], Awaitable[None]],
    skipped: Skipped | None = None,
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


@pytest.mark.req("MQDSSM-3.1.6.20.4-01")
def test_all_objects_with_what_they_refer_to() -> None:
    async def test(reader: ForestReader, estate: Estate) -> None:
        found = [obj async for obj in EstateReader.of([reader]).objects()]
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


@pytest.mark.req("MQDSSM-3.1.6.11.1-04", "MQDSSM-3.1.6.3.2.2-01")
def test_every_machine_is_completed_by_its_own_computer() -> None:
    async def test(reader: ForestReader, estate: Estate) -> None:
        keys = {estate.machine: b"certificates"}
        for name in ("SRV2", "SRV3"):
            principal = f"{'MSClusterVirtualServer' if name == 'SRV2' else 'HOST'}/{name}"
            computer = estate.server.add_computer(
                name, mSMQSignCertificates=name.encode(), servicePrincipalName=principal.encode()
            )
            made = estate.server.put(
                f"CN=msmq,{computer}",
                objectClass=b"mSMQConfiguration",
                mSMQSites=estate.paris.raw,
            )
            keys[made] = name.encode()
        found = {
            obj.id: obj.value(P.QM_SIGN_PKS)
            async for obj in EstateReader.of([reader]).objects([MACHINE])
        }
        assert found == keys
        for machine, own in keys.items():
            estate.server.received.clear()
            one = await reader.read_one(MACHINE, machine)
            assert len(estate.server.operations(SearchRequest)) == 2  # it, and its computer once
            assert one is not None
            assert one.value(P.QM_SIGN_PKS) == own
            assert one.value(P.QM_GROUP_IN_CLUSTER) == (own == b"SRV2")

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
        assert await reader.client.read(estate.computer)  # answered after what was sent before it
        # This read, a page and the next one, however many there are, and the computer.
        assert len(estate.server.received) - before == 4
        assert len([obj async for obj in queues]) == 131
        assert len(estate.server.received) - before == 5

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

    read(test, lambda _type, _entry, reason: skipped.append(reason))


def test_a_server_that_is_no_domain_controller() -> None:
    async def test() -> None:
        async with ScriptedDirectory() as server:
            settings = LdapSettings((LdapUrl.parse(server.url),))
            with pytest.raises(ProtocolError, match="no root entry"):
                await ForestReader.open(LdapDirectoryClient(DomainControllers(settings)))

    asyncio.run(test())


def test_the_place_of_a_computer_is_remembered_while_it_stands_there() -> None:
    async def test(reader: ForestReader, estate: Estate) -> None:
        def searches() -> int:
            return len(estate.server.operations(SearchRequest))

        async def found(path: str) -> tuple[Guid | None, int]:
            """The queue of a path, and the number of searches that it took."""
            before = searches()
            queue = await reader.find(ObjectType.QUEUE, path)
            return None if queue is None else queue.id, searches() - before

        orders, bills = estate.queues
        assert await found("srv1\\orders") == (orders, 2)
        assert await found("SRV1\\bills") == (bills, 1)
        assert await found("srv1\\none") == (None, 2)
        moved = f"CN=SRV1,OU=Berlin,{estate.server.root}"
        estate.server.entries = [
            replace(e, name=e.name.replace(estate.computer, moved)) for e in estate.server.entries
        ]
        assert await found("srv1\\orders") == (orders, 3)
        assert await found("srv1\\bills") == (bills, 1)

    read(test)


def test_a_place_is_believed_for_a_moment() -> None:
    now = [0.0]
    computers = KnownComputers(lambda: now[0])
    entry = LdapEntry("CN=SRV1,CN=Computers,DC=corp,DC=example", ())
    other = DistinguishedName.parse("CN=SRV2,CN=Computers,DC=corp,DC=example")
    computers.put(entry, "SRV1")
    assert computers.named("srv1") is entry
    assert computers.at(entry.distinguished_name) is entry
    assert computers.at(other) is computers.named("srv2") is None
    now[0] = BELIEVED_S
    assert computers.named("srv1") is computers.at(entry.distinguished_name) is None
    for number in range(MOST_COMPUTERS + 1):
        computers.put(entry, f"host{number}")
    assert computers.named("host1") is None
    assert computers.named(f"host{MOST_COMPUTERS}") is entry
