"""Checks that a restored authority recovers everything that the answering servers hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqis.protocol.ports import View
from mqis.sim.history import NumberHistory
from mqis.sim.server import SimServer
from mqis.sim.violation import Violation
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class Witness:
    """The versions of a partition that one server held when the authority was restored."""

    server: SimServer
    restores: int
    numbers: dict[Guid, SequenceNumber]


class Witnesses:
    """The other servers' content at each restore of an authority."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Guid], list[Witness]] = {}

    def record(
        self, restored: SimServer, partitions: Iterable[Guid], all_: list[SimServer]
    ) -> None:
        for partition in partitions:
            self._held[restored.name, partition] = [
                _witness(server, partition) for server in all_ if server is not restored
            ]

    def check(
        self, restored: SimServer, partition: Guid, answered: set[str], history: NumberHistory
    ) -> None:
        """Checks a recovered authority: only changes that no answering server had may be lost."""
        witnesses = self._held.pop((restored.name, partition), [])
        with restored.disk.store.read() as view:
            for witness in witnesses:
                moved = witness.restores != witness.server.restores
                if witness.server.name in answered and not moved:
                    _check(view, restored, partition, witness, history)
            history.rebase(partition, view)


def _witness(server: SimServer, partition: Guid) -> Witness:
    with server.disk.store.read() as view:
        changes = view.changes(partition, SequenceNumber.MIN)
        numbers = {change.id: change.seq for change in changes}
    return Witness(server, server.restores, numbers)


def _check(
    view: View, restored: SimServer, partition: Guid, witness: Witness, history: NumberHistory
) -> None:
    here = {change.id: change.seq for change in view.changes(partition, SequenceNumber.MIN)}
    versions = history.of(partition).versions.values()
    deleted = {version.id: version.seq for version in versions if version.held is None}
    for id_, seq in witness.numbers.items():
        found = max(here.get(id_, SequenceNumber.MIN), deleted.get(id_, SequenceNumber.MIN))
        if found < seq:
            raise Violation(
                "no acknowledged change lost",
                f"{restored.name} was restored without {id_} at {seq.value}, "
                f"although {witness.server.name} has it",
            )
