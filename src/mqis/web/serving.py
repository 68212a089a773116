"""Runs the console as a server: until a signal, or for the length of a block."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
import ssl
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import uvicorn

from mqis.texts import duration
from mqis.views.console.faults import MqisError
from mqis.web.admission import PARAMETER
from mqis.web.app import make_app
from mqis.web.connections import Bounds, bounded
from mqis.web.console import Console
from mqis.web.settings import ConsoleSettings
from mqis.web.tokenfile import token_file

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
        reason = error.strerror or str(error)
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
            f"cannot listen at {settings.listen}:{settings.port}: {reason}{hint}"
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
    host = f"[{settings.listen}]" if ":" in settings.listen else settings.listen
    return f"{'https' if settings.tls else 'http'}://{host}:{settings.port}/"
