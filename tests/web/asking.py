"""A visitor without JavaScript: plain HTTP, cookies, forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from http.client import HTTPConnection, HTTPMessage
from urllib.parse import urlencode, urlsplit

from tests.waiting import DEADLINE_S, wait_until
from tests.web.enterprise import ALICE, ALICES_PASSWORD, PEC


def eventually(look: Callable[[], bool]) -> None:
    """Replication and sockets take their time; how much is not what is tested."""
    wait_until(look)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def html(self) -> str:
        return self.body.decode("utf-8")

    @property
    def text(self) -> str:
        """Without tags."""
        return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", self.html)))

    @property
    def location(self) -> str:
        return self.headers.get("Location", "")

    @property
    def csrf(self) -> str:
        match = re.search(r'name="csrf" value="([0-9a-f]+)"', self.html)
        assert match is not None
        return match[1]


class Visitor:
    """Begins with the address that the console printed: its token is exchanged for a cookie."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.host, self.port = parts.hostname, parts.port
        self.cookies: dict[str, str] = {}
        if parts.query:
            answer = self.get(f"/login?{parts.query}")
            assert (answer.status, answer.location) == (303, "/login")

    @property
    def cookie(self) -> str:
        """For those who write their requests by hand."""
        return "; ".join(f"{k}={v}" for k, v in self.cookies.items())

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = HTTPConnection(self.host, self.port, timeout=DEADLINE_S)
        sent = dict(headers or {})
        if self.cookies:
            sent["Cookie"] = self.cookie
        try:
            connection.request(method, path, body or None, sent)
            got = connection.getresponse()
            answer = Answer(got.status, got.headers, got.read())
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        sent = {k.replace("_", "-"): v for k, v in headers.items()}
        sent["Content-Type"] = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urlencode(fields).encode(), sent)

    def log_in(
        self, user: str = ALICE, password: str = ALICES_PASSWORD, server: str = PEC, back: str = ""
    ) -> Answer:
        csrf = self.get("/login").csrf
        fields = {"user": user, "password": password, "server": server, "next": back}
        return self.post("/login", {**fields, "csrf": csrf})

    def submit(self, page: str, action: str, fields: Mapping[str, str]) -> Answer:
        """Fill in a form that a page has."""
        shown = self.get(page)
        assert f'action="{action}"' in shown.html, shown.text
        return self.post(action, {**fields, "csrf": shown.csrf})
