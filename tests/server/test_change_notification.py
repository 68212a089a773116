"""A started server notifies the queue managers of other machines, whatever its role (MS-MQCN)."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from mqis.config.file import load, override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.queueing.events import Notified, SessionClosed, SessionOpened
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from mqis.server.directory_server import DirectoryServer
from mqis.server.founding import found
from mqis.wire.guid import Guid
from mqis.wire.mqcn import ChangeNotification, NotificationCommand, NotificationUpdate
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests import waiting
from tests.server.enterprises import MACHINE, QUEUE, Site, client_of, id_of
from tests.server.monitoring.pair import fetch

OTHER = Guid.parse("8c4d1a52-0f7e-4c1b-9d35-6a1f0e2b7c94")

Start = Callable[[Path, int], AbstractAsyncContextManager[DirectoryServer]]
Hear = Callable[[], Coroutine[Any, Any, NotificationUpdate]]
LABEL: dict[int, PropVariant] = props({PropId.Q_LABEL: "x"})
MONITORED: dict[str, object] = {"enabled": True, "port": 0}


@asynccontextmanager
async def queue_manager() -> AsyncIterator[tuple[QueueingEndpoint, int]]:
    """The queue manager of the machine ``app1``, and the port that it listens on."""

    async def nowhere(machine: str) -> tuple[str, int]:
        raise OSError(f"{machine} is nowhere")

    manager = QueueingMachine(OTHER, "app1", MessageIdCounter(0))
    async with QueueingEndpoint(manager, nowhere) as endpoint:
        yield endpoint, await endpoint.listen("127.0.0.1", 0)


async def heard(endpoint: QueueingEndpoint) -> NotificationUpdate:
    """The next notification; sessions that open are none."""
    while not isinstance(event := await waiting.in_time(endpoint.next_event()), Notified):
        assert isinstance(event, (SessionOpened, SessionClosed)), event
    # Its number is far from those that the queue manager of replication counts from.
    from_clock = (event.identifier.ordinal - (int(time.time()) << 8)) % (1 << 32)
    assert abs(from_clock - (1 << 31)) < 1 << 29
    [update] = ChangeNotification.from_body(event.body).updates
    return update


@asynccontextmanager
async def alone(
    directory: Path, port: int, *, notify: bool = True
) -> AsyncIterator[DirectoryServer]:
    """A server with the default role, none. Its name is spelt otherwise than in the directory."""
    with closing(open_store(str(directory / "d.db"), create=True)) as store:
        found(store, "Acme", "Delft", "pec1")
    values: dict[str, dict[str, object]] = {
        "server": {"name": "PEC1"},
        "store": {"url": f"sqlite:{directory / 'd.db'}"},
        "rpc": {"mapper": False},
        "security": {"administrators": ["S-1-1-0"]},
        "monitoring": MONITORED,
        "replication": {"key": str(directory / "signing.key"), "notify": notify},
        "hosts": {"app1": f"127.0.0.1:{port}"},
    }
    async with DirectoryServer(override(Config(), values, "test"), grace_s=1) as server:
        yield server


@asynccontextmanager
async def replicating(directory: Path, port: int) -> AsyncIterator[DirectoryServer]:
    site = Site(directory)
    config = load(site.found("pec1") / "mqis.toml")
    hosts: dict[str, object] = {"app1": f"127.0.0.1:{port}"}
    config = override(config, {"hosts": hosts, "monitoring": MONITORED}, "test")
    async with DirectoryServer(config, grace_s=1) as server:
        yield server


START = pytest.mark.parametrize("start", [alone, replicating])


@asynccontextmanager
async def world(start: Start, directory: Path) -> AsyncIterator[tuple[DirectoryServer, Hear]]:
    """A server whose directory has the machine ``app1``, and what that machine hears next."""
    async with queue_manager() as (endpoint, port), start(directory, port) as server:
        async with client_of(server) as client:
            sites = await client.computer_sites("pec1")
            machine: dict[int, PropVariant] = props(
                {PropId.QM_SITE_ID: sites[0], PropId.QM_MACHINE_ID: OTHER}
            )
            await client.create(MACHINE, "app1", machine)
        yield server, lambda: heard(endpoint)


async def counted(server: DirectoryServer) -> dict[str, int]:
    """The server's notifications by outcome, as it reports them."""
    page = (await fetch(server.ready.monitoring_port, "/metrics"))[1].decode()
    found = re.findall(
        r'^mqis_notifications_total\{outcome="(\w+)"\} (\d+)\.0$', page, re.MULTILINE
    )
    return {outcome: int(number) for outcome, number in found}


@START
@pytest.mark.req("MQDS-3.1.1.16-01", "MQDS-3.1.4.4-18", "MQDS-3.1.4.4-29")
def test_a_new_queue_of_another_machine_is_notified_once(start: Start, tmp_path: Path) -> None:
    """The server's own queue manager is not notified, however its name is spelt."""

    async def run() -> None:
        async with world(start, tmp_path) as (server, hear), client_of(server) as client:
            await client.create(QUEUE, "pec1\\own", LABEL)
            await client.create(QUEUE, "app1\\first", LABEL)
            await client.create(QUEUE, "Pec1\\mine", LABEL)
            await client.create(QUEUE, "app1\\second", LABEL)
            for path in ("app1\\first", "app1\\second"):
                update = await hear()
                assert (update.command, update.path) == (NotificationCommand.CREATE, path)
                assert update.master == await id_of(client, MACHINE, "pec1")
            numbers = await counted(server)
            assert (numbers["sent"], numbers["failed"]) == (2, 0)

    waiting.run(run())


@START
@pytest.mark.req("MQDS-3.1.4.9-08", "MQDS-3.1.4.9-09", "MQDS-3.1.4.10-04", "MQDS-3.1.6.13-04")
def test_updates_and_deletions_are_notified_too(start: Start, tmp_path: Path) -> None:
    async def run() -> None:
        async with world(start, tmp_path) as (server, hear), client_of(server) as client:
            queue = await client.create(QUEUE, "app1\\orders", LABEL)
            assert (await hear()).path == "app1\\orders"
            own = await id_of(client, MACHINE, "pec1")
            await client.set(MACHINE, props({PropId.QM_QUOTA: 5}), guid=own)
            await client.set(QUEUE, props({PropId.Q_QUOTA: 6}), path="app1\\orders")
            await client.set(QUEUE, props({PropId.Q_QUOTA: 7}), guid=queue)
            for quota in (6, 7):
                update = await hear()
                assert (update.command, update.guid) == (NotificationCommand.UPDATE, queue)
                assert dict(update.properties)[PropId.Q_QUOTA].value == quota
            await client.set(MACHINE, props({PropId.QM_QUOTA: 8}), path="app1")
            update = await hear()
            assert (update.command, update.guid) == (NotificationCommand.UPDATE, OTHER)
            await client.delete(QUEUE, guid=queue)
            update = await hear()
            assert (update.command, update.guid) == (NotificationCommand.DELETE, queue)
            numbers = await counted(server)
            assert (numbers["sent"], numbers["failed"]) == (5, 0)

    waiting.run(run())


@pytest.mark.req("MQDS-3.3.4.5-01")
def test_a_client_that_deletes_with_notice_has_the_owner_notified(tmp_path: Path) -> None:
    """The deletion is notified by the delete itself, and again because the client asks for it."""

    async def run() -> None:
        async with world(alone, tmp_path) as (server, hear), client_of(server) as client:
            queue = await client.create(QUEUE, "app1\\orders", LABEL)
            assert (await hear()).path == "app1\\orders"
            await client.delete_with_notice(QUEUE, "app1\\orders")
            for _ in range(2):
                update = await hear()
                assert (update.command, update.guid) == (NotificationCommand.DELETE, queue)

    waiting.run(run())


def test_notifications_can_be_switched_off(tmp_path: Path) -> None:
    async def run() -> None:
        async with alone(tmp_path, 1, notify=False) as server, client_of(server) as client:
            await client.create(QUEUE, "pec1\\own", LABEL)
            assert await counted(server) == {}

    waiting.run(run())
