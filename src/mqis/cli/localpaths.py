"""Refuses URIs where a command takes a path, and URIs with a secret everywhere.

Python takes ``s3a://bucket/tables`` for a directory of that name in this directory, so a command
would write there, and its user would look for the result elsewhere. Everybody on a computer can
read the arguments of a process, so no argument may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import typer

from mqis.cli.parameters import is_path

#: A scheme has two letters at least; one letter is a drive.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
#: A credential before the bucket, or as a setting behind the path.
_SECRET_URI = re.compile(
    r"s3[an]?:/+(?:[^/?]*:[^/?]*@|[^?]*\?(?:.*&)?(?:access_key|secret_key|session_token)=)",
    re.DOTALL | re.IGNORECASE,
)
#: What a parameter's metavar says that takes more than paths.
_ELSEWHERE = ("LDAP", "STORE", "URI", "URL")
#: The pipeline knows ``file:`` and says what a cluster needs.
_OWN_RULES = ("pipeline",)


def refuse_uris(name: str, command: Any) -> None:
    """Makes a command, and those below it, check the parameters that take a path or a URI."""
    for below in getattr(command, "commands", {}).values():
        refuse_uris(name, below)
    paths = [each.name for each in command.params if takes_path(each) and name not in _OWN_RULES]
    if command.params and command.callback is not None:
        command.callback = _checking(command.callback, paths)


def takes_path(parameter: Any) -> bool:
    """True for a parameter that names files or directories, and nothing else."""
    metavar = parameter.metavar or ""
    if any(kind in metavar for kind in _ELSEWHERE):
        return False
    return is_path(parameter) or "FILE" in metavar


def _checking(run: Callable[..., Any], paths: list[str]) -> Callable[..., Any]:
    @wraps(run)
    def checked(**given: Any) -> Any:
        for name, values in given.items():
            for value in _values(values):
                if isinstance(value, str | Path):
                    refuse_secret(str(value))
                if name in paths:
                    refuse_uri(str(value))
        return run(**given)

    return checked


def _values(given: Any) -> Iterator[Any]:
    if isinstance(given, list | tuple):
        yield from given
    elif given is not None:
        yield given


def refuse_secret(text: str) -> None:
    """Refuses the URI of a store of objects, or of a domain controller, with a credential in it."""
    if "@" in text:
        _refuse_account(text)
    if _SECRET_URI.match(text) is not None:
        scheme, _, rest = text.partition("://")
        place = rest.partition("?")[0].rpartition("@")[2]
        raise typer.BadParameter(
            f"{scheme}://{place}: a secret on the command line is shown to everybody on this "
            "computer; leave the credential out of the URI, and set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) in the environment. Choose another "
            "secret: this one has been seen"
        )


def _refuse_account(text: str) -> None:
    # Loads the codec of filters, which few commands need.
    from mqis.protocol.ldap.urls import (  # noqa: PLC0415
        ACCOUNT_PLACE,
        holds_account,
        without_account,
    )

    if holds_account(text):
        raise typer.BadParameter(
            f"{without_account(text)}: a password on the command line is shown to everybody on "
            f"this computer; {ACCOUNT_PLACE}. Choose another password: this one has been seen"
        )


def refuse_uri(text: str) -> None:
    """Refuses the URI of another computer where a path is wanted."""
    match = _URI.fullmatch(text)
    if match is None:
        return
    scheme, rest = match.groups()
    raise typer.BadParameter(f"{scheme}://{rest}: this is a URI; give a path of this computer")
