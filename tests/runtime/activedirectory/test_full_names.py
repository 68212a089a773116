"""The names that Active Directory gives (MS-MQDSSM 3.1.6.11), through a pass-through server.

Three computers tell things apart: SRV1 has a DNS name with its own first label, SRV3 another one,
below a container with a comma in its name, and SRV2 has none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from mqis.protocol.activedirectory.queuename import split_name
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import create, values, write
from tests.runtime.activedirectory.test_conditions_sent import compared
from tests.runtime.activedirectory.test_passing_through import by_guid, by_path
from tests.runtime.directory.serving import OK, scenario
from tests.runtime.directory.test_lookups import everything, wanted

LT, EQ, NE = 0, 4, 5
NOT_FOUND = HResult.MQDS_OBJECT_NOT_FOUND
ROOT = "DC=corp,DC=example"
CONFIGURATION = f"CN=Configuration,{ROOT}"
SRV1 = f"CN=SRV1,CN=Computers,{ROOT}"
SRV2 = f"CN=SRV2,CN=Computers,{ROOT}"
SRV3 = f"CN=SRV3,OU=Hall\\, West,{ROOT}"
LONG = "Long" + "x" * 80


@dataclass
class Named:
    """A pass-through server and the identifiers of what it shows."""

    passing: Through
    machines: dict[str, Guid]
    queues: dict[str, Guid]

    async def read(self, kind: ObjectType, name: str | Guid, *ids: int) -> list[Value] | int:
        """The values that a call gives; its error if it fails."""
        caller = self.passing.caller
        if isinstance(name, Guid):
            got = await caller.call(dscomm.GET_PROPS_GUID, by_guid(caller, kind, name, ids))
        else:
            got = await caller.call(dscomm.GET_PROPS, by_path(caller, kind, name, ids))
        return got.result if got.result != OK else [value.value for value in got.values]

    async def found(self, column: P, propid: P, value: Value, relation: int = EQ) -> list[Value]:
        where = ((propid, relation, prop(propid, value)),)
        rows = await everything(self.passing.caller, wanted(column, where=where))
        return [row[0] for row in rows]


@asynccontextmanager
async def named() -> AsyncIterator[Named]:
    async with through() as passing:
        estate, server = passing.estate, passing.server
        server.put(f"OU=Hall\\, West,{ROOT}", objectClass=b"organizationalUnit")
        for name, place, host in (
            ("SRV2", SRV2, None),
            ("SRV3", SRV3, b"Press.works.example"),
        ):
            server.put(
                place,
                objectClass=(b"top", b"user", b"computer"),
                sAMAccountName=f"{name}$".encode(),
                **({"dNSHostName": host} if host else {}),
            )
        machines = {"SRV1": estate.machine}
        for name, place in (("SRV2", SRV2), ("SRV3", SRV3)):
            machines[name] = server.put(
                f"CN=msmq,{place}",
                objectClass=b"mSMQConfiguration",
                mSMQSites=estate.paris.raw,
                mSMQOutRoutingServers=(f"CN=msmq,{SRV1}".encode() if name == "SRV3" else ()),
                mSMQInRoutingServers=(f"CN=msmq,{SRV2}".encode() if name == "SRV3" else ()),
            )
        cut, rest = split_name(LONG)
        queues = {"SRV1\\probe": estate.add_queue("Probe")}
        for name, place in (("SRV2", SRV2), ("SRV3", SRV3)):
            queues[f"{name}\\probe"] = server.put(
                f"CN=Probe,CN=msmq,{place}", objectClass=b"mSMQQueue"
            )
        queues["SRV3\\a=b"] = server.put(f"CN=a\\3Db,CN=msmq,{SRV3}", objectClass=b"mSMQQueue")
        queues["SRV3\\long"] = server.put(
            f"CN={cut},CN=msmq,{SRV3}", objectClass=b"mSMQQueue", mSMQQueueNameExt=rest.encode()
        )
        yield Named(passing, machines, queues)


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.11.2.2-01", "MQDSSM-3.1.6.11.2-03")
@scenario
async def test_the_qualified_path_of_a_queue_has_the_dns_name_of_its_computer() -> None:
    async with named() as names:
        shown = {
            path: await names.read(ObjectType.QUEUE, guid, P.Q_PATHNAME, P.Q_PATHNAME_DNS)
            for path, guid in names.queues.items()
        }
        assert shown == {
            "SRV1\\probe": ["srv1\\probe", "srv1.corp.example\\probe"],
            "SRV2\\probe": ["srv2\\probe", ""],
            "SRV3\\probe": ["srv3\\probe", "press.works.example\\probe"],
            "SRV3\\a=b": ["srv3\\a=b", "press.works.example\\a=b"],
            "SRV3\\long": [f"srv3\\{LONG}".lower(), f"press.works.example\\{LONG}".lower()],
        }
        listed = await everything(names.passing.caller, wanted(P.Q_PATHNAME, P.Q_PATHNAME_DNS))
        assert {tuple(row) for row in shown.values() if isinstance(row, list)} <= set(listed)


@pytest.mark.req("MQDSSM-3.1.6.20.1-01")
@scenario
async def test_four_attributes_of_a_machine_are_those_of_its_computer() -> None:
    async with named() as names:
        server = names.passing.server
        shown = {
            name: await names.read(ObjectType.MACHINE, guid, P.QM_PATHNAME_DNS)
            for name, guid in names.machines.items()
        }
        assert shown == {
            "SRV1": ["srv1.corp.example"],
            "SRV2": [""],
            "SRV3": ["Press.works.example"],
        }
        # The same attributes at the machine's own entry mean nothing, and those of the machine
        # mean nothing at the computer's.
        decoys = {"dNSHostName": b"wrong.example", "mSMQSignCertificates": b"wrong",
                  "servicePrincipalName": b"MSClusterVirtualServer/wrong"}  # fmt: skip
        computer = server.put(
            f"CN=SRV4,CN=Computers,{ROOT}", objectClass=(b"top", b"user", b"computer"),
            sAMAccountName=b"SRV4$", dNSHostName=b"four.example", mSMQSignCertificates=b"own",
            servicePrincipalName=b"HOST/four", mSMQQuota=b"99", mSMQOSType=b"512",
        )  # fmt: skip
        machine = server.put(
            f"CN=msmq,CN=SRV4,CN=Computers,{ROOT}", objectClass=b"mSMQConfiguration",
            mSMQSites=names.passing.estate.paris.raw, mSMQQuota=b"41", mSMQOSType=b"1024", **decoys,
        )  # fmt: skip
        assert computer != machine
        asked = P.QM_PATHNAME_DNS, P.QM_SIGN_PKS, P.QM_GROUP_IN_CLUSTER, P.QM_QUOTA, P.QM_OS
        expected = ["four.example", b"own", 0, 41, 0x400]
        assert await names.read(ObjectType.MACHINE, machine, *asked) == expected


@pytest.mark.req("MQDSSM-3.1.6.10-02")
@scenario
async def test_full_paths_are_distinguished_names() -> None:
    async with named() as names:
        estate = names.passing.estate
        berlin, paris = (f"CN={name},CN=Sites,{CONFIGURATION}" for name in ("Berlin", "Paris"))
        link = f"CN=link,CN=MsmqServices,CN=Services,{CONFIGURATION}"
        machine = f"CN=msmq,{SRV3}"
        for kind, guid, ids, expected in (
            (ObjectType.QUEUE, names.queues["SRV3\\a=b"], (P.Q_PATHNAME, P.Q_FULL_PATH),
             ["srv3\\a=b", f"CN=a\\=b,{machine}"]),
            (ObjectType.QUEUE, names.queues["SRV1\\probe"], (P.Q_FULL_PATH,),
             [f"CN=Probe,CN=msmq,{SRV1}"]),
            (ObjectType.MACHINE, names.machines["SRV3"],
             (P.QM_PATHNAME, P.QM_FULL_PATH, P.QM_OUTFRS_DN, P.QM_INFRS_DN),
             ["SRV3", machine, (f"CN=msmq,{SRV1}",), (f"CN=msmq,{SRV2}",)]),
            (ObjectType.MACHINE, names.machines["SRV2"], (P.QM_OUTFRS_DN, P.QM_INFRS_DN), [(), ()]),
            (ObjectType.SITE, estate.berlin, (P.S_PATHNAME, P.S_FULL_NAME), ["Berlin", berlin]),
            (ObjectType.ROUTINGLINK, estate.link,
             (P.L_NEIGHBOR1_DN, P.L_NEIGHBOR2_DN, P.L_FULL_PATH), [berlin, paris, link]),
        ):  # fmt: skip
            assert await names.read(kind, guid, *ids) == expected


# --- addressing -----------------------------------------------------------------------------------


@scenario
async def test_objects_are_found_by_each_of_their_names() -> None:
    async with named() as names:
        estate = names.passing.estate
        link = f"CN=link,CN=MsmqServices,CN=Services,{CONFIGURATION}"
        for kind, name, column, guid in (
            (ObjectType.QUEUE, "srv1\\probe", P.Q_INSTANCE, names.queues["SRV1\\probe"]),
            (ObjectType.QUEUE, "SRV1.corp.EXAMPLE\\Probe", P.Q_INSTANCE,
             names.queues["SRV1\\probe"]),
            (ObjectType.QUEUE, "press.works.example\\probe", P.Q_INSTANCE,
             names.queues["SRV3\\probe"]),
            (ObjectType.QUEUE, f"cn=probe, cn=MSMQ, {SRV3}", P.Q_INSTANCE,
             names.queues["SRV3\\probe"]),
            (ObjectType.MACHINE, "press.works.example", P.QM_MACHINE_ID, names.machines["SRV3"]),
            (ObjectType.MACHINE, f"CN=msmq,{SRV3}", P.QM_MACHINE_ID, names.machines["SRV3"]),
            (ObjectType.SITE, f"CN=paris,CN=Sites,{CONFIGURATION}", P.S_SITEID, estate.paris),
            (ObjectType.ROUTINGLINK, link, P.L_ID, estate.link),
        ):  # fmt: skip
            assert await names.read(kind, name, column) == [guid], name
        for kind, name, column in (
            (ObjectType.QUEUE, "srv3.corp.example\\probe", P.Q_INSTANCE),
            (ObjectType.QUEUE, f"CN=msmq,{SRV3}", P.Q_INSTANCE),  # a machine
            (ObjectType.QUEUE, f"CN=none,CN=msmq,{SRV3}", P.Q_INSTANCE),
            (ObjectType.MACHINE, "srv1.other.example", P.QM_MACHINE_ID),
            (ObjectType.MACHINE, SRV3, P.QM_MACHINE_ID),  # a computer
            (ObjectType.SITE, "CN=Paris,CN=Sites,CN=Configuration,DC=other", P.S_SITEID),
            (ObjectType.ROUTINGLINK, f"CN=none,CN=MsmqServices,CN=Services,{CONFIGURATION}",
             P.L_ID),
            (ObjectType.ROUTINGLINK, "link", P.L_ID),
        ):  # fmt: skip
            assert await names.read(kind, name, column) == NOT_FOUND, name


@scenario
async def test_objects_are_written_made_and_deleted_by_their_other_names() -> None:
    async with named() as names:
        passing, caller = names.passing, names.passing.caller
        for label, name in (
            ("by DN", f"CN=Probe,CN=msmq,{SRV3}"),
            ("by host", "press.works.example\\probe"),
        ):
            assert await write(caller, ObjectType.QUEUE, name, {P.Q_LABEL: label}) == OK
            own = values(passing, names.queues["SRV3\\probe"], "mSMQLabelEx")
            assert own == (label.encode(),)
        path = "press.works.example\\Fresh"
        result, guid = await create(caller, ObjectType.QUEUE, path, {P.Q_LABEL: "x"})
        assert result == OK
        assert await names.read(ObjectType.QUEUE, guid, P.Q_PATHNAME, P.Q_FULL_PATH) == [
            "srv3\\fresh",
            f"CN=Fresh,CN=msmq,{SRV3}",
        ]
        gone = dscomm.ByPath(ObjectType.QUEUE, f"CN=Fresh,CN=msmq,{SRV3}")
        assert (await caller.call(dscomm.DELETE_OBJECT, gone)).result == OK
        assert passing.server.by_guid(guid) is None


# --- filtering ------------------------------------------------------------------------------------


@scenario
async def test_lookups_by_the_other_names() -> None:
    async with named() as names:
        estate, server = names.passing.estate, names.passing.server
        berlin, paris = (f"CN={name},CN=Sites,{CONFIGURATION}" for name in ("Berlin", "Paris"))
        link = f"CN=link,CN=MsmqServices,CN=Services,{CONFIGURATION}"
        for column, propid, value, guid in (
            (P.Q_INSTANCE, P.Q_PATHNAME_DNS, "SRV1.corp.example\\probe",
             names.queues["SRV1\\probe"]),
            (P.Q_INSTANCE, P.Q_FULL_PATH, f"CN=Probe,CN=msmq,{SRV3}", names.queues["SRV3\\probe"]),
            (P.QM_MACHINE_ID, P.QM_PATHNAME_DNS, "press.works.example", names.machines["SRV3"]),
            (P.QM_MACHINE_ID, P.QM_FULL_PATH, f"CN=msmq,{SRV2}", names.machines["SRV2"]),
            (P.QM_MACHINE_ID, P.QM_OUTFRS_DN, (f"CN=msmq,{SRV1}",), names.machines["SRV3"]),
            (P.S_SITEID, P.S_FULL_NAME, paris, estate.paris),
            (P.L_ID, P.L_NEIGHBOR1_DN, berlin, estate.link),
            (P.L_ID, P.L_NEIGHBOR2_DN, paris, estate.link),
            (P.L_ID, P.L_FULL_PATH, link, estate.link),
        ):  # fmt: skip
            server.received.clear()
            assert await names.found(column, propid, value) == [guid], propid
            # The directory is asked for that object: no search for all of a type was sent.
            assert all(_is_narrow(m) for m in server.operations(SearchRequest)), propid
        for column, propid, value in (
            (P.Q_INSTANCE, P.Q_PATHNAME_DNS, "srv1\\probe"),
            (P.Q_INSTANCE, P.Q_FULL_PATH, "srv1\\probe"),
            (P.QM_MACHINE_ID, P.QM_PATHNAME_DNS, "SRV1"),
            (P.QM_MACHINE_ID, P.QM_OUTFRS_DN, (f"CN=msmq,{SRV2}",)),
            (P.QM_MACHINE_ID, P.QM_OUTFRS_DN, ("no name",)),
            (P.L_ID, P.L_NEIGHBOR1_DN, paris),
            (P.L_ID, P.L_NEIGHBOR1_DN, "Berlin"),
        ):
            assert await names.found(column, propid, value) == [], (propid, value)


@scenario
async def test_other_relations_compare_the_names_that_are_shown() -> None:
    async with named() as names:
        machines = names.machines
        for relation, value, expected in (
            (NE, "press.works.example", {machines["SRV1"], machines["SRV2"]}),
            (LT, "q", {machines["SRV2"], machines["SRV3"]}),
        ):
            found = await names.found(P.QM_MACHINE_ID, P.QM_PATHNAME_DNS, value, relation)
            assert set(found) == expected
        others = await names.found(P.L_ID, P.L_NEIGHBOR1_DN, "CN=x", NE)
        assert others == [names.passing.estate.link]


def _is_narrow(request: object) -> bool:
    """Returns whether a search asks for one entry, or for those with some value beside a class."""
    assert isinstance(request, SearchRequest)
    kinds = {attribute for attribute, _ in compared(request.filter)}
    return int(request.scope) == 0 or bool(kinds - {"objectClass", "objectCategory"})
