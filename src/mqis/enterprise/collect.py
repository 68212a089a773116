"""How an enterprise is: what every server tells of itself, put beside each other.

``collect`` asks all servers at once. A ``Collector`` does it again and again and remembers since
when a server is away and since when a replica is behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from mqis.config.nodes import NodePlace, Nodes, load_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK
from mqis.enterprise.states import State, Supervised, load_states
from mqis.server.monitoring.status import PartitionStatus, ServerStatus

TIMEOUT_S = 2.0
_LASTING = (State.STOPPED, State.FAILED)
#: Nobody's proxy is asked about servers on this computer.
_opener = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One partition at one server."""

    id: str
    name: str
    authority: bool
    state: str
    last_seq: str
    purged_seq: str
    #: Changes that the authority has and this server lacks; None: the authority is not there.
    behind: int | None
    #: Seconds since it fell behind, as far as somebody watched.
    behind_s: float | None


@dataclass(frozen=True, slots=True)
class ServerRow:
    name: str
    role: str
    site: str
    address: str
    pid: int | None
    restarts: int
    up: bool
    #: The supervisor's word: ready, starting, stopped, ...; "down" where nobody knows more.
    state: str
    #: Seconds since the epoch at which it came into that state, if that is known.
    since: float | None
    #: Why it is not up.
    reason: str
    partitions: tuple[ReplicaRow, ...] = ()
    #: Messages to other servers that wait for delivery or acknowledgement.
    queued: int = 0
    #: Neighbours with an open session, and all of them.
    connected: int = 0
    neighbours: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def behind(self) -> int:
        """Changes that are missing here, of all partitions."""
        return sum(row.behind or 0 for row in self.partitions)

    @property
    def behind_s(self) -> float | None:
        return max(
            (row.behind_s for row in self.partitions if row.behind_s is not None), default=None
        )


@dataclass(frozen=True, slots=True)
class EnterpriseStatus:
    enterprise: str
    #: Seconds since the epoch.
    taken: float
    #: The process of 'mqis up', None if there is none.
    supervisor: int | None
    servers: tuple[ServerRow, ...]

    @property
    def converged(self) -> bool:
        """Every server is up, has every partition that somebody has, and lacks nothing."""
        known = {row.id for server in self.servers for row in server.partitions}
        return all(
            server.up
            and {row.id for row in server.partitions} == known
            and all(row.behind == 0 for row in server.partitions)
            for server in self.servers
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "converged": self.converged}


def fetch(node: NodePlace, timeout_s: float = TIMEOUT_S) -> ServerStatus | str:
    """What a server tells of itself, or why it does not."""
    try:
        with _opener.open(f"{node.monitor_url}/status", timeout=timeout_s) as answer:
            return ServerStatus.from_json(json.load(answer))
    except (URLError, OSError) as error:
        return str(getattr(error, "reason", error))
    except (ValueError, KeyError, TypeError) as error:
        return f"its answer is not understood: {error}"


def collect(
    nodes: Nodes,
    supervised: Mapping[str, Supervised] | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
) -> EnterpriseStatus:
    """One look at all servers."""
    return _Look(nodes, supervised or {}, timeout_s).status({})


class Collector:
    """Looks at a run directory again and again."""

    def __init__(self, run: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._run = run
        self._timeout_s = timeout_s
        #: (server, partition) -> when it was first seen behind; (server, "") -> away.
        self._since: dict[tuple[str, str], float] = {}

    def collect(self) -> EnterpriseStatus:
        """``NodesError`` if there is no run directory."""
        alive = holder(self._run / LOCK)
        nodes = replace(load_nodes(self._run), supervisor=alive)
        states = load_states(self._run)
        known = {} if states is None else states.servers
        if alive is None:  # what ended in order is known, of the others nobody knows
            known = {name: s for name, s in known.items() if s.state in _LASTING}
        return _Look(nodes, known, self._timeout_s).status(self._since)


class _Look:
    def __init__(
        self, nodes: Nodes, supervised: Mapping[str, Supervised], timeout_s: float
    ) -> None:
        self._nodes = nodes
        self._supervised = supervised
        with ThreadPoolExecutor(max(1, len(nodes.nodes))) as pool:
            found = pool.map(lambda node: fetch(node, timeout_s), nodes)
            self._told = dict(zip((node.name for node in nodes), found, strict=True))
        self._now = time.time()
        self._last = {
            partition.id: int(partition.last_seq, 16)
            for told in self._told.values()
            if isinstance(told, ServerStatus)
            for partition in told.partitions
            if partition.authority
        }

    def status(self, since: dict[tuple[str, str], float]) -> EnterpriseStatus:
        rows = tuple(self._row(node, since) for node in self._nodes)
        return EnterpriseStatus(self._nodes.enterprise, self._now, self._nodes.supervisor, rows)

    def _row(self, node: NodePlace, since: dict[tuple[str, str], float]) -> ServerRow:
        told = self._told[node.name]
        known = self._supervised.get(node.name)
        if isinstance(told, ServerStatus):
            since.pop((node.name, ""), None)
            # It tells how it is before it takes calls: while it gets its directory.
            starting = known is not None and known.state is State.STARTING
            return ServerRow(
                *_first(node),
                pid=told.pid,
                restarts=node.restarts,
                up=not starting,
                state=(State.STARTING if starting else State.READY).value,
                since=told.started,
                reason="",
                partitions=tuple(self._replica(node.name, p, since) for p in told.partitions),
                queued=sum(n.queued for n in told.neighbours),
                connected=sum(n.connected for n in told.neighbours),
                neighbours=len(told.neighbours),
                counters=told.counters,
            )
        seen = since.setdefault((node.name, ""), self._now)
        if known is None or known.state is State.READY:
            state, moment, reason, pid = "down", seen, told, None
        else:
            state, moment, reason = known.state.value, known.since, known.reason
            pid = node.pid
        return ServerRow(
            *_first(node),
            pid=pid,
            restarts=node.restarts,
            up=False,
            state=state,
            since=moment,
            reason=reason,
        )

    def _replica(
        self, server: str, partition: PartitionStatus, since: dict[tuple[str, str], float]
    ) -> ReplicaRow:
        key = server, partition.id
        last = self._last.get(partition.id)
        # Servers are asked one after the other, so a replica may seem to be ahead.
        behind = None if last is None else max(0, last - int(partition.last_seq, 16))
        behind_s = None
        if behind:
            behind_s = self._now - since.setdefault(key, self._now)
        elif behind == 0:
            since.pop(key, None)
        return ReplicaRow(
            partition.id,
            partition.name,
            partition.authority,
            partition.state,
            partition.last_seq,
            partition.purged_seq,
            behind,
            behind_s,
        )


def _first(node: NodePlace) -> tuple[str, str, str, str]:
    return node.name, node.role, node.site, node.address
