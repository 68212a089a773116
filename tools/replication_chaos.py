"""Tests replication of real servers while they are killed and their links are cut.

Usage: python tools/replication_chaos.py [--changes 10000] [--seconds 0] [--seed N] [--keep DIR]

Five servers in three sites run as processes. Clients change queues at all of them; every few
seconds one server is killed with SIGKILL and restarted, and links are cut. At the end all faults
are ended. Then all replicas have to be equal and have every acknowledged change, and stores and
journals have to be whole. If not, it prints the faults and the seed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.propvariant import PropVariant
from tools.chaos_enterprise import HOST, SERVERS, Enterprise, Server, copy_of

#: The errors of a server that does not know whether the authority has made a change.
_UNKNOWN = (
    HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER,
    HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
)
WORKERS = 12
#: Ranges of the time between two kills or cuts, and of the duration of each.
KILL_EVERY_S, DOWN_S = (2.0, 5.0), (0.2, 2.0)
CUT_EVERY_S, CUT_S = (0.5, 2.0), (0.2, 3.0)
HEAL_S = 180.0

#: The label of a queue; None if there is no such queue.
State = str | None


@dataclass
class Ledger:
    """The answers that clients got, and counts of events."""

    #: The states that a queue may be in; more than one if an answer is missing.
    expected: dict[str, set[State]] = field(default_factory=dict)
    acknowledged: int = 0
    unknown: int = 0
    refused: int = 0
    kills: int = 0
    cuts: int = 0

    def done(self, path: str, state: State) -> None:
        self.acknowledged += 1
        self.expected[path] = {state}

    def maybe(self, path: str, state: State) -> None:
        self.unknown += 1
        self.expected.setdefault(path, {None}).add(state)


class Worker:
    """A client that changes only its own queues, so that it knows their state."""

    def __init__(
        self, number: int, enterprise: Enterprise, ledger: Ledger, rng: random.Random
    ) -> None:
        self._number = number
        self._enterprise = enterprise
        self._ledger = ledger
        self._rng = rng
        self._queues: dict[str, str] = {}
        self._made = 0
        self._client: DirectoryClient | None = None

    async def run(self, wanted: int, until: float) -> None:
        ledger = self._ledger
        while ledger.acknowledged < wanted and time.monotonic() < until:
            try:
                await self._step()
            except (MqisError, OSError):  # the connection failed, nothing was requested
                await self._leave()
                await asyncio.sleep(0.1)
        await self._leave()

    async def _step(self) -> None:
        client = await self._connected()
        choice = self._rng.random()
        if choice < 0.5 or not self._queues:
            await self._create(client)
        else:
            path = self._rng.choice(sorted(self._queues))
            await (self._label(client, path) if choice < 0.85 else self._delete(client, path))
        if self._rng.random() < 0.02:
            await self._leave()  # to another server

    async def _create(self, client: DirectoryClient) -> None:
        self._made += 1
        machine = self._rng.choice(SERVERS)[0]
        path = f"{machine}\\q{self._number}-{self._made}"
        label = f"{self._made}"
        values = _labelled(label)
        if await self._change(path, label, client.create(ObjectType.QUEUE, path, values)):
            self._queues[path] = label

    async def _label(self, client: DirectoryClient, path: str) -> None:
        label = f"{self._rng.randrange(1_000_000)}"
        values = _labelled(label)
        await self._change(path, label, client.set(ObjectType.QUEUE, values, path=path))

    async def _delete(self, client: DirectoryClient, path: str) -> None:
        if await self._change(path, None, client.delete(ObjectType.QUEUE, path=path)):
            self._queues.pop(path, None)

    async def _change(self, path: str, state: State, call: object) -> bool:
        """Makes a change and records its outcome; an unanswered change may have been made."""
        try:
            await call  # type: ignore[misc]
        except DirectoryError as error:
            if error.hresult in _UNKNOWN:
                self._forget(path, state)
            else:
                self._ledger.refused += 1
                await asyncio.sleep(0.02)
            return False
        except (MqisError, OSError):
            self._forget(path, state)
            await self._leave()
            return False
        self._ledger.done(path, state)
        return True

    def _forget(self, path: str, state: State) -> None:
        """Leaves the queue alone from now on: it may have the old or the new state."""
        self._ledger.maybe(path, state)
        self._queues.pop(path, None)

    async def _connected(self) -> DirectoryClient:
        if self._client is None:
            server = self._rng.choice(list(self._enterprise.servers.values()))
            address = ServerAddress(HOST, server.rpc_port)
            self._client = await DirectoryClient.connect([address], timeout_s=10.0)
        return self._client

    async def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(MqisError, OSError):
                await client.close()


def _labelled(label: str) -> dict[int, PropVariant]:
    return props({PropId.Q_LABEL: label})


# --- faults ---------------------------------------------------------------------------------------


async def killer(enterprise: Enterprise, ledger: Ledger, rng: random.Random) -> None:
    servers = list(enterprise.servers.values())
    while True:
        await asyncio.sleep(rng.uniform(*KILL_EVERY_S))
        server = rng.choice(servers)
        await server.kill()
        ledger.kills += 1
        await asyncio.sleep(rng.uniform(*DOWN_S))
        await server.start()


async def cutter(enterprise: Enterprise, ledger: Ledger, rng: random.Random) -> None:
    links = list(enterprise.links.values())
    while True:
        await asyncio.sleep(rng.uniform(*CUT_EVERY_S))
        link = rng.choice(links)
        link.cut()
        ledger.cuts += 1
        asyncio.get_running_loop().call_later(rng.uniform(*CUT_S), _bring_up, link)


def _bring_up(link: object) -> None:
    link.up = True  # type: ignore[attr-defined]


# --- judging --------------------------------------------------------------------------------------


def wrong(ledger: Ledger, pec: Server) -> list[str]:
    """Describes the acknowledged changes that the PEC does not have."""
    held: dict[str, str] = {}
    for key, value in copy_of(pec.store).items():
        if key.startswith("queue "):
            properties = value[2]  # type: ignore[index]
            held[str(properties[PropId.Q_PATHNAME].value)] = str(properties[PropId.Q_LABEL].value)
    return [
        f"{path} is {held.get(path)!r}, but was acknowledged as {sorted(map(str, states))}"
        for path, states in sorted(ledger.expected.items())
        if held.get(path) not in states
    ]


async def converge(enterprise: Enterprise) -> tuple[float, list[str]]:
    """Returns the seconds until all replicas are equal, and differences after the time limit."""
    began = time.monotonic()
    while differences := await asyncio.to_thread(enterprise.differences):
        if time.monotonic() - began > HEAL_S:
            return HEAL_S, differences
        await asyncio.sleep(0.5)
    return time.monotonic() - began, []


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a run."""

    ledger: Ledger
    seconds: float
    healed_s: float
    faults: list[str]


async def chaos(
    directory: Path, changes: int, seconds: float, seed: int, signing: str = "require"
) -> Outcome:
    """Runs until ``changes`` are acknowledged or ``seconds`` have passed (0: no limit)."""
    rng = random.Random(seed)
    enterprise = await Enterprise.build(directory, signing)
    ledger = Ledger()
    try:
        await enterprise.start()
        began = time.monotonic()
        until = began + seconds if seconds else float("inf")
        workers = [
            Worker(n, enterprise, ledger, random.Random(rng.random())) for n in range(WORKERS)
        ]
        trouble = [
            asyncio.create_task(killer(enterprise, ledger, random.Random(rng.random()))),
            asyncio.create_task(cutter(enterprise, ledger, random.Random(rng.random()))),
        ]
        working = [asyncio.create_task(worker.run(changes, until)) for worker in workers]
        while not all(task.done() for task in working):
            await asyncio.wait({*working, *trouble}, return_when=asyncio.FIRST_COMPLETED)
            for task in trouble:
                if task.done():
                    task.result()  # it does not end by itself, so this raises
            await asyncio.sleep(0.1)
        took = time.monotonic() - began
        await asyncio.gather(*working)
        await _end(trouble)
        await _heal(enterprise)
        healed, faults = await converge(enterprise)
        faults += wrong(ledger, enterprise.servers[SERVERS[0][0]])
        for server in enterprise.servers.values():
            if (status := await server.stop()) != 0:
                faults.append(f"{server.name} ended with status {status}")
        faults += enterprise.faults()
    finally:
        await enterprise.close()
    return Outcome(ledger, took, healed, faults)


async def _end(trouble: Sequence[asyncio.Task[None]]) -> None:
    for task in trouble:
        task.cancel()
    await asyncio.gather(*trouble, return_exceptions=True)


async def _heal(enterprise: Enterprise) -> None:
    for link in enterprise.links.values():
        link.up = True
    for server in enterprise.servers.values():
        # A server whose start was interrupted when the faults ended has to start again.
        if server.process is None or server.process.returncode is not None:
            await server.kill()
            await server.start()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--changes", type=int, default=10_000, help="acknowledged changes")
    parser.add_argument("--seconds", type=float, default=0.0, help="time limit; 0: none")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--signing", choices=("none", "accept", "require"), default="require")
    parser.add_argument("--keep", type=Path, help="a new directory for stores and logs")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mqis-chaos-") as made:
        directory = options.keep or Path(made)
        run = chaos(directory, options.changes, options.seconds, options.seed, options.signing)
        outcome = asyncio.run(run)
    ledger = outcome.ledger
    print(
        f"seed {options.seed}: {ledger.acknowledged} changes acknowledged, {ledger.unknown} "
        f"without an answer, {ledger.refused} refused, in {outcome.seconds:.0f} s with "
        f"{ledger.kills} kills and {ledger.cuts} cuts; "
        f"all replicas equal {outcome.healed_s:.1f} s after the last"
    )
    for fault in outcome.faults[:20]:
        print(f"WRONG: {fault}")
    if outcome.faults:
        print(f"{len(outcome.faults)} faults; repeat with --seed {options.seed}")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
