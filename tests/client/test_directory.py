"""Every event and type against a real directory server, and the client's own methods on top."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from mqis.client import (
    ConnectedNetwork,
    DirectoryClient,
    DirectoryElement,
    Enterprise,
    Filter,
    Operator,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    SortOrder,
    User,
    default_attributes,
    equal,
)
from mqis.client import elements as e
from mqis.client.results import DirectoryOperationResult
from mqis.lab.demo import self_made_certificate
from mqis.protocol.errors import DirectoryError
from mqis.runtime.directory.context import DirectorySettings
from mqis.storage.memory_store import MemoryStore
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import Sid
from tests.client.peers import connected, demo_store, run, served
from tests.client.samples import ONE, guid

SUCCESS = DirectoryOperationResult.SUCCESS
GENERIC = DirectoryOperationResult.GENERIC_ERROR
NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
END = DirectoryOperationResult.END_OF_DATA

CERTIFICATE = self_made_certificate("frida")
DIGEST = Guid(digest_of(CERTIFICATE))


@pytest.fixture
def store() -> MemoryStore:
    return demo_store()


def ids(store: MemoryStore) -> dict[str, Guid]:
    with store.read() as view:
        kinds = (ObjectType.SITE, ObjectType.MACHINE, ObjectType.CN, ObjectType.ENTERPRISE)
        return {obj.path or "": obj.id for kind in kinds for obj in view.objects(kind)}


def new_elements(store: MemoryStore) -> dict[str, tuple[DirectoryElement, dict[str, Any]]]:
    """Something new of each type that can be created, and how to change it."""
    known = ids(store)
    return {
        "QueueManager": (
            QueueManager(
                computer_name="ams-app9",
                site_identifier_list=(known["Amsterdam"],),
                connected_network_identifier_list=(known["Corporate IP"],),
                operating_system_type=e.OperatingSystemType.WIN_SERVER,
                directory_server=True,
                directory_server_type=e.DirectoryServerType.BACKUP_SITE_CONTROLLER,
                routing_server=True,
                remote_access_server=False,
                foreign_system=False,
                journal_quota=77,
            ),
            {"journal_quota": 78, "queue_manager_version": "4.2"},
        ),
        "Queue": (
            Queue(
                pathname="ams-app1\\new",
                label="New",
                quota=500,
                base_priority=-2,
                privacy_level=e.PrivacyLevel.BODY,
                scope=e.Scope.SITE,
                journaling=True,
                transactional=True,
                authentication=False,
                type=guid(77),
            ),
            {"label": "Newer", "scope": e.Scope.ENTERPRISE, "privacy_level": e.PrivacyLevel.NONE},
        ),
        "Site": (
            Site(
                name="Leiden",
                primary_site_controller="lei-dir1",
                intra_site_replication_interval=20,
                inter_site_replication_interval=600,
                foreign_site=False,
                migrated_from_msmq10=True,
            ),
            {"inter_site_replication_interval": 900, "migrated_from_msmq10": False},
        ),
        "RoutingLink": (
            RoutingLink(
                site1_identifier=known["Berlin"],
                site2_identifier=known["Amsterdam"],
                actual_cost=99,
                description="a second line",
                site_gate_identifier_list=(known["ams-route1"],),
            ),
            {"actual_cost": 98, "description": "better"},
        ),
        "User": (
            User(
                security_identifier=Sid(5, (21, 1, 2, 3, 4)).to_bytes(),
                certificates=CERTIFICATE,
                certificate_digest_list=(DIGEST,),
            ),
            {},
        ),
        "ConnectedNetwork": (ConnectedNetwork(name="Branch 9"), {}),
    }


def same(found: DirectoryElement, wanted: DirectoryElement, *but: str) -> None:
    """All that is populated in ``wanted``."""
    for field in fields(wanted):
        value = getattr(wanted, field.name)
        if value is not None and field.name not in but:
            assert getattr(found, field.name) == value, field.name


CREATABLE = ["QueueManager", "Queue", "Site", "RoutingLink", "User", "ConnectedNetwork"]


class TestEvents:
    @pytest.mark.parametrize("gss", [None, SharedSecret()], ids=["unsigned", "signed"])
    @pytest.mark.parametrize("name", CREATABLE)
    def test_create_read_write_look_up_delete(
        self, name: str, gss: SharedSecret | None, store: MemoryStore
    ) -> None:
        element, changes = new_elements(store)[name]
        kind = type(element)
        # A server stores certificates as a list, with identifiers of its own.
        stored = ("certificates",)

        async def main() -> None:
            async with (
                served(store, gss=gss) as server,
                connected(server.address, gss=gss) as client,
            ):
                events = client.events
                created = await events.create_directory_object(element)
                assert created.status is SUCCESS
                assert created.value is not None
                by_id = [equal("Identifier", created.value)]
                found = await events.read_directory(kind, by_id)
                assert found.status is SUCCESS
                assert found.value is not None
                same(found.value, replace(element, identifier=created.value), *stored)

                if changes:
                    changed = replace(element, identifier=created.value, **changes)
                    written = await events.write_directory(changed, list(changes))
                    assert written.status is SUCCESS
                    again = await events.read_directory(kind, by_id)
                    assert again.value is not None
                    same(again.value, changed, *stored)

                begun = await events.read_directory_begin(kind, by_id)
                assert begun.value is not None
                row = await events.read_directory_next(begun.value)
                assert row.value is not None
                assert row.value.identifier == created.value
                assert (await events.read_directory_next(begun.value)).status is END
                assert (await events.read_directory_end(begun.value)).status is SUCCESS

                target = replace(element, identifier=created.value)
                deleted = await events.delete_directory_object(target)
                assert deleted.status is SUCCESS
                gone = await events.read_directory(kind, by_id)
                assert gone.status is (END if kind is User else NOT_FOUND)

        run(main())

    def test_a_user_by_the_digest_of_a_certificate(self, store: MemoryStore) -> None:
        element, _ = new_elements(store)["User"]

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                created = await client.add(element)
                found = await client.read(User, certificate_digest_list=DIGEST)
                assert found.identifier == created
                same(found, element, "certificates")

        run(main())

    def test_the_enterprise(self, store: MemoryStore) -> None:
        root = ids(store)["Meridian"]

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                found = await client.read(Enterprise, identifier=root)
                assert found.name == "Meridian"
                assert found.default_time_to_live == 345_600
                assert found.weakened_security is False
                assert found.old_directory is False
                assert found.cryptographic_provider is e.CryptographicProvider.ENHANCED_AES
                await client.write(replace(found, default_time_to_live=7, weakened_security=True))
                again = await client.read(Enterprise, name="Meridian")
                assert (again.default_time_to_live, again.weakened_security) == (7, True)
                for refused in (
                    await client.events.create_directory_object(found),
                    await client.events.delete_directory_object(found),
                ):
                    assert refused.status is GENERIC

        run(main())

    @pytest.mark.parametrize("name", CREATABLE)
    def test_who_may_not(self, name: str, store: MemoryStore) -> None:
        """A stranger: the server refuses, the event fails, and says why."""
        element, _ = new_elements(store)[name]

        async def main() -> None:
            async with (
                served(store, DirectorySettings()) as server,
                connected(server.address) as client,
            ):
                created = await client.events.create_directory_object(element)
                assert created.status is GENERIC
                assert isinstance(created.error, DirectoryError)
                assert created.error.hresult == 0xC00E0025

        run(main())

    @pytest.mark.parametrize(
        "element",
        [
            QueueManager(computer_name="nobody", journal_quota=5),
            QueueManager(identifier=ONE, journal_quota=5),
            Queue(pathname="ams-app1\\nothing", label="x"),
            Queue(identifier=ONE, label="x"),
            Site(identifier=ONE, foreign_site=True),
            RoutingLink(identifier=ONE, description="x"),
            User(identifier=ONE, certificate_digest_list=(ONE,), certificates=CERTIFICATE),
        ],
    )
    def test_what_is_not_there(self, element: DirectoryElement, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                for outcome in (
                    await client.events.write_directory(element),
                    await client.events.delete_directory_object(element),
                ):
                    assert outcome.status is GENERIC
                    assert isinstance(outcome.error, DirectoryError)
                    assert outcome.error.hresult == 0xC00E050F

        run(main())

    def test_what_is_there_already(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                outcome = await client.events.create_directory_object(
                    Queue(pathname="ams-app1\\orders")
                )
                assert outcome.status is GENERIC  # never ObjectAlreadyExists
                assert isinstance(outcome.error, DirectoryError)
                assert "QUEUE_EXISTS" in str(outcome.error)

        run(main())

    def test_private_properties_when_they_are_named(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                wanted = [equal("Pathname", "ams-app1\\orders")]
                outcome = await client.events.read_directory(Queue, wanted, ["Security"])
                assert outcome.status is GENERIC
                assert isinstance(outcome.error, DirectoryError)
                assert outcome.error.hresult == 0xC00E0039
                security = await client.get_security(ObjectType.QUEUE, 4, path="ams-app1\\orders")
                assert security

        run(main())

    def test_a_queue_with_permissions_of_its_own(self, store: MemoryStore) -> None:
        wanted = parse_sddl("D:P(A;;0xf003f;;;WD)").to_bytes()

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                await client.add(Queue(pathname="ams-app1\\own", security=wanted))
                got = await client.get_security(ObjectType.QUEUE, 4, path="ams-app1\\own")
                assert got == wanted

        run(main())

    def test_many_queries_leave_nothing_behind(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                used = server.rpc.endpoint.groups.budget
                for _ in range(100):  # more than a client may have open
                    outcome = await client.events.read_directory(
                        Queue, [equal("Label", "no such label")]
                    )
                    assert outcome.status is END
                assert used.used == 1

        run(main())

    def test_filters_and_orders(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                events = client.events
                begun = await events.read_directory_begin(
                    QueueManager,
                    [
                        Filter("ComputerName", Operator.GREATER_THAN_OR_EQUAL, "ber"),
                        equal("OperatingSystemType", e.OperatingSystemType.WIN_ENT),
                        equal("DirectoryServer", True),
                    ],
                    ["ComputerName", "DirectoryServerType"],
                    [SortOrder(1, ascending=False), SortOrder()],
                )
                assert begun.value is not None
                names = []
                while (row := await events.read_directory_next(begun.value)).ok:
                    assert isinstance(row.value, QueueManager)
                    assert (
                        row.value.directory_server_type
                        is e.DirectoryServerType.PRIMARY_SITE_CONTROLLER
                    )
                    names.append(row.value.computer_name)
                assert names == ["chi-dir1", "ber-dir1"]
                await events.read_directory_end(begun.value)

        run(main())


class TestMethods:
    def test_read_search_add_write_remove(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                identifier = await client.add(Queue(pathname="ams-app1\\zoo", label="Animals"))
                queue = await client.read(Queue, pathname="ams-app1\\zoo")
                assert (queue.identifier, queue.label) == (identifier, "Animals")
                await client.write(Queue(pathname="ams-app1\\zoo", label="Beasts", quota=9))
                found = [q async for q in client.search(Queue, label="beasts")]
                assert [(q.pathname, q.quota) for q in found] == [("ams-app1\\zoo", 9)]
                await client.remove(queue)
                with pytest.raises(DirectoryError, match="OBJECT_NOT_FOUND"):
                    await client.read(Queue, pathname="ams-app1\\zoo")

        run(main())

    def test_search_gives_all_of_them_in_order(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                machines = client.search(
                    QueueManager,
                    Filter("ComputerName", Operator.LESS_THAN, "ber"),
                    attributes=["computer_name"],
                    order_by=["-operating_system_type", "computer_name"],
                )
                found = [(m.operating_system_type, m.computer_name) async for m in machines]
                assert len(found) == 8
                assert found == sorted(found, key=lambda m: (-(m[0] or 0), m[1]))
                queues = [q async for q in client.search(Queue)]
                assert len(queues) == 60
                assert all(q.pathname and q.identifier for q in queues)

        run(main())

    def test_every_type_can_be_searched(self, store: MemoryStore) -> None:
        wanted: dict[type[DirectoryElement], int] = {
            QueueManager: 20,
            Queue: 60,
            Enterprise: 1,
            Site: 3,
            RoutingLink: 3,
            ConnectedNetwork: 3,
            User: 5,
        }

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                for kind, number in wanted.items():
                    found = [element async for element in client.search(kind)]
                    assert len(found) == number
                    names = default_attributes(kind)
                    assert all(element.identifier for element in found)
                    assert "identifier" in names

        run(main())

    def test_the_gates_of_a_site(self, store: MemoryStore) -> None:
        known = ids(store)

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                site = await client.read(Site, name="Amsterdam")
                gates = {known["ams-dir1"], known["ams-route1"]}
                assert set(site.site_gate_identifier_list or ()) == gates

        run(main())

    def test_what_cannot_be_asked_is_the_callers_mistake(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                with pytest.raises(ValueError, match="without pathname"):
                    await client.add(Queue(label="x"))
                with pytest.raises(ValueError, match="addressed by"):
                    await client.remove(Site(name="x"))
                with pytest.raises(ValueError, match="cannot be looked up"):
                    [q async for q in client.search(Queue, multicast_address="x")]
                with pytest.raises(ValueError, match="no property"):
                    [q async for q in client.queues(nonsense="x")]
                with pytest.raises(ValueError, match="1 to 128 columns"):
                    [row async for row in client.lookup([])]

        run(main())

    def test_properties_below_elements(self, store: MemoryStore) -> None:
        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                assert isinstance(client, DirectoryClient)
                found = [entry async for entry in client.queues(label="Incoming orders")]
                assert len(found) == 6
                assert all(entry.id and (entry.path or "").endswith("orders") for entry in found)
                assert len([entry async for entry in client.machines()]) == 20
                assert len([entry async for entry in client.sites()]) == 3
                links = [entry async for entry in client.links()]
                assert [entry.path for entry in links] == [None] * 3
                assert [s.site_name for s in await client.known_servers()] == [
                    "Amsterdam",
                    "Berlin",
                    "Chicago",
                ]
                text = PropVariant(VarType.LPWSTR, "x")
                made = await client.create(ObjectType.QUEUE, "ams-app1\\p", {108: text})
                await client.set(ObjectType.QUEUE, {108: text}, guid=made)
                await client.delete(ObjectType.QUEUE, guid=made)

        run(main())
