"""Changes by a user of the console, made through a server, which checks the user's rights."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Protocol

from mqis.protocol.directory.object_sources import Source
from mqis.protocol.errors import DirectoryError
from mqis.views.console.directory_pages import kind_of
from mqis.views.deletion.carrying_out import carry_out, check_typed
from mqis.views.deletion.plan import DeletePlan, plan_delete
from mqis.views.presentation.properties import PropertyError, find_property, parse_value
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

_MOST_PATH = 1024
#: The field of the form that the server's error is about.
_ABOUT_PATH = frozenset(
    {
        HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
        HResult.MQ_ERROR_MACHINE_NOT_FOUND,
        HResult.MQ_ERROR_QUEUE_EXISTS,
    }
)
_ABOUT_VALUE = frozenset(
    {
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_SIZE,
        HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR,
        HResult.MQ_ERROR_INVALID_OWNER,
    }
)


class FormError(PropertyError):
    """Fields of a form are wrong; ``problems`` has an explanation for each, by its name."""

    def __init__(
        self, problems: Mapping[str, str], status: HTTPStatus = HTTPStatus.BAD_REQUEST
    ) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = dict(problems)
        self.status = status


def problems_of(error: MqisError) -> dict[str, str]:
    """The explanations of an error by field; under an empty name if no field is to blame."""
    if isinstance(error, FormError):
        return error.problems
    code = error.hresult if isinstance(error, DirectoryError) else None
    field = "path" if code in _ABOUT_PATH else "value" if code in _ABOUT_VALUE else ""
    return {field: str(error)}


class ChangeableServer(Source, Protocol):
    """A server that a user has logged on to (``client.remote.Remote``)."""

    def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: dict[int, PropVariant],
        descriptor: bytes | None,
    ) -> Guid | None: ...

    def set(
        self, object_type: ObjectType, name: str, properties: dict[int, PropVariant]
    ) -> None: ...

    def delete(self, object_type: ObjectType, name: str) -> None: ...


def create_queue(server: ChangeableServer, path: str, values: Mapping[str, str]) -> str:
    """Creates a queue; returns its identifier. ``values``: properties by command-line name.

    Raises ``FormError`` with all fields that are wrong.
    """
    problems = {}
    if not path or "\\" not in path or len(path) > _MOST_PATH:
        problems["path"] = r"the path of a queue must be MACHINE\QUEUE"
    given: dict[int, PropVariant] = {}
    for word, value in values.items():
        try:
            if value:
                propid = find_property(ObjectType.QUEUE, word)
                given[int(propid)] = _value(server, ObjectType.QUEUE, word, value)
        except PropertyError as error:
            problems[word] = str(error)
    if problems:
        raise FormError(problems)
    if not given:  # a call has at least one
        given[PropId.Q_PATHNAME] = prop(PropId.Q_PATHNAME, path)
    made = server.create(ObjectType.QUEUE, path, given, None)
    if made is None:
        made = server.id_of(ObjectType.QUEUE, path)
    return str(made) if made is not None else ""


def set_property(server: ChangeableServer, kind: str, id: str, word: str, value: str) -> None:  # noqa: A002
    """Sets a property; raises ``FormError`` if the property or the value is wrong."""
    object_type = kind_of(kind)
    try:
        propid = find_property(object_type, word)
    except PropertyError as error:
        raise FormError({"property": str(error)}) from None
    try:
        new = {int(propid): _value(server, object_type, word, value)}
    except PropertyError as error:
        raise FormError({"value": str(error)}) from None
    server.set(object_type, _identifier(id), new)


def plan(source: Source, kind: str, id: str) -> DeletePlan:  # noqa: A002
    """Returns what a delete would take along, as far as the user may read it."""
    return plan_delete(source, kind_of(kind), _identifier(id))


def delete(server: ChangeableServer, wanted: DeletePlan, typed: str | None) -> None:
    """Deletes an object and its dependents; ``typed`` is the name, if the user typed one."""
    check_typed(wanted, typed)
    carry_out(server, wanted)


def _identifier(text: str) -> str:
    """Checks an identifier: pages name objects by identifier, never by path."""
    return str(Guid.parse(text))


def _value(server: ChangeableServer, object_type: ObjectType, word: str, value: str) -> PropVariant:
    """Parses a value, without ``@FILE``: a web user must not read files of this computer."""
    return parse_value(find_property(object_type, word), value, server, files=False)
