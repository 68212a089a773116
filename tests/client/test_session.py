"""Connecting, proving the server, and letting go (MS-MQDS 2.1, 2.2, 3.2.3, 3.1.4.1 to 3.1.4.3)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqis.client import (
    DirectoryClient,
    DirectoryConnection,
    JsonFile,
    KnownServers,
    NoServerError,
    Queue,
    ServerAddress,
    equal,
)
from mqis.client.results import DirectoryOperationResult
from mqis.client.servers import (
    MAPPER_PORT,
    LogonRefusedError,
    is_logon_refused,
)
from mqis.client.session import SessionSettings
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.protocol.rpc.faults import BindFaultError, FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.directory.context import DirectorySettings
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.pdu_bodies import AlterContext, Bind, Request
from mqis.wire.security.sid import Sid
from tests.client.peers import (
    HOST,
    NOTHING,
    OK,
    Scripted,
    connected,
    demo_store,
    events_at,
    run,
    served,
    text,
)
from tests.client.samples import ONE
from tests.client.tap import Tap

DSCOMM = Guid.parse("77df7a80-f298-11d0-8358-00a024c480a8")
DSCOMM2 = Guid.parse("708cca10-9569-11d1-b2a5-0060977d8118")


async def free_port() -> int:
    """A port where nobody listens."""
    server = await asyncio.start_server(lambda _r, _w: None, HOST, 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


class TestBinding:
    @pytest.mark.req("MQDS-2.1-51")
    def test_the_endpoint_mapper_is_asked_and_both_interfaces_are_bound(self) -> None:
        async def main() -> None:
            registry = EndpointRegistry()
            async with Scripted() as peer, Tap(peer.port) as tap:
                registry.insert(Registration(dscomm.SYNTAX, tap.port, HOST))
                mapper = RpcServer([EndpointMapperService(registry)], SystemEntropy())
                mapper_port = await mapper.listen(HOST)
                async with connected(ServerAddress(HOST, mapper_port=mapper_port)) as client:
                    await client.computer_sites("c14")
                await mapper.close(0.2)
            ((_, bind),) = tap.of(Bind)
            assert {e.abstract for e in bind.contexts} == {SyntaxId(DSCOMM, 1, 0)}
            ((_, alter),) = tap.of(AlterContext)
            assert {e.abstract for e in alter.contexts} == {SyntaxId(DSCOMM2, 1, 0)}

        run(main())
        assert MAPPER_PORT == 135

    def test_a_mapper_that_does_not_know_the_interface(self) -> None:
        async def main() -> None:
            mapper = RpcServer([EndpointMapperService(EndpointRegistry())], SystemEntropy())
            port = await mapper.listen(HOST)
            with pytest.raises(NoServerError, match="does not serve"):
                await DirectoryClient.connect([ServerAddress(HOST, mapper_port=port)])
            await mapper.close(0.2)

        run(main())

    @pytest.mark.req("MQDS-2.1-52")
    def test_a_port_that_is_given_needs_no_mapper(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                address = ServerAddress(HOST, peer.port, mapper_port=await free_port())
                async with connected(address) as client:
                    assert client.server == address

        run(main())
        assert ServerAddress.parse("dir1:2879") == ServerAddress("dir1", 2879)
        for written in ("dir1", "dir1:2879", "[fd00::1]", "[fd00::1]:2879"):
            assert str(ServerAddress.parse(written)) == written

    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @pytest.mark.req("MQDS-2.2-51")
    def test_two_elements_are_proposed_and_the_accepted_one_is_spoken(
        self, transfer: SyntaxId
    ) -> None:
        async def main() -> None:
            lines = {
                dscomm.GET_PROPS: lambda _c, r: dscomm.PropsGot(
                    (text("Orders"),), bytes(r.signature_size), OK
                )
            }
            async with (
                Scripted(lines, (transfer,)) as peer,
                Tap(peer.port) as tap,
                connected(tap.address) as client,
            ):
                got = await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")
                assert got == props({PropId.Q_LABEL: "Orders"})
            ((_, bind),) = tap.of(Bind)
            proposed = {e.context_id: e.transfers for e in bind.contexts}
            assert set(proposed.values()) == {(NDR20,), (NDR64,)}
            used = {body.context_id for _, body in tap.of(Request)}
            assert [proposed[number] for number in used] == [(transfer,)]

        run(main())

    @pytest.mark.req("MQDS-2.1-53")
    def test_anybody_may_connect_and_the_server_judges_each_call(self) -> None:
        """Without an identity, and with the one that NTLM proves."""
        sid = Sid.parse("S-1-5-21-1-2-3-1000")
        account = Account("LAB", "alice", sid, nt_hash("secret"))
        authenticator = PyspnegoAuthenticator(MemoryAccounts([account]), "DIR1", "LAB")
        initiator = PyspnegoInitiator(Secret("alice", "LAB", "secret"))
        credentials = Credentials(initiator, AuthType.NTLM, AuthLevel.PRIVACY, HOST)
        store = demo_store()

        async def main() -> None:
            settings = DirectorySettings(administrators=frozenset({sid}))
            async with served(store, settings, authenticator=authenticator) as server:
                async with connected(server.address) as nobody:
                    assert (await nobody.read(Queue, pathname="ams-app1\\orders")).label
                    with pytest.raises(DirectoryError, match="ACCESS_DENIED"):
                        await nobody.add(Queue(pathname="ams-app1\\new"))
                async with connected(server.address, credentials=credentials) as alice:
                    assert await alice.add(Queue(pathname="ams-app1\\new"))

        run(main())


class TestServers:
    @pytest.mark.req("MQDS-3.2.3-01", "MQDS-3.2.1.7-01")
    def test_the_current_server_is_the_one_that_is_called(self) -> None:
        async def main() -> None:
            async with Scripted() as first, Scripted() as second, Scripted() as third:
                known = KnownServers.of([first.address, second.address, third.address])
                known.use(second.address)
                client = await DirectoryClient.connect(known)
                await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")
                await client.close()
                assert second.names == ["S_DSGetProps"]
                assert first.asked == third.asked == []
                assert known.current in known.servers

        run(main())

    @pytest.mark.req("MQDS-3.2.3-02", "MQDS-3.2.1.4-01")
    def test_if_it_does_not_answer_the_others_are_tried_in_turn(self) -> None:
        async def main() -> None:
            dead = [ServerAddress(HOST, await free_port()) for _ in range(2)]
            async with Scripted() as third, Scripted() as fourth:
                known = KnownServers.of([*dead, third.address, fourth.address])
                async with await DirectoryClient.connect(known) as client:
                    assert client.server == known.current == third.address
                assert fourth.asked == []

        run(main())

    @pytest.mark.req("MQDS-3.2.3-02", "MQDS-3-52")
    def test_each_server_is_tried_once(self) -> None:
        """Servers that hang up see one connection each, then initialisation has failed."""

        async def main() -> None:
            callers: list[int] = []

            async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                callers.append(writer.get_extra_info("sockname")[1])
                writer.close()

            servers = [await asyncio.start_server(hang_up, HOST, 0) for _ in range(3)]
            ports = [server.sockets[0].getsockname()[1] for server in servers]
            with pytest.raises(NoServerError):
                await DirectoryClient.connect([ServerAddress(HOST, port) for port in ports])
            assert callers == ports
            for server in servers:
                server.close()

        run(main())

    @pytest.mark.req("MQDS-3.2.3-03")
    def test_if_nobody_answers_initialisation_fails(self) -> None:
        async def main() -> None:
            dead = [ServerAddress(HOST, await free_port()) for _ in range(2)]
            known = KnownServers.of(dead)
            with pytest.raises(NoServerError) as failure:
                await DirectoryClient.connect(known)
            assert all(str(server) in str(failure.value) for server in dead)
            assert len(failure.value.errors) == len(dead)
            assert not is_logon_refused(failure.value)
            assert known.current == dead[0]
            async with events_at(known) as events:
                outcome = await events.read_directory(Queue, [equal("Identifier", ONE)])
                assert outcome.status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
                assert isinstance(outcome.error, NoServerError)

        run(main())

    @pytest.mark.req("MQDS-3.2.3-03")
    def test_a_server_that_does_not_prove_itself_is_no_connection(self) -> None:
        async def main() -> None:
            refusal = {dscomm.VALIDATE_SERVER: dscomm.HandleGot(NOTHING, 0xC00E0043)}
            async with Scripted(refusal) as peer, events_at(peer.address) as events:
                outcome = await events.read_directory_begin(Queue)
                assert outcome.status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
                assert len(events.iterators) == 0

        run(main())

    @pytest.mark.req("MQDS-3.2.3-02")
    def test_a_server_that_dies_is_replaced_at_the_next_call(self) -> None:
        """The call under way fails, and is not repeated; queries of then are lost."""

        async def main() -> None:
            async with Scripted() as second:
                first = Scripted()
                await first.__aenter__()
                known = KnownServers.of([first.address, second.address])
                async with events_at(known) as events:
                    begun = await events.read_directory_begin(Queue)
                    assert begun.value is not None
                    await first.__aexit__()
                    lost = await events.read_directory_next(begun.value)
                    assert lost.status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
                    assert second.asked == []
                    assert (await events.read_directory_begin(Queue)).ok
                    assert known.current == second.address
                    ended = await events.read_directory_end(begun.value)
                    assert ended.status is not DirectoryOperationResult.SUCCESS

        run(main())

    @pytest.mark.req("MQDS-3.2.1.4-02")
    def test_list_and_current_server_survive_a_restart(self, tmp_path: Path) -> None:
        async def main() -> None:
            store = JsonFile(tmp_path / "servers.json")
            async with Scripted() as first, Scripted() as second:
                known = KnownServers.open(store, first.address, site=ONE)
                assert known.servers == (first.address,)
                assert known.current == first.address
                known.replace([first.address, second.address])
                known.use(second.address)
                again = KnownServers.open(store, ServerAddress("not asked any more"))
                assert again.state == known.state
                async with await DirectoryClient.connect(again) as client:
                    assert client.server == second.address

        run(main())

    def test_credentials_may_be_made_for_each_host(self) -> None:
        store = demo_store()
        secret = SharedSecret()
        asked: list[str] = []

        def credentials(host: str) -> Credentials:
            asked.append(host)
            return Credentials(secret, AuthType.NTLM, AuthLevel.PRIVACY, host)

        async def main() -> None:
            async with served(store, authenticator=secret) as server:
                named = ServerAddress("localhost", server.port)
                async with connected(
                    ServerAddress("no-such-host.invalid", 1), named, credentials=credentials
                ) as client:
                    assert (await client.read(Queue, pathname="ams-app1\\orders")).label

        run(main())
        assert asked == ["no-such-host.invalid", "localhost"]

    def test_addresses_of_a_server_are_tried_where_its_name_fails(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                address = ServerAddress("no-such-host.invalid", peer.port, addresses=(HOST,))
                async with connected(address) as client:
                    assert client.server is address

        run(main())

    @pytest.mark.req("MQDS-3.2.1-01")
    def test_clients_share_nothing(self) -> None:
        async def main() -> None:
            async with (
                Scripted() as peer,
                events_at(peer.address) as one,
                events_at(peer.address) as other,
            ):
                begun = await one.read_directory_begin(Queue)
                assert begun.value is not None
                assert len(other.iterators) == 0
                found = await other.read_directory_next(begun.value)
                assert found.status is DirectoryOperationResult.GENERIC_ERROR

        run(main())

    @pytest.mark.req("MQDS-3.1.4.21.7-51")
    def test_a_change_shows_elsewhere_when_it_has_come_there(self) -> None:
        """The client tells what the server it asks knows, and keeps nothing of its own."""
        here, there = demo_store(), demo_store()

        async def main() -> None:
            async with (
                served(here) as first,
                served(there) as second,
                connected(first.address) as one,
                connected(second.address) as two,
            ):
                await one.add(Queue(pathname="ams-app1\\new"))
                assert (await one.read(Queue, pathname="ams-app1\\new")).identifier
                with pytest.raises(DirectoryError, match="OBJECT_NOT_FOUND"):
                    await two.read(Queue, pathname="ams-app1\\new")

        run(main())


class TestPort:
    @pytest.mark.req("MQDS-3.2.3-04", "MQDS-3.2.3-05", "MQDS-3.1.4.1-51")
    def test_a_port_that_is_told_is_where_all_else_happens(self) -> None:
        async def main() -> None:
            async with Scripted() as there:
                port = {dscomm.GET_SERVER_PORT: dscomm.ServerPort(there.port)}
                async with Scripted(port) as here:
                    async with connected(here.address, ask_port=True) as client:
                        await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")
                        assert here.rpc is not None
                        while here.rpc.connections:  # the first binding is given up
                            await asyncio.sleep(0.005)
                    assert [a.name for a in here.asked] == ["S_DSGetServerPort"]
                    assert here.only(dscomm.GET_SERVER_PORT).ip == 1
                assert [a.name for a in there.asked] == [
                    "S_DSValidateServer",
                    "S_DSGetProps",
                    "S_DSCloseServerHandle",
                ]

        run(main())

    @pytest.mark.req("MQDS-3.2.3-05", "MQDS-3.1.4.1-51")
    def test_without_one_the_first_binding_stays(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                async with connected(peer.address, ask_port=True) as client:
                    assert await client.server_port() == 0
                assert peer.names == ["S_DSGetServerPort"] * 2
            async with Scripted() as peer:
                async with connected(peer.address):
                    pass
                assert peer.names == []

        run(main())

    def test_a_port_where_nobody_is_makes_it_the_next_servers_turn(self) -> None:
        async def main() -> None:
            port = {dscomm.GET_SERVER_PORT: dscomm.ServerPort(await free_port())}
            async with (
                Scripted(port) as liar,
                Scripted() as other,
                connected(liar.address, other.address, ask_port=True) as client,
            ):
                assert client.server == other.address

        run(main())


class _Timers(asyncio.SelectorEventLoop):
    """A loop that remembers the timers that were set."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[asyncio.TimerHandle] = []

    def call_at(  # type: ignore[override]
        self, when: float, *arguments: Any, **more: Any
    ) -> asyncio.TimerHandle:
        timer = super().call_at(when, *arguments, **more)
        self.timers.append(timer)
        return timer

    @property
    def alive(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self.timers if not timer.cancelled()]


@pytest.mark.req("MQDS-3.2.2-01", "MQDS-3.2.5-01", "MQDS-3.4.2-01", "MQDS-3-52")
def test_an_idle_client_has_no_timers() -> None:
    """Those that bound a call are of RPC, and end with it."""
    store = demo_store()

    async def serve(port: asyncio.Future[int], done: asyncio.Event) -> None:
        async with served(store) as server:
            port.set_result(server.port)
            await done.wait()

    async def use(port: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _Timers)
        async with connected(ServerAddress(HOST, port)) as client:
            await client.read(Queue, pathname="ams-app1\\orders")
            await client.computer_sites("ams-app1")
            assert [queue async for queue in client.search(Queue, label="Audit trail")]
            await client.events.read_directory_begin(Queue)
            assert loop.timers  # so it is seen when there are any
            assert loop.alive == []
            assert asyncio.all_tasks() == {asyncio.current_task()}

    async def main() -> None:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done = asyncio.Event()
        task = asyncio.create_task(serve(port, done))
        number = await port

        def in_a_loop_of_its_own() -> None:
            with asyncio.Runner(loop_factory=_Timers) as runner:
                runner.run(use(number))

        await asyncio.to_thread(in_a_loop_of_its_own)
        done.set()
        await task

    run(main())


class TestTrouble:
    @pytest.mark.req("MQDS-3-52", "MQDS-3.2.4-02")
    @pytest.mark.parametrize("status", [FaultStatus.UNSPEC, FaultStatus.SERVER_TOO_BUSY])
    def test_a_call_that_faults_is_made_once(self, status: FaultStatus) -> None:
        def fault(_call: object, _request: object) -> None:
            raise RpcFault(status)

        async def main() -> None:
            async with Scripted({dscomm.GET_PROPS: fault}) as peer:
                async with connected(peer.address) as client:
                    with pytest.raises(RpcFault) as failure:
                        await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="c14\\q")
                    assert failure.value.status == status
                    outcome = await client.events.read_directory(
                        Queue, [equal("Pathname", "c14\\q")]
                    )
                    assert outcome.status is DirectoryOperationResult.GENERIC_ERROR
                assert peer.names == ["S_DSGetProps"] * 2

        run(main())

    def test_a_call_that_is_not_answered(self) -> None:
        async def main() -> None:
            async def never(_call: object, _request: object) -> None:
                await asyncio.sleep(3600)

            lines = {dscomm.GET_PROPS: never}
            async with Scripted(lines) as peer, events_at(peer.address, timeout_s=1.0) as events:
                outcome = await events.read_directory(Queue, [equal("Pathname", "c14\\q")])
                assert outcome.status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED

        run(main())

    def test_a_signature_that_is_lost_ends_the_session(self) -> None:
        """Signatures are numbered: without this one, no later one would fit."""
        store = demo_store()

        async def main() -> None:
            async with (
                served(store, gss=SharedSecret()) as server,
                Tap(server.port) as tap,
                connected(tap.address, gss=SharedSecret()) as client,
            ):
                reading = asyncio.create_task(
                    client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="ams-app1\\orders")
                )
                await asyncio.sleep(0)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                for _ in range(2):
                    got = await client.get(
                        ObjectType.QUEUE, [PropId.Q_LABEL], path="ams-app1\\orders"
                    )
                    assert got[PropId.Q_LABEL].value == "Incoming orders"

        run(main())

    def test_two_that_find_the_connection_lost_make_one_new(self) -> None:
        async def main() -> None:
            async with Scripted() as peer:
                connection = DirectoryConnection(KnownServers.of([peer.address]), SessionSettings())
                sessions = await asyncio.gather(*(connection.session() for _ in range(3)))
                assert len(set(sessions)) == 1
                assert [a.name for a in peer.asked] == ["S_DSValidateServer"]
                await connection.close()

        run(main())


@pytest.mark.parametrize(("uuid", "number"), [(DSCOMM, 28), (DSCOMM2, 9)])
def test_interfaces(uuid: Guid, number: int) -> None:
    description = dscomm.DSCOMM if uuid == DSCOMM else dscomm2.DSCOMM2
    assert description.syntax.uuid == uuid
    assert description.opnums == number


# --- a refused logon ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (RpcFault(FaultStatus.ACCESS_DENIED), True),
        (BindFaultError(FaultStatus.SEC_PKG_ERROR), True),
        (BindFaultError(FaultStatus.PROTO_ERROR), False),
        (LogonRefusedError("x"), True),
        # A peer may write what it likes; the error's class counts.
        (RpcConnectionError("the server closed: fault access_denied"), False),
        (NoServerError("no directory server answers; x: fault sec_pkg_error"), False),
        (NoServerError.of([("a", OSError("gone")), ("b", LogonRefusedError("x"))]), True),
        (NoServerError.of([("fault access_denied", RpcConnectionError("gone"))]), False),
    ],
)
def test_a_refused_logon_is_known_by_its_class(error: Exception, refused: bool) -> None:
    assert is_logon_refused(error) is refused
