"""A server that acts as its callers: whoever is bound to the directory is judged there.

``tests/interop/test_delegation_samba.py`` has a real KDC. Here callers log on to the directory by
name alone, so that the scripted domain controller knows whom it serves on which connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mqis.protocol.authentication import CallerTicket
from mqis.runtime.activedirectory.callers import CallerConnections
from mqis.runtime.ldap.ldap_connection import LdapConnection
from mqis.runtime.ldap.ldap_logon import LdapLogin
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SimpleBind
from mqis.wire.ldap.responses import (
    AddResponse,
    DeleteResponse,
    LdapResult,
    ModifyResponse,
    SearchEntry,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.security.acl import Acl
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import LABEL, Given, create, delete, write
from tests.runtime.activedirectory.test_told_apart import read
from tests.runtime.directory.serving import ALICE, BOB, OK, scenario

CLOSED = SecurityDescriptor(owner=ADMINISTRATORS, dacl=Acl(())).to_bytes()
DENIED = HResult.MQ_ERROR_ACCESS_DENIED
#: alice may change the directory; the administrator of mqis and the server's account may not, and
#: bob has no ticket.
MAY_CHANGE = "alice@LAB"
TICKETS = {name: CallerTicket(f"{name}@LAB", str) for name in ("alice", "admin")}
_REFUSED = {AddEntry: AddResponse, ModifyEntry: ModifyResponse, DeleteEntry: DeleteResponse}


async def by_name(
    connection: LdapConnection, login: LdapLogin, _host: str, *, timeout_s: float
) -> None:
    if login.ticket is not None:
        await connection.request(SimpleBind(login.ticket.principal, b"x"), timeout_s=timeout_s)


@asynccontextmanager
async def acting(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Through]:
    monkeypatch.setattr("mqis.runtime.ldap.domain_controllers.bind", by_name)
    monkeypatch.setattr(
        IncomingCall, "ticket", property(lambda call: TICKETS.get(call.identity.name))
    )
    bound: dict[object, str] = {}

    def judge(message: LdapMessage) -> Any:
        connection, request = asyncio.current_task(), message.operation
        if isinstance(request, SimpleBind):
            bound[connection] = request.name
        refusal = _REFUSED.get(type(request))
        if refusal is None or bound.get(connection) == MAY_CHANGE:
            return None
        return [refusal(LdapResult(ResultCode.INSUFFICIENT_ACCESS_RIGHTS))]

    async with through() as passing:
        passing.server.on_message = judge
        callers = CallerConnections(passing.store.connection, 8)
        context = passing.served.context
        context.callers = callers
        context.reconfigure(context.settings)
        try:
            yield passing
        finally:
            await asyncio.to_thread(callers.close)


@pytest.mark.req("MQDSSM-5.1.1-01", "MQDSSM-5.1.1-02", "MQDSSM-5.1.1-03", "MQDSSM-5.1.2-01")
def test_queues_and_machines_are_the_directorys_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    @scenario
    async def run() -> None:
        async with acting(monkeypatch) as passing, passing.served.caller(ALICE) as alice:
            admin, estate = passing.caller, passing.estate
            passing.server.add_computer("SRV2")
            site: Given = {P.QM_SITE_ID: estate.berlin}
            for caller, code in ((admin, DENIED), (alice, OK)):
                assert (await create(caller, ObjectType.MACHINE, "SRV2", site))[0] == code
                assert (await create(caller, ObjectType.QUEUE, "SRV1\\new", LABEL))[0] == code
                assert await write(caller, ObjectType.QUEUE, estate.queues[0], LABEL) == code
                assert (
                    await write(caller, ObjectType.MACHINE, estate.machine, {P.QM_QUOTA: 9}) == code
                )
                assert (await read(caller, ObjectType.QUEUE, estate.queues[1], P.Q_LABEL))[0] == OK
                assert await delete(caller, ObjectType.QUEUE, estate.queues[1]) == code
            assert await delete(admin, ObjectType.MACHINE, estate.machine) == DENIED
            assert await delete(alice, ObjectType.MACHINE, estate.machine) == OK

    run()


@pytest.mark.req("MQDSSM-5.1.3-01", "MQDSSM-5.1.4-01")
def test_the_enterprise_and_its_links_are_the_directorys_to_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @scenario
    async def run() -> None:
        async with acting(monkeypatch) as passing, passing.served.caller(ALICE) as alice:
            admin, estate, server = passing.caller, passing.estate, passing.server
            vienna = server.add_site("Wien")
            ends: Given = {P.L_NEIGHBOR1: estate.berlin, P.L_NEIGHBOR2: vienna, P.L_COST: 3}
            services = next(e for e in server.entries if e.values("mSMQVersion"))
            # By what is translated of this, mqis would let nobody but its administrators change it.
            rows = tuple(r for r in services.attributes if r[0] != "nTSecurityDescriptor")
            closed = SearchEntry(services.name, (*rows, ("nTSecurityDescriptor", (CLOSED,))))
            server.entries[server.entries.index(services)] = closed
            enterprise = Guid(services.values("objectGUID")[0])
            lived: Given = {P.E_LONG_LIVE: 86_400}
            for caller, code in ((admin, DENIED), (alice, OK)):
                assert await write(caller, ObjectType.ENTERPRISE, enterprise, lived) == code
                assert (await create(caller, ObjectType.ROUTINGLINK, None, ends))[0] == code
                assert await delete(caller, ObjectType.ROUTINGLINK, estate.link) == code

    run()


@pytest.mark.req("SEC-27-01")
def test_the_servers_account_is_no_substitute_for_a_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    @scenario
    async def run() -> None:
        async with acting(monkeypatch) as passing, passing.served.caller(BOB) as bob:
            queue = passing.estate.queues[1]
            before = len(passing.server.received)
            assert (await read(bob, ObjectType.QUEUE, queue, P.Q_LABEL))[0] == DENIED
            assert await write(bob, ObjectType.QUEUE, queue, LABEL) == DENIED
            assert (await create(bob, ObjectType.QUEUE, "SRV1\\of-bob", LABEL))[0] == DENIED
            assert len(passing.server.received) == before

    run()
