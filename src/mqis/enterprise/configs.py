"""The configuration of each server: written once, and kept up with where everybody listens."""

from __future__ import annotations

from pathlib import Path

from mqis.admin.join import Membership
from mqis.config.file import default_toml, override, read
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.privatefiles import write_private
from mqis.config.sections import Config
from mqis.enterprise.plan import DEFAULT_OPTIONS, Plan, ServerRole
from mqis.server.identity import seed_text

#: In the run directory, the same for all servers.
ACCOUNTS = "accounts.toml"


def is_member(place: NodePlace) -> bool:
    """Whether its configuration says who it is."""
    path = Path(place.config)
    return path.exists() and (place.role == ServerRole.PEC or read(path).replication.id is not None)


def write_config(
    plan: Plan, nodes: Nodes, place: NodePlace, member: Membership | None = None
) -> None:
    """Its configuration, anew or brought up to date; whole or not at all."""
    path = Path(place.config)
    if path.exists():
        config = read(path)
    else:  # later only 'mqis promote' and people change these
        config = override(Config(), DEFAULT_OPTIONS, "mqis up")
        config = override(config, _lasting_keys(plan, place), "mqis up")
    config = override(config, plan.options, "options")
    config = override(config, _own_keys(plan, nodes, place), "mqis up")
    if member is not None:
        config = override(config, _membership(plan, member), "mqis up")
    text = default_toml(config)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    write_private(path, text)


def _own_keys(plan: Plan, nodes: Nodes, place: NodePlace) -> dict[str, dict[str, object]]:
    """Where it listens, and where others do."""
    return {
        "rpc": {
            "listen": place.address,
            "port": place.rpc_port,
            "mapper_port": place.mapper_port,
        },
        "discovery": {
            "enabled": True,
            "listen": place.address,
            "port": place.discovery_port,
            "networks": [plan.enterprise.network],
        },
        "replication": {"listen": place.address, "port": place.queue_port},
        "hosts": {node.name: f"{node.address}:{node.queue_port}" for node in nodes},
        "monitoring": {"enabled": True, "listen": place.address, "port": place.monitor_port},
    }


def _lasting_keys(plan: Plan, place: NodePlace) -> dict[str, dict[str, object]]:
    return {
        "server": {"name": place.name, "role": place.role, "site": place.site},
        "enterprise": {"name": plan.enterprise.name},
        "store": {"url": f"sqlite:{Path(place.store).name}"},
        "security": {
            "accounts": f"../../{ACCOUNTS}",
            "domain": plan.domain_of(plan.administrator),
        },
    }


def _membership(plan: Plan, member: Membership) -> dict[str, dict[str, object]]:
    return {
        "replication": {
            "pec": plan.pec.name,
            "psc": member.psc,
            "id": str(member.id),
            "site_id": str(member.site_id),
            "seeds": [seed_text(seed) for seed in member.seeds],
        }
    }
