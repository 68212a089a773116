"""A store into an Active Directory: a plan, additions only, and again after a broken connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.ldif import import_ldif
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.publishing import PublishAction, PublishStep, publish_store
from mqis.cli.tour.activedirectory import EXAMPLE
from mqis.config.stores import open_store
from mqis.protocol.ports import Store
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import LdapFault, ScriptedAnswer
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.responses import AddResponse, LdapResult
from mqis.wire.mqds.objecttype import ObjectType

Published = tuple[list[PublishStep], int, TransferNotes]


@pytest.fixture
def store() -> Iterator[Store]:
    """The example: 3 sites, 2 links, 4 machines, 6 queues."""
    with closing(open_store("memory:")) as opened:
        import_ldif(opened, [EXAMPLE])
        yield opened


def domain(*, sites: bool = True) -> ScriptedDomain:
    server = ScriptedDomain.of("DC=meridian,DC=example")
    if sites:
        for name in ("Amsterdam", "Berlin", "Mainframe"):
            server.add_site(name)
    for name in ("ams-route1", "ams-app1", "ber-route1", "ber-app1"):
        server.add_computer(name)
    return server


def published(
    server: ScriptedDomain, store: Store, *, write: bool = True, sites: bool = False
) -> Published:
    async def run() -> Published:
        async with server:
            wanted = ConnectingOptions((server.url,), operation_timeout_s=60)
            return await publish_store([wanted], store, write=write, sites=sites)

    return asyncio.run(run())


def made(server: ScriptedDomain, ldap_class: bytes) -> int:
    return sum(ldap_class in entry.values("objectClass") for entry in server.entries)


def test_a_plan_writes_nothing(store: Store) -> None:
    server = domain()
    steps, written, _ = published(server, store, write=False)
    assert written == 0
    assert not server.operations(AddEntry)
    actions = [step.action for step in steps]
    assert actions.count(PublishAction.SAME_NAME) == 3  # the sites
    assert actions.count(PublishAction.CREATE) == 12
    assert "machine ams-app1: is made, with a new identifier" in map(str, steps)


def test_what_is_missing_is_added_with_the_identifiers_of_this_directory(store: Store) -> None:
    server = domain()
    _, written, notes = published(server, store)
    assert written == 12
    counts = [made(server, c) for c in (b"mSMQConfiguration", b"mSMQQueue", b"mSMQSiteLink")]
    assert counts == [4, 6, 2]
    assert made(server, b"mSMQSettings") == 2  # of the routing servers
    sites = {
        e.values("objectGUID")[0] for e in server.entries if b"site" in e.values("objectClass")
    }
    for entry in server.entries:
        assert set(entry.values("mSMQSites")) <= sites
    assert [note.count for note in notes if note.what == "objects got another identifier"] == [12]
    again, written, _ = published(server, store)
    assert written == 0
    assert {step.action for step in again} == {PublishAction.SAME_NAME}
    assert not server.operations(ModifyEntry)
    assert not server.operations(DeleteEntry)


def test_sites_are_made_only_if_asked(store: Store) -> None:
    server = domain(sites=False)
    steps, written, notes = published(server, store)
    assert (steps, written) == ([], 0)
    assert any("use --sites" in note.what for note in notes)
    assert published(server, store, sites=True)[1] == 15


def test_a_computer_has_to_exist(store: Store) -> None:
    server = domain()
    server.entries = [e for e in server.entries if not e.name.startswith("CN=ber-app1,")]
    _, written, notes = published(server, store)
    assert written == 7
    assert any("Active Directory has no computer ber-app1" in note.what for note in notes)


def test_a_refused_change_is_told_and_not_counted(store: Store) -> None:
    """Only what a step expects, such as an entry that is there already, is accepted."""
    server = domain()

    def refuse(message: LdapMessage) -> ScriptedAnswer | None:
        if not isinstance(message.operation, AddEntry):
            return None
        return [AddResponse(LdapResult(ResultCode.INSUFFICIENT_ACCESS_RIGHTS, "", "no right"))]

    server.on_message = refuse
    steps, written, notes = published(server, store)
    assert written == 0
    assert any("no right" in note.what for note in notes)
    actions = [step.action for step in steps]
    assert actions.count(PublishAction.REFUSED) == 12
    assert PublishAction.CREATE not in actions
    assert any("machine ams-app1: was refused: " in text for text in map(str, steps))


def test_a_tombstone_is_put_back(store: Store) -> None:
    server = domain()
    with store.read() as view:
        queue = view.find(ObjectType.QUEUE, "ams-app1\\orders")
    assert queue is not None
    tombstone = f"CN=orders\\0ADEL:{queue.id},CN=Deleted Objects,{server.root}"
    server.put(tombstone, objectClass=b"mSMQQueue", objectGUID=queue.id.raw, isDeleted=b"TRUE")
    steps, _, _ = published(server, store)
    assert [s.obj.id for s in steps if s.action is PublishAction.PUT_BACK] == [queue.id]
    (change,) = server.operations(ModifyEntry)
    assert isinstance(change, ModifyEntry)
    assert change.name == tombstone
    assert ("mSMQLabelEx", (b"Orders",)) in [(c.attribute, c.values) for c in change.changes]


def test_a_controller_that_dies_in_between(store: Store) -> None:
    server = domain()
    left = 5

    def die(message: LdapMessage) -> ScriptedAnswer | None:
        nonlocal left
        left -= isinstance(message.operation, AddEntry)
        return [LdapFault.CLOSE] if left < 0 else None

    server.on_message = die
    with pytest.raises(MqisError, match="run the command again: what was written is found"):
        published(server, store)
    server.on_message = None
    published(server, store)
    counts = [made(server, c) for c in (b"mSMQConfiguration", b"mSMQQueue", b"mSMQSiteLink")]
    assert counts == [4, 6, 2]
    assert made(server, b"mSMQSettings") == 2


def test_what_the_directory_refuses_is_told(store: Store) -> None:
    server = domain()
    server.add_site("Other")
    place = f"CN=msmq,CN=ams-app1,CN=Computers,{server.root}"
    server.put(place, objectClass=b"container", objectGUID=Guid(b"c" * 16).raw)
    _, written, _ = published(server, store)
    assert written == 12  # the machine that is in the way is accepted, and its queues are added


def test_a_forest_gets_each_object_in_the_domain_of_its_computer(store: Store) -> None:
    child, known = domain(sites=False), domain()
    parent = _Parent(known.entries, root=known.root, _numbers=500)
    _make_child(parent, child)

    async def run() -> Published:
        async with parent, child:
            both = [ConnectingOptions((s.url,), operation_timeout_s=60) for s in (parent, child)]
            return await publish_store(both, store, write=True)

    steps, written, notes = asyncio.run(run())
    assert written == 12, [str(note) for note in notes]
    machines = [made(server, b"mSMQConfiguration") for server in (parent, child)]
    assert machines == [2, 2]
    assert [made(server, b"mSMQSiteLink") for server in (parent, child)] == [2, 0]
    assert sum(made(server, b"mSMQQueue") for server in (parent, child)) == 6
    assert made(child, b"mSMQQueue") > 0
    again, written, _ = asyncio.run(run())
    assert written == 0
    assert {step.action for step in again} == {PublishAction.SAME_NAME}
    assert len(again) == len(steps)


class _Parent(ScriptedDomain):
    """It knows by the global catalogue which entries the child's domain has."""

    def _bad_values(self, rows: Iterable[tuple[str, tuple[bytes, ...]]]) -> ResultCode | None:
        own = [(name, tuple(v for v in values if b"DC=child," not in v)) for name, values in rows]
        return super()._bad_values([row for row in own if row[1]])


def _make_child(parent: ScriptedDomain, child: ScriptedDomain) -> None:
    """The computers of Berlin are in a domain of their own; the configuration is shared."""
    root = f"DC=child,{parent.root}"
    child._numbers = 1000
    child.entries = [
        replace(entry, name=entry.name.replace(child.root, root))
        for entry in child.entries
        if "CN=Configuration" not in entry.name and "CN=ams-" not in entry.name
    ]
    for at, entry in enumerate(child.entries):
        if not entry.name:
            contexts = {
                "defaultNamingContext": (root.encode(),),
                "configurationNamingContext": (parent.configuration.encode(),),
            }
            rows = {**dict(entry.attributes), **contexts}
            child.entries[at] = replace(entry, attributes=tuple(rows.items()))
    child.root = root
    parent.entries = [e for e in parent.entries if "CN=ber-" not in e.name]
