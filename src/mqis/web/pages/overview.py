"""The overview: the enterprise on one page."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.directory import Tally, counts
from mqis.views.console.faults import MqisError
from mqis.web.asking import Asked


def overview(asked: Asked) -> Response:
    console = asked.console
    polled = console.polled()
    matrix = console.watch.matrix(polled)
    named = [each.status.enterprise for each in polled if each.status is not None]
    objects: dict[str, Tally] = {}
    problem = None
    try:
        with asked.reader(asked.place()).source() as source:
            objects = counts(source)
    except MqisError as error:
        problem = str(error)
    return asked.page(
        "overview.html",
        enterprise=console.settings.places.enterprise or next(filter(None, named), ""),
        servers=polled,
        matrix=matrix,
        objects=objects,
        problem=problem,
    )
