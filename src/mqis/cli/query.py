"""``mqis get`` and ``mqis lookup``: one object, or all that meet conditions."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from mqis.cli.options import (
    ConfigOption,
    JsonOption,
    StoreOption,
    TypeArgument,
    opened,
    store_url,
)
from mqis.cli.output import cell, console, counted, print_json, say, table
from mqis.cli.properties import (
    PropertyError,
    find_property,
    friendly,
    names_of,
    parse_condition,
)
from mqis.cli.rendering import shown
from mqis.protocol.directory.export import value_to_json
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY, DirectoryObject
from mqis.protocol.directory.query import Order, Query, SortKey
from mqis.protocol.directory.reading import read_property
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_NOT_FOUND = {
    ObjectType.QUEUE: HResult.MQ_ERROR_QUEUE_NOT_FOUND,
    ObjectType.MACHINE: HResult.MQ_ERROR_MACHINE_NOT_FOUND,
}
#: What a lookup shows when it is not told.
_COLUMNS: dict[ObjectType, tuple[str, ...]] = {
    ObjectType.QUEUE: ("path", "label", "transaction", "scope"),
    ObjectType.MACHINE: ("path", "site_ids", "service", "os", "address"),
    ObjectType.SITE: ("path", "psc", "gates", "foreign"),
    ObjectType.ROUTINGLINK: ("neighbor1", "neighbor2", "cost", "description"),
    ObjectType.CN: ("path", "protocolid", "id"),
    ObjectType.USER: ("sid", "id"),
    ObjectType.ENTERPRISE: ("path", "pecname", "id"),
}


# --- get ------------------------------------------------------------------------------------------


def get(
    kind: TypeArgument,
    name: Annotated[
        str, typer.Argument(metavar="PATH_OR_GUID", help="Its name, or its identifier.")
    ],
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    prop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Just this property; may be given several times."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show one object: all that is stored of it, or the properties asked for."""
    with opened(store_url(store, config)) as source, source.read() as view:
        obj = find_object(kind.object_type, name, view)
        chosen = [find_property(obj.type, word) for word in prop or ()]
        if json:
            print_json(object_as_json(obj, chosen, view))
        else:
            console().print(object_as_table(obj, chosen, view))


def find_object(object_type: ObjectType, name: str, view: View) -> DirectoryObject:
    """By identifier if ``name`` is one, else by name."""
    try:
        found = view.get(object_type, Guid.parse(name))
    except ValueError:
        found = None
    if found is None and object_type in NAME_PROPERTY:
        found = view.find(object_type, name)
    if found is None:
        code = _NOT_FOUND.get(object_type, HResult.MQ_ERROR_INVALID_PARAMETER)
        raise DirectoryError(code, f"there is no {object_type.label} {name!r} in the store")
    return found


def object_as_json(obj: DirectoryObject, chosen: list[PropId], view: View) -> dict[str, object]:
    """Raw values, as an export has them, under the friendly names."""
    values = {friendly(p): read_property(obj, p, view) for p in chosen or obj.properties}
    return {
        "type": obj.type.label,
        "id": str(obj.id),
        "path": obj.path,
        "partition": str(obj.partition),
        "seq": str(obj.seq),
        "properties": {k: None if v is None else value_to_json(v.value) for k, v in values.items()},
    }


def object_as_table(obj: DirectoryObject, chosen: list[PropId], view: View) -> Table:
    made = table("property", "value", title=cell(f"{obj.type.label} {obj.path or obj.id}", "bold"))
    if not chosen:
        made.add_row("id", str(obj.id), style="dim")
        made.add_row("partition", str(obj.partition), style="dim")
        made.add_row("seq", str(obj.seq), style="dim")
    for propid in chosen or map(PropId, sorted(obj.properties)):
        value = shown(propid, read_property(obj, propid, view), view)
        made.add_row(cell(friendly(propid), "cyan"), cell(value))
    return made


# --- lookup ---------------------------------------------------------------------------------------


def lookup(
    kind: TypeArgument,
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="label=x, cost>=5, site_id=Berlin ... All must be."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="What to show: path,label,create_time")
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Sort by these, - before one: descending.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="At most this many.")] = None,
    json: JsonOption = False,
) -> None:
    """List the objects of a type, those that meet all conditions."""
    with opened(store_url(store, config)) as source, source.read() as view:
        object_type = kind.object_type
        chosen = _columns(object_type, columns)
        restrictions = tuple(parse_condition(object_type, text, view) for text in where or ())
        query = Query(object_type, chosen, restrictions, _sort_keys(object_type, sort))
        found = query.objects(view)
        rows = found[:limit]
        if json:
            print_json([row_as_json(obj, chosen, view) for obj in rows])
        else:
            console().print(rows_as_table(rows, chosen, view))
            shortened = "" if len(rows) == len(found) else f"{len(rows)} of "
            say(shortened + counted(len(found), object_type.label), "dim")


def row_as_json(obj: DirectoryObject, columns: tuple[PropId, ...], view: View) -> dict[str, object]:
    values = {friendly(p): read_property(obj, p, view) for p in columns}
    named = {k: None if v is None else value_to_json(v.value) for k, v in values.items()}
    return {"id": str(obj.id), "path": obj.path, **named}


def rows_as_table(rows: list[DirectoryObject], columns: tuple[PropId, ...], view: View) -> Table:
    made = table(*(_heading(propid) for propid in columns))
    for obj in rows:
        made.add_row(*(cell(shown(p, read_property(obj, p, view), view)) for p in columns))
    return made


def _heading(propid: PropId) -> str:
    if propid in NAME_PROPERTY.values():
        return "path"
    return "id" if propid in IDENTIFIER_PROPERTY.values() else friendly(propid)


def _columns(kind: ObjectType, text: str | None) -> tuple[PropId, ...]:
    words = _COLUMNS[kind] if text is None else _words(text, "--columns", kind)
    return tuple(find_property(kind, word) for word in words)


def _sort_keys(kind: ObjectType, text: str | None) -> tuple[SortKey, ...]:
    if text is None:
        return (SortKey(NAME_PROPERTY[kind]),) if kind in NAME_PROPERTY else ()
    return tuple(
        SortKey(
            find_property(kind, word.removeprefix("-")),
            Order.DESCENDING if word.startswith("-") else Order.ASCENDING,
        )
        for word in _words(text, "--sort", kind)
    )


def _words(text: str, option: str, kind: ObjectType) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise PropertyError(f"{option} names no property; there are: {', '.join(names_of(kind))}")
    return words
