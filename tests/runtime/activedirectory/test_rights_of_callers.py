"""A pass-through server checks its callers itself, by the descriptors of the entries (E-MQDSSM-47).

Everything runs with the account of the server, so Active Directory cannot tell callers apart.
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.security.masks import UserRights
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import LABEL, Given, create, delete, write
from tests.runtime.activedirectory.test_told_apart import read
from tests.runtime.directory.serving import ALICE, BOB, OK, scenario

DENIED, NOT_FOUND = HResult.MQ_ERROR_ACCESS_DENIED, HResult.MQDS_OBJECT_NOT_FOUND
READ = UserRights.DS_READ_PROPERTY | UserRights.DS_LIST_CONTENTS
WRITE = UserRights.DS_WRITE_PROPERTY
CREATE_CHILD, DELETE_CHILD = UserRights.DS_CREATE_CHILD, UserRights.DS_DELETE_CHILD
DELETE = 0x10000
EVERYTHING = 0x000F01FF


def grant(passing: Through, names: list[str], rights: int) -> None:
    """Lets Alice, and nobody else, have these rights on some entries."""
    descriptor = SecurityDescriptor(dacl=Acl((allow(ALICE.sid, int(rights)),))).to_bytes()
    server = passing.server
    for name in names:
        assert any(entry.name == name for entry in server.entries), name
    server.entries = [
        replace(
            entry,
            attributes=(
                *(a for a in entry.attributes if a[0] != "nTSecurityDescriptor"),
                ("nTSecurityDescriptor", (descriptor,)),
            ),
        )
        if entry.name in names
        else entry
        for entry in server.entries
    ]


def place(passing: Through, guid: Guid) -> str:
    entry = passing.server.by_guid(guid)
    assert entry is not None
    return entry.name


@scenario
async def test_a_queue_takes_rights_on_itself_and_to_create_it_one_on_its_machine() -> None:
    """To delete it, the right to delete on the queue is enough: nothing is asked of the parent."""
    async with through() as passing, passing.served.caller(ALICE) as alice:
        queue, machine = passing.estate.queues[0], passing.estate.machine
        above, own = [place(passing, machine)], [place(passing, queue)]
        grant(passing, above, EVERYTHING & ~CREATE_CHILD)
        assert (await create(alice, ObjectType.QUEUE, "SRV1\\new", LABEL))[0] == DENIED
        grant(passing, above, READ | CREATE_CHILD)
        assert (await create(alice, ObjectType.QUEUE, "SRV1\\new", LABEL))[0] == OK

        grant(passing, own, EVERYTHING & ~READ)
        assert await read(alice, ObjectType.QUEUE, queue, P.Q_QUOTA) == (NOT_FOUND, None)
        grant(passing, own, READ)
        assert await read(alice, ObjectType.QUEUE, queue, P.Q_QUOTA) == (OK, 7)
        assert await write(alice, ObjectType.QUEUE, queue, LABEL) == DENIED
        grant(passing, own, READ | WRITE)
        assert await write(alice, ObjectType.QUEUE, queue, LABEL) == OK

        grant(passing, above, EVERYTHING)
        grant(passing, own, EVERYTHING & ~DELETE)
        assert await delete(alice, ObjectType.QUEUE, queue) == DENIED
        grant(passing, above, READ)
        grant(passing, own, READ | DELETE)
        assert await delete(alice, ObjectType.QUEUE, queue) == OK
        assert passing.server.by_guid(queue) is None


@scenario
async def test_only_administrators_create_machines_whatever_the_computer_grants() -> None:
    """MSMQ asks the site, whose right to create machines has no counterpart in the directory."""
    async with through() as passing, passing.served.caller(ALICE) as alice:
        server, berlin = passing.server, passing.estate.berlin
        computer = server.add_computer("SRV2")
        given: Given = {P.QM_SITE_ID: berlin, P.QM_SERVICE: 1}
        grant(passing, [computer, place(passing, berlin)], EVERYTHING)
        assert (await create(alice, ObjectType.MACHINE, "SRV2", given))[0] == DENIED
        grant(passing, [computer, place(passing, berlin)], 0)
        assert (await create(passing.caller, ObjectType.MACHINE, "SRV2", given))[0] == OK


@scenario
async def test_a_machine_takes_rights_on_its_own_entry_alone() -> None:
    """Nothing is asked of the computer, though the keys of a machine are stored there."""
    async with through() as passing, passing.served.caller(ALICE) as alice:
        server = passing.server
        computer = server.add_computer("SRV2", mSMQSignCertificates=b"keys of SRV2")
        sites = passing.estate.berlin.raw
        own = [f"CN=msmq,{computer}"]
        machine = server.put(own[0], objectClass=b"mSMQConfiguration", mSMQSites=sites)
        grant(passing, [computer], EVERYTHING)
        grant(passing, own, EVERYTHING & ~READ)
        found = await read(alice, ObjectType.MACHINE, machine, P.QM_PATHNAME)
        assert found == (NOT_FOUND, None)
        grant(passing, [computer], 0)
        grant(passing, own, READ)
        keys = await read(alice, ObjectType.MACHINE, machine, P.QM_SIGN_PKS)
        assert keys == (OK, b"keys of SRV2")
        quota: Given = {P.QM_QUOTA: 9}
        assert await write(alice, ObjectType.MACHINE, machine, quota) == DENIED
        grant(passing, own, READ | WRITE)
        assert await write(alice, ObjectType.MACHINE, machine, quota) == OK
        assert await delete(alice, ObjectType.MACHINE, machine) == DENIED
        grant(passing, own, READ | DELETE)
        assert await delete(alice, ObjectType.MACHINE, machine) == OK


def enterprise(passing: Through) -> str:
    return f"CN=MsmqServices,CN=Services,{passing.server.configuration}"


@scenario
async def test_users_change_themselves_and_who_may_change_the_enterprise_changes_all() -> None:
    """The entry of a user is not asked. Of queue aliases and distribution lists nothing is read."""
    async with (
        through() as passing,
        passing.served.caller(ALICE) as alice,
        passing.served.caller(BOB) as bob,
    ):
        root = [entry for entry in passing.server.entries if entry.name == enterprise(passing)]
        guid = Guid(root[0].values("objectGUID")[0])
        anna = passing.estate.user
        nothing: Given = {P.U_SIGN_CERT: b""}
        days: Given = {P.E_LONG_LIVE: 99}
        grant(passing, [place(passing, anna)], EVERYTHING)
        grant(passing, [enterprise(passing)], 0)
        assert (await read(alice, ObjectType.ENTERPRISE, guid, P.E_LONG_LIVE))[0] == DENIED
        grant(passing, [enterprise(passing)], READ)
        assert (await read(alice, ObjectType.ENTERPRISE, guid, P.E_LONG_LIVE))[0] == OK
        assert await write(alice, ObjectType.ENTERPRISE, guid, days) == DENIED
        assert await write(alice, ObjectType.USER, anna, nothing) == DENIED
        grant(passing, [enterprise(passing)], READ | WRITE)
        grant(passing, [place(passing, anna)], 0)
        assert await write(alice, ObjectType.ENTERPRISE, guid, days) == OK
        assert await write(alice, ObjectType.USER, anna, nothing) == OK
        assert await write(bob, ObjectType.USER, anna, nothing) == DENIED
        own = passing.server.add_user("bob", BOB.sid.to_bytes(), mSMQDigests=b"e" * 16)
        assert await write(bob, ObjectType.USER, own, nothing) == OK


@scenario
async def test_sites_are_for_administrators_and_links_for_who_may_change_the_enterprise() -> None:
    async with through() as passing, passing.served.caller(ALICE) as alice:
        server, estate = passing.server, passing.estate
        rome, oslo = (server.add_site(name) for name in ("Rome", "Oslo"))
        link: Given = {P.L_NEIGHBOR1: rome, P.L_NEIGHBOR2: oslo, P.L_ACTUAL_COST: 1}
        sites = f"CN=Sites,{server.configuration}"
        grant(passing, [sites], EVERYTHING)
        grant(passing, [enterprise(passing)], EVERYTHING & ~WRITE)
        assert (await create(alice, ObjectType.SITE, "Kiel", {P.S_INTERVAL1: 3}))[0] == DENIED
        assert (await create(alice, ObjectType.ROUTINGLINK, "", link))[0] == DENIED
        assert await delete(alice, ObjectType.ROUTINGLINK, estate.link) == DENIED
        grant(passing, [enterprise(passing)], READ | WRITE)
        assert (await create(alice, ObjectType.SITE, "Kiel", {P.S_INTERVAL1: 3}))[0] == DENIED
        assert (await create(alice, ObjectType.ROUTINGLINK, "", link))[0] == OK
        assert await delete(alice, ObjectType.ROUTINGLINK, estate.link) == OK
        grant(passing, [sites, place(passing, oslo)], READ | WRITE | DELETE_CHILD)
        assert await delete(alice, ObjectType.SITE, oslo) == DENIED
        created = await create(passing.caller, ObjectType.SITE, "Kiel", {P.S_INTERVAL1: 3})
        assert created[0] == OK
