"""The users who go on working: clients that create, change, read and delete queues of their own."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace, load_nodes
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

QUEUE = ObjectType.QUEUE
_PAUSE_S = 0.05
#: The time that a client waits before it creates its next queue.
_THINKING_S = 0.5


async def connected(node: NodePlace, user: str, password: str) -> DirectoryClient:
    """A client of one server, logged on as a user of the enterprise."""
    initiator = PyspnegoInitiator(LogonCredentials(user, "NORTHWIND", password))
    credentials = Credentials(initiator, AuthType.SPNEGO, AuthLevel.INTEGRITY, node.address)
    address = ServerAddress(node.address, node.rpc_port)
    return await DirectoryClient.connect([address], credentials=credentials, timeout_s=60.0)


@dataclass
class ClientWork:
    """The work of all clients, and its results."""

    run: Path
    #: Server and machine of each client.
    places: tuple[tuple[str, str], ...]
    seed: int = 1
    #: The label of each queue that has to be there in the end, by its path.
    expected: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    #: Errors that a client got.
    failures: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Works in the background during the block; each client ends what it has begun."""
        thread = threading.Thread(target=lambda: asyncio.run(self._work()), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    @property
    def changes(self) -> int:
        return sum(self.done[what] for what in ("create", "set", "delete"))

    async def _work(self) -> None:
        password = (self.run / "passwords" / "admin").read_text("utf-8").strip()
        nodes = load_nodes(self.run)
        await asyncio.gather(
            *(
                self._client(number, nodes.named(server), machine, password)
                for number, (server, machine) in enumerate(self.places)
            )
        )

    async def _client(self, number: int, node: NodePlace, machine: str, password: str) -> None:
        rng = random.Random(f"{self.seed} {number}")
        try:
            async with await connected(node, "admin", password) as client:
                made = 0
                while not self._ended.is_set() or not made:
                    made += 1
                    path = f"{machine}\\day{number}-{made}"
                    await self._one_queue(client, path, rng)
                    await asyncio.sleep(_THINKING_S)
        except Exception as error:  # every error is a client that was disturbed
            self.failures.append(f"client of {node.name}: {type(error).__name__}: {error}")

    async def _one_queue(self, client: DirectoryClient, path: str, rng: random.Random) -> None:
        """Creates a queue, waits until its server has it, changes it, and deletes some."""
        await client.create(QUEUE, path, props({PropId.Q_LABEL: "new"}))
        self.done["create"] += 1
        self.expected[path] = "new"
        await self._read(client, path)
        label = f"{rng.randrange(1_000_000)}"
        await client.set(QUEUE, props({PropId.Q_LABEL: label}), path=path)
        self.done["set"] += 1
        self.expected[path] = label
        if rng.random() < 0.25:
            await client.delete(QUEUE, path=path)
            self.done["delete"] += 1
            del self.expected[path]
            self.deleted.add(path)

    async def _read(self, client: DirectoryClient, path: str) -> None:
        """Reads the queue; a change that was forwarded comes back by replication, a bit later."""
        while True:
            try:
                await client.get(QUEUE, [PropId.Q_LABEL], path=path)
            except DirectoryError as error:
                if error.hresult != HResult.MQDS_OBJECT_NOT_FOUND:
                    raise
                await asyncio.sleep(_PAUSE_S)
            else:
                self.done["read"] += 1
                return
