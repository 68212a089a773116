"""The directory: lists, objects, and the forms that change them."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.responses import RedirectResponse, Response

from mqis.config.logs import details
from mqis.views.console import visitor_changes
from mqis.views.console.directory_pages import KINDS, listing, object_page
from mqis.views.console.journal import Past, history
from mqis.views.console.shown_errors import MqisError, fault_of, is_denied
from mqis.views.deletion.carrying_out import DeletionRefused
from mqis.views.deletion.delete_text import sections
from mqis.views.deletion.plan import DeletePlan
from mqis.web.page_requests import PageRequest, to_login
from mqis.web.token_admission import peer_of

audit = logging.getLogger("mqis.audit")

_DONE = {
    "created": "The queue was created. Replication brings it to the other servers.",
    "changed": "The property was changed. Replication brings it to the other servers.",
    "deleted": "The object was deleted. Replication deletes it at the other servers.",
}
#: The properties in the form for a new queue.
_NEW = ("label", "transaction", "authenticate", "journal", "scope")


def browse(request: PageRequest) -> Response:
    place = request.place()
    kind = request.text("type", "queue")
    with request.reader(place).source() as source:
        accounts = request.account_names(place)
        found = listing(source, kind, request.text("q"), request.number("page", 1), accounts)
    return request.page(
        "directory.html",
        found=found,
        kinds=KINDS,
        q=request.text("q"),
        place=place,
        server=request.text("server"),
        places=[p for p in request.console.settings.places.all() if p.store or p.rpc],
        done=_DONE.get(request.text("done")),
    )


def show(request: PageRequest) -> Response:
    """The page of an object; its address may hold what was typed before a login."""
    return _object(request, {word: request.text(word) for word in ("property", "value")})


def _object(
    request: PageRequest,
    given: dict[str, str],
    status: int = 200,
    problems: dict[str, str] | None = None,
) -> Response:
    place = request.place()
    kind, key = request.path("kind"), request.path("id")
    with request.reader(place).source() as source:
        found = object_page(source, kind, key, request.account_names(place))
    journals = {
        p.name: p.journal for p in request.console.settings.places.all() if p.journal is not None
    }
    problem = None
    past: list[Past] = []
    whole = True
    try:
        past, whole = history(journals, found.id, users=request.sees_everything())
    except MqisError as error:
        problem = str(error)
    return request.page(
        "object.html",
        status,
        found=found,
        given=given,
        problems=problems or {},
        place=place,
        server=request.text("server"),
        journals=journals,
        past=past,
        whole=whole,
        problem=problem,
        done=_DONE.get(request.text("done")),
    )


# --- changes --------------------------------------------------------------------------------------


def new(request: PageRequest) -> Response:
    """The form for a new queue; its address may hold what was typed before a login."""
    if request.visitor.access is None:
        return to_login(request.request)
    given = {word: request.text(word) for word in ("path", *_NEW)}
    return request.page("create.html", given=given, problems={})


def create(request: PageRequest) -> Response:
    path = request.form.get("path", "").strip()
    values = {word: request.form.get(word, "").strip() for word in _NEW}
    try:
        made = visitor_changes.create_queue(_server(request), path, values)
    except MqisError as error:
        _audit(request, "create", "queue", path, error=error)
        status, problems = fault_of(error).status, visitor_changes.problems_of(error)
        return request.page("create.html", status, given=request.form, problems=problems)
    _audit(request, "create", "queue", path)
    return _back(f"/directory/queue/{made}?done=created", made)


def set_(request: PageRequest) -> Response:
    kind, key = request.path("kind"), request.path("id")
    word, value = request.form.get("property", ""), request.form.get("value", "")
    try:
        visitor_changes.set_property(_server(request), kind, key, word, value)
    except MqisError as error:
        _audit(request, "set", kind, key, word=word, error=error)
        return _object(
            request, request.form, fault_of(error).status, visitor_changes.problems_of(error)
        )
    _audit(request, "set", kind, key, word=word)
    return _back(f"/directory/{kind}/{key}?done=changed", key)


def confirm(request: PageRequest) -> Response:
    """The page that shows what hangs on an object, and asks for confirmation."""
    if request.visitor.access is None:
        return to_login(request.request)
    with request.reader(request.place()).source() as source:
        plan = visitor_changes.plan(source, request.path("kind"), request.path("id"))
    return _ask(request, plan)


def _ask(request: PageRequest, plan: DeletePlan, status: int = 200, problem: str = "") -> Response:
    shown = list(sections(plan))
    return request.page("delete.html", status, plan=plan, sections=shown, problem=problem)


def delete(request: PageRequest) -> Response:
    kind, key = request.path("kind"), request.path("id")
    try:
        plan = visitor_changes.plan(_server(request), kind, key)
        visitor_changes.delete(_server(request), plan, request.form.get("typed"))
    except DeletionRefused as error:
        _audit(request, "delete", kind, key, error=error)
        return _ask(request, plan, HTTPStatus.CONFLICT, str(error))
    except MqisError as error:
        _audit(request, "delete", kind, key, error=error)
        raise
    _audit(request, "delete", kind, key)
    return _back(f"/directory?type={kind}&done=deleted", kind)


def _server(request: PageRequest) -> visitor_changes.ChangeableServer:
    access = request.visitor.access
    assert access is not None
    return access.remote


def _back(address: str, known: str) -> Response:
    return RedirectResponse(address if known else "/directory?done=created", 303)


def _audit(
    request: PageRequest,
    verb: str,
    kind: str,
    name: str,
    *,
    word: str = "",
    error: MqisError | None = None,
) -> None:
    """Writes the audit trail: user, server, operation, object and outcome."""
    access = request.visitor.access
    assert access is not None
    peer = peer_of(request.request)
    about: dict[str, object] = {"user": access.user, "server": access.place, "peer": peer}
    about |= {"type": kind, "object": name}
    if word:
        about["property"] = word
    if error is None:
        audit.info("console: %s", verb, extra=details(**about))
        return
    outcome = "denied" if is_denied(error) else "failed"
    audit.warning("console: %s %s", verb, outcome, extra=details(**about, reason=str(error)))
