"""The property level: one call each, its arguments, its answer, its signature."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mqis.client import ClientEvents, DirectoryClient, Queue, QueueManager, equal
from mqis.client import calls as raw
from mqis.client.elements import ELEMENTS
from mqis.client.results import DirectoryOperationResult
from mqis.client.session import ServerSession, SessionSettings
from mqis.protocol.directory.locate import Target
from mqis.protocol.errors import DirectoryError
from mqis.runtime.directory.results import no_properties
from mqis.testing.security import SharedSecret
from mqis.wire.errors import WireError
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import SortColumn
from mqis.wire.mqds.serverlist import ServerList, ServerSpec
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import NDR20
from tests.client.peers import (
    OK,
    QUERY,
    Line,
    Operations,
    Scripted,
    connected,
    run,
    text,
)
from tests.client.providers import Proving
from tests.client.samples import KINDS, ONE, SAMPLES, populated

T = ObjectType
LABEL, QUOTA = PropId.Q_LABEL, PropId.Q_QUOTA
NULL = PropVariant(VarType.NULL, None)

Use = Callable[[DirectoryClient], Awaitable[Any]]


async def label_of(client: DirectoryClient) -> Any:
    return await client.get(T.QUEUE, [LABEL], path="c14\\q")


# --- what may be asked ----------------------------------------------------------------------------


class TestRules:
    @pytest.mark.parametrize("kind", [T.USER, T.ROUTINGLINK, T.DELETEDOBJECT])
    @pytest.mark.req("MQDS-2.2.9-51")
    def test_what_has_no_path_is_not_named_by_one(self, kind: ObjectType) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                uses: list[Awaitable[Any]] = [
                    client.get(kind, [PropId.U_ID], path="x"),
                    client.set(kind, {PropId.U_DIGEST: NULL}, path="x"),
                    client.delete(kind, path="x"),
                    client.get_security(kind, 4, path="x"),
                    client.set_security(kind, 4, b"sd", path="x"),
                ]
                if kind is not T.ROUTINGLINK:
                    uses.append(client.create(kind, "x", {PropId.U_DIGEST: NULL}))
                for use in uses:
                    with pytest.raises(DirectoryError):
                        await use
                assert peer.names == []

        run(main())

    @pytest.mark.req("MQDS-3.1.4.21.1-51")
    def test_tombstones_are_not_touched(self) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                gone = T.DELETEDOBJECT
                for use in (
                    client.create(gone, None, {PropId.D_SCOPE: NULL}),
                    client.get(gone, [PropId.D_SCOPE], guid=ONE),
                    client.set(gone, {PropId.D_SCOPE: NULL}, guid=ONE),
                    client.delete(gone, guid=ONE),
                ):
                    with pytest.raises(DirectoryError):
                        await use
                assert peer.names == []

        run(main())
        assert T.DELETEDOBJECT not in ELEMENTS.values()

    @pytest.mark.req("MQDS-3.1.4.7-51")
    def test_reads_are_preset_and_counted(self) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                await client.get(T.QUEUE, [LABEL, QUOTA], path="c14\\q")
                by_path = peer.only(dscomm.GET_PROPS)
                assert by_path.ids == (LABEL, QUOTA)
                assert by_path.types == (VarType.NULL, VarType.NULL)
                await client.get(T.QUEUE, [LABEL] * 128, guid=ONE)
                by_guid = peer.only(dscomm.GET_PROPS_GUID)
                assert len(by_guid.ids) == len(by_guid.types) == 128
                assert set(by_guid.types) == {VarType.NULL}
                for ids in ([], [LABEL] * 129):
                    with pytest.raises(ValueError, match="1 to 128"):
                        await client.get(T.QUEUE, ids, path="c14\\q")
                assert len(peer.names) == 2

        run(main())

    @pytest.mark.req("MQDS-3.1.4.17-51", "MQDS-2.2.14-51")
    def test_a_lookup_as_it_is_sent(self) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                sort = [SortColumn(QUOTA, 1), SortColumn(LABEL, 0)]
                assert [row async for row in client.lookup([LABEL, QUOTA], sort=sort)] == []
                request = peer.only(dscomm.LOOKUP_BEGIN)
                assert request.context is None
                assert request.sort is not None
                assert request.sort.keys == tuple(sort)
                async for _ in client.search(Queue, order_by=["-quota", "label"]):
                    pass
                last = [a.request for a in peer.asked if a.name == "S_DSLookupBegin"][-1]
                assert last.sort.keys == tuple(sort)

        run(main())


async def _everything(client: DirectoryClient) -> None:
    """Every method there is, on an obedient server."""
    label: dict[int, PropVariant] = {LABEL: text("x")}
    await client.create(T.QUEUE, "c14\\q", label)
    await client.set(T.QUEUE, label, path="c14\\q")
    await client.set(T.QUEUE, label, guid=ONE)
    await client.set_machine_properties("c14", props({PropId.QM_QUOTA: 5}))
    await client.set_security(T.QUEUE, 4, b"sd", path="c14\\q")
    await client.set_security(T.QUEUE, 4, b"sd", guid=ONE)
    await client.get(T.QUEUE, [LABEL], path="c14\\q")
    await client.get(T.QUEUE, [LABEL], guid=ONE)
    await client.get_security(T.QUEUE, 4, path="c14\\q")
    await client.get_security(T.QUEUE, 4, guid=ONE)
    await client.get_machine_security(T.MACHINE, 4, ONE)
    await client.get_extended(T.QUEUE, PropId.Q_OBJ_SECURITY, path="c14\\q")
    await client.get_extended(T.MACHINE, PropId.QM_SIGN_PKS, guid=ONE)
    for kind in (client.queues(), client.machines(), client.sites(), client.links()):
        assert [entry async for entry in kind] == []
    await client.known_servers()
    await client.server_port()
    await client.computer_sites("c14")
    await client.is_global_catalog()
    await client.global_catalogs("example")
    await client.delete(T.QUEUE, path="c14\\q")
    await client.delete(T.QUEUE, guid=ONE)
    await client.delete_with_notice(T.QUEUE, "c14\\q")


async def _every_event(events: ClientEvents) -> None:
    for kind, element in KINDS.items():
        await events.create_directory_object(populated(kind))
        await events.write_directory(populated(kind), list(SAMPLES[kind]))
        await events.delete_directory_object(populated(kind))
        for name in ("Identifier", "Pathname", "ComputerName", "CertificateDigestList"):
            await events.read_directory(element, [equal(name, ONE)])
        begun = await events.read_directory_begin(element)
        assert begun.value is not None
        await events.read_directory_next(begun.value)
        await events.read_directory_end(begun.value)


class TestNumbers:
    @pytest.mark.req("MQDS-3.1.4-51", "MQDS-3.3.4-51")
    def test_opnums_that_are_never_issued(self) -> None:
        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                await _everything(client)
                await _every_event(client.events)
            issued = {
                description.name: {
                    asked.operation.opnum
                    for asked in peer.asked
                    if asked.operation in description.operations
                }
                for description in (dscomm.DSCOMM, dscomm2.DSCOMM2)
            }
            assert not issued["dscomm"] & {9, 15, 16, 17, 18, 24, 25, 26}
            assert 7 not in issued["dscomm2"]
            assert issued["dscomm"] == {*range(9), *range(10, 15), *range(19, 24), 27}
            assert issued["dscomm2"] == {0, 1, 2, 3, 4, 5, 6, 8}

        run(main())

    @pytest.mark.req("MQDS-3.1.4.16-51")
    def test_no_event_sets_machine_properties(self) -> None:
        """That call is for a queue manager about itself; whoever wants it has to name it."""

        async def main() -> None:
            async with Scripted() as peer, connected(peer.address) as client:
                await _every_event(client.events)
                await client.add(QueueManager(computer_name="c", site_identifier_list=(ONE,)))
                await client.write(QueueManager(computer_name="c", journal_quota=5))
                await client.set(T.MACHINE, props({PropId.QM_QUOTA: 5}), path="c14")
            assert "S_DSQMSetMachineProperties" not in peer.names

        run(main())


@pytest.mark.req("MQDS-6-51")
def test_a_path_on_the_wire() -> None:
    """max count, offset, actual count, the text and its terminator; [unique] has a referent."""
    by_path = dscomm.ByPath(1, "c14\\q")
    name = b"".join(n.to_bytes(4, "little") for n in (6, 0, 6)) + "c14\\q\0".encode("utf-16-le")
    stub = dscomm.DELETE_OBJECT.request.encode(by_path, Syntax.NDR20)
    assert stub == (1).to_bytes(4, "little") + name
    create = dscomm.CreateObject(1, "c14\\q", None, (108,), (NULL,), None)
    stub = dscomm.CREATE_OBJECT.request.encode(create, Syntax.NDR20)
    assert stub[:4] == (1).to_bytes(4, "little")
    assert stub[4:8] != bytes(4)
    assert stub[8 : 8 + len(name)] == name

    async def main() -> None:
        async with Scripted(transfers=(NDR20,)) as peer, connected(peer.address) as client:
            await client.delete(T.QUEUE, path="c14\\q")
            sent = next(a.stub for a in peer.asked if a.name == "S_DSDeleteObject")
            assert sent[: 4 + len(name)] == (1).to_bytes(4, "little") + name

    run(main())


# --- what comes back ------------------------------------------------------------------------------

CODES = [0xC00E0025, 0xC00E050F, 0xC00E0523, 0xC00E0023, 0x8007000E, 0xE0001234]

#: A method, its operation, and the answer that is nothing but a code.
FAILING: dict[str, tuple[Use, Operations, Callable[[Any, int], Any]]] = {
    "create": (
        lambda c: c.create(T.QUEUE, "c14\\q", {LABEL: text("x")}),
        dscomm.CREATE_OBJECT,
        lambda _r, code: dscomm.Created(None, code),
    ),
    "delete": (
        lambda c: c.delete(T.QUEUE, path="c14\\q"),
        dscomm.DELETE_OBJECT,
        lambda _r, code: dscomm.DirectoryResult(code),
    ),
    "set": (
        lambda c: c.set(T.QUEUE, {LABEL: text("x")}, guid=ONE),
        dscomm.SET_PROPS_GUID,
        lambda _r, code: dscomm.DirectoryResult(code),
    ),
    "get": (
        label_of,
        dscomm.GET_PROPS,
        no_properties,
    ),
    "set_security": (
        lambda c: c.set_security(T.QUEUE, 4, b"sd", path="c14\\q"),
        dscomm.SET_OBJECT_SECURITY,
        lambda _r, code: dscomm.DirectoryResult(code),
    ),
    "get_security": (
        lambda c: c.get_security(T.QUEUE, 4, path="c14\\q"),
        dscomm.GET_OBJECT_SECURITY,
        lambda r, code: dscomm.SecurityGot(bytes(r.length), 0, bytes(r.signature_size), code),
    ),
    "set_machine_properties": (
        lambda c: c.set_machine_properties("c14", props({PropId.QM_MACHINE_TYPE: "x"})),
        dscomm.QM_SET_MACHINE_PROPERTIES,
        lambda _r, code: dscomm.DirectoryResult(code),
    ),
}


class TestAnswers:
    @pytest.mark.parametrize("code", CODES)
    @pytest.mark.parametrize("method", FAILING)
    @pytest.mark.req("MQDS-3-51", "MQDS-3.2.4-02")
    def test_a_code_goes_to_the_caller_and_nothing_else_happens(
        self, method: str, code: int
    ) -> None:
        use, operation, answer = FAILING[method]

        async def main() -> None:
            lines: dict[Any, Line] = {operation: lambda _c, r: answer(r, code)}
            async with Scripted(lines) as peer, connected(peer.address) as client:
                with pytest.raises(DirectoryError) as failure:
                    await use(client)
                assert failure.value.hresult == code
                assert peer.names == [operation.name]
                assert client.usable

        run(main())

    @pytest.mark.req("MQDS-3-51", "MQDS-3.2.4-02")
    def test_an_event_makes_a_refused_call_once(self) -> None:
        code = 0xC00E0025

        async def main() -> None:
            lines = {dscomm.DELETE_OBJECT: dscomm.DirectoryResult(code)}
            async with Scripted(lines) as peer, connected(peer.address) as client:
                outcome = await client.events.delete_directory_object(Queue(pathname="c14\\q"))
                assert isinstance(outcome.error, DirectoryError)
                assert outcome.error.hresult == code
                assert peer.names == ["S_DSDeleteObject"]

        run(main())

    @pytest.mark.req("MQDS-3.2.4-01")
    def test_values_come_as_they_were_sent(self) -> None:
        values = (text("Orders"), PropVariant(VarType.EMPTY, None), PropVariant(VarType.UI4, 7))
        ids = [LABEL, PropId.Q_TYPE, QUOTA]

        async def main() -> None:
            sent = dscomm.PropsGot(values, bytes(16), 0x400E0001)
            async with Scripted({dscomm.GET_PROPS: sent}) as peer:
                session = await ServerSession.open(peer.address, SessionSettings())
                await session.validate()
                target = Target(T.QUEUE, "c14\\q")
                assert await raw.get_props(session, target, ids) == sent
                await session.close()
                async with connected(peer.address) as client:
                    got = await client.get(T.QUEUE, ids, path="c14\\q")
                    assert got == dict(zip(ids, values, strict=True))

        run(main())

    @pytest.mark.req("MQDS-3.1.4.7-52")
    def test_what_comes_with_a_failure_is_disregarded(self) -> None:
        """A signature that is none does not matter then."""

        async def main() -> None:
            def line(_call: object, request: Any) -> dscomm.PropsGot:
                return dscomm.PropsGot((text("secret"),), b"\xff" * 16, 0xC00E0025)

            lines = {dscomm.GET_PROPS: line, dscomm.GET_PROPS_GUID: line}
            async with (
                Proving(lines) as peer,
                connected(peer.address, gss=SharedSecret()) as client,
            ):
                for where in ({"path": "c14\\q"}, {"guid": ONE}):
                    with pytest.raises(DirectoryError) as failure:
                        await client.get(T.QUEUE, [LABEL], **where)
                    assert failure.value.hresult == 0xC00E0025
                assert client.usable

        run(main())

    @pytest.mark.req("MQDS-2.2-52")
    def test_an_answer_that_is_not_ndr_fails_the_call(self) -> None:
        """More values than were asked for, or a signature longer than there is."""

        async def main() -> None:
            for stub in (b"", bytes(4), (99).to_bytes(4, "little") * 8):
                async with Scripted() as peer:
                    service = peer.services[0]
                    plain = service.dispatch

                    def lie(call: Any, stub: bytes = stub, plain: Any = plain) -> Any:
                        return stub if call.opnum == dscomm.GET_PROPS.opnum else plain(call)

                    service.dispatch = lie  # type: ignore[method-assign,assignment]
                    async with connected(peer.address) as client:
                        with pytest.raises(WireError):
                            await label_of(client)
                        outcome = await client.events.read_directory(
                            Queue, [equal("Pathname", "c14\\q")]
                        )
                        assert outcome.status is DirectoryOperationResult.GENERIC_ERROR
                        assert isinstance(outcome.error, WireError)

        run(main())

    @pytest.mark.req("MQDS-3.1.4.11-52")
    def test_a_buffer_that_is_short_is_offered_again(self) -> None:
        descriptor = bytes(range(256)) * 8

        def line(_call: object, request: Any) -> dscomm.SecurityGot:
            zeros = bytes(request.signature_size)
            if request.length < len(descriptor):
                return dscomm.SecurityGot(bytes(request.length), len(descriptor), zeros, 0xC00E0023)
            padded = descriptor.ljust(request.length, b"\0")
            return dscomm.SecurityGot(padded, len(descriptor), zeros, OK)

        async def main() -> None:
            lines = {
                dscomm.GET_OBJECT_SECURITY: line,
                dscomm.GET_OBJECT_SECURITY_GUID: line,
                dscomm.QM_GET_OBJECT_SECURITY: line,
            }
            async with Scripted(lines) as peer, connected(peer.address) as client:
                assert await client.get_security(T.QUEUE, 4, path="c14\\q") == descriptor
                assert await client.get_security(T.QUEUE, 4, guid=ONE) == descriptor
                assert await client.get_machine_security(T.QUEUE, 4, ONE) == descriptor
                assert len(peer.names) == 6
                lengths = [a.request.length for a in peer.asked if "Security" in a.name]
                assert lengths[1::2] == [len(descriptor)] * 3

        run(main())

    def test_a_server_that_is_never_content_is_not_asked_for_ever(self) -> None:
        async def main() -> None:
            lines = {
                dscomm.GET_OBJECT_SECURITY: lambda _c, r: dscomm.SecurityGot(
                    bytes(r.length), r.length + 1, bytes(r.signature_size), 0xC00E0023
                )
            }
            async with Scripted(lines) as peer, connected(peer.address) as client:
                with pytest.raises(DirectoryError):
                    await client.get_security(T.QUEUE, 4, path="c14\\q")
                assert len(peer.names) == 2

        run(main())


class TestLookups:
    def pages(self, *pages: tuple[PropVariant, ...]) -> dict[Any, Line]:
        left = list(pages)

        def line(_call: object, request: Any) -> dscomm.LookupGot:
            page = left.pop(0) if left else ()
            return dscomm.LookupGot(page, bytes(request.signature_size), OK)

        return {dscomm.LOOKUP_NEXT: line}

    @pytest.mark.req("MQDS-4.3-51", "MQDS-3.1.4.19-51", "MQDS-3.1.4.18-51")
    def test_begin_next_until_nothing_comes_end(self) -> None:
        """Whole objects, many in one reply or one in each."""
        one = (text("a"), PropVariant(VarType.UI4, 1))
        two = (text("b"), PropVariant(VarType.UI4, 2))
        three = (text("c"), PropVariant(VarType.UI4, 3))

        async def main() -> None:
            for pages in ((one, two, three), (one + two, three), (one + two + three,)):
                async with Scripted(self.pages(*pages)) as peer:
                    async with connected(peer.address) as client:
                        rows = [row async for row in client.lookup([LABEL, QUOTA])]
                        assert rows == [one, two, three]
                    names = ["S_DSLookupNext"] * (len(pages) + 1)
                    assert peer.names == ["S_DSLookupBegin", *names, "S_DSLookupEnd"]
                    nexts = [a.request for a in peer.asked if a.name == "S_DSLookupNext"]
                    assert {request.handle for request in nexts} == {QUERY}
                    assert all(r.size % 2 == 0 and r.size <= 128 for r in nexts)
                    assert peer.only(dscomm.LOOKUP_END).handle == QUERY

        run(main())

    def test_half_an_object(self) -> None:
        async def main() -> None:
            async with Scripted(self.pages((text("a"),))) as peer:
                async with connected(peer.address) as client:
                    with pytest.raises(DirectoryError, match="an incomplete object"):
                        [row async for row in client.lookup([LABEL, QUOTA])]
                assert peer.names[-1] == "S_DSLookupEnd"

        run(main())

    def test_a_lookup_that_is_left_is_ended(self) -> None:
        async def main() -> None:
            async with (
                Scripted(self.pages((text("a"), text("b")))) as peer,
                connected(peer.address) as client,
            ):
                rows = client.lookup([LABEL])
                assert await anext(rows) == (text("a"),)
                await rows.aclose()  # type: ignore[attr-defined]
                assert peer.names == ["S_DSLookupBegin", "S_DSLookupNext", "S_DSLookupEnd"]

        run(main())


class TestServersCache:
    @pytest.mark.req("MQDS-3.1.4.20-51", "MQDS-3.1.4.20-53")
    def test_one_site_after_the_other(self) -> None:
        texts = ["HQ;\\10srv1.example.com,11srv2.example.com", "Leiden;\\01lei-dir1"]

        def line(_call: object, request: Any) -> dscomm.ServersCache:
            zeros = bytes(request.signature_size)
            if request.index == len(texts):
                return dscomm.ServersCache(request.index, None, zeros, 0xC00E0523)
            pointer = dscomm.StringPointer(texts[request.index])
            return dscomm.ServersCache(request.index, pointer, zeros, OK)

        async def main() -> None:
            async with Scripted({dscomm.CREATE_SERVERS_CACHE: line}) as peer:
                async with connected(peer.address) as client:
                    assert await client.known_servers() == [
                        ServerList(
                            "HQ",
                            (
                                ServerSpec("srv1.example.com", True, False),
                                ServerSpec("srv2.example.com", True, True),
                            ),
                        ),
                        ServerList("Leiden", (ServerSpec("lei-dir1", False, True),)),
                    ]
                assert [a.request.index for a in peer.asked if "Cache" in a.name] == [0, 1, 2]

        run(main())

    @pytest.mark.req("MQDS-3.1.4.20-51")
    def test_another_failure_is_no_end(self) -> None:
        async def main() -> None:
            lines = {
                dscomm.CREATE_SERVERS_CACHE: lambda _c, r: dscomm.ServersCache(
                    r.index, None, bytes(r.signature_size), 0xC00E0025
                )
            }
            async with Scripted(lines) as peer, connected(peer.address) as client:
                with pytest.raises(DirectoryError) as failure:
                    await client.known_servers()
                assert failure.value.hresult == 0xC00E0025

        run(main())
