"""The alerts that fire now, those of the past, and what to do about each."""

from __future__ import annotations

from time import time

from starlette.responses import Response

from mqis.views.console.paging import mentions, paged
from mqis.web.page_requests import PageRequest


def show(request: PageRequest) -> Response:
    request.console.recent_status()
    found = request.console.alerts.page()
    text = request.text("q")
    ended = [a for a in found.ended if mentions(text, a.name, a.server, a.text)]
    firing = [a for a in found.firing if mentions(text, a.name, a.server, a.text)]
    return request.page(
        "alerts.html",
        found=found,
        firing=paged(firing, request.number("now", 1)),
        ended=paged(ended, request.number("page", 1), 50),
        q=text,
        now=time(),
    )
