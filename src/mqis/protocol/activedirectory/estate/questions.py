"""What remains to be looked for after an estate was read, before anything is called gone."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.activedirectory.estate.facts import EstateFacts
from mqis.protocol.activedirectory.estate.sight import name_of
from mqis.wire.guid import Guid

#: A part of the name of a deleted entry, as ``name_of`` spells it.
DELETED = "\\0adel:"


@dataclass(frozen=True, slots=True)
class Questions:
    """Names of entries, identifiers of queue managers and SIDs of users that were not found."""

    names: tuple[str, ...]
    ids: tuple[Guid, ...]
    sids: tuple[bytes, ...]

    def __bool__(self) -> bool:
        return bool(self.names or self.ids or self.sids)


def linked_names(facts: EstateFacts) -> set[str]:
    """The entries that exist for certain: those above others, and the computers of servers."""
    names = {queue.machine for queue in facts.queues}
    names |= {machine.computer for machine in facts.machines}
    return names | {computer for computer in facts.servers.values() if computer}


def gate_names(facts: EstateFacts) -> set[str]:
    """The gates that are not called deleted."""
    gates = {name_of(gate) for link in facts.links for gate in link.gates}
    return {gate for gate in gates if DELETED not in gate}


def open_questions(facts: EstateFacts) -> Questions:
    """The references that what was read does not answer."""
    sight, names = facts.sight, linked_names(facts) | gate_names(facts)
    machines = {machine.id for machine in facts.machines}
    ids = {settings.machine for settings in facts.settings if settings.machine is not None}
    sids = {found.sid for found in facts.certificates if found.migrated and found.sid}
    return Questions(
        tuple(sorted(names - sight.entries.keys() - sight.damaged - sight.missing)),
        tuple(sorted(ids - machines - sight.ids, key=str)),
        tuple(sorted(sids - facts.sids)),
    )
