"""Divides many sites into regions, which have more links inside than between them.

networkx finds them (Louvain's method with a fixed seed). Sites are numbers here, because sets of
small integers have the same order in every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

#: The most sites of a map without regions.
MOST_WITHOUT = 60
#: The most regions; the sites of smaller ones make up one last region.
MOST_REGIONS = 60
#: Fewer linked sites than this, without a link to others, are no region of their own.
_FEW = 6

Members = tuple[int, ...]


def find_regions(graph: Any) -> list[Members]:
    """The regions of a networkx graph, the largest first; few sites apart from all are the last."""
    import networkx as nx  # noqa: PLC0415 -- slow to load, and only pictures need it

    pieces = sorted(nx.connected_components(graph), key=lambda piece: (-len(piece), min(piece)))
    apart = [piece for piece in pieces if len(piece) < _FEW]
    linked = graph.subgraph(site for piece in pieces if len(piece) >= _FEW for site in piece)
    parts: list[Members] = []
    for community in nx.community.louvain_communities(linked, seed=1) if len(linked) else ():
        found = nx.connected_components(graph.subgraph(community))
        parts += [tuple(sorted(part)) for part in found]
    return _limited(parts, [site for piece in apart for site in sorted(piece)])


def _limited(parts: Iterable[Members], apart: Sequence[int]) -> list[Members]:
    """Sorts the regions, and gathers the smallest ones with the sites that are apart."""
    ordered = sorted(parts, key=lambda part: (-len(part), part))
    last = [*(site for part in ordered[MOST_REGIONS - 1 :] for site in part), *apart]
    return [*ordered[: MOST_REGIONS - 1], *([tuple(last)] if last else [])]


def centre_of(members: Sequence[int], graph: Any) -> int:
    """The site with the most links, which gives the region its name."""
    return max(members, key=lambda site: (graph.degree[site], -site))
