"""A server that acts as its callers, before a Samba domain controller that judges them itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqis.client.directory import DirectoryClient
from mqis.findings import Gravity
from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType, CallerTicket
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.delegation import ServiceTickets
from mqis.runtime.ldap.spnego import (
    LdapProtection,
    SpnegoExchange,
    SpnegoMechanism,
    SpnegoUser,
)
from mqis.server.directory_server import DirectoryServer
from mqis.views.doctor.activedirectory_checks import check
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.tickets import ticket_of
from tests.estate.planted import BERLIN, PARIS
from tests.interop.delegating_domain import (
    HOST,
    REALM,
    SERVICE,
    DelegatingDomain,
    client_of,
    delegating_domain,
    of_user,
)
from tests.waiting import in_time

pytestmark = pytest.mark.interop

OK, DENIED = HResult.MQ_OK, HResult.MQ_ERROR_ACCESS_DENIED
THERE, HIDDEN, SEALED = "ALICE1\\there", "ALICE1\\hidden", "ALICE1\\sealed"
#: The way to the server's port, as a user: what a test is given.
Test = Callable[[int], Awaitable[None]]


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DelegatingDomain]:
    if not kerberos.available():
        pytest.skip("the extra mqis[kerberos] (gssapi, krb5) is not installed")
    with delegating_domain(tmp_path_factory.mktemp("samba") / "one") as running:
        yield running


def serve(domain: DelegatingDomain, tmp_path: Path, test: Test, **store: Any) -> None:
    async def run() -> None:
        async with DirectoryServer(domain.configured(tmp_path, **store), grace_s=1) as running:
            await test(running.ready.port)

    asyncio.run(in_time(run()))


async def code_of(call: Awaitable[object]) -> int:
    """What a call is answered: MQ_OK, or the HRESULT that it fails with."""
    try:
        await call
    except DirectoryError as error:
        return error.hresult
    return OK


def labelled(text: str) -> dict[int, PropVariant]:
    return {PropId.Q_LABEL: prop(PropId.Q_LABEL, text)}


async def make(client: DirectoryClient, path: str) -> int:
    return await code_of(client.create(ObjectType.QUEUE, path, labelled("made")))


async def label_of(client: DirectoryClient, path: str) -> object:
    return (await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path))[PropId.Q_LABEL].value


def audited(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(r.getMessage() for r in caplog.records if r.name == "mqis.audit")


@pytest.mark.req("MQDSSM-5.1.2-01")
def test_the_directory_decides_about_queues(
    domain: DelegatingDomain, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(port: int) -> None:
        async with client_of(port, "alice") as alice, client_of(port, "bob") as bob:
            assert await make(alice, "ALICE1\\own") == OK
            assert await label_of(bob, "ALICE1\\own") == "made"  # who is authenticated may read
            assert await make(bob, "ALICE1\\of-bob") == DENIED
            assert await code_of(bob.set(ObjectType.QUEUE, labelled("x"), "ALICE1\\own")) == DENIED
            assert await code_of(bob.delete(ObjectType.QUEUE, "ALICE1\\own")) == DENIED
            assert await code_of(alice.set(ObjectType.QUEUE, labelled("new"), "ALICE1\\own")) == OK
            assert await label_of(alice, "ALICE1\\own") == "new"
            assert await code_of(alice.delete(ObjectType.QUEUE, "ALICE1\\own")) == OK

    serve(domain, tmp_path, test)
    told = audited(caplog)
    assert "denied: the directory refuses bob@CORP.EXAMPLE" in told
    assert "it takes the right to create mSMQQueue entries below CN=msmq,CN=ALICE1" in told
    assert "refuses the server" not in caplog.text


@pytest.mark.req("MQDSSM-5.1.1-01", "MQDSSM-5.1.1-02", "MQDSSM-5.1.1-03")
def test_the_directory_decides_about_machines(domain: DelegatingDomain, tmp_path: Path) -> None:
    site: dict[int, PropVariant] = {PropId.QM_SITE_ID: prop(PropId.QM_SITE_ID, BERLIN)}
    quota: dict[int, PropVariant] = {PropId.QM_QUOTA: prop(PropId.QM_QUOTA, 77)}
    machine = ObjectType.MACHINE

    async def test(port: int) -> None:
        async with client_of(port, "alice") as alice, client_of(port, "bob") as bob:
            assert await code_of(bob.create(machine, "NEW1", site)) == DENIED
            assert await code_of(alice.create(machine, "NEW2", site)) == DENIED
            assert await code_of(alice.create(machine, "NEW1", site)) == OK
            owner = SecurityDescriptor.from_bytes(
                await alice.get_security(machine, SecurityInformation.OWNER, "NEW1")
            ).owner
            assert str(owner) == domain.sid_of("alice")
            assert await code_of(bob.set(machine, quota, "NEW1")) == DENIED
            assert await code_of(alice.set(machine, quota, "NEW1")) == OK
            assert (await bob.get(machine, [PropId.QM_QUOTA], "NEW1"))[PropId.QM_QUOTA].value == 77
            assert await code_of(bob.delete(machine, "NEW1")) == DENIED
            assert await code_of(alice.delete(machine, "NEW1")) == OK

    serve(domain, tmp_path, test)


@pytest.mark.req("MQDSSM-5.1.3-01", "MQDSSM-5.1.4-01")
def test_the_directory_decides_about_the_enterprise_and_its_links(
    domain: DelegatingDomain, tmp_path: Path
) -> None:
    enterprise, link = ObjectType.ENTERPRISE, ObjectType.ROUTINGLINK
    lived: dict[int, PropVariant] = {PropId.E_LONG_LIVE: prop(PropId.E_LONG_LIVE, 86_400)}
    ends: dict[int, PropVariant] = {
        PropId.L_NEIGHBOR1: prop(PropId.L_NEIGHBOR1, BERLIN),
        PropId.L_NEIGHBOR2: prop(PropId.L_NEIGHBOR2, PARIS),
        PropId.L_COST: prop(PropId.L_COST, 3),
    }

    async def test(port: int) -> None:
        async with client_of(port, "alice") as alice, client_of(port, "carol") as carol:
            # An administrator of mqis has no right of the domain by that.
            assert await code_of(carol.set(enterprise, lived)) == DENIED
            assert await code_of(carol.create(link, None, ends)) == DENIED
            assert await code_of(alice.set(enterprise, lived)) == OK
            got = await carol.get(enterprise, [PropId.E_LONG_LIVE])
            assert got[PropId.E_LONG_LIVE].value == 86_400
            made = await alice.create(link, None, ends)
            assert isinstance(made, Guid)
            assert await code_of(carol.delete(link, guid=made)) == DENIED
            assert await code_of(alice.delete(link, guid=made)) == OK

    serve(domain, tmp_path, test)


@pytest.mark.req("SEC-27-01")
def test_only_a_ticket_lets_the_server_act(
    domain: DelegatingDomain, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The account of the server is no substitute: not for NTLM, not for a refusal of the KDC."""

    async def test(port: int) -> None:
        async with client_of(port, "alice", AuthType.NTLM) as client:
            assert await make(client, "ALICE1\\by-ntlm") == DENIED
            assert await code_of(label_of(client, THERE)) == DENIED
        async with client_of(port, "dora") as dora:
            assert await code_of(label_of(dora, THERE)) == DENIED
        async with client_of(port, "bob") as bob:  # one who was refused is no outage for others
            assert await label_of(bob, THERE) == ""

    serve(domain, tmp_path, test)
    told = audited(caplog)
    assert "CORP\\alice has no Kerberos ticket that this server may act with" in told
    assert "dora@CORP.EXAMPLE: the logon fails: the KDC does not let the server's account" in told


@pytest.mark.req("SEC-27-02")
def test_a_ticket_lets_the_server_act_as_its_owner_only(domain: DelegatingDomain) -> None:
    """Tickets cross the network in the clear: whoever copies one must not become its owner."""
    token = of_user("alice").initiator.initiator(
        AuthType.KERBEROS, AuthLevel.PRIVACY, f"host/{HOST}"
    )
    copied = ticket_of(token.step(None) or b"")
    service = ServiceTickets(f"{SERVICE}@{REALM}", keytab=str(domain.directory / "mqis.keytab"))
    assert logs_on(service.joined(f"alice@{REALM}", copied, 600.0)) == ""
    assert "answers for another client" in logs_on(service.joined(f"bob@{REALM}", copied, 600.0))


def logs_on(ticket: CallerTicket) -> str:
    """Asks the KDC for the caller's ticket for the directory; returns the reason of a refusal."""
    user = SpnegoUser(ticket.principal, ticket=ticket)
    kind = SpnegoMechanism.KERBEROS
    try:
        exchange = SpnegoExchange(
            user, "dc1.corp.example", protection=LdapProtection.SEAL, mechanism=kind
        )
        exchange.step(None)
    except AuthenticationError as error:
        return str(error)
    return ""


def test_the_doctor_tries_delegation(domain: DelegatingDomain, tmp_path: Path) -> None:
    config = domain.configured(tmp_path)
    told = [finding.what for finding in check(config)]
    assert told[-1] == "the server may act as its callers: Active Directory judges each of them"
    domain.set_delegation("del-service")
    try:
        refused = list(check(config))[-1]
        assert "its msDS-AllowedToDelegateTo does not name this service" in refused.what
        assert refused.gravity is Gravity.ERROR
    finally:
        domain.set_delegation("add-service")


def test_what_one_caller_reads_is_not_remembered_for_another(
    domain: DelegatingDomain, tmp_path: Path
) -> None:
    async def test(port: int) -> None:
        async with client_of(port, "alice") as alice, client_of(port, "bob") as bob:
            everything = ["alice1\\hidden", "alice1\\sealed", THERE.lower()]
            assert await paths_of(alice) == everything
            assert await label_of(alice, HIDDEN) == ""
            assert await paths_of(bob) == everything[1:]
            assert await code_of(label_of(bob, HIDDEN)) == HResult.MQDS_OBJECT_NOT_FOUND
            assert await label_of(alice, HIDDEN) == ""

    serve(domain, tmp_path, test)


async def paths_of(client: DirectoryClient) -> list[object]:
    found = [row[0].value async for row in client.lookup([PropId.Q_PATHNAME])]
    return sorted(found, key=str)


def test_permissions_that_a_caller_may_not_read_are_not_made_up(
    domain: DelegatingDomain, tmp_path: Path
) -> None:
    queue, parts = ObjectType.QUEUE, SecurityInformation.DACL

    async def test(port: int) -> None:
        async with client_of(port, "alice") as alice, client_of(port, "bob") as bob:
            assert await label_of(bob, SEALED) == ""
            assert await code_of(bob.get_security(queue, parts, SEALED)) == DENIED
            known = await alice.get_security(queue, parts, SEALED)
            assert SecurityDescriptor.from_bytes(known).dacl
            assert await code_of(bob.set_security(queue, parts, known, SEALED)) == DENIED

    serve(domain, tmp_path, test)
