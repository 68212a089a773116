"""The pass-through server of MS-MQDS: its answers, its changes, and a directory that is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqis.runtime.activedirectory.connection import RETRY_S
from mqis.runtime.activedirectory.errors import DirectoryNotConnected
from mqis.testing.ldap import LdapFault
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.mqds.query_stubs import ColumnSet, PropertyRestriction, RestrictionSet
from mqis.wire.propvariant import VarType
from tests.runtime.activedirectory.passing import Passing, passing
from tests.runtime.directory.serving import OK, SIGNATURE_SIZE, Caller, scenario

QUEUE_PROPERTIES = (
    P.Q_INSTANCE, P.Q_TYPE, P.Q_PATHNAME, P.Q_JOURNAL, P.Q_QUOTA, P.Q_BASEPRIORITY,
    P.Q_JOURNAL_QUOTA, P.Q_LABEL, P.Q_CREATE_TIME, P.Q_MODIFY_TIME, P.Q_AUTHENTICATE,
    P.Q_PRIV_LEVEL, P.Q_TRANSACTION,
)  # fmt: skip
MACHINE_PROPERTIES = (
    P.QM_SITE_ID, P.QM_MACHINE_ID, P.QM_PATHNAME, P.QM_SERVICE, P.QM_QUOTA, P.QM_JOURNAL_QUOTA,
    P.QM_FOREIGN, P.QM_OS, P.QM_MACHINE_TYPE, P.QM_CREATE_TIME, P.QM_MODIFY_TIME, P.QM_CNS,
)  # fmt: skip
SITE_PROPERTIES = (P.S_PATHNAME, P.S_SITEID, P.S_GATES, P.S_PSC, P.S_INTERVAL1, P.S_INTERVAL2)
LINK_PROPERTIES = (P.L_NEIGHBOR1, P.L_NEIGHBOR2, P.L_COST, P.L_ID, P.L_GATES)


def by_path(caller: Caller, kind: int, path: str, ids: tuple[int, ...]) -> dscomm.GetProps:
    return dscomm.GetProps(kind, path, ids, (VarType.NULL,) * len(ids), caller.auth, SIGNATURE_SIZE)


def by_guid(caller: Caller, kind: int, guid: Guid, ids: tuple[int, ...]) -> dscomm.GetPropsGuid:
    types = (VarType.NULL,) * len(ids)
    return dscomm.GetPropsGuid(kind, guid, ids, types, caller.auth, SIGNATURE_SIZE)


async def rows(caller: Caller, columns: tuple[int, ...], *restrictions: Any) -> list[Any]:
    """All rows of a lookup, sorted: the directory orders them as it likes."""
    asked = RestrictionSet(restrictions) if restrictions else None
    request = dscomm.LookupBegin(None, asked, ColumnSet(columns), None, caller.auth)
    begun = await caller.call(dscomm.LOOKUP_BEGIN, request)
    assert begun.result == OK, hex(begun.result)
    found: list[Any] = []
    while True:
        page = await caller.call(
            dscomm.LOOKUP_NEXT,
            dscomm.LookupNext(begun.handle, 20 * len(columns), caller.auth, SIGNATURE_SIZE),
        )
        values = [value.value for value in page.values]
        found += [tuple(values[n : n + len(columns)]) for n in range(0, len(values), len(columns))]
        if not values:
            break
    await caller.call(dscomm.LOOKUP_END, dscomm.HandleGiven(begun.handle))
    return sorted(found, key=repr)


async def both(passing: Passing, operation: Any, make: Any) -> list[Any]:
    """The same call at both servers."""
    return [await caller.call(operation, make(caller)) for caller in (passing.through, passing.own)]


@pytest.mark.parametrize(
    ("kind", "path", "ids"),
    [
        (ObjectType.QUEUE, "srv1\\orders", QUEUE_PROPERTIES),
        (ObjectType.MACHINE, "SRV1", MACHINE_PROPERTIES),
        (ObjectType.MACHINE, "srv1.corp.example", (P.QM_PATHNAME,)),
        (ObjectType.SITE, "Berlin", SITE_PROPERTIES),
        (ObjectType.SITE, "nowhere", SITE_PROPERTIES),
        (ObjectType.QUEUE, "srv1\\gone", (P.Q_LABEL,)),
        (ObjectType.QUEUE, "no path", (P.Q_LABEL,)),
        (ObjectType.QUEUE, "srv1\\*)(cn=*", (P.Q_LABEL,)),
        (ObjectType.USER, "anna", (P.U_SID,)),
        (ObjectType.ENTERPRISE, "", (P.E_NAMESTYLE, P.E_LONG_LIVE, P.E_VERSION)),
    ],
)
@scenario
async def test_reads_by_path(kind: ObjectType, path: str, ids: tuple[int, ...]) -> None:
    async with passing() as servers:
        far, near = await both(servers, dscomm.GET_PROPS, lambda c: by_path(c, kind, path, ids))
        assert far.result == near.result
        assert far.values == near.values


@pytest.mark.req("MQDSSM-1.4-02", "MQDSSM-1.6-01", "MQDSSM-3.1.6.3-06", "MQDSSM-3.1.6.19-02")
@scenario
async def test_the_same_answers_as_a_store_of_our_own() -> None:
    async with passing() as servers:
        estate = servers.estate
        for kind, guid, ids in (
            (ObjectType.QUEUE, estate.queues[0], QUEUE_PROPERTIES),
            (ObjectType.MACHINE, estate.machine, MACHINE_PROPERTIES),
            (ObjectType.SITE, estate.paris, SITE_PROPERTIES),
            (ObjectType.SITE, estate.berlin, SITE_PROPERTIES),
            (ObjectType.ROUTINGLINK, estate.link, LINK_PROPERTIES),
            (ObjectType.USER, estate.user, (P.U_SID,)),
            (ObjectType.USER, Guid(b"d" * 16), (P.U_SID,)),
            (ObjectType.QUEUE, estate.machine, (P.Q_LABEL,)),
            (ObjectType.MACHINE, Guid(b"x" * 16), (P.QM_PATHNAME,)),
        ):
            make = lambda c, k=kind, g=guid, i=ids: by_guid(c, k, g, i)  # noqa: E731
            far, near = await both(servers, dscomm.GET_PROPS_GUID, make)
            assert far == near, kind
        # One connection copied everything, the other is the pass-through server's.
        assert estate.server.connections == 2
        for information in (1, 4, 7):
            far, near = await both(
                servers,
                dscomm.GET_OBJECT_SECURITY,
                lambda c, n=information: dscomm.GetSecurity(
                    ObjectType.QUEUE, "srv1\\orders", n, 4096, c.auth, SIGNATURE_SIZE
                ),
            )
            assert (far.result, far.descriptor) == (near.result, near.descriptor)
        far, near = await both(
            servers,
            dscomm2.GET_COMPUTER_SITES,
            lambda c: dscomm2.GetComputerSites("SRV1", c.auth, SIGNATURE_SIZE),
        )
        assert (far.result, far.sites) == (near.result, near.sites)
        far, near = await both(
            servers,
            dscomm.CREATE_SERVERS_CACHE,
            lambda c: dscomm.CreateServersCache(0, None, c.auth, SIGNATURE_SIZE),
        )
        assert (far.result, far.servers) == (near.result, near.servers)


@pytest.mark.req("MQDSSM-3.1.6.3-02", "MQDSSM-3.1.6.4-04", "MQDSSM-1.4-02", "MQDSSM-1.6-01")
@scenario
async def test_the_same_lookups() -> None:
    counts = []
    async with passing() as servers:
        for columns, restrictions in (
            ((P.Q_PATHNAME, P.Q_INSTANCE), ()),
            ((P.Q_PATHNAME,), (PropertyRestriction(4, P.Q_LABEL, prop(P.Q_LABEL, "Bills")),)),
            ((P.Q_PATHNAME,), (PropertyRestriction(4, P.Q_TYPE, prop(P.Q_TYPE, Guid(b"t" * 16))),)),
            ((P.Q_PATHNAME,), (PropertyRestriction(0, P.Q_QUOTA, prop(P.Q_QUOTA, 9)),)),
            (
                (P.Q_PATHNAME,),
                (PropertyRestriction(4, P.Q_PATHNAME, prop(P.Q_PATHNAME, "SRV1\\bills")),),
            ),
            ((P.QM_PATHNAME, P.QM_SERVICE), ()),
            ((P.S_PATHNAME, P.S_GATES), ()),
            ((P.L_NEIGHBOR1, P.L_COST), ()),
            (
                (P.L_ID,),
                (
                    PropertyRestriction(
                        4, P.L_NEIGHBOR1, prop(P.L_NEIGHBOR1, servers.estate.berlin)
                    ),
                ),
            ),
            ((P.U_SID,), ()),
        ):
            far = await rows(servers.through, columns, *restrictions)
            assert far == await rows(servers.own, columns, *restrictions), columns
            counts.append(len(far))
        assert counts == [2, 1, 1, 1, 1, 1, 2, 1, 1, 1]


@pytest.mark.req("MQDSSM-3.1.6.1.2.2-05", "MQDSSM-3.1.6.12-04", "MQDSSM-1.4-02")
@scenario
async def test_a_queue_from_create_to_delete() -> None:
    async with passing() as servers:
        caller, server = servers.through, servers.estate.server
        ids, values = (P.Q_LABEL, P.Q_QUOTA), (prop(P.Q_LABEL, "New"), prop(P.Q_QUOTA, 7))
        path = "SRV1\\*)(new=,+"
        request = dscomm.CreateObject(ObjectType.QUEUE, path, None, ids, values, Guid.NULL)
        created = await caller.call(dscomm.CREATE_OBJECT, request)
        assert created.result == OK, hex(created.result)
        assert created.guid is not None
        entry = server.by_guid(created.guid)
        assert entry is not None  # the identifier is the directory's, not ours
        assert entry.values("mSMQLabelEx") == (b"New",)
        again = await caller.call(dscomm.CREATE_OBJECT, request)
        assert again.result == HResult.MQ_ERROR_QUEUE_EXISTS
        written = await caller.call(
            dscomm.SET_PROPS_GUID,
            dscomm.SetPropsGuid(
                ObjectType.QUEUE, created.guid, (P.Q_LABEL,), (prop(P.Q_LABEL, "Other"),)
            ),
        )
        assert written.result == OK
        entry = server.by_guid(created.guid)
        assert entry is not None
        assert (entry.values("mSMQLabelEx"), entry.values("mSMQQueueQuota")) == (
            (b"Other",),
            (b"7",),
        )
        deleted = await caller.call(
            dscomm.DELETE_OBJECT_GUID, dscomm.ByGuid(ObjectType.QUEUE, created.guid)
        )
        assert deleted.result == OK
        assert server.by_guid(created.guid) is None


@pytest.mark.req("MQDSSM-3.1.6.12-01", "MQDSSM-2.2.6-03")
@scenario
async def test_a_lost_directory_is_an_error_and_the_server_lives_on() -> None:
    async with passing() as servers:
        caller, server = servers.through, servers.estate.server
        asked = by_path(caller, ObjectType.QUEUE, "srv1\\orders", (P.Q_PATHNAME,))
        assert (await caller.call(dscomm.GET_PROPS, asked)).result == OK
        server.on_message = lambda _message: [LdapFault.CLOSE]
        server.disconnect()
        lost = await caller.call(dscomm.GET_PROPS, asked)
        assert lost.result == HResult.MQ_ERROR_NO_DS
        assert servers.store.connection.outage
        label = (P.Q_LABEL,), (prop(P.Q_LABEL, "New"),)
        new = dscomm.CreateObject(ObjectType.QUEUE, "srv1\\new", None, *label, Guid.NULL)
        assert (await caller.call(dscomm.CREATE_OBJECT, new)).result == HResult.MQ_ERROR_NO_DS
        with pytest.raises(DirectoryNotConnected), servers.store.read() as view:
            view.get(ObjectType.QUEUE, servers.estate.queues[0])  # at once, without a try
        server.on_message = None
        await asyncio.sleep(RETRY_S)  # the time in which nobody tries
        assert (await caller.call(dscomm.GET_PROPS, asked)).result == OK
        assert servers.store.connection.outage is None
