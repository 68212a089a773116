"""From a request to a page: pages are plain functions that run in a thread of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mqis.views.console.places import Place
from mqis.views.console.reading import LoginNeeded, Reader
from mqis.web.console import Console, Visitor
from mqis.web.guard import TooLarge, body_of

#: What a form here has at most.
_MOST_FIELDS = 50
_MOST_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read."""

    console: Console
    request: Request
    visitor: Visitor
    form: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()[:_MOST_TEXT]

    def number(self, name: str, default: int = 0) -> int:
        """The default for what is none."""
        text = self.text(name)
        return int(text) if text.isdecimal() and len(text) < 20 else default

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def place(self) -> Place:
        return self.console.place(self.text("server"), self.visitor.access)

    def reader(self, place: Place) -> Reader:
        """What the visitor may read there."""
        return self.console.reader(place, self.visitor.access)

    def sees_everything(self) -> bool:
        """Whether the visitor is an administrator of the server that they have logged in to; of
        any, for one that ``--as`` made so."""
        places = self.console.settings.places
        access = self.visitor.access
        if access is None:
            return self.console.settings.guest.everything
        return self.reader(places.named(access.place)).everything

    def page(self, name: str, status: int = 200, /, **context: object) -> Response:
        return self.console.page(self.request, name, status, **context)

    def error(self, status: int, heading: str, text: str) -> Response:
        return self.console.error(self.request, status, heading, text)


Page = Callable[[Asked], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def reading(page: Page) -> Endpoint:
    """A page that changes nothing."""

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        visitor = console.visitor(request)
        if console.settings.login_required and visitor.access is None:
            return to_login(request)
        return await answered(page, Asked(console, request, visitor))

    return endpoint


def changing(page: Page) -> Endpoint:
    """A form, from who has logged in, that came from a page of this session."""

    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        visitor = console.visitor(request)
        if visitor.access is None:
            return to_login(request, "/directory")
        form = await form_of(request, console, visitor)
        if isinstance(form, Response):
            return form
        return await answered(page, Asked(console, request, visitor, form))

    return endpoint


async def answered(page: Page, asked: Asked) -> Response:
    """What it raises of our own errors, the application turns into pages."""
    try:
        async with asked.console.making:
            return await run_in_threadpool(page, asked)
    except LoginNeeded:
        return to_login(asked.request)
    except ValueError as error:  # what pages are asked for by address: types, identifiers
        return asked.error(404, "Not found", str(error))
    except TimeoutError:
        return asked.error(504, "The server does not answer", "It took too long; try again.")


async def form_of(
    request: Request, console: Console, visitor: Visitor
) -> dict[str, str] | Response:
    """The fields of a form; a page that refuses it if it is none of ours."""
    try:
        body = await body_of(request)
        fields = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
    except TooLarge:
        return console.error(request, 413, "Too much", "The form is too large.")
    except ValueError:
        return console.error(request, 400, "Not understood", "This is no form of the console.")
    form = dict(fields)
    if any(len(value) > _MOST_TEXT for value in form.values()):
        return console.error(request, 413, "Too much", "A field of the form is too long.")
    if visitor.is_new or not console.sessions.csrf_fits(visitor.id, form.get("csrf", "")):
        text = "The form is too old, or not from this console. Go back, load the page and repeat."
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
