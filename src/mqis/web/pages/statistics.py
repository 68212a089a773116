"""Sessions and calls: the servers' counters."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.statistics import counters
from mqis.web.asking import Asked


def show(asked: Asked) -> Response:
    polled = asked.console.polled()
    matrix = asked.console.watch.matrix(polled)
    return asked.page("statistics.html", servers=polled, counters=counters(polled), matrix=matrix)
