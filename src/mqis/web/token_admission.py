"""Admits requests to the console by a token, and limits their rate.

Other users of this computer can connect to a loopback address too. So the console makes a token
when it starts, and requests must have it. It is in the address that the console prints, and in a
file that only its user can read. The first request with the token gets a cookie, so that the token
does not stay in the browser's address. At other addresses a login takes the place of the token.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable
from math import ceil
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mqis.config.logs import details
from mqis.runtime.peers import source_of
from mqis.web.console_settings import ConsoleSettings
from mqis.web.limiting import MOST_LINES, Limiter

audit = logging.getLogger("mqis.audit")

PARAMETER = "token"

#: (request, status, heading, text) -> a page that says so.
ErrorPage = Callable[[Request, int, str, str], Response]


def peer_of(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client else ""


class Admission:
    def __init__(self, settings: ConsoleSettings, error_page: ErrorPage) -> None:
        self._settings = settings
        self._error_page = error_page
        # Counted apart: requests without the token do not use up the rate of those with it.
        self._strangers = Limiter(settings.requests_per_address, 1.0)
        self._guests = Limiter(settings.requests_per_address, 1.0)
        self._wrong = Limiter(MOST_LINES)
        #: Named after the port, as browsers send cookies to all ports of a computer.
        self._cookie = f"mqis_console_token_{settings.port}"
        self._proof = hmac.new(settings.token.encode(), b"cookie", hashlib.sha256).hexdigest()

    def pace(self, request: Request) -> Response | None:
        """The response to an address that sends too many requests; None for others."""
        limiter = self._guests if self._admitted(request) else self._strangers
        wait_s = limiter.wait_s(source_of(peer_of(request)))
        if not wait_s:
            return None
        text = "Too many requests from this address: wait a second and try again.\n"
        return Response(text, 429, {"Retry-After": str(ceil(wait_s))}, "text/plain")

    def refusal(self, request: Request) -> Response | None:
        """The response to a request without the cookie; None if the request may pass.

        A request with the token is redirected and gets the cookie.
        """
        if not self._settings.token_required or request.url.path.startswith("/static/"):
            return None
        given = request.query_params.get(PARAMETER)
        if given is not None and request.method in ("GET", "HEAD") and self._fits(given):
            return self._exchange(request)
        if self._admitted(request):
            return None
        peer = peer_of(request)
        if given is not None and not self._wrong.wait_s(source_of(peer)):
            audit.warning("console: wrong token", extra=details(peer=peer))
        return self._refused(request)

    def _admitted(self, request: Request) -> bool:
        if not self._settings.token_required:
            return True
        given = request.cookies.get(self._cookie, "")
        return hmac.compare_digest(given.encode(), self._proof.encode())

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._settings.token.encode())

    def _exchange(self, request: Request) -> Response:
        """Sets the cookie and redirects to the same page without the token in its address."""
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
        query = urlencode([(name, value) for name, value in pairs if name != PARAMETER])
        # A path that begins with two slashes would lead to another computer.
        path = "/" + request.scope["raw_path"].decode("ascii").lstrip("/")
        response = RedirectResponse(f"{path}?{query}" if query else path, 303)
        secure = self._settings.tls
        response.set_cookie(
            self._cookie, self._proof, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return response

    def _refused(self, request: Request) -> Response:
        text = (
            "Only the user who started this console may use it. Open the address with the token "
            "that 'mqis console' printed. It is also in a file that only that user can read; "
            "'mqis console' prints the file's name."
        )
        return self._error_page(request, 403, "A token is needed", text)
