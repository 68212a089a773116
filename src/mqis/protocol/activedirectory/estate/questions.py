"""What remains to be looked for after an estate was read, before anything is called gone."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.activedirectory.estate.facts import EstateFacts, ListFact
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


def end_names(facts: EstateFacts) -> set[str]:
    """The sites of links that are not called deleted."""
    return {end for link in facts.links for end in link.sites if DELETED not in end}


def lists_of_queues(facts: EstateFacts) -> list[ListFact]:
    """The groups with a queue, an alias or such a list in them; others are for people."""
    sendable = {name_of(queue.where) for queue in facts.queues}
    sendable |= {name_of(alias.where) for alias in facts.aliases}
    found: dict[str, ListFact] = {}
    waiting = {name_of(each.where): each for each in facts.lists}
    while True:
        new = {
            name: each
            for name, each in waiting.items()
            if any(name_of(m) in sendable for m in each.members)
        }
        if not new:
            return list(found.values())
        found |= new
        sendable |= new.keys()
        waiting = {name: each for name, each in waiting.items() if name not in new}


def member_names(facts: EstateFacts) -> set[str]:
    """The members of lists of queues that are not called deleted, and that are no queues."""
    lists = lists_of_queues(facts) if facts.lists else []
    queues = {name_of(queue.where) for queue in facts.queues} if lists else set()
    names = {name_of(member) for each in lists for member in each.members}
    return {name for name in names - queues if DELETED not in name}


def alias_targets(facts: EstateFacts) -> set[Guid]:
    """The queues and queue managers that aliases stand for."""
    found = (alias.target.guid for alias in facts.aliases if alias.target is not None)
    return {guid for guid in found if guid is not None}


def open_questions(facts: EstateFacts) -> Questions:
    """The references that what was read does not answer."""
    sight, names = facts.sight, linked_names(facts) | gate_names(facts) | member_names(facts)
    names |= end_names(facts)
    machines = {machine.id for machine in facts.machines}
    ids = {settings.machine for settings in facts.settings if settings.machine is not None}
    ids |= {guid for guid in alias_targets(facts) if guid.raw not in facts.queue_ids}
    sids = {found.sid for found in facts.certificates if found.migrated and found.sid}
    return Questions(
        tuple(sorted(names - sight.entries.keys() - sight.damaged - sight.missing)),
        tuple(sorted(ids - machines - sight.ids, key=str)),
        tuple(sorted(sids - facts.sids)),
    )
