"""Responders and seekers on loopback sockets, with the event loops of asyncio and uvloop."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.discovery import discover_servers, grounds
from mqis.client.servers import NoServerError, ServerAddress
from mqis.protocol.discovery.announced import DiscoveryQueueManager, NetworkAddress
from mqis.protocol.discovery.discovery_client import Responder
from mqis.protocol.discovery.discovery_server import DiscoveryServer
from mqis.protocol.discovery.events import (
    Event,
    Passed,
    RequestBroadcast,
    ServerAnswered,
    ServerListComplete,
)
from mqis.protocol.discovery.limiter import RateLimit
from mqis.protocol.errors import StorageError
from mqis.runtime.discovery import responder as responder_module
from mqis.runtime.discovery.networks import LocalNetwork, local_networks, network_of
from mqis.runtime.discovery.responder import PORT, DiscoveryResponder, ListenAddress
from mqis.runtime.discovery.seeker import Ground
from mqis.wire.guid import Guid
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from tests.runtime.discovery.loopback import (
    ENTERPRISE,
    NETWORK,
    SITE_A,
    A,
    Asking,
    B,
    ground,
    listen_together,
    request,
    responder,
    run,
    seeker,
)

__all__ = ["run"]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="every 127.x.y.z is an address on Linux alone"
)
Runner = Callable[[Coroutine[Any, Any, None]], None]
ONE, TWO = "127.0.81.1", "127.0.81.2"
CLIENT = DiscoveryQueueManager(ENTERPRISE)


# --- broadcasts -----------------------------------------------------------------------------------


@pytest.mark.req("MQSD-2.1-04", "MQSD-1.3-01", "MQSD-1.3-02")
def test_a_broadcast_reaches_every_server_of_a_computer(run: Runner) -> None:
    async def body() -> None:
        events: list[Event] = []
        async with responder(A) as one, responder(B) as two:
            port, listening = await listen_together((one, ONE), (two, TWO))
            assert listening == [
                ListenAddress(ONE, port, "127.255.255.255"),
                ListenAddress(TWO, port, "127.255.255.255"),
            ]
            looking = seeker(CLIENT, on_event=events.append)
            assert await looking.run([ground(port)]) == ServerListComplete(success=True)
            found = looking.client
            assert {r.source for r in found.responders} == {ONE, TWO}  # each from its own
            first = A if found.responders[0].source == ONE else B
            assert found.queue_manager.directory_servers == first.directory_servers
            assert found.queue_manager.connected_networks == (NETWORK,)
        assert [type(event) for event in events] == [
            RequestBroadcast,
            ServerAnswered,
            ServerAnswered,
            ServerListComplete,
        ]

    run(body())


@pytest.mark.req("MQSD-3.2.5.1-07", "MQSD-2.1-02")
def test_a_reply_goes_to_who_asked_from_where_the_server_listens(run: Runner) -> None:
    async def body() -> None:
        async with responder(A) as server:
            port, _ = await listen_together((server, ONE))
            for target in ("127.255.255.255", ONE):
                with Asking(), Asking() as second, Asking("127.0.81.9") as third:
                    for client in (second, third):
                        client.send(request(), (target, port))
                        data, source = await client.receive()
                        assert source == (ONE, port)
                        assert TopologyServerReply.from_bytes(data).servers

    run(body())


def test_the_own_site_answers_at_once_and_is_known_by_its_address(run: Runner) -> None:
    async def body() -> None:
        async with responder(A) as server:
            port, _ = await listen_together((server, ONE))
            looking = seeker(replace(CLIENT, site_ids=(SITE_A,)))
            assert await looking.run([ground(port)]) == ServerListComplete(success=True)
            assert looking.client.responders == [Responder("127.0.0.1", ONE, own_site=True)]
            # And again: the result stands, unless it is forced.
            assert (await looking.run([ground(port)])).skipped
            assert not (await looking.run([ground(port)], force=True)).skipped
            assert server.server.statistics.answered == 2

    run(body())


def test_a_run_leaves_no_socket_behind(run: Runner) -> None:
    def open_sockets() -> int:
        links = [str(entry.resolve()) for entry in Path("/proc/self/fd").iterdir()]
        return sum("socket:" in link for link in links)

    async def body() -> None:
        with Asking(ONE) as silent:
            port = silent.socket.getsockname()[1]
            before = open_sockets()
            await seeker(CLIENT, 0.02).run([ground(port), ground(port, TWO)])
            await asyncio.sleep(0.05)
            assert open_sockets() == before

    run(body())


@pytest.mark.req("MQSD-3.1.4.1-01")
def test_nobody_answers(run: Runner) -> None:
    async def body() -> None:
        with Asking(ONE) as silent:
            port = silent.socket.getsockname()[1]
            events: list[Event] = []
            looking = seeker(CLIENT, 0.1, events.append)
            done = await looking.run([ground(port), ground(port, TWO)])
            assert done == ServerListComplete(success=False, reason="no directory server answered")
            passed = [event.network for event in events if isinstance(event, Passed)]
            assert passed == ["127.0.0.1", TWO]  # one network after the other

    run(body())


def test_a_network_that_cannot_be_asked_is_passed_at_once(run: Runner) -> None:
    """An address that is not this computer's, then a datagram that the system refuses."""

    async def body() -> None:
        async with responder(A) as server:
            port, _ = await listen_together((server, ONE))
            away = Ground(NetworkAddress("203.0.113.1"), (("203.0.113.255", port),))
            refused = Ground(NetworkAddress(TWO), ((ONE, 0),))
            looking = seeker(replace(CLIENT, site_ids=(SITE_A,)), 60.0)
            assert await looking.run([away, refused, ground(port)]) == ServerListComplete(
                success=True
            )
            assert not (await seeker(CLIENT, 60.0).run([away])).success

    run(body())


# --- without a broadcast --------------------------------------------------------------------------


def test_endpoints_are_asked_one_by_one(run: Runner) -> None:
    """As where servers share one address and have ports of their own."""

    async def body() -> None:
        async with responder(A) as one, responder(B) as two:
            ports = [(await server.listen("127.0.0.1", 0)).port for server in (one, two)]
            where = Ground.at_endpoints([("127.0.0.1", port) for port in ports])
            assert not where.broadcast
            looking = seeker(CLIENT)
            assert (await looking.run([where])).success
            assert [s.server.statistics.answered for s in (one, two)] == [1, 1]

    run(body())


def test_a_server_without_a_broadcast_address_says_so_and_serves(
    run: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a system whose loopback has none: binding such an address is an error."""
    monkeypatch.setattr(
        responder_module, "network_of", lambda address: LocalNetwork(address, "203.0.113.255")
    )

    async def body() -> None:
        async with responder(A) as server:
            listening = await server.listen(ONE, 0)
            assert listening.broadcast is None
            with Asking() as client:
                client.send(request(), (ONE, listening.port))
                await client.receive()

    with caplog.at_level(logging.WARNING):
        run(body())
    assert "clients have to name this endpoint" in caplog.text


# --- ports ----------------------------------------------------------------------------------------


@pytest.mark.req("MQSD-2.1-01", "MQSD-2.1-03", "MQSD-1.9-01", "MQSD-3.2.3-01")
def test_it_listens_at_udp_1801_and_leaves_tcp_to_others(run: Runner) -> None:
    async def body() -> None:
        async with responder(A) as server:
            assert (await server.listen("127.0.81.7")).port == PORT == 1801
            with (
                socket.create_server(("127.0.81.7", 1801)),
                pytest.raises(OSError, match="in use"),
                Asking("127.0.81.7", 1801),
            ):
                pass
            with Asking() as client:
                client.send(request(), ("127.0.81.7", 1801))
                assert (await client.receive())[1] == ("127.0.81.7", 1801)

    run(body())


@pytest.mark.req("MQSD-1.5-01")
def test_both_sides_can_have_another_port(run: Runner) -> None:
    async def body() -> None:
        async with responder(A) as server:
            port, _ = await listen_together((server, ONE))
            assert port != 1801
            assert ground(port).targets == (("127.255.255.255", port),)
            assert (await seeker(replace(CLIENT, site_ids=(SITE_A,))).run([ground(port)])).success

    run(body())
    assert Ground.of(network_of("127.0.0.1")).targets == (("127.255.255.255", 1801),)


# --- a server's life ------------------------------------------------------------------------------


def test_it_goes_on_after_each_request_and_after_what_is_none(run: Runner) -> None:
    async def body() -> None:
        async with responder(A) as server:
            port, _ = await listen_together((server, ONE))
            with Asking() as client:
                for number in range(5):
                    for data in (b"", b"\0\2", request()[:51], bytes(2000), request(number=number)):
                        client.send(data, (ONE, port))
                    reply, _ = await client.receive()
                    got = TopologyServerReply.from_bytes(reply).correlation_id
                    assert got == Guid(number.to_bytes(16, "big"))
                with pytest.raises(TimeoutError):
                    await client.receive(0.05)  # one reply for each request, and no other
            assert server.server.statistics.malformed == 20

    run(body())


def test_one_source_is_answered_no_more_than_the_limit_allows(run: Runner) -> None:
    """Counted by address: another port is the same source, another address another one."""

    async def body() -> None:
        limited = DiscoveryServer(A, limit=RateLimit(per_second=0.001, burst=2))
        async with DiscoveryResponder(limited) as server:
            listening = await server.listen(ONE, 0)
            for address, wanted in (("127.0.0.1", 2), ("127.0.0.1", 0), ("127.0.0.2", 2)):
                with Asking(address) as client:
                    for number in range(6):
                        client.send(request(number=number), (ONE, listening.port))
                    while limited.statistics.answered + limited.statistics.limited < 6:
                        await asyncio.sleep(0.01)
                    assert limited.statistics.answered == wanted
                    limited.statistics.answered = limited.statistics.limited = 0

    run(body())


class _TooLong(DiscoveryServer):
    """Its first replies are longer than any datagram, so that sending them fails."""

    failing = 1

    def answer(self, data: bytes, source: str, now: float, *, ipx: bool = False) -> bytes | None:
        if self.failing:
            self.failing -= 1
            return bytes(70_000)
        return super().answer(data, source, now, ipx=ipx)


@pytest.mark.req("MQSD-3.2.5-02")
def test_a_reply_that_cannot_be_sent_has_the_socket_opened_again(run: Runner) -> None:
    async def body() -> None:
        async with DiscoveryResponder(_TooLong(A)) as server:
            listening = await server.listen(ONE, 0)
            with Asking() as client:
                client.send(request(), (ONE, listening.port))
                while not server.reopened:
                    await asyncio.sleep(0.005)
                for target in (ONE, "127.255.255.255"):
                    client.send(request(), (target, listening.port))
                    assert (await client.receive())[1] == (ONE, listening.port)
            assert not server.ended.done()

    run(body())


@pytest.mark.req("MQSD-3.2.5-02")
def test_it_ends_when_the_socket_cannot_be_opened_again(
    run: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with DiscoveryResponder(_TooLong(A), reopen_s=0.01, attempts=3) as server:
            listening = await server.listen(ONE, 0)
            server._listening = replace(listening, address="203.0.113.1")  # the address is gone
            with Asking() as client:
                client.send(request(), (ONE, listening.port))
                await server.ended
                client.send(request(), (ONE, listening.port))
                with pytest.raises(TimeoutError):
                    await client.receive(0.05)
            assert server.reopened == 0

    with caplog.at_level(logging.WARNING):
        run(body())
    assert caplog.text.count("the discovery port cannot be opened: ") == 3
    assert "discovery has ended" in caplog.text


@pytest.mark.req("MQSD-3.2.5-02")
def test_errors_of_others_and_errors_in_a_row_do_not_close_the_socket(run: Runner) -> None:
    async def body() -> None:
        async with responder(A, reopen_s=60.0) as server:
            await server.listen(ONE, 0)
            server.failed(ConnectionRefusedError())  # an ICMP message
            await asyncio.sleep(0.02)
            assert server.reopened == 0
            for _ in range(3):
                server.failed(OSError("no route"))
                await asyncio.sleep(0.02)
            assert server.reopened == 1  # who forges sources cannot keep it closed

    run(body())


@pytest.mark.req("MQSD-3.2.1.1-01")
def test_answers_follow_the_directory(run: Runner, caplog: pytest.LogCaptureFixture) -> None:
    directory = [A]

    def load() -> DiscoveryQueueManager:
        if not directory:
            raise StorageError("disk full")
        return directory[0]

    async def body() -> None:
        async with DiscoveryResponder(DiscoveryServer(A), load, refresh_s=0.01) as server:
            listening = await server.listen(ONE, 0)

            async def names() -> list[str]:
                with Asking() as client:
                    client.send(request(), (ONE, listening.port))
                    reply = TopologyServerReply.from_bytes((await client.receive())[0])
                return [spec.name for spec in reply.servers]

            assert await names() == ["a1", "a2"]
            directory[0] = B
            while server.server.queue_manager != B:
                await asyncio.sleep(0.005)
            assert await names() == ["b1"]
            directory.clear()
            while "disk full" not in caplog.text:
                await asyncio.sleep(0.005)
            assert await names() == ["b1"]

    with caplog.at_level(logging.WARNING):
        run(body())


def test_closing_frees_the_port(run: Runner) -> None:
    async def body() -> None:
        async with responder(A, load=lambda: A) as server:
            listening = await server.listen(ONE, 0)
        assert server.ended.done()
        await asyncio.sleep(0.01)
        Asking(ONE, listening.port).socket.close()

    run(body())


# --- the client library ---------------------------------------------------------------------------


@pytest.mark.req("MQSD-5.1-01")
def test_what_is_found_is_a_list_to_try_not_a_server_to_trust(run: Runner) -> None:
    """Both answers come from no directory server: connecting is what finds that out."""

    async def body() -> None:
        async with responder(A) as one, responder(B) as two:
            port, _ = await listen_together((one, ONE), (two, TWO))
            options: dict[str, Any] = {"networks": ["127.0.0.1"], "port": port, "mapper_port": port}
            own = await discover_servers(site=SITE_A, **options)
            assert ServerAddress(ONE, mapper_port=port) in own
            found = await discover_servers(**options)
            hosts = [server.host for server in found]
            assert hosts[:-2] in (["a1", "a2"], ["b1"])
            assert set(hosts[-2:]) == {ONE, TWO}
            with pytest.raises(NoServerError):
                await DirectoryClient.connect(found[-2:])

    run(body())


def test_nobody_discovered_is_an_error(run: Runner) -> None:
    async def body() -> None:
        with Asking(ONE) as silent:
            port = silent.socket.getsockname()[1]
            with pytest.raises(NoServerError, match="no directory server was discovered: no dir"):
                await discover_servers(endpoints=[(ONE, port)], timeout_s=0.05)

    run(body())


@pytest.mark.req("MQSD-3.1.4.1-02")
def test_every_local_network_is_asked_unless_some_are_chosen() -> None:
    addresses = [ground.network.address for ground in grounds()]
    assert addresses == [network.address for network in local_networks()]
    assert addresses
