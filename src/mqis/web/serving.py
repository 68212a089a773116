"""Runs the console as a server: until a signal, or for the length of a block."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from mqis.files import FILE_MODE, system_reason
from mqis.texts import duration, host_port
from mqis.views.console.shown_errors import MqisError, fault_of
from mqis.web.connections import Bounds, bounded
from mqis.web.console import Console
from mqis.web.console_settings import ConsoleSettings
from mqis.web.page_requests import Endpoint, changing, reading
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
from mqis.web.request_guard import RequestGuard
from mqis.web.token_admission import PARAMETER, Admission

_GRACE_S = 3
_START_S = 30.0


class _Server(uvicorn.Server):
    """A server that ends event streams before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, console: Console) -> None:
        super().__init__(config)
        self._console = console
        #: Called when the server accepts connections.
        self.on_ready: Callable[[], None] = lambda: None

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Does not raise the signal again afterwards: a requested end is a success."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._console.live.close()
        await super().shutdown(sockets)


@dataclass(frozen=True, slots=True)
class ServingConsole:
    """The address of a running console."""

    #: Includes the token, if one is required.
    url: str
    #: The file that holds the address too; None if there is no token.
    file: Path | None


def serve_console(
    settings: ConsoleSettings, on_ready: Callable[[ServingConsole], None] = lambda opened: None
) -> None:
    """Serves until SIGINT or SIGTERM; calls ``on_ready`` with the address."""
    with _opened(settings) as (server, bound, opened):
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # mqis logs start and end itself
        server.on_ready = lambda: on_ready(opened)
        server.run([bound])


@contextmanager
def running_console(settings: ConsoleSettings) -> Iterator[str]:
    """Runs the console in a thread during the block; yields its address with the token."""
    with _opened(settings) as (server, bound, opened):
        ready = Event()
        server.on_ready = ready.set
        thread = Thread(target=server.run, args=([bound],), name="console", daemon=True)
        thread.start()
        try:
            if not ready.wait(_START_S):
                raise MqisError(f"the console did not start within {duration(_START_S)}")
            yield opened.url
        finally:
            server.should_exit = True
            thread.join(_GRACE_S * 3)
            bound.close()


@contextmanager
def _opened(settings: ConsoleSettings) -> Iterator[tuple[_Server, socket.socket, ServingConsole]]:
    """Binds the port, makes a new token and the server."""
    bound = _listen(settings)
    token = secrets.token_urlsafe(32) if settings.token_required else ""
    settings = replace(settings, port=bound.getsockname()[1], token=token)
    with ExitStack() as stack:
        stack.callback(bound.close)
        url, file = _url(settings), None
        if token:
            url += f"?{urlencode({PARAMETER: token})}"
            file = stack.enter_context(token_file(settings.places.run, settings.port, url))
        yield _server(settings), bound, ServingConsole(url, file)


def _server(settings: ConsoleSettings) -> _Server:
    app = make_app(settings)
    bounds = Bounds(
        settings.most_connections,
        settings.most_connections_per_address,
        settings.request_s,
        settings.read_s,
        _tls(settings),
    )
    config = uvicorn.Config(
        app,
        loop="asyncio",  # uvloop reads before TLS can begin
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=32 << 10,
        http=bounded(bounds),
        ws="none",
    )
    return _Server(config, app.state.console)


def _tls(settings: ConsoleSettings) -> ssl.SSLContext | None:
    if settings.certificate is None or settings.key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        reason = system_reason(error)
        raise MqisError(f"{settings.certificate}, {settings.key}: {reason}") from error
    return context


def _listen(settings: ConsoleSettings) -> socket.socket:
    """Binds the socket before uvicorn, to know the port and to explain a busy one."""
    try:
        return _bind(settings.listen, settings.port)
    except OSError as error:
        busy = error.errno == errno.EADDRINUSE
        if busy and settings.any_port:
            return _bind(settings.listen, 0)
        hint = "; choose another with --port N (0: any free port)" if busy else ""
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise MqisError(
            f"cannot listen at {host_port(settings.listen, settings.port)}: {reason}{hint}"
        ) from error


def _bind(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound


def _url(settings: ConsoleSettings) -> str:
    scheme = "https" if settings.tls else "http"
    return f"{scheme}://{host_port(settings.listen, settings.port)}/"


# --- The file with the console's address and token, which only its user can read ------------------


@contextmanager
def token_file(run: Path | None, port: int, url: str) -> Iterator[Path]:
    """Writes the file for the length of the block, in the run directory or in a new private one."""
    if run is not None and os.access(run, os.W_OK):
        path = run / f"console-{port}.url"
        try:
            yield _write(path, url)
        finally:
            path.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="mqis-console-") as own:
        yield _write(Path(own) / f"console-{port}.url", url)


def _write(path: Path, url: str) -> Path:
    """Creates the file anew, so that it is no link and no other process has it open."""
    try:
        with suppress(FileNotFoundError):
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            file.write(f"{url}\n")
    except OSError as error:
        reason = system_reason(error)
        raise MqisError(f"cannot write the console's token to {path}: {reason}") from error
    return path.absolute()


# --- The console as an ASGI application -----------------------------------------------------------

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
