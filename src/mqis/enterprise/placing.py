"""The servers of a plan with their present roles, addresses and files."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path

from mqis.config.nodes import NodePlace, Nodes, is_run, load_nodes
from mqis.enterprise.addresses import Ports, ServerPorts, assign
from mqis.enterprise.plan import PORTS, RunPlan, ServerPlan, ServerRole
from mqis.enterprise.roles import configured_role, present_psc
from mqis.protocol.directory.objects import name_key

SERVERS, STORE = "servers", "directory.db"


def place_servers(
    run: Path,
    plan: RunPlan,
    before: RunPlan | None,
    *,
    own_addresses: bool | None = None,
    running: Set[str] = frozenset(),
) -> tuple[Nodes, tuple[str, ...]]:
    """Returns the servers, and notes about ports that were replaced.

    A server that the plan has no more stays until somebody removes it. ``running``: the names of
    servers that hold their ports already.
    """
    servers = all_servers(plan, before)
    known: dict[str, ServerPorts] = {}
    if is_run(run):
        known = {node.name: _place_of(node) for node in load_nodes(run)}
    fixed = {server.name: _fixed_ports(server) for server in servers}
    names = [server.name for server in servers]
    assigned = assign(run, names, known, own=own_addresses, fixed=fixed, running=running)
    roles = present_roles(run, servers)
    at = (_node(run, s, roles[s.name], assigned.places[s.name]) for s in servers)
    return Nodes(plan.enterprise.name, tuple(at)), assigned.notes


def all_servers(plan: RunPlan, before: RunPlan | None) -> tuple[ServerPlan, ...]:
    """The servers of a plan, and those of the one before that it has no more."""
    known = {name_key(server.name) for server in plan.servers}
    older = () if before is None else before.servers
    return (*plan.servers, *(s for s in older if name_key(s.name) not in known))


def _fixed_ports(server: ServerPlan) -> dict[str, int]:
    found = {port.removesuffix("_port"): getattr(server, port) for port in PORTS}
    return {port: number for port, number in found.items() if number}


def present_roles(run: Path, servers: Sequence[ServerPlan]) -> dict[str, ServerRole]:
    """The present roles: a server may have been promoted since the plan was written."""
    configured = {s.name: configured_role(_config_of(run, s)) for s in servers}
    authority_first = sorted(servers, key=lambda server: server.role is not ServerRole.PEC)
    stores = [_config_of(run, server).with_name(STORE) for server in authority_first]
    claims: dict[str, list[str]] = {}
    for server in servers:
        if configured[server.name] is ServerRole.PSC:
            claims.setdefault(name_key(server.site), []).append(server.name)
    leaders = {site: present_psc(site, names, stores) for site, names in claims.items()}

    def role_of(server: ServerPlan) -> ServerRole:
        role = configured[server.name] or server.role
        leader = leaders.get(name_key(server.site))
        replaced = role is ServerRole.PSC and leader not in (None, server.name)
        return ServerRole.BSC if replaced else role

    return {server.name: role_of(server) for server in servers}


def _config_of(run: Path, server: ServerPlan) -> Path:
    return run / SERVERS / server.name / "mqis.toml"


def _node(run: Path, server: ServerPlan, role: ServerRole, place: ServerPorts) -> NodePlace:
    config, ports = _config_of(run, server), place.ports
    home = config.parent
    return NodePlace(
        name=server.name,
        role=role.value,
        site=server.site,
        address=place.address,
        rpc_port=ports.rpc,
        mapper_port=ports.mapper,
        queue_port=ports.queue,
        discovery_port=ports.discovery,
        monitor_port=ports.monitor,
        home=str(home),
        config=str(config),
        store=str(home / STORE),
        journal=str(home / "journal"),
        log=str(home / "log"),
    )


def _place_of(node: NodePlace) -> ServerPorts:
    return ServerPorts(
        node.address,
        Ports(
            node.rpc_port, node.mapper_port, node.queue_port, node.discovery_port, node.monitor_port
        ),
    )
