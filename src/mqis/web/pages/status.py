"""The pages that show the status of servers: overview, replication, sessions and calls.

A stream of events keeps them up to date.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mqis.views.console.charts import ChartPage
from mqis.views.console.directory_pages import Tally, counts
from mqis.views.console.paging import mentions
from mqis.views.console.replication import ReplicationQuestion, replication_page
from mqis.views.console.server_places import NotShownError
from mqis.views.console.servers import exceptions_first
from mqis.views.console.shown_errors import MqisError
from mqis.views.console.status import EnterpriseStatus, counters
from mqis.web.console import Console, Visitor
from mqis.web.page_requests import PageRequest, console_of, to_login
from mqis.web.token_admission import peer_of


def overview(request: PageRequest) -> Response:
    status = request.console.status()
    objects: dict[str, Tally] = {}
    problem = None
    try:
        with request.reader(request.place()).source() as source:
            objects = counts(source)
    except MqisError as error:
        problem = str(error)
    return request.page(
        "overview.html",
        enterprise=status.enterprise,
        servers=status.servers,
        listed=exceptions_first(status.servers),
        status=status,
        objects=objects,
        problem=problem,
        found=_charts(request, status),
        of=request.text("of"),
    )


def _charts(request: PageRequest, status: EnterpriseStatus) -> ChartPage:
    """The charts of all servers, or of the one that the address names."""
    name = request.text("of")
    if name and name not in {server.name for server in status.servers}:
        raise NotShownError(f"there is no server {name!r}")
    return request.console.charts(name)


def replication(request: PageRequest) -> Response:
    status = request.console.status()
    question = ReplicationQuestion(
        request.text("server"),
        request.text("partition"),
        request.number("page", 1),
        request.number("apart", 1),
        request.number("near", 1),
    )
    found = replication_page(status, question)
    return request.page("replication.html", status=status, found=found)


def statistics(request: PageRequest) -> Response:
    text = request.text("q")
    servers = request.console.status().servers
    chosen = [server for server in servers if mentions(text, server.name, server.site)]
    return request.page(
        "statistics.html", listed=exceptions_first(servers), counted=counters(chosen), q=text
    )


async def live(request: Request) -> Response:
    """Streams server-sent events."""
    console = console_of(request)
    visitor = console.visitor(request)
    if console.settings.login_required and visitor.access is None:
        return to_login(request)
    woken = console.live.join(peer_of(request))
    if woken is None:
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
