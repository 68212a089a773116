"""A simulated server: the real node over a store, with a driver that can crash it at any point."""

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
from mqis.protocol.replication.server_identity import Server
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.sim.keys import Keyring
from mqis.sim.run_trace import Violation
from mqis.sim.simulated_stores import Disk
from mqis.sim.steps import CrashPoint
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

T = TypeVar("T")

#: After so many rounds of operations at the same moment, the server is taken to loop.
_MAX_ROUNDS = 2000


class ServerEntropy:
    """``ports.Entropy`` from a seed; a restart of the server does not reset it."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def guid(self) -> Guid:
        return Guid(self._random.randbytes(16))


class Surroundings(Protocol):
    """The part of ``World`` that a server uses."""

    settings: ReplicationSettings
    journaled: bool
    batched: bool

    def instant(self, server: SimServer) -> Instant: ...

    def attach(self, server: SimServer) -> Any:
        """Returns the server's queue manager, or a ``Post`` in its place."""

    def detach(self, server: SimServer) -> None: ...

    def flush(self, server: SimServer) -> None: ...

    def observe(self, server: SimServer, tx: Transaction) -> None:
        """Checks the store after each operation, within its transaction."""

    def committed(self, server: SimServer) -> None: ...

    def rolled_back(self, server: SimServer) -> None: ...

    def outcome(self, server: SimServer, outcome: object) -> None: ...

    def crashed(self, server: SimServer) -> None: ...

    def started_again(self, server: SimServer) -> None:
        """Checks a server whose commit failed, after it has started again."""

    def note(self, kind: str, text: str) -> None: ...


class _PowerCut(Exception):
    """Raised where the server is to stop."""


class SimServer:
    """A simulated server; ``node`` is None while it is down."""

    def __init__(self, world: Surroundings, me: Server, disk: Disk, entropy: ServerEntropy) -> None:
        self.world = world
        self.me = me
        self.disk = disk
        self.entropy = entropy
        self.node: Node | None = None
        #: The keyring since the last start; None if messages are not signed.
        self.keyring: Keyring | None = None
        #: The name of its files; a server that is made again has other ones.
        self.label = me.name
        self.lives = 0
        self.restores = 0
        #: The point at which the next operation crashes.
        self.crash_point: CrashPoint | None = None
        self.fail_commit = False
        #: The disk was restored from a backup, and the server has not started with it yet.
        self.from_backup = False
        #: Until it has this number of the enterprise, its copy of its site names a PSC that the
        #: authority named only then (``follow_psc``).
        self.follows_from = SequenceNumber.MIN
        #: Switched off for good.
        self.retired = False
        #: A client's operation is running.
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
        replication.watched = True
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
        """Runs the node's operations until there are none left."""
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
        """Runs operations in one transaction, then carries out their effects."""

        def run(tx: Transaction) -> list[Effect]:
            effects: list[Effect] = []
            for operation in operations:
                effects += operation(tx)
                self.world.observe(self, tx)
            return effects

        effects = self._transaction(run)
        if effects is not None:
            self._carry_out(effects)

    def _transaction(self, run: Callable[[Transaction], list[Effect]]) -> list[Effect] | None:
        """Commits; returns None if the server crashed, or restarted after a failed commit."""
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
        """Restarts the node after a failed commit, as its memory may be ahead of the store."""
        self.world.note("fault commit", self.name)
        self.fail_commit = False
        assert self.node is not None
        self.commit([self.node.start(self.world.instant(self))])
        self.world.started_again(self)

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
        """Makes a client's change; returns None if the server crashed before it could answer.

        Raises the directory's ``DirectoryError`` or ``NotAuthority``.
        """
        node = self.node
        if node is None:
            return None
        results: list[T] = []

        def run(tx: Transaction) -> list[Effect]:
            result, effects = node.change(operation, self.world.instant(self))(tx)
            results.append(result)
            self.world.observe(self, tx)
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
        """Requests a change from the authority."""
        if self.node is not None:
            self.commit([self.node.request(change, local, self.world.instant(self))])
            self.turn()
