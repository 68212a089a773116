"""The console of one process: the state that pages share, and their layout."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from mqis.pages import environment
from mqis.views.console import tones
from mqis.views.console.alerts import FILE as ALERTS_FILE
from mqis.views.console.alerts import AlertLog
from mqis.views.console.charts import ChartPage, chart_page
from mqis.views.console.open_stores import OpenStores, VisitorReader, mirror_sentence
from mqis.views.console.replication import replication_page
from mqis.views.console.samples import SampleHistory
from mqis.views.console.server_places import NotShownError, ServerPlace
from mqis.views.console.servers import exceptions_first
from mqis.views.console.shown_errors import MqisError
from mqis.views.console.status import EnterpriseStatus, collector_of, counters, sequence_text
from mqis.views.console.tones import Tone, tone_of_verdict
from mqis.views.console.visitor_rights import AccountNames, RightsBook
from mqis.web.browser_sessions import COOKIE, Sessions
from mqis.web.console_settings import ConsoleSettings
from mqis.web.limiting import Limiter
from mqis.web.live_updates import Live
from mqis.web.visitor_connection import Visitors

HERE = Path(__file__).parent
#: (address, name in the menu)
MENU = (
    ("/", "Overview"),
    ("/map", "Map"),
    ("/servers", "Servers"),
    ("/replication", "Replication"),
    ("/alerts", "Alerts"),
    ("/directory", "Directory"),
    ("/journal", "Journal"),
    ("/pipeline", "Pipeline"),
    ("/statistics", "Sessions and calls"),
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The browser that sent a request; ``id`` is from its cookie."""

    id: str
    is_new: bool
    csrf: str
    access: Visitors | None


class Console:
    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        self.stores = OpenStores()
        self.assets = Assets(HERE / "static")
        self._collector = collector_of(settings.places, self.stores)
        self.history = SampleHistory(settings.sample_every_s, settings.most_samples)
        run = settings.places.run
        self.alerts = AlertLog(None if run is None else run / ALERTS_FILE)
        self.sampler = Sampler(self._sample, settings.sample_every_s)
        self._latest: EnterpriseStatus | None = None
        #: The time of the sample that was drawn last, and the drawing.
        self._drawing = -1.0, ""
        self.sessions = Sessions(settings.idle_s, settings.lifetime_s, settings.most_sessions)
        self.by_address = Limiter(settings.logins_per_address)
        self.by_name = Limiter(settings.logins_per_name)
        #: Limits concurrent logons, as each costs the server some work.
        self.logging_on = asyncio.Semaphore(4)
        #: Limits the pages that are made at a time, as each may take some megabytes.
        self.making = asyncio.Semaphore(settings.most_pages)
        self.rights = RightsBook(settings.guest)
        self.live = Live(
            self._news, settings.live_every_s, settings.most_live, settings.most_live_per_address
        )
        self._templates = environment(HERE / "templates")
        self._templates.globals["query"] = _query
        self._templates.globals["static"] = self.assets.address
        self._templates.globals["tones"] = tones
        self._templates.filters["sequence"] = sequence_text

    async def close(self) -> None:
        await self.sampler.close()
        await self.live.close()
        await self.sessions.close()
        await asyncio.to_thread(self.stores.close)

    # --- visitors -------------------------------------------------------------------------------

    def visitor(self, request: Request) -> Visitor:
        """The visitor of a request; found once and kept with the request."""
        found: Visitor | None = getattr(request.state, "visitor", None)
        if found is None:
            given = request.cookies.get(COOKIE, "")
            is_new = not self.sessions.is_id(given)
            key = self.sessions.new_id() if is_new else given
            access = None if is_new else self.sessions.access(key)
            found = Visitor(key, is_new, self.sessions.csrf(key), access)
            request.state.visitor = found
        return found

    def set_cookie(self, response: Response, id: str) -> None:  # noqa: A002
        secure = self.settings.tls
        response.set_cookie(COOKIE, id, httponly=True, samesite="strict", secure=secure, path="/")

    # --- servers --------------------------------------------------------------------------------

    def status(self) -> EnterpriseStatus:
        """Polls all servers; ``NodesError`` while the run directory cannot be read."""
        status = self._collector.collect()
        if self.history.add(status):
            self.alerts.observe(status)
        self._latest = status
        return status

    def recent_status(self) -> EnterpriseStatus:
        """The latest status if it is not older than a sample, else a new one."""
        latest = self._latest
        if latest is not None and time() - latest.taken < self.settings.sample_every_s:
            return latest
        return self.status()

    def _sample(self) -> None:
        """Takes a sample for the charts, unless a page has just done so."""
        if self.history.is_due(time()):
            self.status()

    def charts(self, server: str = "") -> ChartPage:
        return chart_page(self.history.samples(), self.history.every_s, server)

    def place(self, name: str, access: Visitors | None) -> ServerPlace:
        """The server of that name; without a name, the first whose directory can be read here."""
        places = self.settings.places
        if name:
            return places.named(name)
        listed = places.all()
        if not listed:
            raise NotShownError("there is no server in the run directory yet")
        if access is not None and not any(place.store for place in listed):
            return places.named(access.place)
        return next((place for place in listed if place.store), listed[0])

    def account_names(self, place: ServerPlace, access: Visitors | None) -> AccountNames:
        """The names of that server's accounts, as far as this visitor may know them."""
        return self.rights.account_names(place, None if access is None else access.proof)

    def reader(self, place: ServerPlace, access: Visitors | None) -> VisitorReader:
        """A reader with this visitor's rights at that server."""
        rights = self.rights.rights(place, None if access is None else access.proof)
        logged_in_here = access is not None and access.place == place.name
        remote = access.remote if access is not None and logged_in_here else None
        return VisitorReader(place, self.stores, rights, remote)

    def _news(self) -> dict[str, str]:
        try:
            status = self.status()
        except MqisError as error:  # the run directory; it may come back
            return {"sentence": _sentence(str(error), Tone.BAD)}
        servers, verdict = status.servers, status.verdict
        return {
            "replication": self.fragment("parts/replicas.html", found=replication_page(status)),
            "statistics": self.fragment("parts/counters.html", counted=counters(servers)),
            "servers": self.fragment("parts/servers.html", listed=exceptions_first(servers)),
            "charts": self._drawn(),
            "sentence": _sentence(verdict.summary, tone_of_verdict(verdict)),
        }

    def _drawn(self) -> str:
        """The charts of all servers, drawn once for each sample."""
        samples = self.history.samples()
        latest = samples[-1].time if samples else 0.0
        if self._drawing[0] != latest:
            drawing = self.fragment("parts/charts.html", found=self.charts())
            self._drawing = latest, drawing
        return self._drawing[1]

    # --- pages ----------------------------------------------------------------------------------

    def fragment(self, name: str, /, **context: Any) -> str:
        return self._templates.get_template(name).render(context)

    def page(self, request: Request, name: str, status: int = 200, /, **context: Any) -> Response:
        visitor = self.visitor(request)
        text = self.fragment(
            name,
            menu=MENU,
            here=request.url.path,
            address=_address(request),
            user=None if visitor.access is None else visitor.access.user,
            user_at=None if visitor.access is None else visitor.access.place,
            guest=self.settings.guest.text,
            can_log_in=self.settings.places.take_calls,
            mirror=mirror_sentence(self.settings.places, self.stores),
            csrf=visitor.csrf,
            **context,
        )
        # Names in a directory are any UTF-16 and may contain lone surrogates.
        response = Response(text.encode("utf-8", "replace"), status, media_type="text/html")
        if visitor.is_new:
            self.set_cookie(response, visitor.id)
        return response

    def error(self, request: Request, status: int, heading: str, text: str) -> Response:
        return self.page(request, "error.html", status, heading=heading, text=text, status=status)


def _sentence(text: str, tone: Tone) -> str:
    return json.dumps({"text": text, "tone": tone.value})


def _address(request: Request) -> str:
    """The address of this page, to return to after a login."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


def _query(**values: object) -> str:
    """A query string with its question mark, of the values that are set; a list gives several."""
    pairs = [
        (name.rstrip("_"), str(each))
        for name, value in values.items()
        for each in (value if isinstance(value, list | tuple) else [value])
        if each not in (None, "")
    ]
    return f"?{urlencode(pairs, errors='replace')}" if pairs else "?"


# --- Takes the samples of the overview's charts while no browser is open --------------------------

log = logging.getLogger(__name__)


class Sampler:
    """Calls ``sample`` in a thread again and again, as that waits for servers."""

    def __init__(self, sample: Callable[[], object], every_s: float) -> None:
        self._sample = sample
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._sample)
            except MqisError as error:  # the run directory; it may come back
                log.debug("no sample: %s", error)
            except Exception:
                log.exception("the console could not poll the servers; it tries again")
            await asyncio.sleep(self._every_s)


# --- The static files under addresses that name their content -------------------------------------
# So that no browser shows an old one.
#
# ``/static/console.css?v=…`` holds the first digits of the file's SHA-256. A browser may keep that
# forever: other content has another address. Any other address of a file is checked at each use.

_FOREVER = "public, max-age=31536000, immutable"
_DIGITS = 16


class Assets(StaticFiles):
    """Serves the files of a directory; ``address`` is what pages name a file by."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory)
        self._home = directory.resolve()
        #: The state of a file on the disk, and the digest of its content then.
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def address(self, name: str) -> str:
        return f"/static/{name}?v={self.version(name)}"

    def version(self, name: str) -> str:
        """The digest of a file, computed again after the file was replaced."""
        path = self._home / name
        found = path.stat()
        state = found.st_ino, found.st_mtime_ns, found.st_size
        known = self._known.get(name)
        if known is None or known[0] != state:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]
            known = self._known[name] = state, digest
        return known[1]

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        name = Path(full_path).relative_to(self._home).as_posix()
        if scope["query_string"] == f"v={self.version(name)}".encode():
            response.headers["Cache-Control"] = _FOREVER
        return response
