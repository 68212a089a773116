"""Changes by a user of the console, made through a server, which checks the user's rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mqis.protocol.directory.sources import Source
from mqis.views.console.directory import kind_of
from mqis.views.deletion.carrying_out import carry_out, check_typed
from mqis.views.deletion.plan import DeletePlan, plan_delete
from mqis.views.presentation.properties import PropertyError, find_property, parse_value
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import prop
from mqis.wire.propvariant import PropVariant

_MOST_PATH = 1024


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
    """Creates a queue; returns its identifier. ``values``: properties by command-line name."""
    if not path or "\\" not in path or len(path) > _MOST_PATH:
        raise PropertyError(r"the path of a queue must be MACHINE\QUEUE")
    properties = {
        find_property(ObjectType.QUEUE, word): _value(server, ObjectType.QUEUE, word, value)
        for word, value in values.items()
        if value
    }
    given: dict[int, PropVariant] = {int(propid): v for propid, v in properties.items()}
    if not given:  # a call has at least one
        given[PropId.Q_PATHNAME] = prop(PropId.Q_PATHNAME, path)
    made = server.create(ObjectType.QUEUE, path, given, None)
    if made is None:
        made = server.id_of(ObjectType.QUEUE, path)
    return str(made) if made is not None else ""


def set_property(server: ChangeableServer, kind: str, id: str, word: str, value: str) -> None:  # noqa: A002
    object_type = kind_of(kind)
    propid = find_property(object_type, word)
    new = {int(propid): _value(server, object_type, word, value)}
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
