"""Overview: the enterprise in one screen."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.directory import Tally, counts
from mqis.views.console.faults import MqisError
from mqis.web.asking import Asked


def overview(asked: Asked) -> Response:
    status = asked.console.status()
    objects: dict[str, Tally] = {}
    problem = None
    try:
        with asked.reader(asked.place()).source() as source:
            objects = counts(source)
    except MqisError as error:
        problem = str(error)
    return asked.page(
        "overview.html",
        enterprise=status.enterprise,
        servers=status.servers,
        status=status,
        objects=objects,
        problem=problem,
    )
