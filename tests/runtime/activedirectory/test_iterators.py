"""Reads and lookups of a pass-through server: iterators, order, what is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.protocol.directory.lookup_walk import LookupState
from mqis.protocol.rpc.faults import FaultStatus
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.followed import FollowedDomain
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import SHOW_DELETED, LdapControl
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import EVERYTHING, SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import PropVariant, VarType
from tests.runtime.activedirectory.estate import SID
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.activedirectory.test_passing_through import by_guid, by_path
from tests.runtime.directory.serving import ADMIN, OK, Caller, fault_of, scenario
from tests.runtime.directory.test_lookups import begin, end, everything, following, wanted
from tests.waiting import until

EQ = 4
#: The control by which a server would sort (RFC 2891).
SERVER_SORT = "1.2.840.113556.1.4.473"
#: Owner, group and DACL (MS-ADTS 3.1.1.3.4.1.11).
SD_FLAGS_7 = LdapControl("1.2.840.113556.1.4.801", True, bytes.fromhex("3003020107"))
#: Names with GUIDs in their text form (MS-ADTS 3.1.1.3.4.1.5).
EXTENDED_NAMES = LdapControl("1.2.840.113556.1.4.529", True, bytes.fromhex("3003020101"))
CHANGES = (AddEntry, ModifyEntry, DeleteEntry, RenameEntry)
#: What a user is asked for: none of these have a default.
USER = (P.U_SID, P.U_ID)


def refusing(code: int, kind: type = SearchRequest) -> Any:
    """Refuses every request of a kind."""

    def script(message: LdapMessage) -> Any:
        return [SearchDone(LdapResult(code))] if isinstance(message.operation, kind) else None

    return script


def searches(server: ScriptedDomain, after: int = 0) -> list[LdapMessage]:
    return [m for m in server.received[after:] if isinstance(m.operation, SearchRequest)]


async def label(caller: Caller, queue: Guid, text: str) -> None:
    request = dscomm.SetPropsGuid(ObjectType.QUEUE, queue, (P.Q_LABEL,), (prop(P.Q_LABEL, text),))
    assert (await caller.call(dscomm.SET_PROPS_GUID, request)).result == OK


def lookups(passing: Through) -> int:
    return passing.served.context.handles.count(LookupState)


# --- iterators ------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1-01", "MQDSSM-3.1.1.2-01", "MQDSSM-3.1.6.4-03", "MQDSSM-3.1.6.5-01")
@scenario
async def test_lookups_beside_each_other_keep_their_own_names_and_place() -> None:
    async with through() as passing:
        caller, bills = passing.caller, passing.estate.queues[1]
        one = await begin(caller, wanted(P.Q_PATHNAME, P.Q_LABEL, sort=((P.Q_PATHNAME, 0),)))
        two = await begin(caller, wanted(P.Q_LABEL, P.Q_PATHNAME, sort=((P.Q_PATHNAME, 1),)))
        assert one.handle != two.handle
        assert lookups(passing) == 2
        await label(caller, bills, "Changed")  # what was found are copies
        taken = [
            [variant.value for variant in (await following(caller, handle, 2)).values]
            for handle in (one.handle, two.handle, two.handle, one.handle, one.handle, one.handle)
        ]
        first, second = ["srv1\\bills", "bills"], ["srv1\\orders", ""]
        assert taken == [first, second[::-1], first[::-1], second, [], []]
        for begun in (one, two):
            await end(caller, begun.handle)
        assert lookups(passing) == 0
        again = wanted(P.Q_LABEL, where=((P.Q_INSTANCE, EQ, uuid(bills)),))
        assert await everything(caller, again) == [("Changed",)]
        asked = by_guid(caller, ObjectType.QUEUE, bills, (P.Q_LABEL,))
        for text in ("by another server", "and again"):  # a read keeps nothing for the next one
            found = passing.server.by_guid(bills)
            assert found is not None
            changed = AttributeChange(ModifyKind.REPLACE, "mSMQLabelEx", (text.encode(),))
            passing.server._change(ModifyEntry(found.name, (changed,)), ())
            got = await caller.call(dscomm.GET_PROPS_GUID, asked)
            assert [variant.value for variant in got.values] == [text]


@pytest.mark.req("MQDSSM-3.1.1.3-01")
@scenario
async def test_the_lookups_of_a_client_that_went_away_are_removed() -> None:
    async with through() as passing:
        kept = await begin(passing.caller, wanted(P.Q_PATHNAME, sort=((P.Q_PATHNAME, 0),)))
        async with passing.served.caller(ADMIN) as other:
            for _ in range(2):
                assert (await begin(other, wanted(P.Q_LABEL))).result == OK
            assert lookups(passing) == 3
        assert await until(lambda: lookups(passing) == 1)
        found = await following(passing.caller, kept.handle)
        assert [variant.value for variant in found.values] == ["srv1\\bills", "srv1\\orders"]
        await end(passing.caller, kept.handle)


def uuid(guid: Guid) -> PropVariant:
    return PropVariant(VarType.CLSID, guid)


@pytest.mark.req("MQDSSM-3.1.6.4-03", "MQDSSM-3.1.6.4-04", "MQDSSM-3.1.6.5-01")
@scenario
async def test_an_empty_result_has_a_handle_and_a_failed_search_has_none() -> None:
    async with through() as passing:
        caller = passing.caller
        nothing = wanted(P.Q_LABEL, where=((P.Q_TYPE, EQ, uuid(Guid(b"n" * 16))),))
        begun = await begin(caller, nothing)
        assert begun.result == OK
        assert begun.handle
        assert (await following(caller, begun.handle)).values == ()
        await end(caller, begun.handle)
        passing.server.on_message = refusing(ResultCode.INSUFFICIENT_ACCESS_RIGHTS)
        failed = await begin(caller, wanted(P.Q_LABEL))
        assert (failed.result, bool(failed.handle)) == (HResult.MQ_ERROR_DS_ERROR, False)
        assert (lookups(passing), passing.served.context.budgets.lookups.used) == (0, 0)


@pytest.mark.req("MQDSSM-3.1.6.6-01")
@scenario
async def test_after_its_end_a_handle_is_unknown() -> None:
    async with through() as passing:
        caller = passing.caller
        begun = await begin(caller, wanted(P.Q_LABEL))
        assert lookups(passing) == 1
        await end(caller, begun.handle)
        assert lookups(passing) == 0
        assert passing.served.context.budgets.lookups.used == 0
        for again in (following(caller, begun.handle), end(caller, begun.handle)):
            assert await fault_of(again) == FaultStatus.CONTEXT_MISMATCH


@pytest.mark.req("MQDSSM-3.1.6.4-02")
@pytest.mark.departs("MQDSSM-3.1.6.4.1.2-01")
@scenario
async def test_the_first_sort_key_decides_and_every_property_sorts() -> None:
    async with through() as passing:
        for name, text in (("a", b"x"), ("b", b"y"), ("c", b"x")):
            passing.estate.add_queue(name, mSMQLabelEx=text, mSMQQueueType=b"s" * 16)
        chosen = ((P.Q_TYPE, EQ, uuid(Guid(b"s" * 16))),)

        async def paths(*sort: tuple[int, int]) -> list[Any]:
            rows = await everything(passing.caller, wanted(P.Q_PATHNAME, where=chosen, sort=sort))
            return [row[0] for row in rows]

        label, path = P.Q_LABEL, P.Q_PATHNAME  # the path has no attribute of its own
        assert await paths((label, 0), (path, 1)) == ["srv1\\c", "srv1\\a", "srv1\\b"]
        assert await paths((label, 1), (path, 0)) == ["srv1\\b", "srv1\\a", "srv1\\c"]
        assert await paths((path, 1), (label, 0)) == ["srv1\\c", "srv1\\b", "srv1\\a"]


@pytest.mark.req("MQDSSM-3.1.6.4.1.3-01")
@scenario
async def test_results_are_sorted_here_by_their_values() -> None:
    """Numbers sort as such, text without case, an absent value as its default."""
    async with through() as passing:
        chosen, before = Guid(b"s" * 16), len(passing.server.received)
        for number, (text, quota) in enumerate(
            ((b"b", b"1"), (b"A", b"10"), (b"a", b"9"), (b"B", b"-1"), (b"b", None))
        ):
            limit = {} if quota is None else {"mSMQQueueQuota": quota}
            passing.estate.add_queue(
                f"q{number}", mSMQLabelEx=text, mSMQQueueType=chosen.raw, **limit
            )
        asked = wanted(
            P.Q_LABEL, P.Q_QUOTA, P.Q_PATHNAME,
            where=((P.Q_TYPE, EQ, uuid(chosen)),),
            sort=((P.Q_LABEL, 0), (P.Q_QUOTA, 1), (P.Q_PATHNAME, 0)),
        )  # fmt: skip
        largest = 0xFFFF_FFFF
        assert [row[:2] for row in await everything(passing.caller, asked)] == [
            ("A", 10), ("a", 9), ("B", largest), ("b", largest), ("b", 1),
        ]  # fmt: skip
        sent = {c.oid for m in passing.server.received[before:] for c in m.controls}
        assert SERVER_SORT not in sent


@pytest.mark.departs("MQDSSM-3.1.6.5-02")
@scenario
async def test_an_object_that_cannot_be_converted_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with through() as passing:
        broken = passing.estate.add_queue("broken", mSMQQueueQuota=b"many")
        rows = await everything(passing.caller, wanted(P.Q_PATHNAME))
        assert sorted(rows) == [("srv1\\bills",), ("srv1\\orders",)]
        assert "mSMQQueueQuota" in caplog.text
        asked = by_guid(passing.caller, ObjectType.QUEUE, broken, (P.Q_LABEL,))
        got = await passing.caller.call(dscomm.GET_PROPS_GUID, asked)
        assert got.result == HResult.MQ_ERROR_DS_ERROR


# --- reads ----------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.3.1-01")
@scenario
async def test_a_read_by_search_gives_the_first_object_or_the_status_of_the_search() -> None:
    async with through() as passing:
        caller, server = passing.caller, passing.server
        server.add_user("copy", SID[:-1] + b"?", mSMQDigests=b"d" * 16)
        asked = by_guid(caller, ObjectType.USER, Guid(b"d" * 16), USER)
        got = await caller.call(dscomm.GET_PROPS_GUID, asked)
        assert [variant.value for variant in got.values] == [SID, passing.estate.user]
        for code, status in (
            (ResultCode.NO_SUCH_ATTRIBUTE, HResult.E_ADS_PROPERTY_NOT_FOUND),
            (ResultCode.UNWILLING_TO_PERFORM, HResult.MQ_ERROR_DS_ERROR),
        ):
            server.on_message = refusing(code)
            assert (await caller.call(dscomm.GET_PROPS_GUID, asked)).result == status


@pytest.mark.req("MQDSSM-3.1.6.3.1-02")
@scenario
async def test_nothing_found_is_not_found_and_no_search_stays_open() -> None:
    async with through() as passing:
        caller = passing.caller
        for kind, ids in ((ObjectType.USER, USER), (ObjectType.QUEUE, (P.Q_LABEL,))):
            asked = by_guid(caller, kind, Guid(b"x" * 16), ids)
            got = await caller.call(dscomm.GET_PROPS_GUID, asked)
            assert got.result == HResult.MQDS_OBJECT_NOT_FOUND
        client = passing.store.connection._client
        assert client is not None
        assert (await client.connection())._client.outstanding == 0


@pytest.mark.departs("MQDSSM-3.1.6.3-03")
@scenario
async def test_a_site_is_shown_as_a_connected_network() -> None:
    async with through() as passing:
        caller, ids = passing.caller, (P.CN_GUID, P.CN_NAME, P.CN_PROTOCOLID)
        asked = by_guid(caller, ObjectType.CN, passing.estate.paris, ids)
        got = await caller.call(dscomm.GET_PROPS_GUID, asked)
        assert [v.value for v in got.values] == [passing.estate.paris, "Paris", 5]
        rows = await everything(caller, wanted(P.CN_NAME, sort=((P.CN_NAME, 0),)))
        assert rows == [("Berlin",), ("Paris",)]


@pytest.mark.req("MQDSSM-3.1.6.3-04")
@scenario
async def test_reading_and_searching_change_nothing() -> None:
    async with through() as passing:
        caller, estate, server = passing.caller, passing.estate, passing.server
        before = list(server.entries)
        for kind, guid, ids in (
            (ObjectType.QUEUE, estate.queues[0], (P.Q_LABEL, P.Q_SECURITY)),
            (ObjectType.MACHINE, estate.machine, (P.QM_SERVICE,)),
            (ObjectType.SITE, estate.paris, (P.S_GATES,)),
            (ObjectType.ROUTINGLINK, estate.link, (P.L_COST,)),
            (ObjectType.USER, estate.user, USER),
        ):
            await caller.call(dscomm.GET_PROPS_GUID, by_guid(caller, kind, guid, ids))
        for column in (P.Q_LABEL, P.QM_SERVICE, P.S_GATES, P.L_COST, P.U_SID):
            assert await everything(caller, wanted(column))
        assert server.entries == before
        assert not [m for m in server.received if isinstance(m.operation, CHANGES)]


@pytest.mark.req("MQDSSM-3.1.6.14-01", "MQDSSM-3.1.6.14-02", "MQDSSM-3.1.6.14-03")
@scenario
async def test_the_request_that_reads_an_entry() -> None:
    async with through() as passing:
        caller, queue = passing.caller, passing.estate.queues[1]
        before, ids = len(passing.server.received), (P.Q_TYPE, P.Q_LABEL, P.Q_INSTANCE)
        for asked in (ids, ids[::-1]):
            got = await caller.call(
                dscomm.GET_PROPS_GUID, by_guid(caller, ObjectType.QUEUE, queue, asked)
            )
            values = [Guid.NULL, "bills", queue]  # the entry has no mSMQQueueType
            assert [v.value for v in got.values] == (values if asked == ids else values[::-1])
        for message in searches(passing.server, before):
            request = message.operation
            assert isinstance(request, SearchRequest)
            if request.base == f"<GUID={queue}>":
                assert (request.scope, request.filter) == (SearchScope.BASE, EVERYTHING)
                assert {"objectGUID", "distinguishedName"} <= set(request.attributes)
                assert {"mSMQQueueType", "mSMQLabelEx"} <= set(request.attributes)
                assert "nTSecurityDescriptor" in request.attributes
                assert "*" not in request.attributes
                assert SD_FLAGS_7 in message.controls
                break
        else:
            pytest.fail("the queue was not read by its identifier")


@pytest.mark.req("MQDSSM-3.1.6.14-03")
@pytest.mark.departs("MQDSSM-3.1.6.15-03")
@scenario
async def test_the_request_that_searches() -> None:
    async with through() as passing:
        before = len(passing.server.received)
        await everything(passing.caller, wanted(P.Q_LABEL))
        (message,) = [
            m
            for m in searches(passing.server, before)
            if getattr(m.operation, "base", "") == passing.server.root
        ]
        request = message.operation
        assert isinstance(request, SearchRequest)
        assert request.scope is SearchScope.SUBTREE
        assert (request.size_limit, request.time_limit_s) == (0, 0)
        assert "nTSecurityDescriptor" in request.attributes
        assert SD_FLAGS_7 in message.controls


@pytest.mark.req("MQDSSM-3.1.6.15-13")
@scenario
async def test_one_search_brings_all_links_with_the_identifiers_of_their_sites_and_gates() -> None:
    async with through() as passing:
        estate, before = passing.estate, len(passing.server.received)
        rows = await everything(passing.caller, wanted(P.L_NEIGHBOR1, P.L_NEIGHBOR2, P.L_GATES))
        assert rows == [(estate.berlin, estate.paris, (estate.machine,))]
        sent = searches(passing.server, before)
        (search,) = [m for m in sent if "mSMQSiteLink" in str(m.operation)]
        assert EXTENDED_NAMES in search.controls
        asked = [m.operation for m in sent]
        services = f"CN=MsmqServices,CN=Services,{passing.server.configuration}"
        bases = [r.base for r in asked if isinstance(r, SearchRequest)]
        assert bases == ["", services, services]  # the last for the rights of the enterprise


@pytest.mark.req("MQDSSM-3.1.6.19-03", "MQDSSM-3.1.6.2-02")
@scenario
async def test_a_tombstone_is_found_by_nobody_and_named_by_nothing() -> None:
    async with through(FollowedDomain) as passing:
        caller, estate, server = passing.caller, passing.estate, passing.server
        assert isinstance(server, FollowedDomain)
        machine = server.by_guid(estate.machine)
        assert machine is not None
        server.change(DeleteEntry(machine.name, tree=True))
        buried = server.by_guid(estate.machine)
        assert buried is not None
        assert f"DEL:{estate.machine}" in buried.name
        found = server.by_guid(estate.link)
        assert found is not None
        server._replace(found.name, mSMQSiteGates=buried.name.encode())  # as the directory does
        asked = by_guid(caller, ObjectType.MACHINE, estate.machine, (P.QM_PATHNAME,))
        got = await caller.call(dscomm.GET_PROPS_GUID, asked)
        assert got.result == HResult.MQDS_OBJECT_NOT_FOUND
        gone = by_path(caller, ObjectType.QUEUE, "srv1\\orders", (P.Q_LABEL,))
        assert (await caller.call(dscomm.GET_PROPS, gone)).result == HResult.MQDS_OBJECT_NOT_FOUND
        link = by_guid(caller, ObjectType.ROUTINGLINK, estate.link, (P.L_GATES,))
        assert (await caller.call(dscomm.GET_PROPS_GUID, link)).values[0].value == ()
        sent = {control.oid for message in server.received for control in message.controls}
        assert SHOW_DELETED not in sent
