"""What a pass-through server creates, as the entries that the directory has afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import AddResponse, LdapResult, SearchDone, SearchEntry
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_changes import LABEL, Given, create, delete, values
from tests.runtime.activedirectory.test_passing_through import by_guid, by_path
from tests.runtime.activedirectory.test_store import stored
from tests.runtime.directory.serving import OK, scenario

UNLIMITED = 0xFFFF_FFFF


def named(server: ScriptedDomain, name: str) -> SearchEntry:
    (found,) = [entry for entry in server.entries if entry.name == name]
    return found


async def create_server(passing: Through, computer: str) -> Guid:
    """A router of both sites."""
    passing.server.add_computer(computer)
    sites = (passing.estate.paris, passing.estate.berlin)
    given: Given = {P.QM_SITE_IDS: sites, P.QM_SERVICE: 1}
    result, guid = await create(passing.caller, ObjectType.MACHINE, computer, given)
    assert result == OK, hex(result)
    assert isinstance(guid, Guid)
    return guid


@pytest.mark.req("MQDSSM-2.2.1-01", "MQDSSM-2.2.1-05", "MQDSSM-2.2.2-07")
@scenario
async def test_a_server_has_settings_in_each_of_its_sites_and_its_computer_stays() -> None:
    async with through() as passing:
        server = passing.server
        guid = await create_server(passing, "SRV2")
        computer = f"CN=SRV2,CN=Computers,{server.root}"
        machine = named(server, f"CN=msmq,{computer}")
        assert machine.values("objectClass") == (b"mSMQConfiguration",)
        assert machine.values("objectGUID") == (guid.raw,)
        for site in ("Berlin", "Paris"):
            place = f"CN=SRV2,CN=Servers,CN={site},CN=Sites,{server.configuration}"
            settings = named(server, f"CN=MSMQ Settings,{place}")
            assert settings.values("objectClass") == (b"mSMQSettings",)
            assert settings.values("mSMQQMID") == (guid.raw,)
        before = named(server, computer)
        assert await delete(passing.caller, ObjectType.MACHINE, guid) == OK
        assert server.by_guid(guid) is None
        assert named(server, computer) == before


@pytest.mark.req("MQDSSM-2.2.2-06")
@scenario
async def test_a_quota_without_limit_is_minus_one() -> None:
    async with through() as passing:
        caller = passing.caller
        both: Given = {P.Q_QUOTA: UNLIMITED, P.Q_JOURNAL_QUOTA: UNLIMITED}
        result, queue = await create(caller, ObjectType.QUEUE, "SRV1\\wide", both)
        assert result == OK
        passing.server.add_computer("SRV2")
        wide: Given = {
            P.QM_SITE_ID: passing.estate.paris, P.QM_QUOTA: UNLIMITED, P.QM_JOURNAL_QUOTA: UNLIMITED
        }  # fmt: skip
        result, machine = await create(caller, ObjectType.MACHINE, "SRV2", wide)
        assert result == OK
        for guid, attributes in (
            (queue, ("mSMQQueueQuota", "mSMQQueueJournalQuota")),
            (machine, ("mSMQQuota", "mSMQJournalQuota")),
        ):
            for attribute in attributes:
                assert values(passing, guid, attribute) == (b"-1",), attribute
        asked = by_guid(caller, ObjectType.MACHINE, machine, (P.QM_QUOTA, P.QM_JOURNAL_QUOTA))
        got = await caller.call(dscomm.GET_PROPS_GUID, asked)
        assert [variant.value for variant in got.values] == [UNLIMITED, UNLIMITED]


@pytest.mark.req("MQDSSM-2.2.2-10")
@scenario
async def test_a_site_that_is_listed_twice_is_one_value() -> None:
    async with through() as passing:
        estate = passing.estate
        passing.server.add_computer("SRV2")
        sites = (estate.paris, estate.berlin, estate.paris)
        given: Given = {P.QM_SITE_IDS: sites}
        result, guid = await create(passing.caller, ObjectType.MACHINE, "SRV2", given)
        assert result == OK, hex(result)
        assert values(passing, guid, "mSMQSites") == (estate.paris.raw, estate.berlin.raw)


def added(server: ScriptedDomain) -> list[str]:
    """The names that were to be added, in order."""
    return [m.operation.name for m in server.received if isinstance(m.operation, AddEntry)]


def refusing_adds(code: int) -> Any:
    def script(message: LdapMessage) -> Any:
        refused = isinstance(message.operation, AddEntry)
        return [AddResponse(LdapResult(code))] if refused else None

    return script


@pytest.mark.req("MQDSSM-3.1.6.1.2.2-05")
@scenario
async def test_a_refused_add_of_a_queue_is_returned_as_it_is() -> None:
    """Also where another server has created a queue of that name since this one looked for it."""
    async with through() as passing:
        for code, status in (
            (ResultCode.ENTRY_ALREADY_EXISTS, HResult.MQ_ERROR_QUEUE_EXISTS),
            (ResultCode.INSUFFICIENT_ACCESS_RIGHTS, HResult.MQ_ERROR_DS_ERROR),
            (ResultCode.UNWILLING_TO_PERFORM, HResult.MQ_ERROR_DS_ERROR),
        ):
            passing.server.on_message = refusing_adds(code)
            result, _ = await create(passing.caller, ObjectType.QUEUE, "SRV1\\new", LABEL)
            assert result == status


@pytest.mark.req("MQDSSM-3.1.6.1.1.2-04")
@scenario
async def test_a_machine_that_another_server_created_meanwhile_is_completed() -> None:
    async with through() as passing:
        server, estate = passing.server, passing.estate
        name = f"CN=msmq,{server.add_computer('SRV2')}"
        made: list[Guid] = []

        def first(message: LdapMessage) -> None:
            """Creates the entry once this server has looked for it and reads what it needs."""
            request = message.operation
            reads = isinstance(request, SearchRequest) and request.attributes == ("objectGUID",)
            if reads and not made:
                kind, sites = b"mSMQConfiguration", estate.berlin.raw
                made.append(server.put(name, objectClass=kind, mSMQSites=sites))

        server.on_message = first
        given: Given = {P.QM_SITE_ID: estate.berlin, P.QM_SERVICE: 1}
        result, guid = await create(passing.caller, ObjectType.MACHINE, "SRV2", given)
        assert (result, guid) == (OK, made[0])
        assert added(server)[0] == name
        place = f"CN=SRV2,CN=Servers,CN=Berlin,CN=Sites,{server.configuration}"
        assert named(server, f"CN=MSMQ Settings,{place}").values("mSMQQMID") == (made[0].raw,)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ResultCode.NO_SUCH_ATTRIBUTE, HResult.E_ADS_PROPERTY_NOT_FOUND),
        (ResultCode.NO_SUCH_OBJECT, HResult.MQ_ERROR_DS_ERROR),
    ],
)
@pytest.mark.req("MQDSSM-3.1.6.1.1.2-04")
@scenario
async def test_a_machine_whose_identifier_cannot_be_read_is_not_completed(
    answer: ResultCode, status: HResult
) -> None:
    async with through() as passing:
        server = passing.server
        name = f"CN=msmq,{server.add_computer('SRV2')}"

        def hidden(message: LdapMessage) -> Any:
            request = message.operation
            added = bool(server.operations(AddEntry))
            if not added or not isinstance(request, SearchRequest) or request.base != name:
                return None
            return [SearchDone(LdapResult(answer))]

        server.on_message = hidden
        given: Given = {P.QM_SITE_ID: passing.estate.berlin, P.QM_SERVICE: 1}
        result, _ = await create(passing.caller, ObjectType.MACHINE, "SRV2", given)
        assert result == status, hex(result)
        assert added(server) == [name]


@pytest.mark.req("MQDSSM-3.1.6.1.2.5-05")
@scenario
async def test_the_longest_name_of_a_queue_has_124_characters() -> None:
    async with through() as passing:
        caller, name = passing.caller, "n" * 124
        result, guid = await create(caller, ObjectType.QUEUE, f"SRV1\\{name}", LABEL)
        assert result == OK
        assert values(passing, guid, "mSMQQueueNameExt") == (b"n" * 69,)
        asked = by_path(caller, ObjectType.QUEUE, f"SRV1\\{name}", (P.Q_INSTANCE, P.Q_PATHNAME))
        got = await caller.call(dscomm.GET_PROPS, asked)
        assert [variant.value for variant in got.values] == [guid, f"srv1\\{name}"]
        longer, _ = await create(caller, ObjectType.QUEUE, f"SRV1\\{name}n", LABEL)
        assert longer == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME


@pytest.mark.req("MQDSSM-3.1.6.1-03")
def test_the_identifier_of_an_object_that_is_created_again_is_ignored() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        with store.write() as tx:
            bills = tx.get(ObjectType.QUEUE, estate.queues[1])
            assert bills is not None
            path: Any = {P.Q_PATHNAME: prop(P.Q_PATHNAME, "srv1\\copy")}
            made = tx.insert(bills.with_properties(path, bills.seq))
        assert made is not None
        assert made.id not in estate.queues
        found = estate.server.by_guid(made.id)
        assert found is not None
        assert found.name == f"CN=copy,CN=msmq,{estate.computer}"
        assert found.values("mSMQLabelEx") == (b"bills",)

    stored(test)
