"""Writes the final content of each server as ``mqis export`` would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from pathlib import Path
from random import Random

from mqis.lab.generate.plan import ENTERPRISE_NAME, PlannedServer
from mqis.lab.generate.planted_faults import PlantedState
from mqis.protocol.directory.export_format import (
    ORDER,
    ExportedServer,
    ExportHeader,
    format_entry,
    format_header,
    sealed,
)
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Scope
from mqis.protocol.ports import View
from mqis.protocol.replication.keeping import stored
from mqis.protocol.replication.outgoing_changes import scope_of
from mqis.protocol.replication.replicated import whole_object
from mqis.protocol.replication.server_identity import Role
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

_Key = tuple[int, bytes]
_Place = {kind: place for place, kind in enumerate(ORDER)}
Overrides = Mapping[tuple[str, Guid], PlantedState]


def replica_of(obj: DirectoryObject) -> DirectoryObject:
    """An object as a replica stores it: only the properties that are replicated."""
    kept = stored(whole_object(obj))
    return DirectoryObject(obj.type, obj.id, obj.partition, obj.seq, kept)


class Exports:
    """The exports of all servers; lines are formatted once, as most servers hold the same."""

    def __init__(self, view: View, members: Iterable[PlannedServer], overrides: Overrides) -> None:
        self._view = view
        self._members = list(members)
        self._overrides = overrides
        objects = [obj for kind in ORDER for obj in view.objects(kind)]
        self._objects = [(_key(obj), obj) for obj in objects]
        self._own = {obj.id: format_entry(obj) for obj in objects}
        self._replicas = {obj.id: format_entry(replica_of(obj)) for obj in objects}
        self._tombstones = [
            change
            for state in view.partitions()
            for change in view.changes(state.id, SequenceNumber.MIN)
            if isinstance(change, DeletedObject)
        ]

    def write(self, directory: Path, random: Random, older: Mapping[str, str]) -> None:
        """Writes a file for each server; ``older`` has the texts of those made earlier."""
        directory.mkdir(parents=True)
        for member in self._members:
            text = older.get(member.name) or self.text(member, random)
            (directory / f"{member.name}.jsonl").write_text(text, encoding="ascii")

    def text(self, member: PlannedServer, random: Random) -> str:
        """The export of one server."""
        lines = list(self._lines(member, random))
        server = ExportedServer(member.id, member.name)
        states = tuple(self._view.partitions())
        header = ExportHeader(ENTERPRISE_NAME, states, len(lines) + 1, server)
        return "\n".join([*sealed([format_header(header), *lines]), ""])

    def _lines(self, member: PlannedServer, random: Random) -> Iterator[str]:
        base = (
            (key, line)
            for key, obj in self._objects
            if (line := self._line(member, obj, random)) is not None
        )
        known = self._own.keys()
        extra = sorted(
            (_key(held.obj), format_entry(replica_of(held.obj)))
            for (server, id_), held in self._overrides.items()
            if server == member.name and held.obj is not None and id_ not in known
        )
        for _, line in merge(base, extra):
            yield line
        if member.role is not Role.BSC:  # backups keep no tombstones (E12)
            for tombstone in self._tombstones:
                if (member.name, tombstone.id) not in self._overrides:
                    yield format_entry(tombstone)

    def _line(self, member: PlannedServer, obj: DirectoryObject, random: Random) -> str | None:
        held = self._overrides.get((member.name, obj.id))
        if held is not None:
            return None if held.obj is None else format_entry(replica_of(held.obj))
        if _authority_of(member, obj.partition):
            return self._own[obj.id]
        elsewhere = member.site != obj.partition and scope_of(obj) is Scope.SITE
        if elsewhere and random.random() < 0.5:  # other sites may hold it or not (E58)
            return None
        return self._replicas[obj.id]


def _authority_of(member: PlannedServer, partition: Guid) -> bool:
    if partition == Guid.NULL:
        return member.role is Role.PEC
    return member.role is not Role.BSC and member.site == partition


def _key(obj: DirectoryObject) -> _Key:
    return _Place[obj.type], obj.id.raw
