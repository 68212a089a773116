"""``mqis diff``: the differences of two directories, in names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import (
    DEFAULT_RUN,
    JsonOption,
    PermissionsOption,
    RunOption,
    TypeName,
    refuse_password,
    spread,
)
from mqis.cli.output import cell, console, plain, print_error, print_json, print_note
from mqis.config.nodes import FILE as NODES
from mqis.config.nodes import NodePlace, load_nodes
from mqis.files import is_sqlite_file, output_file, system_reason
from mqis.protocol.directory.directory_difference import ObjectFate
from mqis.protocol.directory.objects import SECURITY_PROPERTY
from mqis.protocol.errors import StorageError
from mqis.storage.journal.past import PastMoment
from mqis.views.comparison.page import as_json, html_page, remarks, summary
from mqis.views.comparison.side import DirectorySide, exported_side, past_side, stored_side
from mqis.views.comparison.words import ChangedObject, ComparedParts, DirectoryComparison
from mqis.wire.errors import MqisError

if TYPE_CHECKING:
    from mqis.client.remote import Remote

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
        print_json(as_json(found))
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
        raise StorageError(f"{path}: cannot be written: {system_reason(error)}") from error


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


# --- The sides of ``mqis diff`` as users write them -----------------------------------------------

SERVER = "server:"
_URLS = ("sqlite:", "postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class ServerSides:
    """The options for sides that are servers, and the passwords that the user has given."""

    access: OptionalLogonOptions
    permissions: bool
    #: A run directory, whose servers can be named.
    run: Path = DEFAULT_RUN
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    @contextmanager
    def opened(self, name: str) -> Iterator[DirectorySide]:
        """Opens a server. One of the run directory is read from its store, unless a user is given:
        an anonymous user would not see all of it."""
        place, label = self._place(name), f"{SERVER}{name}"
        if place is not None and place.store and self._is_unasked:
            with stored_side(place.store, label) as side:
                yield side
            return
        address = name if place is None else place.rpc_address
        with self._asked(address, label) as side:
            yield side

    @property
    def _is_unasked(self) -> bool:
        return self.access.is_nobody and not self.access.anonymous

    @contextmanager
    def _asked(self, address: str, label: str) -> Iterator[DirectorySide]:
        login = replace(self.access, server=[address]).login()
        user = "an anonymous user" if login.name is None else login.who
        with connected(login, self.secrets) as remote:
            yield _served_side(remote, label, user, permissions=self.permissions)

    def _place(self, name: str) -> NodePlace | None:
        """The server of the run directory that has this name, if there is one."""
        if not (self.run / NODES).is_file():
            return None
        return next((n for n in load_nodes(self.run) if n.name.lower() == name.lower()), None)


@contextmanager
def opened_side(text: str, servers: ServerSides) -> Iterator[DirectorySide]:
    """Opens what ``text`` names: an export, a store, a server, or a journal at a moment."""
    if text.startswith(_URLS):
        refuse_password(text)
        with stored_side(text) as side:
            yield side
    elif is_sqlite_file(Path(text)):
        with stored_side(f"sqlite:{text}") as side:
            yield side
    elif (found := _journal(text)) is not None:
        with past_side(*found) as side:
            yield side
    elif text.startswith(SERVER):
        with servers.opened(text.removeprefix(SERVER)) as side:
            yield side
    else:
        with exported_side(Path(text), print_note) as side:
            yield side


def _journal(text: str) -> tuple[Path, PastMoment] | None:
    """The directory of a journal and a moment, if ``text`` names them: JOURNAL[@MOMENT]."""
    path, at, moment = text.rpartition("@")
    if not at or Path(text).exists():
        path, moment = text, ""
    if not Path(path).is_dir():
        return None
    directory = Path(path)
    inside = directory / "journal"  # of a server's own directory
    chosen = inside if not list(directory.glob("*.mqj")) and inside.is_dir() else directory
    return chosen, PastMoment.parse(moment) if moment else PastMoment()


def _served_side(remote: Remote, label: str, user: str, *, permissions: bool) -> DirectorySide:
    """Reads the server while the objects are read."""
    from mqis.client.whole import UNTOLD, whole_directory  # noqa: PLC0415 -- only servers need it

    hidden = UNTOLD if permissions else UNTOLD | frozenset(SECURITY_PROPERTY.values())
    objects = whole_directory(remote, lambda _done, _total: None, permissions=permissions)
    note = f"{label}: as {user} sees it"
    return DirectorySide(label, objects, frozenset(hidden), (note,))
