"""Deleted objects, and the form that brings them back; the server checks the rights."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.responses import Response

from mqis.config.logs import details
from mqis.views.console.directory_pages import KINDS
from mqis.views.console.shown_errors import MqisError, is_denied
from mqis.views.console.undeletion import (
    CONDITIONS,
    SeenOtherwise,
    UndeletePage,
    find,
    request_of,
    restore,
)
from mqis.views.console.visitor_changes import FormError
from mqis.views.deletion.undelete_steps import UndeleteOutcome, Undeleting
from mqis.web.page_requests import PageRequest, to_login
from mqis.web.token_admission import peer_of
from mqis.web.visitor_connection import Visitors

audit = logging.getLogger("mqis.audit")


def show(request: PageRequest) -> Response:
    """The deleted objects that match; its address may hold what was typed before a login."""
    if request.visitor.access is None:
        return to_login(request.request)
    return _page(request, {word: request.text(word) for word in CONDITIONS})


def bring_back(request: PageRequest) -> Response:
    given = {word: request.form.get(word, "").strip() for word in CONDITIONS}
    try:
        outcome = restore(_server(request), request_of(given), request.form.get("seen", ""))
    except SeenOtherwise as error:
        _audit(request, given, error=error)
        return _page(request, given, HTTPStatus.CONFLICT, {"": error.detail})
    except MqisError as error:
        _audit(request, given, error=error)
        raise
    _audit(request, given, outcome=outcome)
    return _render(request, given, outcome=outcome)


def _page(
    request: PageRequest,
    given: dict[str, str],
    status: int = 200,
    problems: dict[str, str] | None = None,
) -> Response:
    """The result of a search; what is wrong with its conditions stands beside the fields."""
    try:
        found = find(_server(request), request_of(given))
    except FormError as error:
        return _render(request, given, error.status, problems=error.problems)
    return _render(request, given, status, problems=problems, found=found)


def _render(
    request: PageRequest,
    given: dict[str, str],
    status: int = 200,
    *,
    problems: dict[str, str] | None = None,
    found: UndeletePage | None = None,
    outcome: UndeleteOutcome | None = None,
) -> Response:
    return request.page(
        "undelete.html",
        status,
        found=found,
        given=given,
        problems=problems or {},
        outcome=outcome,
        kinds=KINDS,
        place=_access(request).place,
        chosen=any(given.values()),
    )


def _access(request: PageRequest) -> Visitors:
    access = request.visitor.access
    assert access is not None
    return access


def _server(request: PageRequest) -> Undeleting:
    return _access(request).remote


def _audit(
    request: PageRequest,
    given: dict[str, str],
    *,
    outcome: UndeleteOutcome | None = None,
    error: MqisError | None = None,
) -> None:
    access, peer = _access(request), peer_of(request.request)
    about: dict[str, object] = {"user": access.user, "server": access.place, "peer": peer}
    about |= {word: value for word, value in given.items() if value}
    if error is not None:
        fate = "denied" if is_denied(error) else "failed"
        audit.warning("console: undelete %s", fate, extra=details(**about, reason=str(error)))
    elif outcome is not None:
        about |= {"restored": outcome.there, "failed": len(outcome.failed)}
        audit.info("console: undelete", extra=details(**about))
