"""The words that may stand at the cursor of a shell: commands, options, choices, properties.

The scripts of ``mqis completion`` run mqis with the variable ``_MQIS_COMPLETE`` and the words up to
the cursor. The answer is a line per word, with a tab and its explanation, and ``:files`` where a
file may stand: the shell knows files better. Names of commands come from the registry alone; only a
command whose options are wanted is loaded.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mqis.cli.parameters import choices, is_path
from mqis.cli.registry import COMMANDS

#: The variable that asks for completions: ``words`` or ``line`` says what the arguments are.
VARIABLE: Final = "_MQIS_COMPLETE"
FILES: Final = ":files"

Completion = tuple[str, str]


def print_completions(root: Any, kind: str, arguments: Sequence[str]) -> None:
    """Prints the completions for the words up to the cursor, the last of which is not complete."""
    words = split_line(arguments[0]) if kind == "line" and arguments else list(arguments)
    for word, explanation in completions(root, words):
        print(f"{word}\t{explanation}" if explanation else word)


def split_line(line: str) -> list[str]:
    """Splits a command line as a shell does, without the program; its last word may be empty."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # a quotation mark that is still open
        words.append(lexer.token)
    return [*words[1:], ""] if line[-1:].isspace() else words[1:]


def completions(root: Any, words: Sequence[str]) -> Iterator[Completion]:
    """Yields the completions of the last word, each with its explanation."""
    *before, partial = words or [""]
    command, rest = root, before
    while hasattr(command, "list_commands"):
        names = [number for number, word in enumerate(rest) if not word.startswith("-")]
        if not names:
            yield from _of_group(command, partial, is_root=command is root)
            return
        name, rest = rest[names[0]], rest[names[0] + 1 :]
        command = command.get_command(None, name)
        if command is None:
            return
    yield from _of_command(_Typed.read(command, rest), partial)


def _of_group(group: Any, partial: str, *, is_root: bool) -> Iterator[Completion]:
    if partial.startswith("-"):
        yield from _options(group, partial)
        return
    for name in group.list_commands(None):
        if name.startswith(partial):
            yield name, COMMANDS[name].summary if is_root else _help(group.get_command(None, name))


# --- one command ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Typed:
    """The words of a command before the cursor, as its parser takes them."""

    command: Any
    arguments: list[str] = field(default_factory=list)
    #: The option whose value comes next.
    pending: Any = None
    #: True behind ``--``: nothing is an option any more.
    ended: bool = False

    @classmethod
    def read(cls, command: Any, words: Sequence[str]) -> _Typed:
        typed = cls(command)
        for word in words:
            typed._take(word)
        return typed

    def _take(self, word: str) -> None:
        if self.pending is not None:
            self.pending = None
        elif self.ended or not word.startswith("-") or word == "-":
            self.arguments.append(word)
        elif word == "--":
            self.ended = True
        elif "=" not in word:
            option = self.option(word)
            self.pending = option if option is not None and not option.is_flag else None

    def option(self, name: str) -> Any:
        options = (p for p in self.command.params if p.param_type_name == "option")
        return next((option for option in options if name in option.opts), None)

    @property
    def argument(self) -> Any:
        """The argument that comes next; the last one if it takes many."""
        wanted = [p for p in self.command.params if p.param_type_name == "argument"]
        number = len(self.arguments)
        if number < len(wanted):
            return wanted[number]
        return wanted[-1] if wanted and wanted[-1].nargs == -1 else None


def _of_command(typed: _Typed, partial: str) -> Iterator[Completion]:
    if typed.pending is not None:
        yield from _values(typed, typed.pending, partial)
    elif partial.startswith("-") and not typed.ended:
        name, equals, value = partial.partition("=")
        option = typed.option(name)
        if equals and option is not None:
            found = _values(typed, option, value)
            yield from ((f"{name}={word}", text) for word, text in found if word != FILES)
        else:
            yield from _options(typed.command, partial)
    elif typed.argument is not None:
        yield from _values(typed, typed.argument, partial)


def _options(command: Any, partial: str) -> Iterator[Completion]:
    for option in (*command.params, *filter(None, (command.get_help_option(_context(command)),))):
        if option.param_type_name == "option" and not getattr(option, "hidden", False):
            for name in (*option.opts, *option.secondary_opts):
                if name.startswith("--") and name.startswith(partial):
                    yield name, _first_line(getattr(option, "help", None))


def _values(typed: _Typed, parameter: Any, partial: str) -> Iterator[Completion]:
    if names := choices(parameter):
        yield from ((name, "") for name in names if name.startswith(partial.lower()))
    elif parameter.name in _PROPERTIES:
        yield from _properties(typed, parameter.name, partial)
    elif parameter.name in _SERVERS:
        yield from _servers(partial)
    elif is_place(parameter):
        yield FILES, ""


def is_place(parameter: Any) -> bool:
    """True for a parameter that names a file, a directory or a store."""
    metavar = parameter.metavar or ""
    return is_path(parameter) or metavar == "STORE" or "FILE" in metavar


# --- servers --------------------------------------------------------------------------------------

#: Parameters that take the name of a server of the run directory.
_SERVERS: Final = frozenset({"server", "server_name"})


def _servers(partial: str) -> Iterator[Completion]:
    from mqis.config.errors import NodesError  # noqa: PLC0415
    from mqis.config.nodes import default_run, load_nodes  # noqa: PLC0415

    try:
        nodes = load_nodes(default_run())
    except NodesError:
        return
    for node in nodes:
        if node.name.lower().startswith(partial.lower()):
            yield node.name, f"{node.role} of {node.site}"


# --- properties -----------------------------------------------------------------------------------

#: Parameters that take the names of properties, and what ends a name.
_PROPERTIES: Final = {"prop": "", "columns": "", "sort": "", "where": "=", "values": "="}
#: A list: the names before the last one, with a minus that sorts descending, and the last one.
_BEGUN: Final = re.compile(r"((?:.*,)?-?)([^,]*)")


def _properties(typed: _Typed, parameter: str, partial: str) -> Iterator[Completion]:
    """Yields the properties of the type that the first argument names."""
    from mqis.views.presentation.properties import names_of  # noqa: PLC0415 -- only for these
    from mqis.wire.mqds.objecttype import ObjectType  # noqa: PLC0415

    try:
        object_type = ObjectType.parse(typed.arguments[0].lower())
    except (IndexError, ValueError):
        return
    begun = _BEGUN.fullmatch(partial) if parameter in ("columns", "sort") else None
    given, last = begun.groups() if begun else ("", partial)
    for name in names_of(object_type):
        if name.startswith(last):
            yield f"{given}{name}{_PROPERTIES[parameter]}", ""


# --- texts ----------------------------------------------------------------------------------------


def _context(command: Any) -> Any:
    return command.context_class(command, info_name=command.name)


def _help(command: Any) -> str:
    return _first_line(command.help)


def _first_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[0] if lines else ""


def wanted() -> str | None:
    """The kind of completions that the environment asks for; None if it asks for none."""
    return os.environ.get(VARIABLE)


def complete(root: Any) -> None:
    """Answers a completion script; says nothing if something is wrong."""
    print_completions(root, wanted() or "", sys.argv[1:])
