"""Makes a server follow a new PSC: a backup of the site, or the PSC that was replaced.

A backup gets all changes from its PSC, so it cannot learn of a new PSC by replication. Its copy of
the site object is changed here and keeps its number: the version that the new PSC sends is newer.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mqis.admin.promote.promotion_plan import (
    PromotePlan,
    PromoteStep,
    machine_named,
    rewrite,
    site_of_machine,
    sound_store,
    start_way,
    text_of,
)
from mqis.config.claims import claimed_store
from mqis.config.file import load, override, read
from mqis.config.sections import Config, ConfiguredRole
from mqis.config.stores import open_store
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.ports import View
from mqis.protocol.replication.topology_changes import follow_psc
from mqis.runtime.node.members import Members, Seed
from mqis.server.identity import parse_seed, seed_text, server_name
from mqis.wire.errors import MqisError
from mqis.wire.mqds.propid import PropId


@dataclass(frozen=True, slots=True)
class Following:
    plan: PromotePlan
    file: Path
    psc: Seed

    def carry_out(self) -> None:
        """Carries out the plan; may be repeated."""
        config = load(self.file)
        with claimed_store(config.store.url) as store, store.write() as tx:
            site = site_of_machine(tx, machine_named(tx, server_name(config)))
            follow_psc(tx, site, self.psc.name)
        stored = read(self.file)
        values: dict[str, dict[str, object]] = {
            "server": {"role": ConfiguredRole.BSC.value},
            "replication": {"psc": self.psc.name, "seeds": self._seeds(stored)},
        }
        rewrite(self.file, override(stored, values, "promote"))

    def _seeds(self, config: Config) -> list[str]:
        """The PEC, and the new PSC with its key from the local directory."""
        known = [parse_seed(text) for text in config.replication.seeds]
        pec = name_key(config.replication.pec)
        kept = [s for s in known if name_key(s.name) == pec and s.id != self.psc.id]
        return [seed_text(seed) for seed in (*kept, self.psc)]


def plan_follow(file: Path, psc: str) -> Following:
    """Checks everything and returns the plan; changes nothing."""
    config = load(file)
    name = server_name(config)
    if config.server.role not in (ConfiguredRole.BSC, ConfiguredRole.PSC):
        raise MqisError(
            f"{name} is a {config.server.role.value}: only a PSC or a BSC can follow another server"
        )
    if name_key(name) == name_key(psc):
        raise MqisError(f"{name} cannot follow itself")
    checks = [sound_store(config)]
    with closing(open_store(config.store.url)) as store:
        with store.read() as view:
            site = site_of_machine(view, machine_named(view, name))
            machine = machine_named(view, psc)
            plan = _plan(view, config, file=file, name=name, site=site, psc=machine, checks=checks)
        keys = Members(store, {}).keys_of(machine.id)
    seed = Seed(machine.path or psc, machine.id, keys[0] if keys else None)
    return Following(plan, file, seed)


def _plan(
    view: View,
    config: Config,
    *,
    file: Path,
    name: str,
    site: DirectoryObject,
    psc: DirectoryObject,
    checks: list[str],
) -> PromotePlan:
    if site_of_machine(view, psc).id != site.id:
        raise MqisError(f"{psc.path} is not a server of site {site.path}")
    checks.append(f"{psc.path} is a server of {site.path}")
    before = text_of(site, PropId.S_PSC)
    role = config.server.role
    losses = ["changes that the new PSC does not have, as in every full synchronisation"]
    if role is ConfiguredRole.PSC:
        losses.append(f"changes that {name} made and that have reached no other server")
    steps = (
        PromoteStep(name, f"its copy of site {site.path}: {_naming(psc.path or '', before)}"),
        PromoteStep(
            name,
            f"{file}: server.role becomes bsc (was {role.value}), "
            f"replication.psc {psc.path}, seeds",
        ),
        PromoteStep(
            name,
            f"at its start, by itself: gets missing changes from {psc.path}, publishes its role",
        ),
    )
    title = f"{name} follows {psc.path} as the PSC of {site.path}"
    return PromotePlan(title, tuple(checks), steps, tuple(losses), (start_way(file),))


def _naming(psc: str, before: str) -> str:
    if name_key(psc) == name_key(before):
        return f"psc is {psc} already"
    return f"psc becomes {psc} (was {before})"
