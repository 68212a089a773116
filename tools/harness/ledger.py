"""The answers that clients got, and the comparison of stores with them and with each other."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mqis.protocol.ports import Store
from mqis.protocol.replication.replicated import content
from mqis.storage.journal.checking import check_journal
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

#: The label of a queue; None if there is no such queue.
State = str | None
#: Keys such as "queue GUID" and "partition GUID", and what replicas have to agree on.
Copy = Mapping[str, object]
_OURS = re.compile(r"\\soak\d+-\d+")


def queue_path(machine: str, client: int, number: int) -> str:
    """The path of a client's queue: no other client makes one of this name."""
    return f"{machine}\\soak{client}-{number}"


def quota_of(label: str) -> int:
    """The quota that belongs to a label; both are always written together."""
    return zlib.crc32(label.encode())


def labelled(label: str) -> dict[int, PropVariant]:
    """The properties that clients write."""
    return props({PropId.Q_LABEL: label, PropId.Q_QUOTA: quota_of(label)})


@dataclass
class Ledger:
    """The answers that clients got, and counts of events."""

    #: The states that a queue may be in; more than one while an answer is missing.
    expected: dict[str, set[State]] = field(default_factory=dict)
    acknowledged: int = 0
    unknown: int = 0
    refused: int = 0
    kills: int = 0
    cuts: int = 0

    def attempt(self, path: str, state: State) -> None:
        """Notes that a change is about to be requested: it may be made from now on."""
        self.expected.setdefault(path, {None}).add(state)

    def done(self, path: str, state: State) -> None:
        self.acknowledged += 1
        self.expected[path] = {state}

    def refuse(self, path: str, state: State) -> None:
        """Notes that a change was refused: it was not made."""
        self.refused += 1
        self.expected[path].discard(state)


def lost(ledger: Ledger, copy: Copy) -> list[str]:
    """Describes the queues that differ from what clients know: lost, half-written, made up."""
    held = dict(_queues(copy))
    faults = []
    for path, possible in sorted(ledger.expected.items()):
        label, quota = held.get(path, (None, None))
        if label not in possible:
            wanted = ", ".join(sorted(map(repr, possible)))
            faults.append(f"{path} has label {label!r}, possible are {wanted}")
        elif label is not None and quota != quota_of(label):
            faults.append(f"{path} is half-written: label {label!r}, quota {quota}")
    faults += [
        f"{path} exists, but no client made it"
        for path in sorted(held.keys() - ledger.expected.keys())
        if _OURS.search(path)
    ]
    return faults


def _queues(copy: Copy) -> Iterator[tuple[str, tuple[str, object]]]:
    for key, value in copy.items():
        if key.startswith("queue "):
            properties = value[2]  # type: ignore[index]
            label, quota = properties[PropId.Q_LABEL].value, properties[PropId.Q_QUOTA].value
            yield str(properties[PropId.Q_PATHNAME].value), (str(label), quota)


def copy_of(store: Store) -> Copy:
    """The content that replicas have to agree on: all objects, and each partition's last number."""
    held: dict[str, object] = {}
    with store.read() as view:
        for kind in ObjectType:
            for obj in view.objects(kind):
                held[f"{kind.label} {obj.id}"] = (obj.partition, obj.seq, content(obj))
        for state in view.partitions():
            held[f"partition {state.id}"] = (state.last_seq, state.owner.lower())
    return held


def differences(copies: Mapping[str, Copy]) -> list[str]:
    """Describes how replicas differ from the first, by name."""
    (first, ours), *others = copies.items()
    return [
        f"{name} and {first} differ: {_compare(ours, theirs)}"
        for name, theirs in others
        if theirs != ours
    ]


def _compare(ours: Copy, theirs: Copy) -> str:
    lacks = [key for key in ours if key not in theirs]
    more = [key for key in theirs if key not in ours]
    other = [key for key in ours if key in theirs and ours[key] != theirs[key]]
    summary = f"{len(lacks)} missing, {len(more)} too many, {len(other)} different"
    return f"{summary}: {', '.join((lacks + more + other)[:3])}"


def own_faults(name: str, store: Store, journal: Path) -> list[str]:
    """The faults that store and journal find themselves."""
    return [
        *(f"{name}: {fault}" for fault in store.check()),
        *(f"{name}: journal: {fault}" for fault in check_journal(journal).faults),
    ]
