"""The map, a route through it, and links that are switched off."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.topology import TopologyPage, topology
from mqis.web.asking import PageRequest


def show(asked: PageRequest) -> Response:
    place = asked.place()
    chart = asked.reader(place).chart()
    source, destination = asked.text("from"), asked.text("to")
    off = asked.request.query_params.getlist("off")
    found = topology(chart.snapshot, chart.roles, source, destination, off)
    return asked.page(
        "map.html",
        404 if found.problem is not None else 200,
        found=found,
        graph=_graph(found),
        source=source,
        destination=destination,
        server=asked.text("server"),
        place=place,
        places=[p for p in asked.console.settings.places.all() if p.store or p.rpc],
    )


def _graph(found: TopologyPage) -> dict[str, object]:
    """The data of the graph in the browser, which has the same layout as the picture."""
    return {
        "sites": [
            {
                "id": site.id,
                "label": "\n".join((site.name, *site.lines)),
                "x": site.x + site.width / 2,
                "y": site.y + site.height / 2,
                "width": site.width,
                "height": site.height,
                "kind": ("on" if site.on_route else "") + ("" if site.has_gate else " shut"),
            }
            for site in found.sites
        ],
        "links": [
            {
                "id": link.id,
                "source": link.source,
                "target": link.target,
                "label": str(link.cost),
                "kind": "off" if link.off else "on" if link.on_route else "",
            }
            for link in found.links
        ],
    }
