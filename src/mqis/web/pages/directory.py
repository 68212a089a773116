"""The directory: lists, objects, and the forms that change them."""

from __future__ import annotations

import logging

from starlette.responses import RedirectResponse, Response

from mqis.config.logs import details
from mqis.views.console import changes
from mqis.views.console.directory import KINDS, listing, object_page
from mqis.views.console.faults import MqisError, fault_of, is_denied
from mqis.views.console.journal import Past, history
from mqis.web.admission import peer_of
from mqis.web.asking import PageRequest, to_login

audit = logging.getLogger("mqis.audit")

_DONE = {
    "created": "The queue was created. Replication brings it to the other servers.",
    "changed": "The property was changed. Replication brings it to the other servers.",
    "deleted": "The object was deleted. Replication deletes it at the other servers.",
}
#: The properties in the form for a new queue.
_NEW = ("label", "transaction", "authenticate", "journal", "scope")


def browse(asked: PageRequest) -> Response:
    place = asked.place()
    kind = asked.text("type", "queue")
    with asked.reader(place).source() as source:
        found = listing(source, kind, asked.text("q"), asked.number("page", 1))
    return asked.page(
        "directory.html",
        found=found,
        kinds=KINDS,
        q=asked.text("q"),
        place=place,
        server=asked.text("server"),
        places=[p for p in asked.console.settings.places.all() if p.store or p.rpc],
        done=_DONE.get(asked.text("done")),
    )


def show(asked: PageRequest) -> Response:
    place = asked.place()
    with asked.reader(place).source() as source:
        found = object_page(source, asked.path("kind"), asked.path("id"))
    journals = {
        p.name: p.journal for p in asked.console.settings.places.all() if p.journal is not None
    }
    problem = None
    past: list[Past] = []
    whole = True
    try:
        past, whole = history(journals, found.id)
    except MqisError as error:
        problem = str(error)
    return asked.page(
        "object.html",
        found=found,
        place=place,
        server=asked.text("server"),
        journals=journals,
        past=past,
        whole=whole,
        problem=problem,
        done=_DONE.get(asked.text("done")),
    )


# --- changes --------------------------------------------------------------------------------------


def new(asked: PageRequest) -> Response:
    """The form for a new queue."""
    if asked.visitor.access is None:
        return to_login(asked.request)
    return asked.page("create.html", given={}, problem=None)


def create(asked: PageRequest) -> Response:
    path = asked.form.get("path", "").strip()
    values = {word: asked.form.get(word, "").strip() for word in _NEW}
    try:
        made = changes.create_queue(_server(asked), path, values)
    except MqisError as error:
        _audit(asked, "create", "queue", path, error=error)
        fault = fault_of(error)
        return asked.page("create.html", fault.status, given=asked.form, problem=fault.text)
    _audit(asked, "create", "queue", path)
    return _back(f"/directory/queue/{made}?done=created", made)


def set_(asked: PageRequest) -> Response:
    kind, key = asked.path("kind"), asked.path("id")
    word, value = asked.form.get("property", ""), asked.form.get("value", "")
    try:
        changes.set_property(_server(asked), kind, key, word, value)
    except MqisError as error:
        _audit(asked, "set", kind, key, word=word, error=error)
        raise
    _audit(asked, "set", kind, key, word=word)
    return _back(f"/directory/{kind}/{key}?done=changed", key)


def confirm(asked: PageRequest) -> Response:
    """The page that asks for confirmation before an object is deleted."""
    if asked.visitor.access is None:
        return to_login(asked.request)
    with asked.reader(asked.place()).source() as source:
        found = object_page(source, asked.path("kind"), asked.path("id"))
    return asked.page("delete.html", found=found)


def delete(asked: PageRequest) -> Response:
    kind, key = asked.path("kind"), asked.path("id")
    try:
        changes.delete(_server(asked), kind, key)
    except MqisError as error:
        _audit(asked, "delete", kind, key, error=error)
        raise
    _audit(asked, "delete", kind, key)
    return _back(f"/directory?type={kind}&done=deleted", kind)


def _server(asked: PageRequest) -> changes.ChangeableServer:
    access = asked.visitor.access
    assert access is not None
    return access.remote


def _back(address: str, known: str) -> Response:
    return RedirectResponse(address if known else "/directory?done=created", 303)


def _audit(
    asked: PageRequest,
    verb: str,
    kind: str,
    name: str,
    *,
    word: str = "",
    error: MqisError | None = None,
) -> None:
    """Writes the audit trail: user, server, operation, object and outcome."""
    access = asked.visitor.access
    assert access is not None
    peer = peer_of(asked.request)
    about: dict[str, object] = {"user": access.user, "server": access.place, "peer": peer}
    about |= {"type": kind, "object": name}
    if word:
        about["property"] = word
    if error is None:
        audit.info("console: %s", verb, extra=details(**about))
        return
    outcome = "denied" if is_denied(error) else "failed"
    audit.warning("console: %s %s", verb, outcome, extra=details(**about, reason=str(error)))
