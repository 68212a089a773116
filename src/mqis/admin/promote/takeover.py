"""Makes a backup controller the PSC of its site, in place of the lost one.

The PEC names it in the site object, which is how MC-MQDSRP moves an authority (3.1.7.2.11). When it
starts, it does the rest by itself: it learns that it owns the partition, asks every server that has
a copy, takes the last version of every object, skips numbers, and publishes its role.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mqis.admin.join import Directory, publish_key
from mqis.admin.promote.promotion_plan import (
    PromotePlan,
    PromoteStep,
    backups_of,
    follow_way,
    machine_named,
    primaries_of,
    return_way,
    rewrite,
    silent,
    site_of_machine,
    sound_store,
    start_way,
)
from mqis.config.file import load, override, read
from mqis.config.nodes import load_nodes, supervised_place
from mqis.config.sections import ConfiguredRole
from mqis.config.stores import open_store
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.ports import View
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.runtime.node.signer import MachineKey
from mqis.server.identity import parse_seed, server_name
from mqis.wire.errors import MqisError
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant


class ChangingDirectory(Directory, Protocol):
    """The calls of the PEC's directory service that a takeover needs."""

    def set(
        self, object_type: ObjectType, name: str, properties: dict[int, PropVariant]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Takeover:
    """A plan, with the data to carry it out."""

    plan: PromotePlan
    file: Path
    name: str
    site: str
    pec: str
    #: The PSC as the plan found it.
    lost: str

    def carry_out(self, directory: ChangingDirectory) -> None:
        """Carries out the plan; may be repeated."""
        config = load(self.file)
        self._check(directory)
        psc = self.name
        directory.set(ObjectType.SITE, self.site, props({PropId.S_PSC: psc}))
        if config.replication.signing is not SigningPolicy.NONE:
            key = MachineKey.open(Path(config.replication.key))
            publish_key(directory, ObjectType.SITE, self.site, key.public)
        stored = read(self.file)
        seeds = [
            s for s in stored.replication.seeds if _is_same_server(parse_seed(s).name, self.pec)
        ]
        values: dict[str, dict[str, object]] = {
            "server": {"role": ConfiguredRole.PSC.value},
            "replication": {"psc": "", "pec": self.pec, "seeds": seeds},
        }
        rewrite(self.file, override(stored, values, "promote"))

    def _check(self, directory: ChangingDirectory) -> None:
        """Refuses the takeover if another server has replaced the lost one meanwhile."""
        psc = _psc_according_to_pec(directory, self.site)
        if not _is_same_server(psc, self.lost) and not _is_same_server(psc, self.name):
            raise MqisError(
                f"the PSC of {self.site} is {psc or 'no server'} by now, no longer {self.lost}: "
                f"nothing was changed; to become its backup, use mqis promote --follow {psc}"
            )


def _is_same_server(name: str, other: str) -> bool:
    return name_key(name) == name_key(other)


def plan_takeover(
    file: Path, directory: Directory, *, force: bool = False, stopped: bool = True
) -> Takeover:
    """Checks everything and returns the plan; changes nothing.

    ``stopped``: refuses a server that runs. A mere plan can be made while it does.
    """
    config = load(file)
    name = server_name(config)
    if config.server.role is not ConfiguredRole.BSC:
        raise MqisError(
            f"{name} is a {config.server.role.value}: only a backup of the site can become its "
            "PSC; without a backup, and for a lost PEC, use mqis promote --rebuild NAME --to DIR"
        )
    checks = [sound_store(config, stopped=stopped)]
    with closing(open_store(config.store.url)) as store:
        with store.read() as view:
            site = site_of_machine(view, machine_named(view, name))
        lost = _psc_according_to_pec(directory, site.path or "")
        pec = config.replication.pec
        if _is_same_server(lost, name):
            checks.append(f"the PEC says already that {name} is the PSC of {site.path}")
        else:
            checks.append(f"the PEC says that {lost} is the PSC of {site.path}")
            checks.append(silent(store, config, lost, force=force))
        with store.read() as view:
            plan = _plan(view, file, name=name, site=site, lost=lost, pec=pec, checks=checks)
    return Takeover(plan, file, name, site.path or "", pec, lost)


def _psc_according_to_pec(directory: Directory, site: str) -> str:
    found = directory.get(ObjectType.SITE, site, [PropId.S_PSC])
    value = found.values.get(PropId.S_PSC)
    return str(value.value) if value is not None and value.value else ""


def _plan(
    view: View,
    file: Path,
    *,
    name: str,
    site: DirectoryObject,
    lost: str,
    pec: str,
    checks: list[str],
) -> PromotePlan:
    state = view.partition(site.id)
    number = "none" if state is None else str(state.last_seq)
    backups = backups_of(view, site.id, name, lost)
    peers = [*primaries_of(view, name, lost), *backups]
    steps = [
        PromoteStep(
            pec, f"site {site.path}: psc becomes {name} (was {lost}), with the key of {name}"
        ),
        PromoteStep(name, f"{file}: server.role becomes psc, replication.psc is removed"),
        PromoteStep(
            name,
            f"at its start, by itself: asks {', '.join(peers) or 'no server'} for their copies of "
            f"{site.path}, takes the last version of every object, and continues with numbers that "
            "nobody has seen",
        ),
        PromoteStep(name, f"then, by itself: its machine object says psc, and that of {lost} bsc"),
        *(
            PromoteStep(other, f"mqis promote --follow {name}, with that server stopped")
            for other in backups
        ),
    ]
    everybody = ", ".join([name, *peers])
    losses = (
        f"changes that {lost} made and that none of {everybody} has; the copy here is at {number}",
        f"the role of {lost}: if it comes back, it learns so and makes no more changes",
    )
    found = supervised_place(file)
    nodes = () if found is None else load_nodes(found[0]).nodes
    after = (
        f"{start_way(file)}; its log names the servers asked and changes only it has",
        *(follow_way(other, name, nodes) for other in backups),
        return_way(lost, name, nodes),
    )
    title = f"{name} becomes the PSC of {site.path} in the place of {lost}"
    return PromotePlan(title, tuple(checks), tuple(steps), losses, after)
