"""Measures routing tables, all pairs of sites, and what-ifs, against graph libraries."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse.csgraph import dijkstra

from bench.measure import Sample, contest, once, timed_together
from bench.results import Aim, Results, Row, ratio
from bench.run import Bench, Run
from mqis.protocol.routing.bulk.allpairs import all_pairs, routes_from
from mqis.protocol.routing.bulk.sitegraph import SiteGraph
from mqis.protocol.routing.bulk.whatif import WhatIf
from mqis.protocol.routing.graph import Graph
from mqis.protocol.routing.model import Link
from mqis.protocol.routing.routing_table import build_table
from mqis.wire.guid import Guid

DEGREE = 4
MAX_COST = 100
SCIPY = "scipy dijkstra with predecessors"
SLOWEST = 2.0
SWEEP_AIM = 20
#: With more sites, the other libraries take minutes for all pairs, or too much memory.
ALL_PAIRS_LIMIT = 1000


@dataclass(frozen=True)
class Enterprise:
    """A connected random graph of sites, with about four links each."""

    count: int
    first: list[int]
    second: list[int]
    cost: list[int]

    @classmethod
    def of(cls, count: int) -> Enterprise:
        chosen = random.Random(count)
        ends = [(site, chosen.randrange(site)) for site in range(1, count)]
        while len(ends) < count * DEGREE // 2:
            ends.append((chosen.randrange(count), chosen.randrange(count)))
        costs = [chosen.randint(1, MAX_COST) for _ in ends]
        return cls(count, [a for a, _ in ends], [b for _, b in ends], costs)

    def arrays(self, without: int | None = None) -> SiteGraph:
        kept = [n for n in range(len(self.cost)) if n != without]
        picked = ([column[n] for n in kept] for column in (self.first, self.second, self.cost))
        return SiteGraph.of(self.count, *picked)

    @cached_property
    def graph(self) -> Graph:
        sites = [Guid.from_big_endian(n.to_bytes(16, "big")) for n in range(self.count)]
        ends = zip(self.first, self.second, self.cost, strict=True)
        return Graph.of(sites, (Link(sites[a], sites[a], sites[b], c) for a, b, c in ends))

    @cached_property
    def networkx(self) -> nx.Graph:
        made = nx.Graph()
        made.add_nodes_from(range(self.count))
        made.add_weighted_edges_from(self._edges)
        return made

    @cached_property
    def _edges(self) -> list[tuple[int, int, int]]:
        return [
            (a, b, c) for a, row in enumerate(self.graph.costs) for b, c in row.items() if a < b
        ]

    def rustworkx(self) -> Any:
        """The graph for rustworkx; raises ``ImportError`` if that is not installed."""
        import rustworkx  # noqa: PLC0415

        made = rustworkx.PyGraph()
        made.add_nodes_from(range(self.count))
        made.add_edges_from(self._edges)
        return made


def _run(run: Run) -> Results:
    results = Results(
        notes=[
            (
                "mqis' times include next hops and its tie-break; scipy computes predecessors, the "
                "others paths (one table) or distances (all pairs)"
            )
        ]
    )
    for count in (100, 300) if run.quick else (100, 1000, 10_000):
        run.say(f"routing: one table, {count:,} sites")
        _one_table(run, Enterprise.of(count), results)
    for count in (60, 120) if run.quick else (1000, 4000):
        run.say(f"routing: all pairs, {count:,} sites")
        _all_pairs(run, Enterprise.of(count), results)
    run.say("routing: every single link")
    _sweep(run, Enterprise.of(run.scaled(1000, 60)), results)
    return results


BENCH = Bench("routing", "routing tables, all pairs of sites, every link removed once", _run)


def _one_table(run: Run, enterprise: Enterprise, results: Results) -> None:
    arrays = enterprise.arrays()
    matrix = arrays.rows.matrix
    distance, _ = routes_from(arrays, 0)
    assert distance.tolist() == list(build_table(enterprise.graph, (0,)).distance)
    assert distance.tolist() == dijkstra(matrix, indices=0).tolist()
    contenders: dict[str, Callable[[], object]] = {
        "mqis": lambda: build_table(enterprise.graph, (0,)),
        "mqis, arrays": lambda: routes_from(arrays, 0),
        SCIPY: lambda: dijkstra(matrix, indices=0, return_predecessors=True),
        "networkx": lambda: nx.single_source_dijkstra(enterprise.networkx, 0),
    }
    try:
        import rustworkx  # noqa: PLC0415

        peer = enterprise.rustworkx()
        contenders["rustworkx"] = lambda: rustworkx.dijkstra_shortest_paths(peer, 0, None, float)
    except ImportError as error:
        results.notes.append(f"rustworkx: skipped: {error} (make bench installs it)")
    samples = contest(run.rounds, {name: _timed(run, work) for name, work in contenders.items()})
    table = f"one routing table, {enterprise.count:,} sites"
    for name, found in samples.items():
        peers = ("networkx", samples["networkx"]) if name == "mqis" else None
        peers = ("scipy", samples[SCIPY]) if name == "mqis, arrays" else peers
        results.rows.append(Row.of(table, name, found, peer=peers))


def _timed(run: Run, operation: Callable[[], object]) -> Callable[[], Sample]:
    def batch() -> int:
        operation()
        return 1

    return lambda: timed_together(batch, run.sample_s)


def _all_pairs(run: Run, enterprise: Enterprise, results: Results) -> None:
    arrays = enterprise.arrays()
    matrix = arrays.rows.matrix
    pairs = enterprise.count**2
    ours = all_pairs(arrays)
    assert np.array_equal(ours.distance, dijkstra(matrix))
    contenders: dict[str, Callable[[], object]] = {
        "mqis": lambda: all_pairs(arrays),
        SCIPY: lambda: dijkstra(matrix, return_predecessors=True),
    }
    table = f"all pairs, {enterprise.count:,} sites (pairs a second)"
    samples = contest(min(run.rounds, 3), {k: _once(work, pairs) for k, work in contenders.items()})
    for name, found in samples.items():
        peers = ("scipy", samples[SCIPY]) if name == "mqis" else None
        results.rows.append(Row.of(table, name, found, peer=peers))
    if enterprise.count <= ALL_PAIRS_LIMIT:
        results.rows += [Row.of(table, *row) for row in _others(enterprise, pairs)]
    else:
        results.notes.append(
            f"networkx and rustworkx: skipped for all pairs of {enterprise.count:,} sites: too slow"
        )
    slower = 1 / ratio(samples["mqis"], samples[SCIPY])
    goal = f"all pairs of {enterprise.count:,} sites <= {SLOWEST:.0f}x the time of {SCIPY}"
    results.aims.append(Aim(goal, f"{slower:.2f}x", slower <= SLOWEST))


def _others(enterprise: Enterprise, pairs: int) -> list[tuple[str, list[Sample]]]:
    graph = enterprise.networkx
    found = [("networkx", [_once(lambda: dict(nx.all_pairs_dijkstra_path_length(graph)), pairs)()])]
    try:
        import rustworkx  # noqa: PLC0415
    except ImportError:
        return found
    peer = enterprise.rustworkx()
    work = _once(lambda: rustworkx.all_pairs_dijkstra_path_lengths(peer, float), pairs)
    return [*found, ("rustworkx", [work()])]


def _once(operation: Callable[[], object], done: int) -> Callable[[], Sample]:
    def work() -> int:
        operation()
        return done

    return lambda: once(work)


def _sweep(run: Run, enterprise: Enterprise, results: Results) -> None:
    """Measures the removal of single links; the peer gets only some, as all take minutes."""
    routes = all_pairs(enterprise.arrays())
    what_if = WhatIf(routes)
    sweep = what_if.each_link()
    number = len(routes.graph.link)
    portion = -(-number // run.rounds)
    links = np.random.default_rng(1).choice(routes.graph.link, number, replace=False).tolist()
    contenders = {
        "mqis": lambda: once(lambda: len(list(islice(sweep, portion)))),
        "all pairs again for each": lambda: once(lambda: _recompute(enterprise, links, 3)),
    }
    samples = contest(run.rounds, contenders)
    table = f"every single link of {enterprise.count:,} sites removed (links a second)"
    ours, theirs = samples["mqis"], samples["all pairs again for each"]
    results.rows += [
        Row.of(table, "mqis", ours, peer=("all pairs again", theirs)),
        Row.of(table, "all pairs again for each", theirs),
    ]
    swept = sum(sample.operations for sample in ours)
    seconds = sum(sample.elapsed_ns for sample in ours) / 1e9
    results.notes.append(
        f"the sweep took {seconds:.1f} s for {swept:,} links; all pairs again is measured on a few"
    )
    found = ratio(ours, theirs)
    goal = f"sweep >= {SWEEP_AIM}x all pairs again, {enterprise.count:,} sites"
    results.aims.append(Aim(goal, f"{found:.1f}x", found >= SWEEP_AIM))


def _recompute(enterprise: Enterprise, links: list[int], number: int) -> int:
    for _ in range(number):
        all_pairs(enterprise.arrays(without=links.pop()))
    return number
