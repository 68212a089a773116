"""What a caller gets of entries that lack something, and of numbers that stand for others."""

from __future__ import annotations

import pytest

from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AttributeChange, ModifyEntry, ModifyKind
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.activedirectory.passing import through
from tests.runtime.activedirectory.test_passing_through import by_guid, by_path
from tests.runtime.directory.serving import OK, scenario


def put(server: ScriptedDomain, guid: Guid, attribute: str, *values: bytes) -> None:
    """Gives an attribute of an entry other values; none: the account may not see it."""
    found = server.by_guid(guid)
    assert found is not None
    change = AttributeChange(ModifyKind.REPLACE, attribute, values)
    server._change(ModifyEntry(found.name, (change,)), ())


def enterprise(server: ScriptedDomain) -> Guid:
    (found,) = [e for e in server.entries if e.name.startswith("CN=MsmqServices,")]
    return Guid(found.values("objectGUID")[0])


def one_of(estate: Estate, kind: ObjectType) -> tuple[Guid, P]:
    """An object of a type, and a property of it that needs nothing but its identifier."""
    return {
        ObjectType.MACHINE: (estate.machine, P.QM_MACHINE_ID),
        ObjectType.QUEUE: (estate.queues[0], P.Q_INSTANCE),
        ObjectType.ENTERPRISE: (enterprise(estate.server), P.E_ID),
        ObjectType.ROUTINGLINK: (estate.link, P.L_ID),
        ObjectType.USER: (estate.user, P.U_ID),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        pytest.param(ObjectType.MACHINE, ("whenCreated", "whenChanged", "nTSecurityDescriptor"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.1-01")),
        pytest.param(ObjectType.QUEUE, ("whenCreated", "whenChanged", "nTSecurityDescriptor"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.2-01")),
        pytest.param(ObjectType.ENTERPRISE, ("nTSecurityDescriptor",),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.3-01")),
        pytest.param(ObjectType.ROUTINGLINK, ("mSMQCost", "mSMQSite1", "mSMQSite2"),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.5-01", "MQDSSM-3.1.6.11.5.1-01")),
        pytest.param(ObjectType.USER, ("objectSid",),
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.6-01")),
    ],
)  # fmt: skip
@scenario
async def test_an_object_that_lacks_what_it_needs_is_an_error_of_the_directory(
    kind: ObjectType, needed: tuple[str, ...]
) -> None:
    async with through() as passing:
        guid, propid = one_of(passing.estate, kind)
        asked = by_guid(passing.caller, kind, guid, (propid,))
        for attribute in needed:
            found = passing.server.by_guid(guid)
            assert found is not None
            held = found.values(attribute)
            got = await passing.caller.call(dscomm.GET_PROPS_GUID, asked)
            assert [v.value for v in got.values] == [guid], attribute
            put(passing.server, guid, attribute)
            got = await passing.caller.call(dscomm.GET_PROPS_GUID, asked)
            assert got.result == HResult.MQ_ERROR_DS_ERROR, attribute
            put(passing.server, guid, attribute, *held)


@pytest.mark.parametrize(
    ("kind", "path", "propid"),
    [
        pytest.param(ObjectType.MACHINE, "SRV1", P.QM_PATHNAME,
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.1-01")),
        pytest.param(ObjectType.QUEUE, "SRV1\\orders", P.Q_PATHNAME,
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.2-01")),
        pytest.param(ObjectType.ENTERPRISE, "DC=corp,DC=example", P.E_NAME,
                     marks=pytest.mark.req("MQDSSM-3.1.6.11.3-01")),
    ],
)  # fmt: skip
@scenario
async def test_an_object_whose_identifier_cannot_be_read_is_an_error_of_the_directory(
    kind: ObjectType, path: str, propid: P
) -> None:
    async with through() as passing:
        guid, _ = one_of(passing.estate, kind)
        asked = by_path(passing.caller, kind, path, (propid,))
        assert (await passing.caller.call(dscomm.GET_PROPS, asked)).result == OK
        put(passing.server, guid, "objectGUID")
        got = await passing.caller.call(dscomm.GET_PROPS, asked)
        assert got.result == HResult.MQ_ERROR_DS_ERROR


ROUTER, BACKUP, PRIMARY, ENTERPRISE, REMOTE = 0x01, 0x02, 0x04, 0x08, 0x10


@pytest.mark.req("MQDSSM-3.1.6.11.1.5-01")
@pytest.mark.parametrize(
    ("stored", "directory", "shown"),
    [
        (0, True, 0),  # stand-alone
        (BACKUP, True, BACKUP),
        (PRIMARY, True, PRIMARY),
        (ENTERPRISE, True, ENTERPRISE),
        (BACKUP | REMOTE, True, BACKUP | REMOTE),
        (BACKUP, False, 0),
        (PRIMARY, False, 0),
        (ENTERPRISE | REMOTE, False, REMOTE),
    ],
)
@scenario
async def test_the_role_of_a_directory_server(stored: int, directory: bool, shown: int) -> None:
    async with through() as passing:
        guid = passing.estate.machine
        put(passing.server, guid, "mSMQRoutingServices", b"FALSE")
        put(passing.server, guid, "mSMQServiceType", b"%d" % stored)
        put(passing.server, guid, "mSMQDsServices", b"TRUE" if directory else b"FALSE")
        ids = P.QM_SERVICE, P.QM_SERVICE_DSSERVER
        asked = by_guid(passing.caller, ObjectType.MACHINE, guid, ids)
        got = await passing.caller.call(dscomm.GET_PROPS_GUID, asked)
        assert [v.value for v in got.values] == [shown, int(directory)]


@pytest.mark.req("MQDSSM-3.1.6.20.4-01")
@scenario
async def test_the_gates_of_a_site_are_its_own_machines_in_the_links_at_both_of_its_ends() -> None:
    async with through() as passing:
        estate, server = passing.estate, passing.server
        machines = {
            name: server.put(
                f"CN=msmq,{server.add_computer(name)}",
                objectClass=b"mSMQConfiguration",
                mSMQSites=site.raw,
            )
            for name, site in (("GW1", estate.paris), ("GW2", estate.paris), ("GW3", estate.paris))
        }
        sites = [f"CN={n},CN=Sites,{server.configuration}".encode() for n in ("Paris", "Rom")]
        rom = server.add_site("Rom")
        services = f"CN=MsmqServices,CN=Services,{server.configuration}"
        gates = [f"CN=msmq,CN={n},CN=Computers,{server.root}".encode() for n in ("SRV1", "GW1")]
        put(server, estate.link, "mSMQSiteGates", *gates)  # from Berlin to Paris
        server.put(
            f"CN=south,{services}", objectClass=b"mSMQSiteLink", mSMQSite1=sites[0],
            mSMQSite2=sites[1], mSMQCost=b"1",
            mSMQSiteGates=f"CN=msmq,CN=GW2,CN=Computers,{server.root}".encode(),
        )  # fmt: skip
        wanted = {
            estate.berlin: [estate.machine],
            estate.paris: sorted([machines["GW1"], machines["GW2"]]),
            rom: [],
        }
        for site, own in wanted.items():
            asked = by_guid(passing.caller, ObjectType.SITE, site, (P.S_GATES,))
            got = await passing.caller.call(dscomm.GET_PROPS_GUID, asked)
            assert [v.value for v in got.values] == [tuple(own)]


@pytest.mark.req("MQDSSM-3.1.6.4.3.2-01")
@scenario
async def test_two_numbers_of_the_enterprise_stand_for_all_others() -> None:
    async with through() as passing:
        guid = enterprise(passing.server)
        asked = by_guid(passing.caller, ObjectType.ENTERPRISE, guid, (P.E_VERSION,))
        for stored, shown in ((b"3", 3), (b"4", 3), (b"199", 3), (b"200", 200), (b"201", 200)):
            put(passing.server, guid, "mSMQVersion", stored)
            got = await passing.caller.call(dscomm.GET_PROPS_GUID, asked)
            assert (got.result, [v.value for v in got.values]) == (OK, [shown]), stored
