"""The map, a route through it, and links that are switched off."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.topology import TopologyPage, topology
from mqis.web.asking import PageRequest


def show(request: PageRequest) -> Response:
    place = request.place()
    chart = request.reader(place).chart()
    source, destination = request.text("from"), request.text("to")
    off = request.request.query_params.getlist("off")
    found = topology(chart.snapshot, chart.roles, source, destination, off)
    return request.page(
        "map.html",
        404 if found.problem is not None else 200,
        found=found,
        graph=_graph(found),
        source=source,
        destination=destination,
        server=request.text("server"),
        place=place,
        places=[p for p in request.console.settings.places.all() if p.store or p.rpc],
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
