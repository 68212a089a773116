"""The plan of a promotion: its checks, its steps, and the data that is lost."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from mqis.config.claims import claimed_store
from mqis.config.errors import ConfigError
from mqis.config.file import write_config
from mqis.config.nodes import NodePlace, supervised_place
from mqis.config.sections import Config
from mqis.config.stores import file_of, open_store
from mqis.files import system_reason, write_whole
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.ports import Store, View
from mqis.server.hosts import HostResolver
from mqis.storage.sqlite import user_of
from mqis.texts import file_stamp, host_port
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

REACH_S = 2.0


@dataclass(frozen=True, slots=True)
class PromoteStep:
    """A change, and the place where it is made; steps without an operator say "by itself"."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class PromotePlan:
    title: str
    checks: tuple[str, ...]
    steps: tuple[PromoteStep, ...]
    losses: tuple[str, ...]
    next: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# --- what is left to the operator ---------------------------------------------------------------


def start_way(file: Path) -> str:
    """The command that starts the server of a configuration."""
    found = supervised_place(file)
    if found is None:
        return f"mqis serve --config {quote(str(file))}"
    return f"mqis start {found[1].name}"


def follow_way(other: str, psc: str, nodes: Iterable[NodePlace]) -> str:
    """How a backup is made to follow its new PSC; ``nodes`` are those of the run directory."""
    for node in nodes:
        if name_key(node.name) == name_key(other):
            follow = f"mqis promote --follow {psc} --config {quote(node.config)}"
            return f"mqis stop {node.name} && {follow} && mqis start {node.name}"
    return f"on {other}: mqis promote --follow {psc}; mqis serve"


def return_way(lost: str, psc: str, nodes: Iterable[NodePlace]) -> str:
    """How the server that was replaced comes back; ``nodes`` are those of the run directory."""
    if name_key(lost) in {name_key(node.name) for node in nodes}:
        return (
            f"'mqis up' lets {lost} follow {psc}, or join again if its directory is gone; "
            "'mqis up --adopt' writes the new roles into the file"
        )
    return f"if {lost} comes back, there: mqis promote --follow {psc}; else delete its machine"


# --- checks of every plan -------------------------------------------------------------------------


def sound_store(config: Config, *, stopped: bool = True) -> str:
    """Checks the own store; raises ``MqisError`` if it is in use or damaged."""
    path = file_of(config.store.url)
    if stopped and path is not None and path.exists() and (user := user_of(path)):
        raise MqisError(
            f"{path}: {user} has this store open; stop it first, start it later with 'mqis serve'"
        )
    opened = claimed_store(config.store.url) if stopped else closing(open_store(config.store.url))
    with opened as store:
        faults = store.check()
    if faults:
        raise MqisError(
            f"the store here is damaged, so it cannot replace another: {faults[0]}; restore a "
            "backup with 'mqis restore'"
        )
    return "the store here is whole" + (" and not in use" if stopped else "")


async def _resolved(resolve: HostResolver, name: str) -> tuple[str, int]:
    async with asyncio.timeout(REACH_S):
        return await resolve(name)


def silent(store: Store, config: Config, name: str, *, force: bool) -> str:
    """Checks that the lost server does not answer: two authorities would use numbers twice."""
    resolve = HostResolver(store, config.hosts.entries, config.replication.port)
    try:
        host, port = asyncio.run(_resolved(resolve, name))
        socket.create_connection((host, port), REACH_S).close()
    except TimeoutError:
        return f"{name} does not answer (silent)"
    except (OSError, UnicodeError) as error:
        return f"{name} does not answer ({system_reason(error)})"
    if not force:
        raise MqisError(
            f"{name} answers at {host_port(host, port)}: it is not lost; stop it permanently "
            "first; if another program listens there, use --force"
        )
    return f"{name} answers at {host_port(host, port)}, which --force ignores"


def machine_named(view: View, name: str) -> DirectoryObject:
    found = view.find(ObjectType.MACHINE, name)
    if found is None:
        raise MqisError(f"the directory here has no machine {name}")
    return found


def site_of_machine(view: View, machine: DirectoryObject) -> DirectoryObject:
    first = next(iter(sites_of(machine)), None)
    site = None if first is None else view.get(ObjectType.SITE, first)
    if site is None:
        raise MqisError(f"the directory here does not know the site of {machine.path}")
    return site


def text_of(obj: DirectoryObject, propid: PropId) -> str:
    value = obj.value(propid)
    return value if isinstance(value, str) else ""


def backups_of(view: View, site: Guid, *without: str) -> list[str]:
    """The names of the backup controllers of a site, sorted."""
    others = {name_key(name) for name in without}
    machines = view.owned_by(ObjectType.MACHINE, site)
    names = [m.path or "" for m in machines if ServiceAttributes.of(m).role is ServiceBits.BSC]
    return sorted(name for name in names if name_key(name) not in others)


def primaries_of(view: View, *without: str) -> list[str]:
    """The names of the PSCs of all sites, sorted."""
    others = {name_key(name) for name in without}
    names = {text_of(site, PropId.S_PSC) for site in view.objects(ObjectType.SITE)}
    return sorted(name for name in names if name and name_key(name) not in others)


def rewrite(path: Path, config: Config) -> Path | None:
    """Replaces a configuration; returns the path under which the old one is kept."""
    stamp = file_stamp(time.time())
    kept = path.with_name(f"{path.name}.before-{stamp}") if path.exists() else None
    try:
        if kept is not None:
            write_whole(kept, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{kept}: cannot be written: {system_reason(error)}") from error
    write_config(path, config)
    return kept
