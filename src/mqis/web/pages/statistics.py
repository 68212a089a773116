"""Sessions and calls, as the servers count them."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.status import counters
from mqis.web.asking import Asked


def show(asked: Asked) -> Response:
    servers = asked.console.status().servers
    return asked.page("statistics.html", servers=servers, counters=counters(servers))
