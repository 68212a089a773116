"""An HTTP/1.1 server for a few read-only documents.

    async with HttpServer({"/health": health}) as server:
        port = await server.listen("127.0.0.1", 0)

A document is a coroutine function that returns its ``HttpAnswer``. A connection serves one request:
clients that read every few seconds lose nothing by that, and none can hold a connection open.
Requests are limited in size and time, connections in number, by address and in total. Silent
connections are closed for new ones (``crowd``).

A server at a loopback address answers only to addresses and to "localhost" as Host, so that a web
page cannot read it by DNS rebinding.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address

from mqis.runtime.crowd import Crowd
from mqis.runtime.peers import is_loopback

log = logging.getLogger(__name__)

#: A Host header: [IPv6], a name or an IPv4 address, with an optional port.
_HOST = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::[0-9]*)?")
MAX_REQUEST = 8192
MAX_CONNECTIONS = 64
MAX_CONNECTIONS_PER_ADDRESS = 16
#: Seconds for each of: receiving the request, making its answer, sending it.
TIMEOUT_S = 10.0

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK
    #: Further headers: names and values.
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def text(cls, body: str, status: HTTPStatus = HTTPStatus.OK) -> HttpAnswer:
        return cls(f"{body}\n".encode(), status=status)

    @classmethod
    def json(cls, content: object, status: HTTPStatus = HTTPStatus.OK) -> HttpAnswer:
        return cls(json.dumps(content).encode() + b"\n", "application/json", status)


Document = Callable[[], Awaitable[HttpAnswer]]
#: A document that depends on the query, which follows the path behind "?".
QueriedDocument = Callable[[str], Awaitable[HttpAnswer]]

_FIXED = ("Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Connection: close")


class HttpServer:
    """Serves ``documents``, by path, to GET and HEAD; those of ``queried`` get the query."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        *,
        queried: Mapping[str, QueriedDocument] | None = None,
        max_connections: int = MAX_CONNECTIONS,
        max_connections_per_address: int = MAX_CONNECTIONS_PER_ADDRESS,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._documents = documents
        self._queried = queried or {}
        self._timeout_s = timeout_s
        self._connections: set[asyncio.Task[None]] = set()
        #: Connections that ended without an answer.
        self.unanswered = 0
        self._crowd: Crowd[asyncio.StreamWriter] = Crowd(
            max_connections, max_connections_per_address, _abort
        )
        self._listener: asyncio.Server | None = None
        self._local = True

    async def __aenter__(self) -> HttpServer:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def listen(self, host: str, port: int) -> int:
        """Listens and returns the port, a free one for 0; ``OSError`` if it cannot."""
        self._local = is_loopback(host)
        self._listener = await asyncio.start_server(self._accept, host, port, limit=MAX_REQUEST)
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._listener is not None:
            await self._listener.wait_closed()

    # --- one connection ---------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        if not self._crowd.enter(writer, str(peer[0]) if peer else ""):
            self.unanswered += 1
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answered = False
        try:
            async with asyncio.timeout(self._timeout_s):
                head = await _head(reader)
            if head is not None:
                self._crowd.busy(writer)
                writer.write(await self._response(head))
                self._crowd.waits(writer)  # for its reader, which may be slow
                async with asyncio.timeout(self._timeout_s):
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
                answered = True
        except (OSError, TimeoutError):
            pass  # the client sends no request, or does not read the answer
        finally:
            self.unanswered += not answered
            self._crowd.leave(writer)
            writer.transport.abort()

    async def _response(self, head: bytes) -> bytes:
        method, path, query, hosts = _parse(head)
        answer = _misdirected(hosts) if self._local else None
        if answer is None:
            answer = await self._answer(method, path, query)
        body = b"" if method == "HEAD" else answer.body
        lines = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            *(f"{name}: {value}" for name, value in answer.headers),
            *_FIXED,
        ]
        return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body

    async def _answer(self, method: str, path: str, query: str) -> HttpAnswer:
        if not path.startswith("/"):
            return HttpAnswer.text("malformed request", HTTPStatus.BAD_REQUEST)
        document = self._documents.get(path)
        if path in self._queried:
            document = partial(self._queried[path], query)
        if document is None:
            known = ", ".join([*self._documents, *self._queried])
            return HttpAnswer.text(f"not found; this server has {known}", HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            refused = HttpAnswer.text("read only: use GET or HEAD", HTTPStatus.METHOD_NOT_ALLOWED)
            return HttpAnswer(refused.body, TEXT, refused.status, (("Allow", "GET, HEAD"),))
        try:
            async with asyncio.timeout(self._timeout_s):
                return await document()
        except TimeoutError:
            return HttpAnswer.text("timed out; try again later", HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            log.exception("%s: the document could not be made", path)
            text = "the document could not be made; see the server's log"
            return HttpAnswer.text(text, HTTPStatus.INTERNAL_SERVER_ERROR)


def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    """The head of the request; None if none came, or it is too long. Bodies are not read."""
    with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return await reader.readuntil(b"\r\n\r\n")
    return None


def _parse(head: bytes) -> tuple[str, str, str, list[str]]:
    """The method, path, query and Host headers; the path is empty if the request is malformed."""
    first, *lines = head.decode("latin-1").split("\r\n")
    hosts = [
        value.strip()
        for name, _, value in (line.partition(":") for line in lines)
        if name.lower() == "host"
    ]
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return "", "", "", hosts
    path, _, query = words[1].partition("?")
    return words[0], path, query, hosts


def _misdirected(hosts: list[str]) -> HttpAnswer | None:
    """The refusal of a request for a foreign host name; no Host (HTTP/1.0) is allowed."""
    if all(_is_local(host) for host in hosts):
        return None
    text = "use an address or localhost as host name: this server answers to no other name"
    return HttpAnswer.text(text, HTTPStatus.MISDIRECTED_REQUEST)


def _is_local(host: str) -> bool:
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1] or found[2]
    try:
        if name.lower() != "localhost":
            ip_address(name)
    except ValueError:
        return False
    return True
