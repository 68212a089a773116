"""The servers of a plan with their present roles, addresses and files."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, replace
from hashlib import blake2b
from pathlib import Path

from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes, is_run, load_nodes
from mqis.enterprise.plan import PORTS, RunPlan, ServerPlan, ServerRole
from mqis.enterprise.roles import configured_role, present_psc
from mqis.files import system_reason
from mqis.protocol.directory.objects import name_key

LOOPBACK = "127.0.0.1"
#: The ports of a server, with the socket type of each.
_KINDS = {
    "rpc": socket.SOCK_STREAM,
    "mapper": socket.SOCK_STREAM,
    "queue": socket.SOCK_STREAM,
    "discovery": socket.SOCK_DGRAM,
    "monitor": socket.SOCK_STREAM,
}
#: Blocks of ports, below the ephemeral ports of the system.
_FIRST, _LAST, _BLOCK = 12_000, 31_900, 10


@dataclass(frozen=True, slots=True)
class Ports:
    rpc: int = 2879
    mapper: int = 135
    queue: int = 1801
    #: UDP.
    discovery: int = 1801
    monitor: int = 9364


@dataclass(frozen=True, slots=True)
class ServerPorts:
    """The address and ports of a server."""

    address: str
    ports: Ports


@dataclass(frozen=True, slots=True)
class Assigned:
    places: Mapping[str, ServerPorts]
    #: Notes about ports that were replaced.
    notes: tuple[str, ...]


def assign(
    run: Path,
    names: Sequence[str],
    known: Mapping[str, ServerPorts] | None = None,
    *,
    own: bool | None = None,
    fixed: Mapping[str, Mapping[str, int]] | None = None,
    running: Set[str] = frozenset(),
) -> Assigned:
    """Assigns a place to each name. Those of ``known`` keep their places as far as possible.

    ``own``: give each server its own address; None: if the system supports that. ``fixed``: ports
    that the plan sets, by server and by field of ``Ports``. ``running``: servers that hold their
    ports already.
    """
    with ExitStack() as stack:
        return _Assigner(stack, run, own, fixed or {}, running).assign(names, known or {})


def own_addresses_work() -> bool:
    """True if loopback has more than one address here."""
    with suppress(OSError), socket.socket() as probe:
        probe.bind(("127.77.1.1", 0))
        return True
    return False


class _Assigner:
    """Assigns ports, and keeps each bound until the end, so that none is assigned twice."""

    def __init__(
        self,
        stack: ExitStack,
        run: Path,
        own: bool | None,
        fixed: Mapping[str, Mapping[str, int]],
        running: Set[str],
    ) -> None:
        self._stack = stack
        self._fixed = fixed
        self._running = running
        digest = blake2b(os.fsencode(run.absolute()), digest_size=4).digest()
        self._seed = int.from_bytes(digest, "big")
        self._own = own_addresses_work() if own is None else own
        self._notes: list[str] = []

    def assign(self, names: Sequence[str], known: Mapping[str, ServerPorts]) -> Assigned:
        found = {name: self._settle(name, known[name]) for name in names if name in known}
        taken = {place.address for place in found.values()}
        fresh = self._addresses(taken)
        for number, name in enumerate(names):
            if name in found:
                continue
            if self._own:
                found[name] = self._settle(name, ServerPorts(next(fresh), Ports()))
            else:
                place = ServerPorts(LOOPBACK, self._block(self._seed + number))
                found[name] = self._as_fixed(name, place)
        return Assigned({name: found[name] for name in names}, tuple(self._notes))

    def _addresses(self, taken: set[str]) -> Iterator[str]:
        """Yields 127.x.y.1 and up: each run directory has its own network."""
        first = next(iter(taken), "")
        if first and first != LOOPBACK:
            net = first.rpartition(".")[0]
        else:
            net = f"127.{10 + self._seed % 200}.{1 + self._seed // 200 % 250}"
        for host in range(1, 255):
            if (address := f"{net}.{host}") not in taken:
                yield address
        raise NodesError("no address is left for another server: an enterprise may have 254")

    def _settle(self, name: str, place: ServerPorts) -> ServerPorts:
        """Returns ``place``, with other ports instead of those that are not available."""
        place = self._as_fixed(name, place)
        if name in self._running:
            return place
        ports = place.ports
        for kind, wanted in zip(_KINDS, astuple(ports), strict=True):
            if kind in self._fixed.get(name, {}):
                continue
            reason = self._hold(place.address, wanted, kind)
            if reason is None:
                continue
            other = self._another(place.address, kind)
            self._notes.append(
                f"{name}: {kind} port {place.address}:{wanted} is {reason}; took {other}"
            )
            ports = replace(ports, **{kind: other})
        return ServerPorts(place.address, ports)

    def _as_fixed(self, name: str, place: ServerPorts) -> ServerPorts:
        """The place with the ports that the plan sets; one that another program has is an error."""
        fixed = self._fixed.get(name, {})
        for kind, wanted in fixed.items():
            if name in self._running and getattr(place.ports, kind) == wanted:
                continue
            reason = self._hold(place.address, wanted, kind)
            if reason is not None:
                key = f"{kind}_port = {wanted}"
                raise NodesError(f"{name}: {key}: this port is {reason} at {place.address}")
        return ServerPorts(place.address, replace(place.ports, **fixed))

    def _hold(self, address: str, port: int, kind: str) -> str | None:
        """Binds a port until the end of the assignment; returns the reason if that fails."""
        made = socket.socket(socket.AF_INET, _KINDS[kind])
        try:
            if _KINDS[kind] == socket.SOCK_STREAM and os.name == "posix":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((address, port))
            if _KINDS[kind] == socket.SOCK_STREAM:
                made.listen(1)
        except OSError as error:
            made.close()
            return {errno.EADDRINUSE: "busy", errno.EACCES: "privileged"}.get(
                error.errno or 0, f"not available ({system_reason(error)})"
            )
        self._stack.callback(made.close)
        return None

    def _another(self, address: str, kind: str) -> int:
        start = _FIRST + self._seed % (_LAST - _FIRST)
        for step in range(_LAST - _FIRST):
            port = _FIRST + (start - _FIRST + step) % (_LAST - _FIRST)
            if self._hold(address, port, kind) is None:
                return port
        raise NodesError(f"no port is free at {address}")

    def _block(self, seed: int) -> Ports:
        """Finds consecutive ports, each free for its protocol."""
        blocks = (_LAST - _FIRST) // _BLOCK
        for step in range(blocks):
            base = _FIRST + (seed + step) % blocks * _BLOCK
            numbers = range(base, base + len(_KINDS))
            pairs = zip(_KINDS, numbers, strict=True)
            if all(self._hold(LOOPBACK, port, kind) is None for kind, port in pairs):
                return Ports(*numbers)
        raise NodesError(f"no {len(_KINDS)} ports in a row are free at {LOOPBACK}")


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
