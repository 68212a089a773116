"""Refuses URIs where a command takes a path.

Python takes ``s3a://bucket/tables`` for a directory of that name in this directory, so a command
would write there, and its user would look for the result elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import typer

from mqis.cli.parameters import is_path

#: A scheme has two letters at least; one letter is a drive.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
#: What a parameter's metavar says that takes more than paths.
_ELSEWHERE = ("LDAP", "STORE", "URI", "URL")
#: The pipeline knows ``file:`` and says what a cluster needs.
_OWN_RULES = ("pipeline",)


def refuse_uris(name: str, command: Any) -> None:
    """Makes a command, and those below it, check the parameters that take a path."""
    if name in _OWN_RULES:
        return
    for below in getattr(command, "commands", {}).values():
        refuse_uris(name, below)
    names = [each.name for each in command.params if takes_path(each)]
    if names and command.callback is not None:
        command.callback = _checking(command.callback, names)


def takes_path(parameter: Any) -> bool:
    """True for a parameter that names files or directories, and nothing else."""
    metavar = parameter.metavar or ""
    if any(kind in metavar for kind in _ELSEWHERE):
        return False
    return is_path(parameter) or "FILE" in metavar


def _checking(run: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    @wraps(run)
    def checked(**given: Any) -> Any:
        for name in names:
            for value in _values(given.get(name)):
                refuse_uri(str(value))
        return run(**given)

    return checked


def _values(given: Any) -> Iterator[Any]:
    if isinstance(given, list | tuple):
        yield from given
    elif given is not None:
        yield given


def refuse_uri(text: str) -> None:
    """Refuses the URI of another computer where a path is wanted."""
    match = _URI.fullmatch(text)
    if match is None:
        return
    scheme, rest = match.groups()
    raise typer.BadParameter(f"{scheme}://{rest}: this is a URI; give a path of this computer")
