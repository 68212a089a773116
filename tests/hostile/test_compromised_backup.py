"""Limits of an attacker who has taken over a backup controller, its key included.

It sends requests to the authorities through its own queue manager, with its own signature, and
checks no rights. Only what the authorities still refuse is out of such an attacker's reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.runtime.node.driver import NodeDriver
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.sddl import parse_sddl
from tests.server.enterprises import MACHINE, QUEUE, SITE, Site, client_of, create_soon, text
from tests.waiting import in_time

ENTERPRISE, LINK = ObjectType.ENTERPRISE, ObjectType.ROUTINGLINK
OK, DENIED = int(HResult.MQ_OK), int(HResult.MQ_ERROR_ACCESS_DENIED)
EVERYBODY = parse_sddl("O:WDD:(A;;0xF003F;;;WD)").to_bytes()

Deed = Callable[[DirectoryEvents], object]


def number(value: int) -> PropVariant:
    return PropVariant(VarType.UI4, value)


def blob(value: bytes) -> PropVariant:
    return PropVariant(VarType.BLOB, value)


def set_on(kind: ObjectType, name: str, **values: PropVariant) -> Deed:
    changes: dict[int, PropVariant] = {PropId[key]: value for key, value in values.items()}
    return lambda events: events.set_stored(there(events, kind, name), changes)


def opened(kind: ObjectType, name: str) -> Deed:
    """The permissions of an object, so that everybody has every right."""
    change: dict[int, PropVariant] = {SECURITY_PROPERTY[kind]: blob(EVERYBODY)}
    return lambda events: events.set_stored(there(events, kind, name), change)


def deleted(kind: ObjectType, name: str) -> Deed:
    return lambda events: events.delete_directory_object(there(events, kind, name))


def there(events: DirectoryEvents, kind: ObjectType, name: str) -> DirectoryObject:
    found = events.transaction.find(kind, name)
    assert found is not None, name
    return found


def rogue_machine(events: DirectoryEvents) -> object:
    site = there(events, SITE, "Leiden").id
    properties: dict[int, PropVariant] = props(
        {
            PropId.QM_SITE_ID: site,
            PropId.QM_SERVICE: 2,
            PropId.QM_SIGN_PKS: OWN_KEY,
        }
    )
    return events.create(MACHINE, "rogue", properties)


def link(events: DirectoryEvents) -> object:
    delft, leiden = (there(events, SITE, name).id for name in ("Delft", "Leiden"))
    properties: dict[int, PropVariant] = props(
        {
            PropId.L_NEIGHBOR1: delft,
            PropId.L_NEIGHBOR2: leiden,
            PropId.L_ACTUAL_COST: 1,
        }
    )
    return events.create(LINK, None, properties)


ADDRESS = AddressList((TaAddress.ip("127.0.0.9"),)).to_bytes()
OWN_KEY = key_list(MachineKey.generate().public)

#: Each of these would give the attacker more than a backup controller is.
ATTACKS: dict[str, Deed] = {
    "a role of its own": set_on(MACHINE, "bsc3", QM_SERVICE=number(4)),
    "a new server": rogue_machine,
    "another server's key": set_on(MACHINE, "psc2", QM_SIGN_PKS=blob(OWN_KEY)),
    "another server's address": set_on(MACHINE, "psc2", QM_ADDRESS=blob(ADDRESS)),
    "another server's end": deleted(MACHINE, "psc2"),
    "another site": set_on(SITE, "Delft", S_PSC=text("bsc3"), S_PSC_SIGNPK=blob(OWN_KEY)),
    "its own site": set_on(SITE, "Leiden", S_PSC=text("bsc3")),
    "the enterprise": set_on(ENTERPRISE, "Acme", E_PECNAME=text("bsc3")),
    "permissions of the enterprise": opened(ENTERPRISE, "Acme"),
    "permissions of a site": opened(SITE, "Leiden"),
    "permissions of a server": opened(MACHINE, "psc2"),
    "permissions of another site's queue": opened(QUEUE, "pec1\\q"),
    "routes": link,
}
#: What its callers may do, it can do as well, and has to be able to.
WORK: dict[str, Deed] = {
    "a queue of its site": lambda events: events.create(QUEUE, "psc2\\work", {}),
    "a queue of another site": lambda events: events.create(QUEUE, "pec1\\work", {}),
    "permissions of its site's queue": opened(QUEUE, "psc2\\q"),
    "its own key": set_on(MACHINE, "bsc3", QM_SIGN_PKS=blob(OWN_KEY)),
}


def driver_of(server: DirectoryServer) -> NodeDriver:
    assert server._replication is not None
    return server._replication.driver


async def result_of(driver: NodeDriver, deed: Deed) -> int:
    try:
        await driver.change(deed)
    except DirectoryError as error:
        return error.hresult & 0xFFFFFFFF
    return OK


@pytest.mark.req("SEC-2-05", "SEC-2-06")
def test_a_compromised_backup_cannot_take_the_enterprise_over(tmp_path: Path) -> None:
    site = Site(tmp_path, signing="require")

    async def attack() -> tuple[dict[str, int], dict[str, int], list[str]]:
        async with AsyncExitStack() as stack:
            site.found("pec1")
            pec = await stack.enter_async_context(site.serving("pec1"))
            await site.join(pec, "psc2", "psc", "Leiden")
            psc = await stack.enter_async_context(site.serving("psc2"))
            await create_soon(psc, "psc2\\q", "")
            await create_soon(pec, "pec1\\q", "")
            await site.join(pec, "bsc3", "bsc", "Leiden", psc="psc2")
            bsc = await stack.enter_async_context(site.serving("bsc3"))
            for path in ("psc2\\q", "pec1\\q"):
                await known(bsc, path)
            driver = driver_of(bsc)
            attacks = {name: await result_of(driver, deed) for name, deed in ATTACKS.items()}
            work = {name: await result_of(driver, deed) for name, deed in WORK.items()}
            async with client_of(pec) as client:
                found = await client.get(SITE, [PropId.S_PSC], path="Leiden")
                other = await client.get(SITE, [PropId.S_PSC], path="Delft")
            return attacks, work, [str(f[PropId.S_PSC].value) for f in (found, other)]

    attacks, work, authorities = asyncio.run(in_time(attack()))
    assert attacks == dict.fromkeys(ATTACKS, DENIED)
    assert work == dict.fromkeys(WORK, OK)
    assert authorities == ["psc2", "pec1"]


async def known(server: DirectoryServer, path: str) -> None:
    """Until replication has brought a queue."""
    for _ in range(400):
        async with client_of(server) as client:
            try:
                await client.get(QUEUE, [PropId.Q_LABEL], path=path)
            except DirectoryError:
                await asyncio.sleep(0.05)
            else:
                return
    raise AssertionError(f"{path} did not come")
