"""The replication matrix, and the event stream that updates it and other pages."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mqis.web.admission import peer_of
from mqis.web.asking import Asked, console_of, to_login
from mqis.web.console import Console, Visitor
from mqis.web.live import Full


def show(asked: Asked) -> Response:
    polled = asked.console.polled()
    return asked.page("replication.html", matrix=asked.console.watch.matrix(polled))


async def live(request: Request) -> Response:
    """Streams server-sent events."""
    console = console_of(request)
    visitor = console.visitor(request)
    if console.settings.login_required and visitor.access is None:
        return to_login(request)
    try:
        woken = console.live.join(peer_of(request))
    except Full:
        busy = "Too many browsers get live updates already; pages work without them."
        return Response(busy, 503, {"Retry-After": "30"}, "text/plain")
    return StreamingResponse(
        console.live.stream(woken, lambda: _admitted(console, visitor)),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _admitted(console: Console, visitor: Visitor) -> bool:
    """True while the visitor's session is alive, or if none is required."""
    return not console.settings.login_required or console.sessions.is_alive(visitor.id)
