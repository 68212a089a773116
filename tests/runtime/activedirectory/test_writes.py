"""Writes by a pass-through server that only several things tell apart: sites, services, types."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.controls import SdFlags, sd_flags
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SaslBind, SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchEntry
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE
from tests import distinct
from tests.protocol.activedirectory.test_names import LONG, bitwise_hash
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import (
    DENIED,
    UNWILLING,
    Given,
    changes,
    create,
    refusing,
    values,
    write,
)
from tests.runtime.activedirectory.test_conversions import enterprise
from tests.runtime.directory.serving import OK, scenario

FLAGS = {False: (b"FALSE",), True: (b"TRUE",)}


def settings(passing: Through) -> dict[str, dict[str, tuple[bytes, ...]]]:
    """The settings of SRV1 in each site, by the attributes that repeat its services."""
    found = {}
    for entry in passing.server.entries:
        if entry.name.startswith("CN=MSMQ Settings,CN=SRV1,CN=Servers,CN="):
            site = entry.name.split(",")[3].removeprefix("CN=")
            found[site] = {name: entry.values(name) for name, _ in entry.attributes}
    return found


def repeated(
    bits: int, *, routing: bool = False, directory: bool = False, clients: bool = False
) -> dict[str, tuple[bytes, ...]]:
    return {
        "mSMQServices": (b"%d" % bits,),
        "mSMQRoutingService": FLAGS[routing],
        "mSMQDsService": FLAGS[directory],
        "mSMQDependentClientService": FLAGS[clients],
    }


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.20.1-02", "MQDSSM-3.1.6.7.1.9-04")
@scenario
async def test_each_service_makes_a_server_whose_settings_repeat_it_in_each_site() -> None:
    async with through() as passing:
        estate, caller = passing.estate, passing.caller
        both: Given = {P.QM_SITE_IDS: (estate.berlin, estate.paris)}
        assert await write(caller, ObjectType.MACHINE, estate.machine, both) == OK
        steps: tuple[tuple[Given, dict[str, tuple[bytes, ...]] | None], ...] = (
            ({P.QM_SERVICE: 0}, None),
            ({P.QM_SERVICE_DEPCLIENTS: 1}, repeated(0, clients=True)),
            ({P.QM_SERVICE: 0x10}, repeated(0x10, clients=True)),  # only remote access
            ({P.QM_SERVICE_DEPCLIENTS: 0}, None),
            ({P.QM_SERVICE: 0x04}, repeated(0x04, directory=True)),
            ({P.QM_SERVICE: 0x08}, repeated(0x08, directory=True)),  # another role
            ({P.QM_SERVICE: 0x01}, repeated(0x01, routing=True)),
        )
        for given, wanted in steps:
            assert await write(caller, ObjectType.MACHINE, estate.machine, given) == OK
            found = settings(passing)
            assert set(found) == (set() if wanted is None else {"Berlin", "Paris"}), given
            for site, shown in found.items():
                assert wanted is not None
                assert {name: shown[name] for name in wanted} == wanted, (given, site)
                assert shown["mSMQQMID"] == (estate.machine.raw,)


@pytest.mark.req("MQDSSM-3.1.6.7.1.9-03")
@scenario
async def test_who_is_no_server_any_more_has_settings_in_none_of_its_sites() -> None:
    async with through() as passing:
        estate, caller = passing.estate, passing.caller
        rom = passing.server.add_site("Rom")
        sites: Given = {P.QM_SITE_IDS: (estate.berlin, estate.paris, rom)}
        assert await write(caller, ObjectType.MACHINE, estate.machine, sites) == OK
        assert set(settings(passing)) == {"Berlin", "Paris", "Rom"}
        assert await write(caller, ObjectType.MACHINE, estate.machine, {P.QM_SERVICE: 0}) == OK
        assert settings(passing) == {}
        assert await write(caller, ObjectType.MACHINE, estate.machine, {P.QM_SERVICE: 1}) == OK
        assert set(settings(passing)) == {"Berlin", "Paris", "Rom"}


def refusing_to_read(guid: Guid, code: ResultCode) -> Any:
    def script(message: LdapMessage) -> Any:
        request = message.operation
        wanted = isinstance(request, SearchRequest) and request.base == f"<GUID={guid}>"
        return [SearchDone(LdapResult(code))] if wanted else None

    return script


@pytest.mark.req("MQDSSM-3.1.6.7.1.9-05")
@scenario
async def test_a_site_that_is_unknown_is_skipped_and_one_that_cannot_be_read_is_an_error() -> None:
    async with through() as passing:
        estate, caller, server = passing.estate, passing.caller, passing.server
        both: Given = {P.QM_SITE_IDS: (estate.berlin, estate.paris)}
        assert await write(caller, ObjectType.MACHINE, estate.machine, both) == OK
        # A server that becomes none, one that becomes one, one that changes.
        for service, left in ((0, {"Paris"}), (1, {"Berlin", "Paris"}), (9, {"Berlin", "Paris"})):
            given: Given = {P.QM_SERVICE: service}
            before = settings(passing)
            server.on_message = refusing_to_read(estate.paris, UNWILLING)
            sent = len(changes(server))
            failed = await write(caller, ObjectType.MACHINE, estate.machine, given)
            assert failed == HResult.MQ_ERROR_DS_ERROR
            assert len(changes(server)) == sent
            server.on_message = refusing_to_read(estate.paris, ResultCode.NO_SUCH_OBJECT)
            assert await write(caller, ObjectType.MACHINE, estate.machine, given) == OK
            found = settings(passing)
            assert set(found) == left
            assert found.get("Paris") == before["Paris"]  # nobody touched it
            server.on_message = None


# --- which entry, and what a refusal says ---------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.7-01", "MQDSSM-3.1.6.16-01")
@scenario
async def test_every_type_is_written_and_a_refusal_is_returned_as_it_is() -> None:
    async with through() as passing:
        estate, caller, server = passing.estate, passing.caller, passing.server
        cases: tuple[tuple[ObjectType, Guid, Given, str], ...] = (
            (ObjectType.QUEUE, estate.queues[0], {P.Q_QUOTA: 1}, "mSMQQueueQuota"),
            (ObjectType.MACHINE, estate.machine, {P.QM_QUOTA: 1}, "mSMQQuota"),
            (ObjectType.SITE, estate.paris, {P.S_INTERVAL1: 1}, "mSMQInterval1"),
            (ObjectType.ENTERPRISE, enterprise(server), {P.E_LONG_LIVE: 1}, "mSMQLongLived"),
            (ObjectType.ROUTINGLINK, estate.link, {P.L_ACTUAL_COST: 1}, "mSMQCost"),
        )
        for kind, guid, given, attribute in cases:
            held = values(passing, guid, attribute)
            for code, status in (
                (DENIED, HResult.MQ_ERROR_DS_ERROR),
                (UNWILLING, HResult.MQ_ERROR_DS_ERROR),
                (ResultCode.NO_SUCH_OBJECT, HResult.MQDS_OBJECT_NOT_FOUND),
                (ResultCode.BUSY, HResult.MQ_ERROR_NO_DS),
            ):
                server.on_message = refusing(0, code)
                assert await write(caller, kind, guid, given) == status, (kind, code)
                assert values(passing, guid, attribute) == held
                passing.store.connection._outage = None  # callers need not wait for the next try
            server.on_message = None
            assert await write(caller, kind, guid, given) == OK, kind
            assert values(passing, guid, attribute) == (b"1",)
            assert changes(server)[-1].controls == ()
        before = len(changes(server))
        network = await write(caller, ObjectType.CN, estate.paris, {P.CN_NAME: "Rom"})
        assert network != OK
        assert len(changes(server)) == before


@pytest.mark.req("MQDSSM-3.1.6.7-01")
@scenario
async def test_a_failure_ends_the_write() -> None:
    async with through() as passing:
        machine, server = passing.estate.machine, passing.server
        given: Given = {P.QM_SERVICE: 9, P.QM_SIGN_PKS: distinct.signing_keys(1)}
        assert await write(passing.caller, ObjectType.MACHINE, machine, given) == OK
        kinds = [type(message.operation) for message in changes(server)]
        assert kinds == [AddEntry, AddEntry, DeleteEntry, AddEntry, ModifyEntry, ModifyEntry]
        server.received.clear()
        again: Given = {P.QM_SERVICE: 1, P.QM_SIGN_PKS: distinct.signing_keys(2)}
        server.on_message = refusing(4, DENIED)
        denied = await write(passing.caller, ObjectType.MACHINE, machine, again)
        assert denied == HResult.MQ_ERROR_DS_ERROR
        assert [type(message.operation) for message in changes(server)] == kinds[:5]


@pytest.mark.req("MQDSSM-3.1.6.7.3.2-02")
@scenario
async def test_the_enterprise_is_the_entry_of_one_fixed_name() -> None:
    async with through() as passing:
        caller, server = passing.caller, passing.server
        services, fixed = f"CN=Services,{server.configuration}", enterprise(server)
        others = [  # entries of the same class elsewhere, which an administrator has left
            server.put(f"CN=Old,{services}", objectClass=b"mSMQEnterpriseSettings"),
            server.put(f"CN=MsmqServices,{server.root}", objectClass=b"mSMQEnterpriseSettings"),
        ]
        name = server.root  # of the enterprise: the root domain of the forest
        assert await write(caller, ObjectType.ENTERPRISE, name, {P.E_LONG_LIVE: 77}) == OK
        (message,) = changes(server)
        assert isinstance(message.operation, ModifyEntry)
        assert message.operation.name == f"CN=MsmqServices,{services}"
        assert values(passing, fixed, "mSMQLongLived") == (b"77",)
        assert [values(passing, other, "mSMQLongLived") for other in others] == [(), ()]
        for code, status in (
            (DENIED, HResult.MQ_ERROR_DS_ERROR),
            (ResultCode.NO_SUCH_OBJECT, HResult.MQDS_OBJECT_NOT_FOUND),
        ):
            server.on_message = refusing(0, code)
            assert await write(caller, ObjectType.ENTERPRISE, name, {P.E_LONG_LIVE: 1}) == status


@pytest.mark.req("MQDSSM-3.1.6.7.2.2-03", "MQDSSM-3.1.6.7.2.5-01")
@pytest.mark.parametrize(
    ("name", "leaf"),
    [
        ("short", "short"),
        ("x" * 63, "x" * 63),
        ("x" * 64, "x" * 55 + "-c2f8c3d4"),
        (LONG, f"{LONG[:55]}-a0fa68bf"),
        ("y" * 124, "y" * 55 + "-" + bitwise_hash("y" * 124)),
    ],
)
@scenario
async def test_a_queue_by_its_path(name: str, leaf: str) -> None:
    async with through() as passing:
        server, computer = passing.server, passing.estate.computer
        rest = {"mSMQQueueNameExt": name[55:].encode()} if len(name) > 63 else {}
        queue = server.put(f"CN={leaf},CN=msmq,{computer}", objectClass=b"mSMQQueue", **rest)
        path = f"SRV1\\{name}"
        assert await write(passing.caller, ObjectType.QUEUE, path, {P.Q_QUOTA: 8}) == OK
        (message,) = changes(server)
        assert isinstance(message.operation, ModifyEntry)
        assert message.operation.name.lower() == f"cn={leaf},cn=msmq,{computer}".lower()
        assert values(passing, queue, "mSMQQueueQuota") == (b"8",)


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.7.1.3-01")
@scenario
async def test_the_descriptors_of_four_types_are_replaced_by_an_operation_of_their_own() -> None:
    async with through() as passing:
        estate, server = passing.estate, passing.server
        for number, (kind, guid) in enumerate(
            (
                (ObjectType.QUEUE, estate.queues[0]),
                (ObjectType.MACHINE, estate.machine),
                (ObjectType.SITE, estate.paris),
                (ObjectType.ENTERPRISE, enterprise(server)),
            )
        ):
            server.received.clear()
            aces = (allow(EVERYONE, 0x000F_01FF), allow(distinct.owner(number), 0x20))
            given = SecurityDescriptor(dacl=Acl(aces)).to_bytes()
            request = dscomm.SetSecurityGuid(kind, guid, 4, given)
            done = await passing.caller.call(dscomm.SET_OBJECT_SECURITY_GUID, request)
            assert done.result == OK, kind
            (message,) = changes(server)
            assert isinstance(message.operation, ModifyEntry)
            (change,) = message.operation.changes
            assert change.attribute == "nTSecurityDescriptor"
            assert sd_flags(SdFlags.OWNER | SdFlags.DACL) in message.controls
            held = SecurityDescriptor.from_bytes(values(passing, guid, "nTSecurityDescriptor")[0])
            assert held.dacl is not None
            assert distinct.owner(number) in [ace.sid for ace in held.dacl.aces]  # type: ignore[union-attr]


@pytest.mark.req("MQDSSM-3.1.6.12-03", "MQDSSM-3.1.6.20.2-02")
@scenario
async def test_a_new_queue_is_one_add_of_what_was_given_without_controls() -> None:
    async with through() as passing:
        given: Given = {P.Q_LABEL: "l", P.Q_QUOTA: 5, P.Q_SCOPE: 0, P.Q_NAME_SUFFIX: "rest"}
        result, _ = await create(passing.caller, ObjectType.QUEUE, "SRV1\\new", given)
        assert result == OK
        (message,) = changes(passing.server)
        assert message.controls == ()
        added = message.operation
        assert isinstance(added, AddEntry)
        assert added.name.lower() == f"cn=new,cn=msmq,{passing.estate.computer}".lower()
        found = dict(added.attributes)
        assert found.pop("nTSecurityDescriptor")
        defaults = {
            "mSMQQueueType": (bytes(16),), "mSMQBasePriority": (b"0",), "mSMQPrivacyLevel": (b"1",),
            "mSMQQueueJournalQuota": (b"-1",), "mSMQJournal": (b"FALSE",),
            "mSMQAuthenticate": (b"FALSE",), "mSMQTransactional": (b"FALSE",),
        }  # fmt: skip
        assert found == {
            "objectClass": (b"mSMQQueue",), "mSMQLabelEx": (b"l",), "mSMQQueueQuota": (b"5",),
            **defaults,
        }  # fmt: skip


@pytest.mark.req("MQDSSM-3.1.6.12-01")
@pytest.mark.parametrize("shown", [(), (b"",)])
@scenario
async def test_without_a_configuration_context_nothing_is_created(shown: tuple[bytes, ...]) -> None:
    async with through() as passing:
        server, context = passing.server, "configurationNamingContext"
        (root,) = [entry for entry in server.entries if not entry.name]
        rows = [(name, values) for name, values in root.attributes if name != context]
        server.entries[server.entries.index(root)] = SearchEntry(
            "", (*rows, *([(context, shown)] if shown else []))
        )
        result, _ = await create(passing.caller, ObjectType.QUEUE, "SRV1\\new", {P.Q_LABEL: "x"})
        assert result == HResult.MQ_ERROR_NO_DS
        assert changes(server) == []


@pytest.mark.req("MQDSSM-3.1.6.12-01")
@scenario
async def test_without_a_logon_nothing_is_created() -> None:
    async with through() as passing:
        server, link = passing.server, passing.store.connection
        server.users = {"mqis@corp.example": b"right"}
        login = LdapLogin("mqis@corp.example", "wrong", BindMethod.NTLM)
        link._settings = replace(link._settings, login=login)
        result, _ = await create(passing.caller, ObjectType.QUEUE, "SRV1\\new", {P.Q_LABEL: "x"})
        assert result == HResult.MQ_ERROR_NO_DS
        assert len(server.operations(SaslBind)) == 1
        assert changes(server) == []


@pytest.mark.req("MQDSSM-3.1.6.12-01")
@scenario
async def test_without_tls_that_was_asked_for_nothing_is_created() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"no TLS")
        writer.close()

    async with through() as passing, await asyncio.start_server(close, "127.0.0.1", 0) as plain:
        link, port = passing.store.connection, plain.sockets[0].getsockname()[1]
        servers = (LdapUrl.parse(f"ldaps://127.0.0.1:{port}"),)
        link._settings = replace(link._settings, servers=servers)
        result, _ = await create(passing.caller, ObjectType.QUEUE, "SRV1\\new", {P.Q_LABEL: "x"})
        assert result == HResult.MQ_ERROR_NO_DS
        assert passing.server.received == []
