"""Distances as other implementations of Dijkstra's algorithm find them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given

from mqis.protocol.routing.graph import Graph
from mqis.protocol.routing.model import Link
from mqis.protocol.routing.routing_table import UNREACHABLE, build_table
from mqis.wire.guid import Guid
from tests.strategies.routing import graphs, unhurried

pytestmark = pytest.mark.interop


def judged(links: list[Link], sites: list[Guid]) -> nx.MultiGraph:
    """Made of the links, not of our graph."""
    made = nx.MultiGraph()
    made.add_nodes_from(sites)
    for link in links:
        if link.site1 in sites and link.site2 in sites and 1 <= link.cost <= 999_999:
            made.add_edge(link.site1, link.site2, weight=link.cost)
    return made


@unhurried
@given(graphs())
def test_networkx_finds_the_same_distances(drawn: tuple[list[Guid], list[Link]]) -> None:
    sites, links = drawn
    judge = judged(links, sites)
    graph = Graph.of(sites, links)
    for root in sites:
        found = build_table(graph, (graph.index[root],))
        ours = {row.destination: row.distance for row in found}
        assert ours == nx.single_source_dijkstra_path_length(judge, root)


@unhurried
@given(graphs())
def test_scipy_finds_the_same_distances(drawn: tuple[list[Guid], list[Link]]) -> None:
    sites, links = drawn
    graph = Graph.of(sites, links)
    matrix = np.zeros((len(sites), len(sites)))
    for first, second, data in judged(links, sites).edges(data=True):
        a, b = graph.index[first], graph.index[second]
        if a != b:
            known = matrix[a, b] or np.inf
            matrix[a, b] = matrix[b, a] = min(known, data["weight"])
    far = scipy.sparse.csgraph.shortest_path(matrix, method="D")
    for root in range(len(sites)):
        ours = [np.inf if d == UNREACHABLE else d for d in build_table(graph, (root,)).distance]
        assert ours == far[root].tolist()
