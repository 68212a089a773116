"""The second interface (MS-MQDS 3.3.4, 3.4): sites, extended properties, notices of deletion."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.client import calls2
from mqis.protocol.errors import DirectoryError
from mqis.runtime.directory.context import DirectorySettings
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType as T
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.pdu_bodies import AlterContext, Bind
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl
from tests.client.peers import (
    AUTH,
    NOTHING,
    NOTICE,
    OK,
    Line,
    Scripted,
    connected,
    demo_store,
    run,
    served,
)
from tests.client.samples import ONE, TWO
from tests.client.tap import Tap

PATH = "ams-app1\\orders"
NOTES = [
    "S_DSBeginDeleteNotification",
    "S_DSDeleteObject",
    "S_DSNotifyDelete",
    "S_DSEndDeleteNotification",
]


def test_against_a_directory_server() -> None:
    store = demo_store()
    with store.read() as view:
        machine = view.find(T.MACHINE, "ams-dir1")
        site = view.find(T.SITE, "Amsterdam")
    assert machine is not None
    assert site is not None

    async def main() -> None:
        async with (
            served(store, gss=SharedSecret()) as server,
            connected(server.address, gss=SharedSecret()) as client,
        ):
            assert await client.computer_sites("ams-dir1") == (site.id,)
            assert await client.is_global_catalog() is False
            got = await client.get_extended(T.QUEUE, PropId.Q_OBJ_SECURITY, path=PATH)
            assert isinstance(got.value, bytes)
            assert SecurityDescriptor.from_bytes(got.value).dacl is not None
            keys = await client.get_extended(T.MACHINE, PropId.QM_SIGN_PKS, guid=machine.id)
            assert keys == machine.properties[PropId.QM_SIGN_PKS]
            with pytest.raises(DirectoryError):
                await client.global_catalogs("example")
            with pytest.raises(DirectoryError, match="OBJECT_NOT_FOUND"):
                await client.computer_sites("nobody")

    run(main())


class TestAssociation:
    @pytest.mark.req("MQDS-3.4.3-01")
    def test_it_is_bound_on_the_connection_that_has_the_auth_handle(self) -> None:
        async def main() -> None:
            async with (
                Scripted() as peer,
                Tap(peer.port) as tap,
                connected(tap.address) as client,
            ):
                await client.computer_sites("c14")
                await client.computer_sites("c15")
            assert [a.name for a in peer.asked][:2] == [
                "S_DSValidateServer",
                "S_DSGetComputerSites",
            ]
            assert {a.request.auth for a in peer.asked if "Sites" in a.name} == {AUTH}
            assert len(tap.of(Bind)) == len(tap.of(AlterContext)) == 1

        run(main())

    @pytest.mark.req("MQDS-3.4.1-01")
    def test_nothing_is_kept_from_one_call_to_the_next(self) -> None:
        store = demo_store()

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                groups = server.rpc.endpoint.groups
                session = await client._connection.session()
                before = (session.auth, len(client.events.iterators), groups.budget.used)
                await client.computer_sites("ams-app1")
                await client.get_extended(T.QUEUE, PropId.Q_OBJ_SECURITY, path=PATH)
                await client.delete_with_notice(T.QUEUE, PATH)
                after = (session.auth, len(client.events.iterators), groups.budget.used)
                assert after == before
                assert (session.callbacks.pending, session.callbacks.challenged) == ({}, {})

        run(main())

    @pytest.mark.req("MQDS-3.4.1-01")
    def test_the_same_question_is_asked_again(self) -> None:
        answers: list[tuple[Guid, ...]] = [(ONE,), (TWO, ONE)]
        lines: dict[Any, Line] = {
            dscomm2.GET_COMPUTER_SITES: lambda _c, r: dscomm2.ComputerSites(
                answers.pop(0), bytes(r.signature_size), OK
            )
        }

        async def main() -> None:
            async with Scripted(lines) as peer, connected(peer.address) as client:
                assert await client.computer_sites("c14") == (ONE,)
                assert await client.computer_sites("c14") == (TWO, ONE)
                for _ in range(2):
                    await client.get_extended(T.MACHINE, PropId.QM_SIGN_PKS, path="c14")
                    await client.is_global_catalog()
                    await client.global_catalogs("example")
            assert all(peer.names.count(name) == 2 for name in set(peer.names))

        run(main())


class TestExtended:
    @pytest.mark.parametrize(
        ("kind", "propid", "number"),
        [
            (T.QUEUE, PropId.Q_OBJ_SECURITY, 1102),
            (T.MACHINE, PropId.QM_OBJ_SECURITY, 234),
            (T.MACHINE, PropId.QM_ENCRYPT_PKS, 238),
            (T.MACHINE, PropId.QM_SIGN_PKS, 239),
        ],
    )
    @pytest.mark.req("MQDS-3.3.4.2-51")
    def test_one_of_four(self, kind: T, propid: PropId, number: int) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                await client.get_extended(kind, propid, path="c14")
                await client.get_extended(kind, propid, guid=ONE)
            for operation in (dscomm2.GET_PROPS_EX, dscomm2.GET_PROPS_GUID_EX):
                request = peer.only(operation)
                assert request.ids == (number,)
                assert request.types == (VarType.NULL,)
                assert (request.object_type, request.auth) == (kind, AUTH)

        run(main())

    @pytest.mark.req("MQDS-3.3.4.2-51")
    @pytest.mark.parametrize(
        ("kind", "propid"),
        [
            (T.QUEUE, PropId.Q_LABEL),
            (T.QUEUE, PropId.QM_SIGN_PKS),
            (T.MACHINE, PropId.Q_OBJ_SECURITY),
            (T.SITE, PropId.S_SECURITY),
        ],
    )
    def test_and_no_other(self, kind: T, propid: PropId) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                with pytest.raises(ValueError, match="does not return"):
                    await client.get_extended(kind, propid, path="c14")
                assert peer.names == []

        run(main())


@pytest.mark.req("MQDS-3.3.4.8-51")
def test_the_global_catalogs_of_a_domain() -> None:
    async def main() -> None:
        lines = {
            dscomm2.GET_GC_LIST_IN_DOMAIN: lambda _c, r: dscomm2.GCList(
                "10gc1.example,11gc2.example", bytes(r.signature_size), OK
            )
        }
        async with Scripted(lines) as peer, connected(peer.address) as client:
            found = await client.global_catalogs("example.com")
            assert [spec.name for spec in found] == ["gc1.example", "gc2.example"]
            request = peer.only(dscomm2.GET_GC_LIST_IN_DOMAIN)
            assert (request.computer_name, request.domain_name) == (None, "example.com")

    run(main())


def deleted(lines: dict[Any, Line] | None = None) -> tuple[int | DirectoryError, Scripted]:
    async def main() -> tuple[int | DirectoryError, Scripted]:
        async with Scripted(lines) as peer, connected(peer.address) as client:
            try:
                return await client.delete_with_notice(T.QUEUE, PATH), peer
            except DirectoryError as error:
                return error, peer

    return run(main())


class TestNotices:
    @pytest.mark.req("MQDS-3.4.4.1-01", "MQDS-3.4.4.1-02", "MQDS-3.4.4.1-03", "MQDS-4.4-51")
    def test_begin_delete_notify_end(self) -> None:
        result, peer = deleted()
        assert result == OK
        assert peer.names == NOTES
        begin = peer.only(dscomm2.BEGIN_DELETE_NOTIFICATION)
        assert (begin.path, begin.auth) == (PATH, AUTH)
        assert peer.only(dscomm2.NOTIFY_DELETE).handle == NOTICE
        assert peer.only(dscomm2.END_DELETE_NOTIFICATION).handle == NOTICE

    @pytest.mark.req("MQDS-3.4.4.1-01")
    def test_if_it_cannot_begin_nothing_happens(self) -> None:
        begun = dscomm.HandleGot(NOTHING, 0xC00E0025)
        result, peer = deleted({dscomm2.BEGIN_DELETE_NOTIFICATION: begun})
        assert isinstance(result, DirectoryError)
        assert peer.names == NOTES[:1]

    @pytest.mark.req("MQDS-3.4.4.1-03")
    def test_the_end_comes_whatever_fails_before(self) -> None:
        result, peer = deleted({dscomm2.NOTIFY_DELETE: dscomm.DirectoryResult(0xC00E0025)})
        assert isinstance(result, DirectoryError)
        assert peer.names == NOTES
        result, peer = deleted({dscomm.DELETE_OBJECT: dscomm.DirectoryResult(0xC00E0025)})
        assert isinstance(result, DirectoryError)
        assert peer.names == [NOTES[0], NOTES[1], NOTES[3]]  # what is still there is not reported

    @pytest.mark.req("MQDS-3.3.4.4-52")
    def test_a_code_that_informs_is_a_success(self) -> None:
        code = 0x400E03EB
        begun = dscomm.HandleGot(NOTICE, code)
        assert deleted({dscomm2.BEGIN_DELETE_NOTIFICATION: begun})[0] == code
        result, peer = deleted({dscomm2.BEGIN_DELETE_NOTIFICATION: dscomm.HandleGot(NOTHING, code)})
        assert result == code
        assert peer.names == NOTES[:2]  # no handle came back, so there is nothing to end

    @pytest.mark.parametrize(("kind", "path"), [(T.QUEUE, "c14"), (T.MACHINE, "c14\\q")])
    @pytest.mark.req("MQDS-3.3.4.4-51")
    def test_a_backslash_makes_it_a_queue(self, kind: T, path: str) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                with pytest.raises(ValueError, match="not the path"):
                    await client.delete_with_notice(kind, path)
                assert peer.names == []
                await client.delete_with_notice(T.MACHINE, "c14")
                assert peer.only(dscomm.DELETE_OBJECT).object_type == T.MACHINE

        run(main())

    @pytest.mark.req("MQDS-4.4-51")
    def test_against_a_directory_server(self) -> None:
        store = demo_store()

        async def main() -> None:
            async with served(store) as server, connected(server.address) as client:
                assert await client.delete_with_notice(T.QUEUE, PATH) == OK
                with pytest.raises(DirectoryError, match="OBJECT_NOT_FOUND"):
                    await client.get(T.QUEUE, [PropId.Q_LABEL], path=PATH)

        run(main())


@pytest.mark.req("MQDS-5.1-51")
def test_who_may_connect_may_not_do_everything() -> None:
    """Every method of a server judges its caller."""
    store = demo_store()
    with store.read() as view:
        queue = view.find(T.QUEUE, "ams-app1\\payments")
        machine = view.find(T.MACHINE, "ams-app1")
    assert queue is not None
    assert machine is not None
    label = props({PropId.Q_LABEL: "mine"})

    async def main() -> None:
        settings = DirectorySettings(anonymous_in_everyone=False)
        async with served(store, settings) as server, connected(server.address) as client:
            uses: list[Any] = [
                client.create(T.QUEUE, "ams-app1\\new", {PropId.Q_LABEL: label[PropId.Q_LABEL]}),
                client.delete(T.QUEUE, path=queue.path),
                client.delete(T.QUEUE, guid=queue.id),
                client.get(T.QUEUE, [PropId.Q_LABEL], path=queue.path),
                client.get(T.QUEUE, [PropId.Q_LABEL], guid=queue.id),
                client.set(T.QUEUE, label, path=queue.path),  # type: ignore[arg-type]
                client.set(T.QUEUE, label, guid=queue.id),  # type: ignore[arg-type]
                client.get_security(T.QUEUE, 4, path=queue.path),
                client.get_security(T.QUEUE, 4, guid=queue.id),
                client.get_machine_security(T.QUEUE, 4, queue.id),
                client.set_security(T.QUEUE, 4, _descriptor(), path=queue.path),
                client.set_security(T.QUEUE, 4, _descriptor(), guid=queue.id),
                client.set_machine_properties("ams-app1", props({PropId.QM_QUOTA: 5})),
                client.computer_sites("ams-app1"),
                client.get_extended(T.QUEUE, PropId.Q_OBJ_SECURITY, path=queue.path),
                client.get_extended(T.QUEUE, PropId.Q_OBJ_SECURITY, guid=queue.id),
                client.delete_with_notice(T.QUEUE, queue.path or ""),
            ]
            for use in uses:
                with pytest.raises(DirectoryError) as failure:
                    await use
                assert failure.value.hresult in HIDDEN
            # The announcement alone, which the deletion after it would refuse in its place.
            session = await client._connection.session()
            announced = await calls2.begin_delete_notification(session, queue.path or "")
            assert (announced.handle, announced.result in HIDDEN) == (NOTHING, True)
            assert [entry async for entry in client.queues()] == []

    run(main())


#: What may not be read is not there: no object, no machine for a queue.
HIDDEN = (0xC00E050F, 0xC00E000D)


def _descriptor() -> bytes:
    return parse_sddl("D:(A;;GA;;;WD)").to_bytes()
