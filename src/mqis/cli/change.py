"""``mqis create`` and ``mqis set``: change objects through a directory server."""

from __future__ import annotations

from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import JsonOption, NameArgument, TypeArgument, spread
from mqis.cli.output import print_json, say
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY
from mqis.views.presentation.properties import PropertyError, friendly, parse_assignments
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sddl import parse_sddl

#: The types whose identifiers a client cannot choose.
_NAMED_BY_SERVER = (ObjectType.QUEUE, ObjectType.USER)

_Values = Annotated[
    list[str],
    typer.Argument(metavar="NAME=VALUE...", help="label=Orders, sign_cert=@FILE, gates=m1,m2 ..."),
]


@spread
def create(
    kind: TypeArgument,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH] [NAME=VALUE...]",
            help="Its path (links and users have none), then properties: label=Orders ...",
        ),
    ] = None,
    *,
    access: OptionalLogonOptions,
    security: Annotated[
        str | None,
        typer.Option(
            metavar="SDDL", help="The permissions of a queue. Default: the server's default."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create an object."""
    object_type = kind.object_type
    path, assignments = _split(object_type, words or [])
    descriptor = None if security is None else sddl(security)
    with connected(access.login()) as remote:
        properties = parse_assignments(object_type, assignments, remote)
        _check_identifier(object_type, properties)
        if object_type is ObjectType.ROUTINGLINK:
            path = _link_path(properties)
        elif not properties and path is not None:  # a call has at least one
            name = NAME_PROPERTY[object_type]
            properties[name] = prop(name, path)
        made = remote.create(object_type, path, properties, descriptor)
    _check_taken(object_type, properties, made)
    shown_path = path if object_type in NAME_PROPERTY else None
    identifier = None if made is None else str(made)
    if json:
        print_json({"type": object_type.label, "path": shown_path, "id": identifier})
    else:
        shown = ["created", object_type.label, shown_path, identifier and f"({identifier})"]
        say(" ".join(word for word in shown if word))


def _check_identifier(object_type: ObjectType, properties: dict[int, PropVariant]) -> None:
    """Refuses an identifier that every server ignores."""
    if object_type in _NAMED_BY_SERVER and IDENTIFIER_PROPERTY[object_type] in properties:
        raise PropertyError(
            f"id: the server chooses the identifier of a new {object_type.label}; leave it out. "
            f"'mqis undelete' brings a deleted {object_type.label} back with its identifier"
        )


def _check_taken(
    object_type: ObjectType, properties: dict[int, PropVariant], made: Guid | None
) -> None:
    given = properties.get(IDENTIFIER_PROPERTY[object_type])
    if given is not None and given.value and made is not None and made != given.value:
        raise PropertyError(
            f"id: the server ignored the identifier; the new {object_type.label} is {made}, and "
            f"'mqis delete {object_type.label} {made}' deletes it again"
        )


def _split(object_type: ObjectType, words: list[str]) -> tuple[str | None, list[str]]:
    if object_type not in NAME_PROPERTY:
        return None, words
    if not words:
        raise typer.BadParameter(f"name the path of the new {object_type.label}")
    return words[0], words[1:]


def _link_path(properties: dict[int, PropVariant]) -> str | None:
    """The path of a routing link: both sites' GUIDs in hexadecimal (MS-MQDS 3.2.6.1.4)."""
    ends = [properties.get(end) for end in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2)]
    guids = [end.value for end in ends if end is not None]
    digits = [guid.big_endian.hex().upper() for guid in guids if isinstance(guid, Guid)]
    return "".join(digits) if len(digits) == 2 else None


def sddl(text: str) -> bytes:
    """Encodes a security descriptor that is written in SDDL."""
    try:
        return parse_sddl(text).to_bytes()
    except ValueError as error:
        raise PropertyError(f"{text!r} is not a security descriptor in SDDL: {error}") from None


@spread
def set_(
    kind: TypeArgument,
    name: NameArgument,
    values: _Values,
    *,
    access: OptionalLogonOptions,
    json: JsonOption = False,
) -> None:
    """Change properties of an object: all of the given ones, or none."""
    object_type = kind.object_type
    with connected(access.login()) as remote:
        properties = parse_assignments(object_type, values, remote)
        remote.set(object_type, name, properties)
    if json:
        changed = [friendly(propid) for propid in properties]
        print_json({"type": object_type.label, "name": name, "changed": changed})
    else:
        say(f"changed {object_type.label} {name}")
