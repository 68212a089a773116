"""A pass-through server among entries that differ in one thing only, and must not be mixed up."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import ModifyEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts, digest_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import (
    Given,
    changes,
    create,
    refusing,
    values,
    write,
)
from tests.runtime.activedirectory.test_passing_through import by_guid
from tests.runtime.directory.serving import ALICE, OK, Caller, scenario
from tests.runtime.directory.test_lookups import begin, end, following, wanted


async def read(caller: Caller, kind: ObjectType, guid: Guid, propid: P) -> tuple[int, Any]:
    got = await caller.call(dscomm.GET_PROPS_GUID, by_guid(caller, kind, guid, (propid,)))
    return got.result, got.values[0].value if got.result == OK else None


#: Settings, and where the machine's entry has the same.
REPEATED = {
    "mSMQServices": "mSMQServiceType",
    "mSMQRoutingService": "mSMQRoutingServices",
    "mSMQDsService": "mSMQDsServices",
    "mSMQDependentClientService": "mSMQDependentClientServices",
}


@pytest.mark.parametrize(
    ("given", "services"),
    [
        pytest.param({P.QM_SERVICE: 0x11}, (b"17", b"TRUE", b"FALSE", b"FALSE"), id="router"),
        pytest.param({P.QM_SERVICE: 0x04}, (b"4", b"FALSE", b"TRUE", b"FALSE"), id="directory"),
        pytest.param(
            {P.QM_SERVICE: 0, P.QM_SERVICE_DEPCLIENTS: 1},
            (b"0", b"FALSE", b"FALSE", b"TRUE"),
            id="supporting",
        ),
    ],
)
@pytest.mark.req("MQDSSM-3.1.6.1.1.3-04")
@scenario
async def test_each_service_of_a_machine_is_repeated_in_its_settings(
    given: Given, services: tuple[bytes, ...]
) -> None:
    async with through() as passing:
        passing.server.add_computer("SRV2")
        sites = (passing.estate.berlin, passing.estate.paris)
        result, guid = await create(
            passing.caller, ObjectType.MACHINE, "SRV2", {P.QM_SITE_IDS: sites, **given}
        )
        assert result == OK
        made = [e for e in passing.server.entries if e.name.startswith("CN=MSMQ Settings,CN=SRV2,")]
        assert len(made) == len(sites)
        for entry in made:
            assert entry.values("mSMQQMID") == (guid.raw,)
            assert tuple(entry.values(name)[0] for name in REPEATED) == services
        for name, value in zip(REPEATED.values(), services, strict=True):
            assert values(passing, guid, name) == (value,)


def add_link(passing: Through, name: str, first: Guid, second: Guid, cost: bytes) -> Guid:
    server = passing.server
    names = {guid: e.name for guid in (first, second) if (e := server.by_guid(guid))}
    return server.put(
        f"CN={name},CN=MsmqServices,CN=Services,{server.configuration}",
        objectClass=b"mSMQSiteLink",
        mSMQSite1=names[first].encode(),
        mSMQSite2=names[second].encode(),
        mSMQCost=cost,
    )


@pytest.mark.req("MQDSSM-3.1.6.7.5.2-02")
@scenario
async def test_a_link_among_others_is_written_by_its_identifier() -> None:
    """Its path is no name for a write (MS-MQDS 3.1.4.9), so FullPath never comes here."""
    async with through() as passing:
        caller, estate, server = passing.caller, passing.estate, passing.server
        rome = server.add_site("Rome")
        links = [
            estate.link,
            add_link(passing, "a", estate.berlin, rome, b"3"),
            add_link(passing, "b", rome, estate.paris, b"4"),
            add_link(passing, "c", rome, estate.berlin, b"5"),
        ]
        costs = [values(passing, guid, "mSMQCost")[0] for guid in links]
        for place, guid in enumerate(links):
            given: Given = {P.L_ACTUAL_COST: 50 + place}
            assert await write(caller, ObjectType.ROUTINGLINK, guid, given) == OK
            costs[place] = b"%d" % (50 + place)
            assert [values(passing, g, "mSMQCost")[0] for g in links] == costs
            for code, status in (
                (ResultCode.INSUFFICIENT_ACCESS_RIGHTS, HResult.MQ_ERROR_DS_ERROR),
                (ResultCode.NO_SUCH_OBJECT, HResult.MQDS_OBJECT_NOT_FOUND),
                (ResultCode.UNWILLING_TO_PERFORM, HResult.MQ_ERROR_DS_ERROR),
                (ResultCode.ENTRY_ALREADY_EXISTS, HResult.MQ_ERROR_DS_ERROR),
            ):
                server.on_message = refusing(0, code)
                other: Given = {P.L_ACTUAL_COST: 99}
                assert await write(caller, ObjectType.ROUTINGLINK, guid, other) == status
            server.on_message = None
        path = rome.big_endian.hex() + estate.paris.big_endian.hex()
        refused = await write(caller, ObjectType.ROUTINGLINK, path, {P.L_ACTUAL_COST: 1})
        assert refused == HResult.MQ_ERROR_INVALID_PARAMETER
        assert [values(passing, g, "mSMQCost")[0] for g in links] == costs


#: cn, mSMQQueueNameExt, and the name of the queue.
LONG = "OrdersFromTheNorthernRegionWarehouseNumberSeventeen-Inc"
QUEUES = {
    "cut": (f"{LONG}-a0fa68bf", "oming-0001", f"{LONG}oming-0001"),
    "cut, the other": (f"{LONG}-11184a37", "oming-0002", f"{LONG}oming-0002"),
    "of 64 characters, by another tool": ("y" * 64, "", "y" * 64),
    "with an extension that does not fit": (f"{LONG}-11184a38", "oming-0002", f"{LONG}-11184a38"),
    "of 63 characters": ("z" * 63, "rest", "z" * 63),
    "of 65 octets with escapes": ("a\\,b" + "w" * 60, "", "a,b" + "w" * 60),
}


@pytest.mark.parametrize(("cn", "rest", "name"), QUEUES.values(), ids=QUEUES)
@pytest.mark.req("MQDSSM-3.1.6.11.2.1-02")
@scenario
async def test_the_name_of_a_queue_is_put_together_again(cn: str, rest: str, name: str) -> None:
    async with through() as passing:
        more = {"mSMQQueueNameExt": rest.encode()} if rest else {}
        guid = passing.estate.add_queue(cn, **more)
        found = await read(passing.caller, ObjectType.QUEUE, guid, P.Q_PATHNAME)
        assert found == (OK, f"srv1\\{name}".lower())


@pytest.mark.req("MQDSSM-2.2.1-02")
@scenario
async def test_a_new_site_is_one_of_active_directorys_own() -> None:
    async with through() as passing:
        result, guid = await create(passing.caller, ObjectType.SITE, "Kiel", {P.S_INTERVAL1: 3})
        assert result == OK
        entry = passing.server.by_guid(guid)
        assert entry is not None
        assert entry.name == "CN=Kiel,CN=Sites,CN=Configuration,DC=corp,DC=example"
        assert entry.values("objectClass") == (b"site",)


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        (b"0", (OK, 0)),
        (b"1", (OK, 1)),
        (b"2", (OK, 2)),
        (b"3", (HResult.MQ_ERROR_DS_ERROR, None)),
        (b"-1", (HResult.MQ_ERROR_DS_ERROR, None)),
    ],
)
@pytest.mark.req("MQDSSM-3.1.6.1.2.4-01")
@scenario
async def test_there_are_three_levels_of_privacy(stored: bytes, answer: tuple[int, Any]) -> None:
    async with through() as passing:
        queue = passing.estate.add_queue("sealed", mSMQPrivacyLevel=stored)
        found = await read(passing.caller, ObjectType.QUEUE, queue, P.Q_PRIV_LEVEL)
        assert found == answer


@pytest.mark.req("MQDSSM-3.1.6.11.1.3-01")
@scenario
async def test_routing_servers_out_and_in_are_two_lists_without_the_dead() -> None:
    async with through() as passing:
        server = passing.server
        first, second, third = (server.add_computer(f"GATE{n}") for n in range(3))
        gates = [
            server.put(f"CN=msmq,{name}", objectClass=b"mSMQConfiguration")
            for name in (first, second, third)
        ]
        machine = server.put(
            f"CN=msmq,{server.add_computer('SRV9')}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=passing.estate.berlin.raw,
            mSMQOutRoutingServers=(f"CN=msmq,{first}".encode(), f"CN=msmq,{third}".encode()),
            mSMQInRoutingServers=(f"CN=msmq,{second}".encode(), b"CN=msmq,CN=gone,DC=corp"),
        )
        for propid, listed in ((P.QM_OUTFRS, [gates[0], gates[2]]), (P.QM_INFRS, [gates[1]])):
            result, found = await read(passing.caller, ObjectType.MACHINE, machine, propid)
            assert (result, sorted(found)) == (OK, sorted(listed))


@pytest.mark.req("MQDSSM-3.1.6.5-01")
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9])
@scenario
async def test_each_row_of_a_lookup_is_taken_once(rows: int) -> None:
    async with through() as passing:
        for number in range(5):
            passing.estate.add_queue(f"more{number}")
        names = ["bills", *(f"more{number}" for number in range(5)), "orders"]
        begun = await begin(
            passing.caller, wanted(P.Q_PATHNAME, P.Q_LABEL, sort=((P.Q_PATHNAME, 0),))
        )
        taken: list[Any] = []
        while page := (await following(passing.caller, begun.handle, 2 * rows)).values:
            taken += [variant.value for variant in page[::2]]
        assert taken == [f"srv1\\{name}" for name in names]
        assert (await following(passing.caller, begun.handle, 2 * rows)).values == ()
        await end(passing.caller, begun.handle)


@pytest.mark.req("MQDSSM-3.1.6.7.6.4-01")
@scenario
async def test_certificates_and_their_digests_are_written_at_once_in_one_order() -> None:
    async with through() as passing:
        anna = passing.server.add_user("alba", ALICE.sid.to_bytes())
        octets = sorted((b"one", b"two", b"three", b"four"), key=digest_of, reverse=True)
        listed = UserSignCerts(tuple(UserSignCert.of(each, Guid.NULL) for each in octets))
        given: Given = {P.U_SIGN_CERT: listed.to_bytes()}
        passing.server.received.clear()
        assert await write(passing.caller, ObjectType.USER, anna, given) == OK
        (message,) = changes(passing.server)
        assert isinstance(message.operation, ModifyEntry)
        assert {change.attribute: change.values for change in message.operation.changes} == {
            "mSMQSignCertificates": (listed.to_bytes(),),
            "mSMQDigests": tuple(map(digest_of, octets)),
        }
