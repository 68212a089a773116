"""Checks every request: host name, size, origin and token; adds headers, and hides tracebacks.

The check of the host name stops DNS rebinding: a foreign page whose name resolves to this computer
sends that name and is refused.
"""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mqis.web.token_admission import Admission, ErrorPage

log = logging.getLogger(__name__)

#: The limits of a request's body and of its address.
MOST_BODY = 64 << 10
MOST_ADDRESS = 16 << 10

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
#: The report of the pipeline brings its own style, and may do nothing else.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class RequestGuard:
    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed: frozenset[str],
        admission: Admission,
        error_page: ErrorPage,
    ) -> None:
        self._app = app
        self._admission = admission
        self._allowed = allowed
        self._error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _Headers(scope, send)
        request = Request(scope, receive)
        refusal = self._refusal(request)
        try:
            if refusal is not None:
                await refusal(scope, receive, guarded)
            else:
                await self._app(scope, receive, guarded)
        except Exception:
            log.exception("the console could not make a page")
            if guarded.started:
                raise
            page = self._error_page(
                request, 500, "Internal error", "The page failed; the console's log says why."
            )
            await page(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        too_often = self._admission.pace(request)
        if too_often is not None:
            return too_often
        host = request.headers.get("host", "")
        if _name(host) not in self._allowed:
            text = "This console does not answer under that host name. Add it with --host."
            return self._error_page(request, 421, "Wrong address", text)
        if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > MOST_ADDRESS:
            return self._error_page(request, 414, "Too large", "The address is too long.")
        if request.method not in ("GET", "HEAD"):
            if not _from_here(request, host):
                text = "The form was sent from another web site."
                return self._error_page(request, 403, "Refused", text)
            length = request.headers.get("content-length", "0")
            if not length.isdigit() or int(length) > MOST_BODY:
                return self._error_page(request, 413, "Too large", "The form is too large.")
        return self._admission.refusal(request)


def _name(host: str) -> str:
    """The host name without the port; an IPv6 address without its brackets."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit() or (":" in name and not name.endswith("]")):
        name = host
    return name.strip("[]").lower()


def _from_here(request: Request, host: str) -> bool:
    """Returns whether a form comes from this console, by the headers of browsers.

    Other programs send no such headers. The console's pages have the policy ``no-referrer``, so
    browsers send the origin ``null`` with its forms.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin", "null")
    return origin == "null" or origin.partition("://")[2] == host


class _Headers:
    """A ``send`` that adds the headers of every response."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._static = scope["path"].startswith("/static/")
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Content-Security-Policy", POLICY)
            headers.setdefault("Cache-Control", "no-cache" if self._static else "no-store")
        await self._send(message)


async def body_of(request: Request) -> bytes | None:
    """Reads a request's body; None if it is too large, whatever length was announced."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BODY:
            return None
    return bytes(data)
