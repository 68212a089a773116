"""The replication matrix, and the stream that keeps it and other pages alive."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mqis.web.asking import Asked, console_of, to_login
from mqis.web.live import Full


def show(asked: Asked) -> Response:
    polled = asked.console.polled()
    return asked.page("replication.html", matrix=asked.console.watch.matrix(polled))


async def live(request: Request) -> Response:
    """Server-sent events."""
    console = console_of(request)
    visitor = console.visitor(request)
    if console.settings.login_required and visitor.access is None:
        return to_login(request)
    try:
        woken = console.live.join()
    except Full:
        busy = "As many listen as may; the pages work without."
        return Response(busy, 503, {"Retry-After": "30"}, "text/plain")
    return StreamingResponse(
        console.live.stream(woken),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )
