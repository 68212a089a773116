"""The list of servers, and the page of one: state, replicas, neighbours, sessions, log lines."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.server_places import NotShownError, ServerPlace
from mqis.views.console.servers import log_of, server_list, server_page
from mqis.views.console.shown_errors import MqisError
from mqis.web.page_requests import PageRequest


def browse(request: PageRequest) -> Response:
    text = request.text("q")
    found = server_list(request.console.status(), text, request.number("page", 1))
    return request.page("servers.html", found=found, q=text)


def show(request: PageRequest) -> Response:
    """The page of a server. Log lines and sessions are for its administrators."""
    found = server_page(
        request.console.status(),
        request.path("name"),
        page=request.number("page", 1),
        neighbours_page=request.number("near", 1),
    )
    place = _place(request, found.member.name)
    administrator = place is not None and request.reader(place).everything
    log = None if place is None else place.log
    return request.page(
        "server.html",
        found=found,
        member=found.member,
        place=place,
        administrator=administrator,
        has_log=log is not None,
        lines=log_of(log, found.member.name) if administrator else (),
        connected=_sessions(request, found.member.name) if administrator else None,
    )


def _place(request: PageRequest, name: str) -> ServerPlace | None:
    try:
        return request.console.settings.places.named(name)
    except NotShownError:
        return None


def _sessions(request: PageRequest, name: str) -> object:
    """The sessions of the server that the visitor is logged in to; the server checks the rights."""
    access = request.visitor.access
    if access is None or access.place != name:
        return None
    try:
        return access.remote.sessions()
    except MqisError:  # it does not answer, which the page says anyway
        return None
