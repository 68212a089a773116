"""One computer with several names, through a pass-through server (E-MQDSSM-62).

The common name of each computer here is the account name of another one, or of none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import create, write
from tests.runtime.activedirectory.test_full_names import Named
from tests.runtime.directory.serving import OK, scenario
from tests.runtime.directory.test_lookups import everything, wanted

#: Container, common name, account, DNS name.
COMPUTERS = (
    ("CN=Computers", "SWA", "SWB", "swb.corp.example"),
    ("CN=Computers", "SWB", "SWA", "swa.corp.example"),
    ("CN=Computers", "Front", "BACK", "desk.corp.example"),
    ("OU=East", "Twin", "TW1", "tw1.corp.example"),
    ("OU=West", "Twin", "TW2", "tw2.corp.example"),
)


@dataclass
class Renamed:
    """A pass-through server; machines and their queues by the accounts of their computers."""

    passing: Through
    machines: dict[str, Guid]
    queues: dict[str, Guid]

    @property
    def names(self) -> Named:
        return Named(self.passing, self.machines, self.queues)


def add_computers(
    server: ScriptedDomain, site: Guid, computers: Sequence[tuple[str, ...]] = COMPUTERS
) -> tuple[dict[str, Guid], dict[str, Guid]]:
    """Adds the computers, each with a router and a queue with the account as its label."""
    machines, queues = {}, {}
    for unit in ("East", "West"):
        server.put(f"OU={unit},{server.root}", objectClass=b"organizationalUnit")
    for container, name, account, host in computers:
        place = f"CN={name},{container},{server.root}"
        server.put(
            place,
            objectClass=(b"top", b"user", b"computer"),
            sAMAccountName=f"{account}$".encode(),
            dNSHostName=host.encode(),
        )
        machines[account] = server.put(
            f"CN=msmq,{place}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=site.raw,
            mSMQServiceType=b"1",
            mSMQRoutingServices=b"TRUE",
        )
        queues[account] = server.put(
            f"CN=bg0,CN=msmq,{place}", objectClass=b"mSMQQueue", mSMQLabelEx=account.encode()
        )
    return machines, queues


@asynccontextmanager
async def renamed() -> AsyncIterator[Renamed]:
    async with through() as passing:
        made = add_computers(passing.server, passing.estate.paris)
        yield Renamed(passing, *made)


@scenario
async def test_each_path_that_a_lookup_shows_is_that_of_the_same_object() -> None:
    async with renamed() as estate:
        caller = estate.passing.caller
        shown = await everything(caller, wanted(P.Q_PATHNAME, P.Q_INSTANCE, P.Q_QMID))
        own = {(path, guid, machine) for path, guid, machine in shown if "bg0" in str(path)}
        assert own == {
            (f"{name.lower()}\\bg0", estate.queues[name], estate.machines[name])
            for name in estate.queues
        }
        for path, guid, _ in own:
            assert isinstance(path, str)
            assert await estate.names.read(ObjectType.QUEUE, path, P.Q_INSTANCE) == [guid]
        for path, guid in await everything(caller, wanted(P.QM_PATHNAME, P.QM_MACHINE_ID)):
            assert isinstance(path, str)
            assert await estate.names.read(ObjectType.MACHINE, path, P.QM_MACHINE_ID) == [guid]
        machines = await everything(caller, wanted(P.QM_PATHNAME, P.QM_MACHINE_ID))
        assert {*machines} == {*((n, g) for n, g in estate.machines.items()),
                               ("SRV1", estate.passing.estate.machine)}  # fmt: skip


@scenario
async def test_a_new_queue_stands_below_the_computer_that_its_path_means() -> None:
    async with renamed() as estate:
        caller, server = estate.passing.caller, estate.passing.server
        for path, place in (
            ("SWA\\new", "CN=SWB,CN=Computers"),
            ("swb.corp.example\\new", "CN=SWA,CN=Computers"),
            ("Front\\new", "CN=Front,CN=Computers"),
            ("BACK\\newer", "CN=Front,CN=Computers"),
            ("tw2\\new", "CN=Twin,OU=West"),
        ):
            result, guid = await create(caller, ObjectType.QUEUE, path, {P.Q_LABEL: "x"})
            assert result == OK
            entry = server.by_guid(guid)
            assert entry is not None
            assert entry.name == f"CN={path.partition(chr(92))[2]},CN=msmq,{place},{server.root}"
            assert await write(caller, ObjectType.QUEUE, path, {P.Q_LABEL: "y"}) == OK
            assert await estate.names.read(ObjectType.QUEUE, guid, P.Q_LABEL) == ["y"]


@scenario
async def test_a_common_name_means_a_computer_if_it_is_the_only_one() -> None:
    async with renamed() as estate:
        read = estate.names.read
        assert await read(ObjectType.MACHINE, "front", P.QM_MACHINE_ID) == [estate.machines["BACK"]]
        missing = HResult.MQDS_OBJECT_NOT_FOUND
        assert await read(ObjectType.MACHINE, "twin", P.QM_MACHINE_ID) == missing
        for account in ("TW1", "TW2"):
            own = [estate.machines[account]]
            assert await read(ObjectType.MACHINE, account, P.QM_MACHINE_ID) == own
            host = f"{account}.corp.example"
            assert await read(ObjectType.MACHINE, host, P.QM_MACHINE_ID) == own
