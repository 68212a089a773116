"""What has to hold, read from the stores of the servers and not from the commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from mqis.config.nodes import NodePlace, load_nodes
from mqis.config.stores import open_store
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import DirectoryObject
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tools.story.shell import StoryError

MACHINE, QUEUE = ObjectType.MACHINE, ObjectType.QUEUE
#: Longer than any event takes, also on a computer that does much else.
DEADLINE_S = 900.0
_PAUSE_S = 0.2

#: Objects by type and identifier, each with all its properties: descriptor, owner, times.
Objects = dict[tuple[str, str], dict[int, object]]
#: By partition: last number, number of objects, digest.
Digests = dict[str, tuple[object, ...]]


def wait_until(look: Callable[[], str], what: str) -> None:
    """Waits until ``look`` returns no complaint."""
    end = time.monotonic() + DEADLINE_S
    while complaint := look():
        if time.monotonic() > end:
            raise StoryError(f"{what}: not after {DEADLINE_S:.0f} s: {complaint}")
        time.sleep(_PAUSE_S)


# --- replicas -------------------------------------------------------------------------------------


def live(run: Path) -> list[NodePlace]:
    return [node for node in load_nodes(run) if node.pid is not None]


def digests(node: NodePlace) -> Digests:
    with closing(open_store(node.store)) as store, store.read() as view:
        return {
            str(state.id): (state.last_seq.value, view.digest(state.id))
            for state in view.partitions()
        }


def unequal(run: Path, partitions: int) -> str:
    """Names a server whose copy is not equal to that of the first; empty if all are equal."""
    first, *others = live(run)
    wanted = digests(first)
    if len(wanted) != partitions:
        return f"{first.name} has {len(wanted)} of {partitions} partitions"
    for node in others:
        if digests(node) != wanted:
            return f"{node.name} differs from {first.name}"
    return ""


# --- objects --------------------------------------------------------------------------------------


def with_queues(node: NodePlace, machines: Iterable[str]) -> Objects:
    """The machines and their queues at a server, with all properties that it has."""
    found: Objects = {}
    with closing(open_store(node.store)) as store, store.read() as view:
        for name in machines:
            machine = view.find(MACHINE, name)
            if machine is not None:
                _add(found, machine)
                for queue in view.owned_by(QUEUE, machine.id):
                    _add(found, queue)
    return found


def _add(found: Objects, obj: DirectoryObject) -> None:
    values: dict[int, object] = {
        int(propid): variant.value for propid, variant in obj.properties.items()
    }
    found[obj.type.label, str(obj.id)] = values


def labels(node: NodePlace) -> dict[str, str]:
    """The label of every queue by its path."""
    with closing(open_store(node.store)) as store, store.read() as view:
        return {queue.path or "": str(queue.value(PropId.Q_LABEL)) for queue in view.objects(QUEUE)}


def missing_work(run: Path, expected: dict[str, str], deleted: Iterable[str]) -> str:
    """Names a change of a client that a server lacks; empty if all are everywhere."""
    gone = set(deleted)
    for node in live(run):
        held = labels(node)
        for path, label in expected.items():
            if held.get(path) != label:
                return f"{node.name}: {path} is {held.get(path)!r} instead of {label!r}"
        if back := gone & held.keys():
            return f"{node.name}: {min(back)} was deleted and is there"
    return ""


def role(node: NodePlace, machine: str) -> ServiceBits | None:
    """The role of a machine as a server's copy of the directory says it."""
    with closing(open_store(node.store)) as store, store.read() as view:
        found = view.find(MACHINE, machine)
        return None if found is None else ServiceAttributes.of(found).role


def identifier(node: NodePlace, kind: ObjectType, path: str) -> Guid | None:
    with closing(open_store(node.store)) as store, store.read() as view:
        found = view.find(kind, path)
        return None if found is None else found.id


def counts(node: NodePlace) -> dict[str, int]:
    kinds = (ObjectType.SITE, MACHINE, QUEUE)
    with closing(open_store(node.store)) as store, store.read() as view:
        return {kind.label: view.count(kind) for kind in kinds}
