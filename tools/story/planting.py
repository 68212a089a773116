"""Plants the faults of the story, each in a documented way."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from mqis.config.nodes import load_nodes
from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import (
    ExportHeader,
    format_entry,
    format_header,
    sealed,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import Value
from tools.story.clients import connected
from tools.story.estate import ENTERPRISE, StoryEstate, StorySite
from tools.story.shell import StoryShell

MACHINE, QUEUE = ObjectType.MACHINE, ObjectType.QUEUE
#: The identifiers on the disk image: of the machine, and of its queue.
CLONED_MACHINE = Guid.parse("5ca11ab1-e000-4000-8000-000000000001")
CLONED_QUEUE = Guid.parse("5ca11ab1-e000-4000-8000-000000000002")


@dataclass(frozen=True, slots=True)
class Planted:
    """The findings of 'mqis check' that the faults give: (check, type, path)."""

    findings: frozenset[tuple[str, str, str]]
    orphans: tuple[str, ...]


def remove_gate(shell: StoryShell, estate: StoryEstate) -> None:
    """Somebody has set the gates of a site to none."""
    shell.run(
        f"mqis set site {estate.gateless.name} gates= --server {estate.pec}",
    )


def delete_like_an_old_tool(shell: StoryShell, estate: StoryEstate) -> tuple[str, ...]:
    """Deletes a machine as a client of MS-MQDS can: without its queues. Returns their paths."""
    node = load_nodes(shell.run_directory).named(estate.orphaned.psc)
    with closing(open_store(node.store)) as store, store.read() as view:
        machine = _named(view, MACHINE, estate.orphaned_machine)
        queues = tuple(queue.path or "" for queue in view.owned_by(QUEUE, machine.id))
    password = (shell.run_directory / "passwords" / "bob").read_text("utf-8").strip()

    async def delete() -> None:
        async with await connected(node, "bob", password) as client:
            await client.delete(MACHINE, path=estate.orphaned_machine)

    asyncio.run(delete())
    return queues


def import_clones(shell: StoryShell, estate: StoryEstate) -> None:
    """Two sites import machines that came from one disk image, while their servers are stopped.

    Neither knows of the other's import, so both have an object with the same identifier.
    """
    files = [
        (site, _export_of_clone(shell, site, name))
        for site, name in zip(estate.cloned, estate.clones, strict=True)
    ]
    for site, _ in files:
        shell.run(f"mqis stop {site.psc}")
    for site, file in files:
        store = Path(load_nodes(shell.run_directory).named(site.psc).store)
        shell.run(f"mqis import {file.name} --store {store}")
    for site, _ in files:
        shell.run(f"mqis start {site.psc}")


def _export_of_clone(shell: StoryShell, site: StorySite, name: str) -> Path:
    """An export with the machine and its queue, made from another machine of the site."""
    node = load_nodes(shell.run_directory).named(site.psc)
    with closing(open_store(node.store)) as store, store.read() as view:
        machine = _named(view, MACHINE, site.machines[0])
        queue = next(view.owned_by(QUEUE, machine.id))
    copies = (
        _copy(machine, CLONED_MACHINE, {PropId.QM_PATHNAME: name}),
        _copy(
            queue,
            CLONED_QUEUE,
            {PropId.Q_PATHNAME: f"{name}\\scans", PropId.Q_QMID: CLONED_MACHINE},
        ),
    )
    header = format_header(ExportHeader(ENTERPRISE, (), len(copies) + 1))
    lines = sealed([header, *map(format_entry, copies)])
    path = shell.directory / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


def _copy(obj: DirectoryObject, id_: Guid, values: dict[int, Value]) -> DirectoryObject:
    return replace(obj, id=id_, properties=props({**obj.properties, **values}))


def _named(view: View, kind: ObjectType, path: str) -> DirectoryObject:
    found = view.find(kind, path)
    assert found is not None, path
    return found


def delete_by_mistake(shell: StoryShell, estate: StoryEstate) -> None:
    """Bob deletes nearly all machines of a site, with their queues."""
    for machine in estate.deleted_machines:
        server = f"--server {estate.slipped.psc}"
        shell.run(f"mqis delete machine {machine} --yes {server}", user="bob")


def planted(estate: StoryEstate, orphans: tuple[str, ...]) -> Planted:
    clones = estate.clones
    found = {("orphaned_queue", "queue", path) for path in orphans}
    found |= {("duplicate_id", "machine", name) for name in clones}
    found |= {("duplicate_id", "queue", f"{name}\\scans") for name in clones}
    return Planted(frozenset(found), orphans)
