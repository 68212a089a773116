"""Login, with the same users and rights as over RPC, and logout."""

from __future__ import annotations

import logging
from math import ceil

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mqis.client.servers import LogonRefusedError
from mqis.config.logs import details
from mqis.runtime.peers import source_of
from mqis.texts import duration
from mqis.views.console.server_places import ServerPlace
from mqis.views.console.shown_errors import MqisError, fault_of
from mqis.web.console import Console
from mqis.web.page_requests import console_of, form_of
from mqis.web.token_admission import peer_of
from mqis.web.visitor_connection import log_on

audit = logging.getLogger("mqis.audit")


async def form(request: Request) -> Response:
    console = console_of(request)
    return _form(console, request, 200, request.query_params.get("next", ""))


async def log_in(request: Request) -> Response:
    console = console_of(request)
    visitor = console.visitor(request)
    given = await form_of(request, console, visitor)
    if isinstance(given, Response):
        return given
    name, password = given.get("user", "").strip(), given.get("password", "")
    back = given.get("next", "")
    lacking = {}
    if not name:
        lacking["user"] = "Enter a name."
    if not password:
        lacking["password"] = "Enter the password."
    if lacking:
        return _form(console, request, 400, back, problems=lacking, given=given)
    peer = peer_of(request)
    source = source_of(peer)
    # Names are counted by address, so that nobody can lock out an account from elsewhere.
    key = f"{source} {name.lower()}"
    wait_s = console.by_address.wait_s(source) or console.by_name.wait_s(key)
    if wait_s:
        audit.warning("console: too many logins", extra=details(user=name, peer=peer))
        text = f"Too many attempts: wait {duration(ceil(wait_s))} and try again."
        page = _form(console, request, 429, back, problems={"": text}, given=given)
        page.headers["Retry-After"] = str(ceil(wait_s))
        return page
    try:
        place = console.settings.places.named(given.get("server", ""))
        async with console.logging_on:
            access = await log_on(place, name, password, verify=console.settings.verify)
    except LogonRefusedError as error:
        audit.warning("console: login refused", extra=details(user=name, peer=peer))
        refused = {"password": str(error)}
        return _form(console, request, 401, back, problems=refused, given=given)
    except MqisError as error:
        fault = fault_of(error)
        failed = {"server": fault.text}
        return _form(console, request, fault.status, back, problems=failed, given=given)
    console.by_name.forget(key)
    fields = details(user=access.user, server=access.place, peer=peer)
    audit.info("console: logged in", extra=fields)
    console.sessions.end(visitor.id)
    response = RedirectResponse(_local(back), 303)
    console.set_cookie(response, console.sessions.begin(access, peer))
    return response


async def log_out(request: Request) -> Response:
    console = console_of(request)
    visitor = console.visitor(request)
    given = await form_of(request, console, visitor)
    if isinstance(given, Response):
        return given
    console.sessions.end(visitor.id)
    response = RedirectResponse("/", 303)
    console.set_cookie(response, console.sessions.new_id())
    return response


def _local(back: str) -> str:
    """Returns ``back`` if it is an address of this console, else that of the directory."""
    here = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    return back if here and not back.startswith("/log") else "/directory"


def _form(
    console: Console,
    request: Request,
    status: int,
    back: str,
    *,
    problems: dict[str, str] | None = None,
    given: dict[str, str] | None = None,
) -> Response:
    """The form, with what was typed except the password."""
    typed = given or {}
    return console.page(
        request,
        "login.html",
        status,
        places=_open(console),
        problems=problems or {},
        name=typed.get("user", "").strip(),
        chosen=typed.get("server", ""),
        next=_local(back),
    )


def _open(console: Console) -> list[ServerPlace]:
    """The servers that take calls; those that are known to be down come last."""
    listed = [place for place in console.settings.places.all() if place.rpc is not None]
    return sorted(listed, key=lambda place: place.state not in ("", "ready"))
