"""The console as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from mqis.views.console.faults import MqisError, fault_of
from mqis.web.admission import Admission
from mqis.web.asking import Endpoint, changing, reading
from mqis.web.console import Console
from mqis.web.guard import RequestGuard
from mqis.web.pages import (
    alerts,
    directory,
    journal,
    login,
    pipeline,
    servers,
    sessions,
    status,
    topology,
    undelete,
)
from mqis.web.settings import ConsoleSettings

_ERROR_TEXTS = {
    404: ("Not found", "There is no such page."),
    405: ("Method not allowed", "This page does not accept this kind of request."),
}


def make_app(settings: ConsoleSettings) -> Starlette:
    """Makes the application; ``app.state.console`` is its ``Console``, closed with its lifespan."""
    console = Console(settings)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        console.sampler.start()
        yield
        await console.close()

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        heading, text = _ERROR_TEXTS.get(error.status_code, ("Refused", error.detail))
        page = console.error(request, error.status_code, heading, text)
        page.headers.update(error.headers or {})
        return page

    async def fault(request: Request, error: Exception) -> Response:
        assert isinstance(error, MqisError)
        explained = fault_of(error)
        return console.error(request, explained.status, explained.heading, explained.text)

    guard = Middleware(
        RequestGuard,
        allowed=settings.allowed,
        admission=Admission(settings, console.error),
        error_page=console.error,
    )
    app = Starlette(
        routes=_routes(console),
        middleware=[guard],
        exception_handlers={HTTPException: http_error, MqisError: fault},
        lifespan=lifespan,
    )
    app.state.console = console
    return app


def _routes(console: Console) -> list[Route | Mount]:
    return [
        _get("/", reading(status.overview)),
        _get("/map", reading(topology.show)),
        _get("/map/data", reading(topology.data)),
        _get("/map.svg", reading(topology.image)),
        _get("/replication", reading(status.replication)),
        _get("/servers", reading(servers.browse)),
        _get("/servers/{name}", reading(servers.show)),
        _get("/alerts", reading(alerts.show)),
        _get("/live", status.live),
        _get("/directory", reading(directory.browse)),
        _get("/directory/create", reading(directory.new)),
        _post("/directory/create", changing(directory.create, form_at="")),
        _get("/directory/{kind}/{id}", reading(directory.show)),
        _post("/directory/{kind}/{id}/set", changing(directory.set_, form_at="/set")),
        _get("/directory/{kind}/{id}/delete", reading(directory.confirm)),
        _post("/directory/{kind}/{id}/delete", changing(directory.delete)),
        _get("/journal", reading(journal.browse)),
        _get("/journal/{server}/{lsn}", reading(journal.show)),
        _get("/undelete", reading(undelete.show)),
        _post("/undelete", changing(undelete.bring_back, form_at="")),
        _get("/pipeline", reading(pipeline.show)),
        _get("/pipeline/report.html", reading(pipeline.report)),
        _get("/pipeline/table/{name}", reading(pipeline.table)),
        _get("/statistics", reading(status.statistics)),
        _get("/sessions", reading(sessions.show)),
        _post("/sessions", changing(sessions.end, form_at="")),
        _get("/login", login.form),
        _post("/login", login.log_in),
        _post("/logout", login.log_out),
        Mount("/static", console.assets, name="static"),
    ]


def _get(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["GET"])


def _post(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["POST"])
