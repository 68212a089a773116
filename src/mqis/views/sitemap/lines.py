"""Lines of the map: their widths, bends, and the lines between regions."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from mqis.protocol.routing.model import Link
from mqis.views.sitemap.model import LinkOnMap, RegionLinkOnMap, SiteOnMap
from mqis.wire.guid import Guid

#: Widths of lines: without a load, and what the highest load adds.
_THIN, _THICK = 1.6, 8.0
#: The same for the number of links between two regions.
_MANY = 2.0
#: The distance between parallel links.
_APART = 34.0


def width_of(load: float | None, most: float, thick: float = _THICK) -> float:
    """The width of a line: its square grows with the load."""
    return _THIN if not load or most <= 0 else round(_THIN + thick * math.sqrt(load / most), 2)


def bends(links: Iterable[Link]) -> Iterator[tuple[Link, float]]:
    """Each link with its bend: parallel links get 0, 1, -1, 2, -2 steps."""
    seen: Counter[tuple[Guid, Guid]] = Counter()
    for link in links:
        pair = min(link.site1, link.site2), max(link.site1, link.site2)
        before = seen[pair]
        seen[pair] += 1
        steps = (before + 1) // 2 * (1 if before % 2 else -1)
        yield link, _APART * steps * (1 if pair[0] == link.site1 else -1) if before else 0.0


def region_links(
    sites: Iterable[SiteOnMap], links: Iterable[LinkOnMap]
) -> tuple[RegionLinkOnMap, ...]:
    """Sums the links between each pair of regions."""
    region_of = {site.id: site.region for site in sites if site.region}
    between: dict[tuple[str, str], list[LinkOnMap]] = defaultdict(list)
    for link in links if region_of else ():
        ends = region_of[link.source], region_of[link.target]
        if ends[0] != ends[1]:
            between[min(ends), max(ends)].append(link)
    loads = {pair: _sum(each) for pair, each in between.items()}
    weights = {pair: len(between[pair]) if load is None else load for pair, load in loads.items()}
    most = max(weights.values(), default=0.0)
    return tuple(
        RegionLinkOnMap(
            f"{a}-{b}",
            a,
            b,
            len(between[a, b]),
            width_of(weights[a, b], most, _MANY if load is None else _THICK),
            load,
        )
        for (a, b), load in sorted(loads.items())
    )


def _sum(links: Iterable[LinkOnMap]) -> float | None:
    loads = [link.load for link in links if link.load is not None]
    return sum(loads) if loads else None
