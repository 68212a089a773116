"""The methods of dscomm2 over a socket."""

from __future__ import annotations

import hashlib

import pytest

from mqis.client.authentication import Callbacks
from mqis.protocol.directory import signature
from mqis.protocol.directory.descriptors import default_descriptor
from mqis.protocol.rpc.faults import FaultStatus
from mqis.runtime.directory.dscomm2 import PendingDelete
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests import distinct
from tests.protocol.directory.world import (
    C13,
    C14,
    C15,
    CN,
    DELETED,
    ENTERPRISE,
    LINK,
    MACHINE,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    USER,
    World,
    blob,
    guids,
    ui1,
)
from tests.runtime.directory.serving import (
    ADMIN,
    OK,
    SIGNATURE_SIZE,
    Caller,
    fault_of,
    scenario,
    serving,
)

NULL = PropVariant(VarType.NULL, None)
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
NOT_FOUND = HResult.MQDS_OBJECT_NOT_FOUND
TOO_SMALL = HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL
MISMATCH = FaultStatus.CONTEXT_MISMATCH


class TestComputerSites:
    async def _sites(
        self, caller: Caller, path: str | None, room: int = SIGNATURE_SIZE
    ) -> dscomm2.ComputerSites:
        request = dscomm2.GetComputerSites(path, caller.auth, room)
        return await caller.call(dscomm2.GET_COMPUTER_SITES, request)

    @pytest.mark.req("MQDS-3.3.4.1-03", "MQDS-3.3.4.1-01")
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @scenario
    async def test_all_sites_of_a_machine(self, transfer: SyntaxId) -> None:
        world = World()
        world.update_event(world.one(MACHINE), {222: guids(SITE_B, SITE_A)})
        async with serving(world) as served, served.caller(transfers=[transfer]) as caller:
            got = await self._sites(caller, "c14")
        assert (got.result, got.sites) == (OK, (SITE_B, SITE_A))

    @pytest.mark.req("MQDS-3.3.4.1-02", "MQDS-3.3.4.1-03")
    @scenario
    async def test_refusals(self) -> None:
        async with serving() as served, served.caller() as caller:
            for path, code in ((None, INVALID), ("C99", NOT_FOUND), ("C14\\orders", NOT_FOUND)):
                got = await self._sites(caller, path)
                assert (got.result, got.sites) == (code, None)

    @pytest.mark.req("MQDS-3.3.4.1-04", "MQDS-3.3.4.1-05")
    @scenario
    async def test_signature(self) -> None:
        gss, callbacks = SharedSecret(), Callbacks()
        async with (
            serving(gss=gss) as served,
            served.caller(callbacks=callbacks) as caller,
            caller.proven(gss, callbacks) as proof,
        ):
            assert (await self._sites(caller, "C14", 31)).result == TOO_SMALL
            got = await self._sites(caller, "C14", 32)
            proof.check(signature.blob_digest(SITE_A.raw), got.signature)


def _with_everything() -> World:
    world = World()
    for n, machine in enumerate((C13, C14, C15)):
        given = {238: blob(distinct.encryption_keys(n)), 239: blob(distinct.signing_keys(n))}
        world.update_event(world.get(MACHINE, machine), given)
    return world


class TestGetPropsEx:
    async def _get(
        self,
        caller: Caller,
        object_type: int,
        target: str | Guid | None,
        *ids: int,
        room: int = SIGNATURE_SIZE,
    ) -> dscomm.PropsGot:
        blank = (VarType.NULL,) * len(ids)
        if isinstance(target, str):
            by_path = dscomm.GetProps(object_type, target, ids, blank, caller.auth, room)
            return await caller.call(dscomm2.GET_PROPS_EX, by_path)
        by_guid = dscomm.GetPropsGuid(object_type, target, ids, blank, caller.auth, room)
        return await caller.call(dscomm2.GET_PROPS_GUID_EX, by_guid)

    @pytest.mark.req("MQDS-3.3.4.2-03", "MQDS-3.3.4.3-01", "MQDS-3.1.4.21.5-01")
    @pytest.mark.parametrize(
        ("object_type", "path", "guid", "propid", "value"),
        [
            (QUEUE, "C14\\orders", ORDERS, 1102, distinct.descriptor(QUEUE, 0x101).to_bytes()),
            (MACHINE, "C14", C14, 234, distinct.descriptor(MACHINE, 0x14).to_bytes()),
            (MACHINE, "C14", C14, 238, distinct.encryption_keys(1)),
            (MACHINE, "C14", C14, 239, distinct.signing_keys(1)),
        ],
    )
    @scenario
    async def test_the_four_properties(
        self, object_type: ObjectType, path: str, guid: Guid, propid: int, value: bytes
    ) -> None:
        async with serving(_with_everything()) as served, served.caller(ADMIN) as caller:
            for target in (path, guid):
                got = await self._get(caller, object_type, target, propid)
                assert (got.result, got.values) == (OK, (blob(value),))

    @pytest.mark.req("MQDS-3.3.4.2-01", "MQDS-3.3.4.3-01")
    @pytest.mark.parametrize(
        ("object_type", "ids"),
        [
            (QUEUE, (101,)),
            (QUEUE, (1101,)),
            (QUEUE, (234,)),
            (QUEUE, (238,)),
            (MACHINE, (1102,)),
            (MACHINE, (1201,)),
            (MACHINE, (203,)),
            (MACHINE, (234, 238)),
            (MACHINE, (234, 234)),
            (QUEUE, (0xFFFFFFFF,)),
            (SITE, (302,)),
            (CN, (503,)),
            (ENTERPRISE, (609,)),
            (USER, (706,)),
            (LINK, (806,)),
            (DELETED, (234,)),
            (9, (234,)),
            (58, (234,)),
        ],
    )
    @scenario
    async def test_nothing_else(self, object_type: int, ids: tuple[int, ...]) -> None:
        async with serving(_with_everything()) as served, served.caller(ADMIN) as caller:
            for target in ("C14", C14):
                got = await self._get(caller, object_type, target, *ids)
                assert (got.result, got.values) == (INVALID, (NULL,) * len(ids))

    @pytest.mark.req("MQDS-3.3.4.2-02", "MQDS-3.3.4.3-01")
    @scenario
    async def test_objects_that_are_there_and_others(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            for path, identifier in (("C13", C13), ("C14", C14), ("C15", C15)):
                own = served.world.get(MACHINE, identifier).properties[1201]
                for target in (path, identifier):
                    assert (await self._get(caller, MACHINE, target, 234)).values == (own,)
            assert (await self._get(caller, MACHINE, "C99", 234)).result == NOT_FOUND
            assert (await self._get(caller, MACHINE, OTHER, 234)).result == NOT_FOUND
            assert (await self._get(caller, MACHINE, None, 234)).result == INVALID

    @scenario
    async def test_keys_and_permissions_that_nobody_set(self) -> None:
        bare = World(described=False)
        async with serving(bare) as served, served.caller(ADMIN) as caller:
            got = await self._get(caller, MACHINE, "C14", 238)
            assert (got.result, got.values) == (OK, (blob(b""),))
            got = await self._get(caller, QUEUE, ORDERS, 1102)
            default = default_descriptor(QUEUE, None).to_bytes()
            assert (got.result, got.values) == (OK, (blob(default),))

    @pytest.mark.req("MQDS-3.3.4.2-04", "MQDS-3.3.4.3-01")
    @scenario
    async def test_signature(self) -> None:
        gss, callbacks = SharedSecret(), Callbacks()
        async with (
            serving(_with_everything(), gss=gss) as served,
            served.caller(ADMIN, callbacks=callbacks) as caller,
            caller.proven(gss, callbacks) as proof,
        ):
            for target in ("C14", C14):
                small = await self._get(caller, MACHINE, target, 238, room=31)
                assert small.result == TOO_SMALL
                got = await self._get(caller, MACHINE, target, 238, room=32)
                digest = signature.properties_digest((238,), (blob(distinct.encryption_keys(1)),))
                proof.check(digest, got.signature)


class TestDeleteNotification:
    async def _begin(self, caller: Caller, path: str) -> dscomm.HandleGot:
        request = dscomm2.BeginDeleteNotification(path, caller.auth)
        return await caller.call(dscomm2.BEGIN_DELETE_NOTIFICATION, request)

    async def _notify(self, caller: Caller, handle: ContextHandle) -> int:
        request = dscomm.HandleGiven(handle)
        return (await caller.call(dscomm2.NOTIFY_DELETE, request)).result

    async def _end(self, caller: Caller, handle: ContextHandle) -> ContextHandle:
        request = dscomm.HandleGiven(handle)
        return (await caller.call(dscomm2.END_DELETE_NOTIFICATION, request)).handle

    @pytest.mark.req("MQDS-3.3.4.4-01", "MQDS-3.3.4.4-03", "MQDS-3.3.1.1-02")
    @scenario
    async def test_a_queue_is_remembered_when_it_is_gone(self) -> None:
        heard: list[PendingDelete] = []
        async with serving(on_delete=heard.append) as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, "C14\\orders")
            assert (begun.result, bool(begun.handle)) == (OK, True)
            gone = dscomm.ByGuid(QUEUE, ORDERS)
            assert (await caller.call(dscomm.DELETE_OBJECT_GUID, gone)).result == OK
            assert heard == []
            assert await self._notify(caller, begun.handle) == OK
            assert heard == [PendingDelete(QUEUE, "C14\\orders", SITE_A, C14, False)]
            await self._end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.3.4.4-01")
    @scenario
    async def test_an_auth_handle_is_needed(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            request = dscomm2.BeginDeleteNotification("C14\\orders", ContextHandle.NULL)
            begun = caller.call(dscomm2.BEGIN_DELETE_NOTIFICATION, request)
            assert await fault_of(begun) == FaultStatus.IN_NULL_CONTEXT
            assert served.counters()["deletes"] == 0

    @pytest.mark.req("MQDS-3.3.4.4-02")
    @scenario
    async def test_without_a_backslash_it_is_a_machine(self) -> None:
        heard: list[PendingDelete] = []
        async with serving(on_delete=heard.append) as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, "C14")
            (pending,) = [
                handle.value
                for group in served.rpc.endpoint.groups._groups.values()
                for handle in group.handles.values()
                if isinstance(handle.value, PendingDelete)
            ]
            assert pending == PendingDelete(MACHINE, "C14", SITE_A)
            assert await self._notify(caller, begun.handle) == OK
            assert heard == []
            await self._end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.3.4.4-03", "MQDS-3.3.4.5-01", "MQDS-3.3.1.1-02")
    @scenario
    async def test_queues_of_foreign_machines_are_nobodys_business(self) -> None:
        world = World()
        world.update_event(world.one(MACHINE), {219: ui1(1)})
        heard: list[PendingDelete] = []
        async with (
            serving(world, on_delete=heard.append) as served,
            served.caller(ADMIN) as caller,
        ):
            begun = await self._begin(caller, "C14\\orders")
            assert await self._notify(caller, begun.handle) == OK
            assert heard == []
            await self._end(caller, begun.handle)

    @pytest.mark.req("MQDS-3.3.4.4-03")
    @pytest.mark.parametrize("path", ["C14\\nothing", "C99", "C99\\q", "Alpha"])
    @scenario
    async def test_unknown_objects_make_no_handle(self, path: str) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, path)
            assert (begun.result, begun.handle) == (NOT_FOUND, ContextHandle.NULL)
            assert served.counters()["deletes"] == 0

    @pytest.mark.req("MQDS-3.3.4.5-03")
    @scenario
    async def test_a_handle_serves_more_than_once(self) -> None:
        heard: list[PendingDelete] = []
        async with serving(on_delete=heard.append) as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, "C14\\orders")
            assert [await self._notify(caller, begun.handle) for _ in range(3)] == [OK] * 3
            assert len(heard) == 3
            await self._end(caller, begun.handle)
            assert await fault_of(self._notify(caller, begun.handle)) == MISMATCH

    @pytest.mark.req("MQDS-2.2.7-01", "MQDS-3.3.4.4-01")
    @scenario
    async def test_each_handle_is_one_notification(self) -> None:
        heard: list[PendingDelete] = []
        async with serving(on_delete=heard.append) as served, served.caller(ADMIN) as caller:
            orders = await self._begin(caller, "C14\\orders")
            bills = await self._begin(caller, "C13\\bills")
            assert len({orders.handle, bills.handle, caller.auth}) == 3
            assert await self._notify(caller, bills.handle) == OK
            assert await self._notify(caller, orders.handle) == OK
            assert [pending.path for pending in heard] == ["C13\\bills", "C14\\orders"]
            await self._end(caller, orders.handle)
            await self._end(caller, bills.handle)

    @pytest.mark.req("MQDS-3.3.4.6-01", "MQDS-3.3.4.5-03", "MQDS-2.2.7-01")
    @scenario
    async def test_the_end(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, "C14\\orders")
            assert served.counters()["deletes"] == 1
            assert await fault_of(self._end(caller, caller.auth)) == MISMATCH
            assert await self._end(caller, begun.handle) == ContextHandle.NULL
            assert served.counters()["deletes"] == 0
            assert await fault_of(self._end(caller, begun.handle)) == MISMATCH

    @pytest.mark.req("MQDS-3.3.6.1-01", "MQDS-3.3.1.1-01", "MQDS-3.3.1.1-02")
    @scenario
    async def test_rundown_tells_nobody(self) -> None:
        heard: list[PendingDelete] = []
        async with serving(on_delete=heard.append) as served:
            async with served.caller(ADMIN) as caller:
                await self._begin(caller, "C14\\orders")
                assert served.counters()["deletes"] == 1
                caller.rpc.abort()
            assert set((await served.emptied()).values()) == {0}
        assert heard == []

    @scenario
    async def test_a_listener_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        def fail(_pending: PendingDelete) -> None:
            raise RuntimeError("no way to tell")

        async with serving(on_delete=fail) as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, "C14\\orders")
            assert await self._notify(caller, begun.handle) == HResult.MQ_ERROR
            await self._end(caller, begun.handle)
        assert "no way to tell" in caplog.text

    @scenario
    async def test_nobody_listens_by_default(self) -> None:
        async with serving() as served, served.caller(ADMIN) as caller:
            begun = await self._begin(caller, "C14\\orders")
            assert await self._notify(caller, begun.handle) == OK
            await self._end(caller, begun.handle)


class TestGlobalCatalogs:
    async def _list(
        self,
        caller: Caller,
        domain: str | None,
        computer: str | None = None,
        room: int = SIGNATURE_SIZE,
    ) -> dscomm2.GCList:
        request = dscomm2.GetGCListInDomain(computer, domain, caller.auth, room)
        return await caller.call(dscomm2.GET_GC_LIST_IN_DOMAIN, request)

    @pytest.mark.req("MQDS-3.3.4.7-01")
    @scenario
    async def test_this_server_is_none(self) -> None:
        async with serving() as served, served.caller() as caller:
            closed = dscomm.HandleGiven(caller.auth)
            await caller.call(dscomm.CLOSE_SERVER_HANDLE, closed)  # and needs no auth handle
            got = await caller.call(dscomm2.IS_SERVER_GC, dscomm2.NoParameters())
            assert got.is_gc == 0

    @pytest.mark.req("MQDS-3.3.4.8-03")
    @pytest.mark.parametrize("domain", ["corp.example.com", "", None])
    @scenario
    async def test_it_knows_none_either(self, domain: str | None) -> None:
        async with serving() as served, served.caller() as caller:
            got = await self._list(caller, domain)
            assert (got.result, got.servers) == (HResult.MQ_ERROR_NO_GC_IN_DOMAIN, None)

    @pytest.mark.req("MQDS-3.3.4.8-02")
    @scenario
    async def test_a_computer_must_not_be_named(self) -> None:
        async with serving() as served, served.caller() as caller:
            served.configure(global_catalogs={"corp": (ServerSpec("gc1"),)})
            assert (await self._list(caller, "corp", "C14")).result == INVALID
            assert (await self._list(caller, "corp", "")).result == INVALID

    @pytest.mark.req("MQDS-3.3.4.8-04", "MQDS-3.3.4.8-05")
    @scenario
    async def test_unless_it_was_told_of_some(self) -> None:
        catalogs = (ServerSpec("gc1.corp"), ServerSpec("gc2.corp", True, True))
        gss, callbacks = SharedSecret(), Callbacks()
        async with (
            serving(gss=gss) as served,
            served.caller(callbacks=callbacks) as caller,
            caller.proven(gss, callbacks) as proof,
        ):
            served.configure(global_catalogs={"Corp": catalogs, "empty": ()})
            got = await self._list(caller, "corp")
            assert (got.result, got.servers) == (OK, "10gc1.corp,11gc2.corp")
            assert len(got.signature) == 32
            listed = "10gc1.corp,11gc2.corp".encode("utf-16-le")
            counts = b"".join(n.to_bytes(4, "little") for n in (1, 65, len(listed)))
            proof.check(hashlib.md5(counts + listed).digest(), got.signature)
            assert (await self._list(caller, "corp", room=31)).result == TOO_SMALL
            empty = await self._list(caller, "empty")
            assert empty.result == HResult.MQ_ERROR_NO_GC_IN_DOMAIN


class TestSharedHandles:
    @pytest.mark.req("MQDS-2.2.5-02")
    @scenario
    async def test_one_handle_for_both_interfaces(self) -> None:
        """Minted on dscomm, used on dscomm2, closed on dscomm."""
        async with serving() as served, served.caller() as caller:
            request = dscomm2.GetComputerSites("C14", caller.auth, 16)
            assert (await caller.call(dscomm2.GET_COMPUTER_SITES, request)).result == OK
            closing = dscomm.HandleGiven(caller.auth)
            assert (await caller.call(dscomm.CLOSE_SERVER_HANDLE, closing)).result == OK
            assert await fault_of(caller.call(dscomm2.GET_COMPUTER_SITES, request)) == MISMATCH

    @pytest.mark.req("MQDS-2.2.5-02", "MQDS-3.1.6.1-01")
    @scenario
    async def test_and_for_all_connections_of_a_client(self) -> None:
        async with serving() as served, served.caller() as first:
            async with served.caller(group_id=first.rpc.group_id) as second:
                second.auth = first.auth
                request = dscomm2.GetComputerSites("C14", first.auth, 16)
                assert (await second.call(dscomm2.GET_COMPUTER_SITES, request)).result == OK
                assert served.counters()["groups"] == 1
            assert (await first.call(dscomm2.GET_COMPUTER_SITES, request)).result == OK

    @pytest.mark.req("MQDS-3.1.4.3-03")
    @scenario
    async def test_another_clients_handle(self) -> None:
        async with serving() as served, served.caller() as one, served.caller() as other:
            request = dscomm2.GetComputerSites("C14", one.auth, 16)
            assert await fault_of(other.call(dscomm2.GET_COMPUTER_SITES, request)) == MISMATCH
            null = dscomm2.GetComputerSites("C14", ContextHandle.NULL, 16)
            fault = await fault_of(one.call(dscomm2.GET_COMPUTER_SITES, null))
            assert fault == FaultStatus.IN_NULL_CONTEXT
