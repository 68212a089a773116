"""One server of a simulation: the real node over a store, driven so that it may stop anywhere."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol, TypeVar

from mqis.protocol.clock import Instant
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.errors import StorageError
from mqis.protocol.node.node import Node, Operation
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.effects import Effect
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.server import Server
from mqis.protocol.replication.settings import Settings
from mqis.sim.keys import Keyring
from mqis.sim.steps import CrashPoint
from mqis.sim.stores import Disk
from mqis.sim.violation import Violation
from mqis.wire.guid import Guid

T = TypeVar("T")

#: An operation that leads to another one at the same moment, so often, never ends.
_MAX_ROUNDS = 2000


class SeededEntropy:
    """``ports.Entropy``; it goes on through the lives of a server, as a real source would."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def guid(self) -> Guid:
        return Guid(self._random.randbytes(16))


class Surroundings(Protocol):
    """What a server needs of its world."""

    settings: Settings
    journaled: bool
    batched: bool

    def instant(self, server: SimServer) -> Instant: ...

    def attach(self, server: SimServer) -> Any:
        """A queue manager, or what stands for one."""

    def detach(self, server: SimServer) -> None: ...

    def flush(self, server: SimServer) -> None: ...

    def look(self, server: SimServer, tx: Transaction) -> None:
        """After each operation, within its transaction."""

    def committed(self, server: SimServer) -> None: ...

    def rolled_back(self, server: SimServer) -> None: ...

    def outcome(self, server: SimServer, outcome: object) -> None: ...

    def crashed(self, server: SimServer) -> None: ...

    def note(self, kind: str, text: str) -> None: ...


class _PowerCut(Exception):
    """The server stops here."""


class SimServer:
    """``node`` is None while the server is down."""

    def __init__(self, world: Surroundings, me: Server, disk: Disk, entropy: SeededEntropy) -> None:
        self.world = world
        self.me = me
        self.disk = disk
        self.entropy = entropy
        self.node: Node | None = None
        #: Of this life; None where nothing is signed.
        self.keyring: Keyring | None = None
        self.lives = 0
        self.restores = 0
        #: The next operation ends so.
        self.crash_point: CrashPoint | None = None
        self.fail_commit = False
        #: The disk was put back to an older state, and the server has not run with it yet.
        self.from_backup = False
        #: Within an operation that a client has called for.
        self.serves_client = False
        self._busy = False

    @property
    def name(self) -> str:
        return self.me.name

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        self.lives += 1
        restored = self.from_backup
        self.world.note("start", f"{self.name}{' from a backup' if restored else ''}")
        replication = Replication(
            self.me, self.entropy, self.world.settings, journaled=self.world.journaled
        )
        self.node = Node(replication, self.world.attach(self), self.entropy)
        self.commit([self.node.start(self.world.instant(self), restored=restored)])
        if self.node is not None:
            self.from_backup = False
        self.turn()

    def stop(self) -> None:
        if self.node is not None:
            self.node = None
            self.crash_point, self.fail_commit = None, False
            self.world.detach(self)
            self.world.crashed(self)

    # --- operations -------------------------------------------------------------------------------

    def turn(self) -> None:
        """Do what has come up, until nothing is left to do now."""
        if self._busy:
            return
        self._busy = True
        try:
            for _ in range(_MAX_ROUNDS):
                if self.node is None:
                    return
                at = self.world.instant(self)
                operations = self.node.operations(at)
                if not operations:
                    self.world.flush(self)
                    return
                for group in self._groups(operations):
                    self.commit(group)
        finally:
            self._busy = False
        raise Violation("bounded traffic", f"{self.name} never comes to rest")

    def _groups(self, operations: list[Operation]) -> list[list[Operation]]:
        return [operations] if self.world.batched else [[operation] for operation in operations]

    def commit(self, operations: list[Operation]) -> None:
        """Run operations in one transaction, then carry out what they decided."""

        def run(tx: Transaction) -> list[Effect]:
            effects: list[Effect] = []
            for operation in operations:
                effects += operation(tx)
                self.world.look(self, tx)
            return effects

        effects = self._transaction(run)
        if effects is not None:
            self._carry_out(effects)

    def _transaction(self, run: Callable[[Transaction], list[Effect]]) -> list[Effect] | None:
        """None: the server is down now, or has started again."""
        if self.node is None:
            return None
        try:
            with self.disk.store.write() as tx:
                effects = run(tx)
                if self.crash_point is CrashPoint.BEFORE_COMMIT:
                    raise _PowerCut
                if self.fail_commit:
                    raise StorageError("no room left")
        except _PowerCut:
            self.world.rolled_back(self)
            self.world.note(f"fault crash {self.crash_point}", self.name)
            self.stop()
            return None
        except StorageError:
            self.world.rolled_back(self)
            if not self.fail_commit:
                raise
            self._start_again()
            return None
        self.world.committed(self)
        if self.crash_point is CrashPoint.AFTER_COMMIT:
            self.world.note(f"fault crash {self.crash_point}", self.name)
            self.stop()
            return None
        return effects

    def _start_again(self) -> None:
        """A commit has failed: the memory may be ahead of the store."""
        self.world.note("fault commit", self.name)
        self.fail_commit = False
        assert self.node is not None
        self.commit([self.node.start(self.world.instant(self))])

    def _carry_out(self, effects: list[Effect]) -> None:
        node = self.node
        if node is None:
            return
        cut_short = self.crash_point is CrashPoint.AMID_EFFECTS and bool(effects)
        if cut_short:
            effects = effects[: len(effects) // 2]
        for outcome in node.committed(effects, self.world.instant(self)):
            self.world.outcome(self, outcome)
        if cut_short:
            self.world.note(f"fault crash {self.crash_point}", self.name)
            self.stop()

    # --- clients ----------------------------------------------------------------------------------

    def change(self, operation: Callable[[DirectoryEvents], T]) -> T | None:
        """A client's change, here; None: the server went down before it could answer.

        Raises what the directory says: ``DirectoryError``, ``NotAuthority``.
        """
        node = self.node
        if node is None:
            return None
        results: list[T] = []

        def run(tx: Transaction) -> list[Effect]:
            result, effects = node.change(operation, self.world.instant(self))(tx)
            results.append(result)
            self.world.look(self, tx)
            return effects

        self.serves_client = True
        try:
            effects = self._transaction(run)
        finally:
            self.serves_client = False
        if effects is None:
            return None
        self._carry_out(effects)
        self.turn()
        return results[0]

    def request(self, change: OwnChange, local: int) -> None:
        """Ask the authority for a change."""
        if self.node is not None:
            self.commit([self.node.request(change, local, self.world.instant(self))])
            self.turn()
