"""Rebuilds a lost PEC or PSC, under its own name and GUID, from another server's copy.

Every controller has a copy of every partition, so the store of any of them can replace the lost
one. The state of the copied server itself is removed, and the store is marked as restored. At its
start it asks all others, as a server restored from a backup does. The other servers notice nothing
but a new address.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqis.admin.backup.restored_journal import begin_journal
from mqis.admin.backup.taking_backup import copy_of_store
from mqis.admin.promote.promotion_plan import (
    PromotePlan,
    PromoteStep,
    backups_of,
    machine_named,
    primaries_of,
    silent,
    site_of_machine,
    sound_store,
    start_way,
    text_of,
)
from mqis.config.file import DEFAULT_NAME, load, override, read, write_config
from mqis.config.nodes import ACCOUNTS, load_nodes, supervised_place
from mqis.config.sections import Config, ConfiguredRole
from mqis.config.stores import open_store
from mqis.files import system_reason, whole_directory, write_whole
from mqis.protocol.directory.objects import DirectoryObject, PurgeState, name_key
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import View
from mqis.runtime.node.members import Members, Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.identity import seed_text, server_name
from mqis.server.restoremark import put_mark
from mqis.storage.copying import forget_server
from mqis.storage.sqlite import SqliteStore
from mqis.texts import host_port
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId

_STORE, _KEY, _ACCOUNTS, _JOURNAL = "directory.db", "signing.key", "accounts.toml", "journal"
#: The line for replication.seeds by which the others trust the new key; 'mqis up' gives it to its
#: servers and removes the file.
SEED = "seed.txt"
_ANY = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """The operator's options."""

    name: str
    to: Path
    #: Address and ports of the rebuilt server; None: as this server's.
    listen: str | None = None
    port: int | None = None
    queue_port: int | None = None
    #: The signing key of the lost server, if it was kept.
    key: Path | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Rebuilding:
    plan: PromotePlan
    file: Path
    request: RebuildRequest
    values: dict[str, dict[str, Any]]

    def carry_out(self) -> None:
        """Writes the directory, whole or not at all."""
        to = self.request.to.absolute()
        try:
            with whole_directory(to) as draft:
                self._fill(draft)
        except OSError as error:
            raise MqisError(f"{to}: cannot be written: {system_reason(error)}") from error

    def _fill(self, home: Path) -> None:
        here, request = load(self.file), self.request
        copy_of_store(here.store.url, home / _STORE)
        with closing(SqliteStore(home / _STORE, create=False)) as store:
            with store.writing() as rows:
                forget_server(rows)
            journal = self.values["replication"]["journal"]
            begin_journal(store, home / journal if journal else None, 0)
            with store.write() as tx:
                put_mark(tx, f"the copy of {server_name(here)}")
        if request.key is not None:
            write_whole(home / _KEY, request.key.read_bytes())
        key = MachineKey.open(
            home / _KEY
        )  # makes a key if there is none; refuses a file that is not a key
        accounts = Path(here.security.accounts)
        if accounts.exists() and self.values["security"]["accounts"] == _ACCOUNTS:
            write_whole(home / _ACCOUNTS, accounts.read_bytes())
        config = override(read(self.file), self.values, "promote")
        write_config(home / DEFAULT_NAME, config)
        seed = Seed(config.server.name, _id_of(config), key.public)
        write_whole(home / SEED, f"{seed_text(seed)}\n")


def _id_of(config: Config) -> Guid:
    assert config.replication.id is not None  # among the values of the plan
    return config.replication.id


def plan_rebuild(file: Path, request: RebuildRequest) -> Rebuilding:
    """Checks everything and returns the plan; changes nothing. This server may be running."""
    config = load(file)
    here = server_name(config)
    if name_key(here) == name_key(request.name):
        raise MqisError(f"{here} is this server; another one's copy is needed to rebuild it")
    if config.server.role is ConfiguredRole.NONE:
        raise MqisError(f"{here} does not replicate, so it has no copy of another server")
    if request.to.exists() and (not request.to.is_dir() or any(request.to.iterdir())):
        raise MqisError(f"{request.to}: this directory is not empty; name a new one")
    checks = [sound_store(config, stopped=False)]
    with closing(open_store(config.store.url)) as store:
        with store.read() as view:
            machine = machine_named(view, request.name)
            site = site_of_machine(view, machine)
            role = _role(view, machine, site)
            checks.append(_whole(view))
        checks.append(silent(store, config, request.name, force=request.force))
        seeds = _seeds(Members(store, {}), store.read, role)
        with store.read() as view:
            values = _values(
                config, request, machine=machine, site=site, role=role, view=view, seeds=seeds
            )
            plan = _plan(view, config, request, site=site, role=role, checks=checks)
    return Rebuilding(plan, file, request, values)


def _role(view: View, machine: DirectoryObject, site: DirectoryObject) -> ConfiguredRole:
    name = name_key(machine.path or "")
    root = enterprise(view)
    if root is not None and name_key(text_of(root, PropId.E_PECNAME)) == name:
        return ConfiguredRole.PEC
    if name_key(text_of(site, PropId.S_PSC)) == name:
        return ConfiguredRole.PSC
    raise MqisError(
        f"{machine.path} is neither the PEC nor the PSC of {site.path}; a backup simply joins "
        "again: mqis join --role bsc"
    )


def _whole(view: View) -> str:
    for state in view.partitions():
        if state.purge_state is not PurgeState.NORMAL:
            raise MqisError(
                f"the copy of partition {state.id} here is being synchronised; wait, or use "
                "another server's"
            )
    return "all partitions here are fully synchronised"


def _seeds(members: Members, read_store: Any, role: ConfiguredRole) -> list[str]:
    """The seeds of a PSC: the PEC, with its key from the directory."""
    if role is ConfiguredRole.PEC:
        return []
    with read_store() as view:
        root = enterprise(view)
        name = "" if root is None else text_of(root, PropId.E_PECNAME)
        pec = machine_named(view, name)
    keys = members.keys_of(pec.id)
    return [seed_text(Seed(name, pec.id, keys[0] if keys else None))]


def _values(
    config: Config,
    request: RebuildRequest,
    *,
    machine: DirectoryObject,
    site: DirectoryObject,
    role: ConfiguredRole,
    view: View,
    seeds: list[str],
) -> dict[str, dict[str, Any]]:
    root = enterprise(view)
    address = config.replication.listen or config.rpc.listen
    hosts = {n: a for n, a in config.hosts.entries if name_key(n) != name_key(request.name)}
    if address not in _ANY:
        hosts[server_name(config)] = host_port(address, config.replication.port)
    return {
        "server": {"name": machine.path, "role": role.value, "site": site.path},
        "store": {"url": f"sqlite:{_STORE}"},
        "rpc": {
            "listen": request.listen or config.rpc.listen,
            "port": config.rpc.port if request.port is None else request.port,
        },
        "security": {"accounts": _accounts(config, request.to), "keytab": ""},
        "replication": {
            "listen": "" if request.listen else config.replication.listen,
            "port": config.replication.port if request.queue_port is None else request.queue_port,
            "pec": "" if root is None else text_of(root, PropId.E_PECNAME),
            "psc": "",
            "id": str(machine.id),
            "site_id": str(site.id),
            "seeds": seeds,
            "key": _KEY,
            "signing": config.replication.signing.value,
            "journal": _JOURNAL if config.replication.journal else "",
        },
        "hosts": hosts,
    }


def _accounts(config: Config, to: Path) -> str:
    """The accounts file: a copy, but in a run directory the one that all its servers share."""
    run, _ = supervised_place(to / DEFAULT_NAME) or (None, None)
    if run is not None and Path(config.security.accounts).resolve() == run.resolve() / ACCOUNTS:
        return f"../../{ACCOUNTS}"
    return _ACCOUNTS


def _plan(
    view: View,
    config: Config,
    request: RebuildRequest,
    *,
    site: DirectoryObject,
    role: ConfiguredRole,
    checks: list[str],
) -> PromotePlan:
    here, name = server_name(config), request.name
    peers = [*primaries_of(view, name), *backups_of(view, site.id, name)]
    owned = f"{site.path}" + (" and the enterprise" if role is ConfiguredRole.PEC else "")
    signed = "with the key that was kept" if request.key else "with a new key"
    steps = (
        PromoteStep(
            str(request.to), f"a home for {name}: the copy of {here}, configuration, accounts"
        ),
        PromoteStep(str(request.to), f"{name} keeps its name and GUID, as {role.value}, {signed}"),
        PromoteStep(
            name,
            f"at its start, by itself: asks {', '.join(peers) or 'no server'} for their copies of "
            f"{owned}, takes the last version of every object, and continues with numbers that "
            "nobody has seen",
        ),
    )
    losses = [
        f"changes that {name} made and that have reached no other server",
        "properties that are never replicated (docs/replication.md)",
    ]
    if not backups_of(view, site.id, name):
        losses.append(f"queues that only {site.path} has (scope site), as it has no backup")
    where = request.to / DEFAULT_NAME
    after = [
        f"check addresses and ports in {where}, and move the directory to its computer",
        f"if {name} has a new address: set it in [hosts] of the others, or in its machine object",
        start_way(where),
    ]
    found = supervised_place(where)
    if found is not None:
        trusted = "" if request.key else ", lets the others trust its new key"
        after = [f"mqis up, which gives it its own addresses{trusted}, and starts it"]
    supervised = {name_key(node.name) for node in load_nodes(found[0])} if found else set()
    elsewhere = [peer for peer in peers if name_key(peer) not in supervised]
    if request.key is None and elsewhere:
        after.append(
            f"{', '.join(elsewhere)}: they have its old key; put the line of "
            f"{request.to / SEED} into replication.seeds of each, instead of an older one "
            f"of {name}; 'systemctl reload' or SIGHUP makes them read it"
        )
    title = f"{name} ({role.value} of {site.path}) is rebuilt from the copy of {here}"
    return PromotePlan(title, tuple(checks), steps, tuple(losses), tuple(after))
