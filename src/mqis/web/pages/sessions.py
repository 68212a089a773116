"""The sessions of the server that a visitor is logged in to; the server checks the rights."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.responses import RedirectResponse, Response

from mqis.config.logs import details
from mqis.views.console.shown_errors import MqisError, is_denied
from mqis.web.page_requests import PageRequest, to_login
from mqis.web.token_admission import peer_of
from mqis.web.visitor_connection import Visitors

audit = logging.getLogger("mqis.audit")


def show(request: PageRequest) -> Response:
    """The connections to the server, those of users first."""
    access = request.visitor.access
    if access is None:
        return to_login(request.request)
    found = access.remote.sessions()
    return request.page("sessions.html", found=found, place=access.place)


def end(request: PageRequest) -> Response:
    """Ends the session that the form names."""
    access = request.visitor.access
    assert access is not None
    text = request.form.get("id", "")
    if not text.isdecimal() or len(text) > 18:
        return request.error(HTTPStatus.BAD_REQUEST, "Bad request", "There is no such session.")
    try:
        access.remote.end_session(int(text))
    except MqisError as error:
        _audit(request, access, text, error)
        raise
    _audit(request, access, text)
    return RedirectResponse("/sessions", HTTPStatus.SEE_OTHER)


def _audit(
    request: PageRequest, access: Visitors, session: str, error: MqisError | None = None
) -> None:
    peer = peer_of(request.request)
    about = {"user": access.user, "server": access.place, "peer": peer, "session": session}
    if error is None:
        audit.info("console: session ended by an administrator", extra=details(**about))
        return
    fate = "denied" if is_denied(error) else "failed"
    audit.warning("console: end of a session %s", fate, extra=details(**about, reason=str(error)))
