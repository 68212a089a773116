"""``mqis get`` and ``mqis lookup``: show one object, or all that meet conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import (
    ConfigOption,
    JsonOption,
    NameArgument,
    StoreOption,
    TypeArgument,
    opened,
    spread,
    store_url,
)
from mqis.cli.output import cell, console, print_json, say, table
from mqis.protocol.directory.export_format import value_to_json
from mqis.protocol.directory.lookup_query import Order, SortKey
from mqis.protocol.directory.object_sources import Record, ReferenceNames, Source, StoreSource
from mqis.protocol.directory.objects import NAME_PROPERTY
from mqis.texts import counted
from mqis.views.presentation.properties import (
    LISTED,
    PropertyError,
    find_property,
    friendly,
    names_of,
)
from mqis.views.presentation.rendering import shown
from mqis.views.presentation.wildcards import look_up
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

# --- get ------------------------------------------------------------------------------------------


@spread
def get(
    kind: TypeArgument,
    name: NameArgument,
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    access: OptionalLogonOptions,
    prop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Show only this property. May be repeated."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show one object: all its stored properties, or those that --prop names."""
    chosen = [find_property(kind.object_type, word) for word in prop or ()]
    with source(store, config, access) as found_in:
        record = found_in.get(kind.object_type, name, chosen)
        if json:
            print_json(object_as_json(record))
        else:
            console().print(object_as_table(record, found_in, everything=not chosen))


@contextmanager
def source(
    store: str | None, config: Path | None, access: OptionalLogonOptions
) -> Iterator[Source]:
    """Connects to a server if the options ask for one, else opens the store."""
    if access.is_wanted(store, config):
        if store is not None:
            raise typer.BadParameter("--store and --server exclude each other")
        with connected(access.login()) as remote:
            yield remote
    else:
        with opened(store_url(store, config)) as from_store, from_store.read() as view:
            yield StoreSource(view)


def object_as_json(record: Record) -> dict[str, object]:
    """Raw values as in an export, under the property names of the command line."""
    return {
        "type": record.type.label,
        "id": str(record.id),
        "path": record.path,
        "partition": None if record.partition is None else str(record.partition),
        "seq": record.seq,
        "properties": values_as_json(record),
    }


def values_as_json(record: Record) -> dict[str, object]:
    return {
        friendly(propid): None if value is None else value_to_json(value.value)
        for propid, value in record.values.items()
    }


def object_as_table(record: Record, names: ReferenceNames, *, everything: bool = True) -> Table:
    title = cell(f"{record.type.label} {record.path or record.id}", "bold")
    made = table("property", "value", title=title)
    identity = {"id": record.id, "partition": record.partition, "seq": record.seq}
    for word, value in identity.items() if everything else ():
        if value is not None:
            made.add_row(word, str(value), style="dim")
    for propid, shown_value in record.values.items():
        if not everything or friendly(propid) not in identity:
            made.add_row(cell(friendly(propid), "cyan"), cell(shown(propid, shown_value, names)))
    return made


# --- lookup ---------------------------------------------------------------------------------------


@spread
def lookup(
    kind: TypeArgument,
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    access: OptionalLogonOptions,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="label=x, path=s011*, cost>=5, site_id=Berlin ... May be repeated: all must hold. "
            "In texts * stands for any characters and ? for one.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The columns to show: path,label,create_time"),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Sort by these; -NAME sorts descending.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Show at most this many.")] = None,
    json: JsonOption = False,
) -> None:
    """List the objects of a type that meet all conditions."""
    object_type = kind.object_type
    chosen = _columns(object_type, columns)
    with source(store, config, access) as found_in:
        keys = _sort_keys(object_type, sort)
        found = look_up(found_in, object_type, chosen, where or (), keys)
        rows = found[:limit]
        if json:
            print_json([row_as_json(record) for record in rows])
        else:
            console().print(rows_as_table(rows, chosen, found_in))
            shortened = "" if len(rows) == len(found) else f"{len(rows)} of "
            say(shortened + counted(len(found), object_type.label), "dim")


def row_as_json(record: Record) -> dict[str, object]:
    return {"id": str(record.id), "path": record.path, **values_as_json(record)}


def rows_as_table(rows: list[Record], columns: tuple[PropId, ...], names: ReferenceNames) -> Table:
    made = table(*map(friendly, columns))
    for record in rows:
        made.add_row(*(cell(shown(p, record.values[p], names)) for p in columns))
    return made


def _columns(kind: ObjectType, text: str | None) -> tuple[PropId, ...]:
    words = LISTED[kind] if text is None else _words(text, "--columns", kind)
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
        raise PropertyError(f"{option} names no property; choose from {', '.join(names_of(kind))}")
    return words
