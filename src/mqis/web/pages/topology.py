"""The map, a route through it, and links that are switched off."""

from __future__ import annotations

from json import dumps

from starlette.responses import Response

from mqis.views.console.map_page import MapQuestion, case_of, site_states, topology
from mqis.views.console.shown_errors import MqisError
from mqis.views.sitemap.charting import Chart
from mqis.views.sitemap.picture import LinkLoads, RouteCase, loads_of, map_of, picture
from mqis.web.page_requests import PageRequest
from mqis.web.request_guard import REPORT_POLICY


def show(request: PageRequest) -> Response:
    place = request.place()
    chart = request.reader(place).chart()
    question = _question(request)
    found = topology(chart, question, _loads(request, chart), _states(request))
    return request.page(
        "map.html",
        404 if found.problem is not None else 200,
        found=found,
        question=question,
        state=found.state(),
        server=request.text("server"),
        place=place,
        places=[p for p in request.console.settings.places.all() if p.store or p.rpc],
    )


def data(request: PageRequest) -> Response:
    """The map without a route, which the page's script loads once."""
    chart = request.reader(request.place()).chart()
    case, loads = RouteCase.of(chart.snapshot), _loads(request, chart)
    found = map_of(case, chart.roles, loads, _states(request))
    return Response(dumps(found.as_json()), media_type="application/json")


def image(request: PageRequest) -> Response:
    """The map as ``mqis map`` draws it."""
    chart = request.reader(request.place()).chart()
    case = case_of(chart.snapshot, _question(request))
    text = picture(case, chart.roles, _loads(request, chart), _states(request))
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return Response(text.encode(), media_type="image/svg+xml", headers=headers)


def _question(request: PageRequest) -> MapQuestion:
    return MapQuestion(
        request.text("from"),
        request.text("to"),
        tuple(text.lower() for text in request.request.query_params.getlist("off")),
        request.text("find"),
        request.number("links", 1),
        request.number("sites", 1),
    )


def _states(request: PageRequest) -> dict[str, str]:
    """The states of sites; monitoring shows the states of servers to everybody."""
    try:
        return site_states(request.console.recent_status())
    except MqisError:  # the run directory; the other pages tell
        return {}


def _loads(request: PageRequest, chart: Chart) -> LinkLoads | None:
    """The loads of links. Tables have no permissions, so only administrators see rows of them."""
    tables = request.console.settings.tables
    if tables is None or not request.sees_everything():
        return None
    return loads_of(chart.snapshot, tables)
