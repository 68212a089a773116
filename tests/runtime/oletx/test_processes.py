"""Two processes over real sockets; one is killed. And a hundred sessions in one process."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.protocol.rpc.endpoint_map import EndpointRegistry
from mqis.runtime.oletx.application_connection import ConnectionClosed, Message
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver
from mqis.wire.guid import Guid
from tests.runtime.oletx.endpoints import ALPHA, BETA, PATIENT, QUICK, TYPE, echo
from tests.waiting import DEADLINE_S, run, until

#: The RPC Call timer and the Teardown timer run out, the others do not.
TIMED = replace(PATIENT, call_s=4.0, teardown_s=1.0)

_CHILD = """
import asyncio, sys
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import FixedResolver

async def echo(connection):
    async for message in connection:
        await connection.send(message.type + 1, message.body)

async def main():
    me, partner = NameObject.parse(sys.argv[1]), NameObject.parse(sys.argv[2])
    resolver = FixedResolver({partner.cid: ("127.0.0.1", int(sys.argv[3]))})
    settings = CmpoSettings(setup_s=600, call_s=600)
    port = int(sys.argv[4])
    async with OleTxEndpoint(me, port=port, resolver=resolver, settings=settings) as endpoint:
        endpoint.accept(0x101, echo)
        print(endpoint.port, flush=True)
        if len(sys.argv) > 5:
            await endpoint.connect(partner, 0x101)
            print("connected", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


class Child:
    """Another process with an endpoint."""

    def __init__(
        self, name: NameObject, partner: NameObject, partner_port: int, *more: str, port: int = 0
    ) -> None:
        arguments = [str(name), str(partner), str(partner_port), str(port), *more]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.line())

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=DEADLINE_S)


@asynccontextmanager
async def beside(
    name: NameObject, other: NameObject, settings: CmpoSettings = PATIENT
) -> AsyncIterator[tuple[OleTxEndpoint, Child]]:
    """An endpoint here, and one in another process."""
    resolver = FixedResolver()
    async with OleTxEndpoint(name, resolver=resolver, settings=settings) as endpoint:
        child = Child(other, name, endpoint.port)
        resolver.add(other.cid, "127.0.0.1", child.port)
        try:
            yield endpoint, child
        finally:
            child.end()


@pytest.mark.parametrize(("name", "other"), [(ALPHA, BETA), (BETA, ALPHA)])
def test_messages_between_two_processes(name: NameObject, other: NameObject) -> None:
    async def scene() -> None:
        async with beside(name, other) as (endpoint, _child):
            connection = await endpoint.connect(other, TYPE)
            for n in range(50):
                await connection.send(n, bytes(n * 100))
                assert await connection.receive() == Message(n + 1, bytes(n * 100))
            await connection.disconnect()

    run(scene())


@pytest.mark.parametrize(("name", "other"), [(ALPHA, BETA), (BETA, ALPHA)])
def test_a_partner_that_is_killed(name: NameObject, other: NameObject) -> None:
    """Its connections end with an error, and the next process of that name is found again."""

    async def scene() -> None:
        async with beside(name, other) as (endpoint, child):
            connection = await endpoint.connect(other, TYPE)
            await connection.send(1)
            assert await connection.receive() == Message(2, b"")
            child.signal(signal.SIGKILL)
            with pytest.raises(ConnectionClosed, match="down"):
                await connection.receive()
            await until(lambda: not endpoint.transport.machine.sessions)
            assert not endpoint.transport._bindings
            assert not endpoint.transport._issued
            with pytest.raises(SessionError):
                await endpoint.connect(other, TYPE)
            heir = Child(other, name, endpoint.port, port=child.port)
            try:
                async with await endpoint.connect(other, TYPE) as again:
                    await again.send(1)
                    assert await again.receive() == Message(2, b"")
            finally:
                heir.end()

    run(scene())


@pytest.mark.parametrize(("name", "other"), [(ALPHA, BETA), (BETA, ALPHA)])
def test_a_partner_that_hangs(name: NameObject, other: NameObject) -> None:
    """It is stopped, not dead: its sockets are open, and nothing comes."""

    async def scene() -> None:
        async with beside(name, other, TIMED) as (endpoint, child):
            connection = await endpoint.connect(other, TYPE)
            await connection.send(1)
            assert await connection.receive() == Message(2, b"")
            child.signal(signal.SIGSTOP)
            await connection.send(1)
            with pytest.raises(ConnectionClosed):
                await connection.receive()  # the RPC Call timer
            await until(lambda: not endpoint.transport.machine.sessions)  # the Teardown timer
            child.signal(signal.SIGCONT)

    run(scene())


def test_a_partner_that_is_killed_in_the_middle_of_the_set_up() -> None:
    """It has poked, and is gone before the primary calls."""

    async def scene() -> None:
        resolver = FixedResolver()
        async with OleTxEndpoint(ALPHA, resolver=resolver, settings=QUICK) as endpoint:
            child = Child(BETA, ALPHA, endpoint.port, "connect")
            await until(lambda: endpoint.transport.machine.sessions)  # poked; no way back yet
            child.end()
            await until(lambda: not endpoint.transport.machine.sessions)
            assert not endpoint._links

    run(scene())


@pytest.mark.untraced
def test_a_hundred_sessions_in_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    """Both ends of each are here. What one costs is printed, and it is all given back."""
    partners = [NameObject(f"P{n}", Guid(bytes([n + 1]) * 16)) for n in range(100)]

    async def scene() -> tuple[float, float]:
        resolver = FixedResolver()
        registry = EndpointRegistry()
        async with AsyncExitStack() as stack:
            hub = OleTxEndpoint(
                NameObject("HUB", Guid(b"\x80" * 16)), resolver=resolver, settings=PATIENT
            )
            await stack.enter_async_context(hub)
            resolver.add(hub.name.cid, "127.0.0.1", hub.port)
            others = []
            for name in partners:
                other = OleTxEndpoint(name, resolver=resolver, registry=registry, settings=PATIENT)
                await stack.enter_async_context(other)
                resolver.add(name.cid, "127.0.0.1", other.port)
                other.accept(TYPE, echo)
                others.append(other)
            gc.collect()
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()

            async def talk(partner: NameObject) -> None:
                async with await hub.connect(partner, TYPE) as connection:
                    for n in range(10):
                        await connection.send(n, bytes(1000))
                        await connection.receive()

            await asyncio.gather(*(talk(name) for name in partners))
            assert len(hub.transport.machine.sessions) == 100
            gc.collect()
            open_, _ = tracemalloc.get_traced_memory()
            await asyncio.gather(*(other.close() for other in others))
            await until(lambda: not hub.transport.machine.sessions)
            others.clear()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
            assert not hub._links
            assert not hub.transport._bindings
            assert not hub.transport._issued
            tracemalloc.stop()
            return (open_ - before) / 100, after - before

    each, left = run(scene())
    with capsys.disabled():
        print(f"\n100 sessions: {each / 1024:.0f} KiB each (both ends), {left / 1024:.0f} KiB left")
    assert each < 200 * 1024
    assert left < 1024 * 1024
