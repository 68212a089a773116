"""Plants faults of the journals and exports themselves, which ingesting has to find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mqis.lab.generate.generated_exports import Exports
from mqis.lab.generate.generated_keys import generated_key
from mqis.lab.generate.mishaps import FaultyRun, corrupted, difference_of
from mqis.lab.generate.planted_faults import PlantedEvidence, PlantedFault, PlantedState
from mqis.lab.generate.spoiling import (
    add_stranger,
    copy_journal,
    cut_export,
    damage_journal,
    garble_line,
    lost_segment,
    misname_export,
    whole_records,
)
from mqis.protocol.directory.objects import DirectoryObject, Scope
from mqis.protocol.replication.outgoing_changes import scope_of
from mqis.protocol.replication.server_identity import Role
from mqis.storage.journal.journal_files import segments
from mqis.wire.guid import Guid
from mqis.wire.journal import encode_record, segment_header

#: The number of changes after an early export.
_LATE_CHANGES = 2
#: The records of so many partitions are in the segments that are damaged.
_SITES = 40


class SpoiledRun(FaultyRun):
    """A run whose files are removed, copied and damaged."""

    def plant(self) -> None:
        """Makes the faulty changes, and those that the files' faults need."""
        self.plant_mishaps()
        self._contradict()
        self._make_segments()

    def _untouched(self, *partitions: Guid) -> Iterator[DirectoryObject]:
        """The queues of some partitions that all servers hold as they are."""
        touched = {id_ for server, id_ in self.overrides if server != self.emptied}
        for partition in partitions:
            for queue in self.history.queues:
                known = queue.partition == partition and queue.id not in touched
                if known and scope_of(queue) is Scope.ENTERPRISE:
                    yield queue

    def _contradict(self) -> None:
        """Lets the export of an authority differ from its own journal and all replicas."""
        authority = self.history.members[0]
        self.ordinary(authority.site)
        queue = next(self._untouched(authority.site))
        wrong = corrupted(queue)
        self.overrides[authority.name, queue.id] = PlantedState(wrong)
        found = difference_of(queue, wrong)
        self.result.faults.append(
            PlantedFault(
                authority.name,
                "different",
                "authority_corrupted",
                queue.type.label,
                str(queue.id),
                str(queue.partition),
                queue.seq.value,
                None,
                None,
                found.properties,
                "its export contradicts its own journal",
            )
        )

    def _make_segments(self) -> None:
        """Divides the journal to damage; exports one server before the last changes."""
        sites = sorted({m.site for m in self.history.members})[:_SITES]
        self.delivery.seal(self.damaged)
        for site in sites:  # the segment to corrupt, which seals the one before it
            self.ordinary(site)
        self.delivery.seal(self.damaged)
        self.ordinary(sites[0])
        self.delivery.seal(self.damaged)
        for site in sites:  # so that the segments left show the last number of each
            self.ordinary(site)
        self.delivery.seal(self.damaged)
        before = {s.id: s.last_seq.value for s in self.tx.partitions()}
        self._export_early()
        for state in self.tx.partitions():
            if state.last_seq.value > before[state.id]:
                span = before[state.id] + 1, state.last_seq.value
                self.result.evidence.append(
                    PlantedEvidence("missing_end", self.damaged, None, str(state.id), *span)
                )

    def _export_early(self) -> None:
        pscs = [m for m in self.history.members if m.role is not Role.BSC]
        member, partition = pscs[-1], pscs[0].site
        held = Exports(self.tx, self.history.members, self.overrides)
        self.older[member.name] = held.text(member, self.random)
        number = self.state(partition).last_seq.value
        hop = self.delivery.path(partition, member.name)[-1]
        for _ in range(_LATE_CHANGES):
            late = self.ordinary(partition)
            self.result.faults.append(
                PlantedFault(
                    member.name,
                    "missing",
                    "export_older",
                    late.type.label,
                    str(late.id),
                    str(partition),
                    late.seq.value,
                    hop.source,
                    hop.target,
                    (),
                    f"the export of {member.name} ends at change {number}",
                )
            )
        file = str(self.directory / "exports" / f"{member.name}.jsonl")
        self.result.evidence.append(PlantedEvidence("older_export", member.name, file))

    def write_exports(self) -> None:
        if self.plan.outage:
            self.empty_replica()
        held = Exports(self.tx, self.history.members, self.overrides)
        held.write(self.directory / "exports", self.random, self.older)

    def spoil(self) -> None:
        """Removes, copies and damages files."""
        journals, exports = self.directory / "journals", self.directory / "exports"
        first, second = self.history.members[:2]
        found = self.result.evidence
        found += lost_segment(journals / self.damaged, self.damaged)
        found.append(tamper(journals / self.damaged, self.damaged))
        found.append(resign(journals / self.damaged, self.damaged))
        self.result.damage += damage_journal(journals / self.damaged, self.damaged)
        found += copy_journal(journals, self.garbled)
        like, state = next(self._untouched(first.site)), self.state(first.site)
        id_ = self.history.entropy.guid()
        found.append(add_stranger(journals, id_, like, state, self.now_us))
        found.append(misname_export(exports, first.name, second.name))
        found.append(PlantedEvidence("clock_ahead", second.name))
        self._damage_export(exports / f"{self.garbled}.jsonl")

    def _damage_export(self, path: Path) -> None:
        damage, objects = cut_export(path)
        lost = {obj.id for obj in objects}
        sites = sorted({m.site for m in self.history.members})
        garbled = next(queue for queue in self._untouched(*sites) if queue.id not in lost)
        self.result.damage += [damage, garble_line(path, garbled.id)]
        size = path.stat().st_size  # the same: a byte was replaced
        assert damage.offset == size
        for obj in (*objects, garbled):
            self._lose(obj)

    def _lose(self, obj: DirectoryObject) -> None:
        """An object of the damaged export cannot be read; that replaces any other fault of it."""
        server, label = self.garbled, str(obj.id)
        faults = self.result.faults
        self.result.faults = [f for f in faults if (f.server, f.id) != (server, label)]
        held = self.tx.get(obj.type, obj.id)
        elsewhere = self.delivery.members[server].site != obj.partition
        if held is None or (elsewhere and scope_of(held) is Scope.SITE):
            return
        hop = self.delivery.path(obj.partition, server)[-1]
        about = obj.type.label, label, str(obj.partition), self.born[obj.id]
        self.result.faults.append(
            PlantedFault(server, "missing", "export_damaged", *about, hop.source, hop.target)
        )


# --- Changes journals as somebody would who wants nobody to notice --------------------------------
# All checksums stay right.

_INTRUDER = "intruder"


def tamper(directory: Path, server: str) -> PlantedEvidence:
    """Changes the time of a record of the first segment, which the second one seals."""
    number, path = next(iter(segments(directory).items()))
    found = whole_records(path)
    victim = found[len(found) // 2]
    changed = replace(victim.record, time_us=victim.record.time_us + 1)
    data = path.read_bytes()
    end = victim.offset + victim.length
    path.write_bytes(data[: victim.offset] + encode_record(victim.lsn, changed) + data[end:])
    return PlantedEvidence("tampered", server, str(path), None, number, number)


def resign(directory: Path, server: str) -> PlantedEvidence:
    """Signs the header of the last segment but one with a key that is not the server's."""
    number, path = list(segments(directory).items())[-2]
    data, key = path.read_bytes(), generated_key(_INTRUDER)
    header, start = segment_header(data)
    signed = header.signed_with(key.key_id, key.sign_sha256)
    path.write_bytes(signed.to_bytes() + data[start:])
    return PlantedEvidence("foreign", server, str(path), None, number, number)
