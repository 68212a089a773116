"""Writes the configuration of each server, and keeps the addresses in it up to date."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import MappingProxyType

from mqis.admin.join import Membership
from mqis.config.errors import ConfigError
from mqis.config.file import Reread, default_toml, override, read, reread
from mqis.config.nodes import ACCOUNTS, NodePlace, Nodes
from mqis.config.sections import Config
from mqis.enterprise.plan import DEFAULT_OPTIONS, Options, RunPlan, ServerRole
from mqis.files import write_whole
from mqis.server.identity import seed_text
from mqis.texts import host_port


def is_member(place: NodePlace) -> bool:
    """True if the server's configuration exists and holds its identity, or cannot be read."""
    path = Path(place.config)
    if not path.exists() or place.role == ServerRole.PEC:
        return path.exists()
    try:
        return read(path).replication.id is not None
    except ConfigError:
        return True


def write_config(
    plan: RunPlan,
    nodes: Nodes,
    place: NodePlace,
    member: Membership | None = None,
    dropped: Options = MappingProxyType({}),
) -> Reread | None:
    """Writes or updates the configuration of a server, atomically; returns what has changed.

    ``dropped``: keys that a plan had and has no more, which get the values of a new server.
    """
    path = Path(place.config)
    before = read(path) if path.exists() else None
    if before is not None:
        config = before
    else:  # after this, only 'mqis promote' and operators change these keys
        config = override(Config(), DEFAULT_OPTIONS, "mqis up")
        config = override(config, _lasting_keys(plan, place), "mqis up")
    config = override(config, _usual(dropped), "mqis up")
    config = override(config, plan.options, "options")
    config = override(config, _own_keys(plan, nodes, place), "mqis up")
    if member is not None:
        config = override(config, _membership(plan, member), "mqis up")
    text = default_toml(config)
    if before is None or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)
    return None if before is None else reread(before, config)


def _usual(keys: Options) -> dict[str, dict[str, object]]:
    """The values that a new server has for these keys, as its file has them."""
    usual = tomllib.loads(default_toml(override(Config(), DEFAULT_OPTIONS, "mqis up")))
    return {section: {key: usual[section][key] for key in given} for section, given in keys.items()}


def _own_keys(plan: RunPlan, nodes: Nodes, place: NodePlace) -> dict[str, dict[str, object]]:
    """The addresses at which the server and the others listen."""
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
        "hosts": {node.name: host_port(node.address, node.queue_port) for node in nodes},
        "monitoring": {
            "enabled": True,
            "listen": place.address,
            "port": place.monitor_port,
            "peers": [node.monitor_url for node in nodes if node.name != place.name],
        },
    }


def _lasting_keys(plan: RunPlan, place: NodePlace) -> dict[str, dict[str, object]]:
    return {
        "server": {"name": place.name, "role": place.role, "site": place.site},
        "enterprise": {"name": plan.enterprise.name},
        "store": {"url": f"sqlite:{Path(place.store).name}"},
        "security": {
            "accounts": f"../../{ACCOUNTS}",
            "domain": plan.domain_of(plan.administrator),
        },
    }


def _membership(plan: RunPlan, member: Membership) -> dict[str, dict[str, object]]:
    return {
        "replication": {
            "pec": plan.pec.name,
            "psc": member.psc,
            "id": str(member.id),
            "site_id": str(member.site_id),
            "seeds": [seed_text(seed) for seed in member.seeds],
        }
    }
