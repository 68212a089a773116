"""Turns requests into pages: a page is a plain function that runs in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mqis.client.servers import is_logon_refused
from mqis.views.console.open_stores import LoginNeeded, VisitorReader
from mqis.views.console.server_places import ServerPlace
from mqis.views.console.shown_errors import MqisError
from mqis.views.console.visitor_rights import AccountNames
from mqis.web.console import Console, Visitor
from mqis.web.request_guard import body_of

#: The limits of a form: its fields, and the characters of a field.
_MOST_FIELDS = 50
_MOST_TEXT = 4096
#: The characters of a form that an address keeps.
_MOST_REFILLED = 2000


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request, with its visitor and form."""

    console: Console
    request: Request
    visitor: Visitor
    form: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()[:_MOST_TEXT]

    def number(self, name: str, default: int = 0) -> int:
        """A number from the query; ``default`` if it is missing or not a number."""
        text = self.text(name)
        return int(text) if text.isdecimal() and len(text) < 20 else default

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def place(self) -> ServerPlace:
        return self.console.place(self.text("server"), self.visitor.access)

    def reader(self, place: ServerPlace) -> VisitorReader:
        """A reader with the visitor's rights at that server."""
        return self.console.reader(place, self.visitor.access)

    def account_names(self, place: ServerPlace) -> AccountNames:
        return self.console.account_names(place, self.visitor.access)

    def sees_everything(self) -> bool:
        """True if the visitor is an administrator of the server that they are logged in to.

        Without a login, ``--as`` decides.
        """
        places = self.console.settings.places
        access = self.visitor.access
        if access is None:
            return self.console.settings.guest.everything
        return self.reader(places.named(access.place)).everything

    def page(self, name: str, status: int = 200, /, **context: object) -> Response:
        return self.console.page(self.request, name, status, **context)

    def error(self, status: int, heading: str, text: str) -> Response:
        return self.console.error(self.request, status, heading, text)


Page = Callable[[PageRequest], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def reading(page: Page) -> Endpoint:
    """Returns the endpoint of a page that changes nothing."""

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        visitor = console.visitor(request)
        if console.settings.login_required and visitor.access is None:
            return to_login(request)
        return await answered(page, PageRequest(console, request, visitor))

    return endpoint


def changing(page: Page, form_at: str | None = None) -> Endpoint:
    """Returns the endpoint of a form: requires a login and the session's CSRF token.

    ``form_at`` is the end of the form's address that its page does not have. If the session has
    ended meanwhile, the login leads back to that page, with what was typed.
    """

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        visitor = console.visitor(request)
        form = await form_of(request, console, visitor)
        if visitor.access is None:
            if form_at is None or isinstance(form, Response):
                return to_login(request, "/directory")
            return to_login(request, _refilled(request, form_at, form))
        if isinstance(form, Response):
            return form
        return await answered(page, PageRequest(console, request, visitor, form))

    return endpoint


def _refilled(request: Request, form_at: str, form: dict[str, str]) -> str:
    """The address of a form's page with the form's values; without them if they are long."""
    page = request.url.path.removesuffix(form_at)
    query = urlencode({name: value for name, value in form.items() if name != "csrf" and value})
    return f"{page}?{query}" if query and len(query) <= _MOST_REFILLED else page


async def answered(page: Page, request: PageRequest) -> Response:
    """Makes the page in a thread; the application turns other errors of mqis into pages.

    If the server has ended the visitor's logon, so does the console.
    """
    try:
        async with request.console.making:
            return await run_in_threadpool(page, request)
    except LoginNeeded:
        return to_login(request.request)
    except MqisError as error:
        if request.visitor.access is None or not is_logon_refused(error):
            raise
        request.console.sessions.end(request.visitor.id, "the server ended the logon")
        return to_login(request.request)
    except ValueError as error:  # a type or identifier in the address is wrong
        return request.error(404, "Not found", str(error))
    except TimeoutError:
        text = "The directory server took too long to answer; try again."
        return request.error(504, "The server does not answer", text)


async def form_of(
    request: Request, console: Console, visitor: Visitor
) -> dict[str, str] | Response:
    """Returns the fields of a form, or an error page if it is invalid or not from this session."""
    body = await body_of(request)
    if body is None:
        return console.error(request, 413, "Too large", "The form is too large.")
    try:
        fields = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        text = "The request is not a form of the console."
        return console.error(request, 400, "Bad request", text)
    form = dict(fields)
    if any(len(value) > _MOST_TEXT for value in form.values()):
        return console.error(request, 413, "Too large", "A field of the form is too long.")
    if visitor.is_new or not console.sessions.csrf_fits(visitor.id, form.get("csrf", "")):
        text = "The form is too old, or not from this console. Go back, reload and try again."
        return console.error(request, 403, "Refused", text)
    return form


def console_of(request: Request) -> Console:
    console = request.app.state.console
    assert isinstance(console, Console)
    return console


def to_login(request: Request, back: str = "") -> Response:
    if not back:
        query = request.url.query
        back = f"{request.url.path}?{query}" if query else request.url.path
    return RedirectResponse(f"/login?next={quote(back, safe='')}", 303)
