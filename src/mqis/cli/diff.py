"""``mqis diff``: the differences of two directories, in names."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.enterprise import DEFAULT_RUN, RunOption
from mqis.cli.login import OptionalLogonOptions
from mqis.cli.options import JsonOption, PermissionsOption, TypeName
from mqis.cli.output import cell, console, plain, print_error
from mqis.cli.sides import ServerSides, opened_side
from mqis.cli.spread import spread
from mqis.files import output_file
from mqis.protocol.directory.comparing import ObjectFate
from mqis.protocol.errors import StorageError
from mqis.views.comparison.document import as_json
from mqis.views.comparison.page import html_page, remarks, summary
from mqis.views.comparison.words import ChangedObject, ComparedParts, DirectoryComparison
from mqis.wire.errors import MqisError

#: The exit status if a side cannot be read, as that of diff(1).
TROUBLE = 2

_SIDE = (
    "A file of 'mqis export', a store (an SQLite file or a URL), a server as server:HOST[:PORT], "
    "or as server:NAME if it is one of the run directory, "
    "or the directory of a journal, at a time or record: JOURNAL@2024-03-05T12:00, JOURNAL@1200."
)
_SIGNS = {
    ObjectFate.CREATED: ("+", "green"),
    ObjectFate.DELETED: ("-", "red"),
    ObjectFate.CHANGED: ("~", "yellow"),
    ObjectFate.REPLACED: ("=", "yellow"),
}
_NOTHING = "(none)"
#: A text, and its style.
_Line = tuple[str, str]


@spread
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help=_SIDE, show_default=False)],
    after: Annotated[str, typer.Argument(metavar="B", help="The same.", show_default=False)],
    *,
    kind: Annotated[
        list[TypeName] | None,
        typer.Option("--type", metavar="TYPE", help="Only objects of this type. May be repeated."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Do not compare this property: modify_time. May be repeated."
        ),
    ] = None,
    replicated: Annotated[
        bool, typer.Option("--replicated", help="Compare only what servers copy to each other.")
    ] = False,
    permissions: PermissionsOption = True,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page for a browser.", show_default=False),
    ] = None,
    run: RunOption = DEFAULT_RUN,
    json: JsonOption = False,
    access: OptionalLogonOptions,
) -> None:
    """Show the differences of two directories: objects and properties, before and after.

    The exit status is 0 if there are none, 1 if there are some, and 2 in case of trouble.
    """
    if access.is_given:
        raise typer.BadParameter("write a server as server:HOST[:PORT], in the place of A or B")
    servers = ServerSides(access, permissions, run)
    types = frozenset(name.object_type for name in kind or ())
    words = frozenset(word.strip().lower() for word in ignore or ())
    parts = ComparedParts(types, words, replicated)
    try:
        with (
            opened_side(before, servers) as old,
            opened_side(after, servers) as new,
        ):
            found = DirectoryComparison(old, new, parts)
        if html is not None:
            _write(html, found)
    except MqisError as error:
        print_error(str(error))
        raise typer.Exit(TROUBLE) from None
    if json:
        print(json_format.dumps(as_json(found), indent=2))
    else:
        _show(found)
    if not found.same:
        raise typer.Exit(1)


def _write(path: Path, found: DirectoryComparison) -> None:
    """Writes the page, under another name until it is complete."""
    try:
        with output_file(path) as out:
            out.writelines(text.encode() for text in html_page(found))
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error


def _show(found: DirectoryComparison) -> None:
    """Prints the lines; in colour on a terminal only, because that takes longer."""
    target = console()
    for text, style in _lines(found):
        if target.is_terminal:
            target.print(cell(text, style), soft_wrap=True)
        else:
            sys.stdout.write(f"{plain(text)}\n")


def _lines(found: DirectoryComparison) -> Iterator[_Line]:
    yield f"{found.before} -> {found.after}: {summary(found)}", "bold"
    for remark in remarks(found):
        yield remark, "cyan"
    for object_type, members in found.groups():
        yield f"{object_type.label}:", "bold"
        for one in members:
            yield from _object(one)


def _object(one: ChangedObject) -> Iterator[_Line]:
    """Yields one line for an object that came or went, and one more for each changed property."""
    sign, style = _SIGNS[one.fate]
    suffix = "" if one.former_id is None else f" (deleted and created again: {one.id})"
    yield f"  {sign} {one.name}{suffix}", style
    if one.fate in (ObjectFate.CREATED, ObjectFate.DELETED):
        return
    for each in one.properties:
        before = _NOTHING if each.before is None else each.before
        after = _NOTHING if each.after is None else each.after
        yield f"      {each.word}: {before} -> {after}", ""
