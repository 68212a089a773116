"""Errors as the console shows them: an HTTP status, a heading and a text."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from mqis.protocol.directory.object_sources import NoSuchObject
from mqis.protocol.errors import DirectoryError, ProtocolError, StorageError
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.views.console.server_places import NodesError, NotShownError
from mqis.views.presentation.properties import PropertyError
from mqis.views.routes.looking_up import RouteError
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult

__all__ = ["ErrorPage", "MqisError", "fault_of", "is_denied"]

_MISSING = (
    HResult.MQ_ERROR_QUEUE_NOT_FOUND,
    HResult.MQ_ERROR_MACHINE_NOT_FOUND,
    HResult.MQDS_OBJECT_NOT_FOUND,
)


@dataclass(frozen=True, slots=True)
class ErrorPage:
    status: HTTPStatus
    heading: str
    text: str


def fault_of(error: MqisError) -> ErrorPage:
    """Maps an error to a page: 4xx if the request is wrong, 5xx if a server or store failed."""
    for kinds, status, heading in _KINDS:
        if isinstance(error, kinds):
            return ErrorPage(status, heading, str(error))
    if isinstance(error, DirectoryError):
        return _refusal(error)
    return ErrorPage(
        HTTPStatus.BAD_GATEWAY, "A server or store behind the console failed", str(error)
    )


#: Error types with status and heading; the first match counts.
_KINDS: tuple[tuple[type[MqisError], HTTPStatus, str], ...] = (
    (NotShownError, HTTPStatus.NOT_FOUND, "Not found"),
    (PropertyError, HTTPStatus.BAD_REQUEST, "Invalid value"),
    (RouteError, HTTPStatus.NOT_FOUND, "Not found"),
    (NodesError, HTTPStatus.SERVICE_UNAVAILABLE, "The run directory cannot be read"),
    (StorageError, HTTPStatus.SERVICE_UNAVAILABLE, "A store or journal cannot be read"),
    (RpcConnectionError, HTTPStatus.BAD_GATEWAY, "The server does not answer"),
    (ProtocolError, HTTPStatus.BAD_GATEWAY, "The server does not answer as it should"),
)


def is_denied(error: Exception) -> bool:
    """True if the server denies the user access."""
    return isinstance(error, DirectoryError) and error.hresult == HResult.MQ_ERROR_ACCESS_DENIED


def _refusal(error: DirectoryError) -> ErrorPage:
    if is_denied(error):
        return ErrorPage(HTTPStatus.FORBIDDEN, "The server does not allow this", str(error))
    if isinstance(error, NoSuchObject) or error.hresult in _MISSING:
        return ErrorPage(HTTPStatus.NOT_FOUND, "Not found", str(error))
    return ErrorPage(HTTPStatus.CONFLICT, "The server refuses this", str(error))
