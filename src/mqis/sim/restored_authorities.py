"""Checks that a restored authority recovers everything that the answering servers hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqis.protocol.directory.objects import DirectoryObject, PurgeState
from mqis.protocol.ports import View
from mqis.protocol.replication.convergence import HeldObject
from mqis.sim.history import NumberHistory
from mqis.sim.run_trace import Violation
from mqis.sim.simulated_server import SimServer
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class Witness:
    """The versions of a partition that one server held when the authority was restored."""

    server: SimServer
    restores: int
    numbers: dict[Guid, SequenceNumber]
    #: The number that its copy is complete at; MIN if the copy is not complete.
    last_seq: SequenceNumber
    #: The objects that exist there.
    alive: Mapping[Guid, DirectoryObject]


class Witnesses:
    """The other servers' content at each restore of an authority."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Guid], list[Witness]] = {}

    def record(
        self, restored: SimServer, partitions: Iterable[Guid], all_: list[SimServer]
    ) -> None:
        for partition in partitions:
            self._held[restored.name, partition] = [_witness(server, partition) for server in all_]

    def check(
        self, restored: SimServer, partition: Guid, answered: set[str], history: NumberHistory
    ) -> None:
        """Checks a recovered authority: only changes that no answering server had may be lost."""
        witnesses = self._held.pop((restored.name, partition), [])
        with restored.disk.store.read() as view:
            for witness in witnesses:
                moved = witness.restores != witness.server.restores
                if witness.server is restored or (witness.server.name in answered and not moved):
                    _check(view, restored, partition, witness, history)
                    _check_deleted(view, restored, partition, witness, history)
            history.rebase(partition, view)


def _witness(server: SimServer, partition: Guid) -> Witness:
    with server.disk.store.read() as view:
        changes = list(view.changes(partition, SequenceNumber.MIN))
        state = view.partition(partition)
        aside = any(key[:16] == partition.raw for key, _ in view.states("quarantine"))
        in_parts = view.state("round", partition.raw) is not None
    numbers = {change.id: change.seq for change in changes}
    alive = {change.id: change for change in changes if isinstance(change, DirectoryObject)}
    whole = not aside and not in_parts
    complete = state is not None and state.purge_state is PurgeState.NORMAL and whole
    last = state.last_seq if state is not None and complete else SequenceNumber.MIN
    return Witness(server, server.restores, numbers, last, alive)


def _check(
    view: View, restored: SimServer, partition: Guid, witness: Witness, history: NumberHistory
) -> None:
    here = {change.id: change.seq for change in view.changes(partition, SequenceNumber.MIN)}
    versions = history.of(partition).versions.values()
    deleted = {version.id: version.seq for version in versions if version.held is None}
    last = history.of(partition).last
    for id_, seq in witness.numbers.items():
        found = max(here.get(id_, SequenceNumber.MIN), deleted.get(id_, SequenceNumber.MIN))
        changed = id_ in last and last[id_].seq > seq
        if found < seq and not (changed and _made_way(view, witness.alive.get(id_))):
            raise Violation(
                "no acknowledged change lost",
                f"{restored.name} was restored without {id_} at {seq.value}, "
                f"although {witness.server.name} has it",
            )


def _made_way(view: View, lost: DirectoryObject | None) -> bool:
    """Returns whether a newer object has its name.

    It had been given another name before, and the restore lost that change: a server that holds the
    newer object may not have come to that change yet. Only one of the two can have the name.
    """
    if lost is None or lost.path is None:
        return False
    holder = view.find(lost.type, lost.path)
    return holder is not None and holder.seq > lost.seq


def _check_deleted(
    view: View, restored: SimServer, partition: Guid, witness: Witness, history: NumberHistory
) -> None:
    """Checks that no object is back whose deletion the witness has taken part in.

    Another site's server never has a queue that one site alone knows (E58). Only a tombstone tells
    it that such a queue was deleted.
    """
    alive = {
        change.id: HeldObject.of(change)
        for change in view.changes(partition, SequenceNumber.MIN)
        if isinstance(change, DirectoryObject)
    }
    elsewhere = witness.server.me.site != partition
    for id_, version in history.of(partition).last.items():
        known = version.seq <= witness.last_seq and id_ not in witness.alive
        if version.held is None and known and id_ in alive:
            if elsewhere and alive[id_].site_only and id_ not in witness.numbers:
                continue
            raise Violation(
                "no deleted object back",
                f"{restored.name} was restored with {id_}, although {witness.server.name} knows "
                f"that it was deleted at {version.seq.value}",
            )
