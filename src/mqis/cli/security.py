"""``mqis security``: shows and sets the permissions of an object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import JsonOption, NameArgument, TypeArgument, spread
from mqis.cli.output import cell, console, print_json, say, table
from mqis.protocol.security.information import SecurityInformation as Part
from mqis.views.presentation.permissions import permissions, remark, who
from mqis.views.presentation.properties import PropertyError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import parse_sddl, sddl_if_any

_PARTS = {str(part.name).lower(): part for part in (Part.OWNER, Part.GROUP, Part.DACL, Part.SACL)}
_SHOWN = Part.OWNER | Part.GROUP | Part.DACL


@spread
def security(
    kind: TypeArgument,
    name: NameArgument,
    *,
    access: OptionalLogonOptions,
    sddl: Annotated[
        str | None,
        typer.Option("--set", metavar="SDDL", help="Set this descriptor, then show the result."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="PARTS",
            help="Some of owner,group,dacl,sacl. Default: owner,group,dacl, or the parts in --set.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show or change the permissions of an object."""
    object_type = kind.object_type
    requested = None if part is None else _parse_parts(part)
    new = None if sddl is None else _parse(sddl)
    with connected(access.login()) as remote:
        if new is not None:
            chosen = _settable(new, requested)
            remote.set_security(object_type, name, chosen, new.to_bytes())
            requested = chosen
        parts = _SHOWN if requested is None else requested
        got = SecurityDescriptor.from_bytes(remote.security(object_type, name, int(parts)))
    if json:
        print_json(_as_json(object_type, name, got))
    else:
        _show(object_type, name, got, parts)


def _parse_parts(text: str) -> Part:
    parts = Part(0)
    for word in text.lower().split(","):
        if word.strip() not in _PARTS:
            raise typer.BadParameter(f"--part {word!r} is not one of {', '.join(_PARTS)}")
        parts |= _PARTS[word.strip()]
    return parts


def _parse(text: str) -> SecurityDescriptor:
    try:
        return parse_sddl(text)
    except ValueError as error:
        raise PropertyError(f"{text!r} is not a security descriptor in SDDL: {error}") from None


def _settable(new: SecurityDescriptor, requested: Part | None) -> Part:
    """The parts to set; raises PropertyError for a part that the descriptor lacks.

    Setting a part that is missing would remove it: without a DACL there is no protection.
    """
    there = {
        Part.OWNER: new.owner is not None,
        Part.GROUP: new.group is not None,
        Part.DACL: new.dacl is not None or new.has_null_dacl,
        Part.SACL: new.sacl is not None,
    }
    present = Part(0)
    for part, is_there in there.items():
        present |= part if is_there else Part(0)
    chosen = present if requested is None else requested
    lacking = [word for word, part in _PARTS.items() if part & chosen & ~present]
    if lacking or not chosen:
        raise PropertyError(f"the descriptor to set has no {', '.join(lacking) or 'part at all'}")
    return chosen


def _as_json(object_type: ObjectType, name: str, sd: SecurityDescriptor) -> dict[str, object]:
    return {
        "type": object_type.label,
        "name": name,
        "sddl": sddl_if_any(sd),
        "owner": None if sd.owner is None else str(sd.owner),
        "group": None if sd.group is None else str(sd.group),
        "entries": [asdict(entry) for entry in permissions(sd, object_type)],
    }


def _show(object_type: ObjectType, name: str, sd: SecurityDescriptor, parts: Part) -> None:
    say(f"{object_type.label} {name}", "bold")
    say(f"sddl   {sddl_if_any(sd) or '(has entries that SDDL cannot express)'}")
    if parts & Part.OWNER:
        say(f"owner  {who(sd.owner)}")
    if parts & Part.GROUP:
        say(f"group  {who(sd.group)}")
    entries = permissions(sd, object_type)
    if entries:
        made = table("list", "who", "effect", "rights", "flags")
        for entry in entries:
            rights, flags = ", ".join(entry.rights), ", ".join(entry.flags)
            made.add_row(entry.list, entry.who, entry.effect, cell(rights), cell(flags))
        console().print(made)
    note = remark(sd) if parts & Part.DACL else None
    if note is not None:
        say(note, "yellow")
