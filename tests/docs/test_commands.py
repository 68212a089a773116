"""Every command in the documents exists, with every option that it is shown with."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest
import typer

from mqis.cli.main import app
from mqis.cli.registry import COMMANDS
from tests.docs.documents import DOCUMENTS, ROOT, commands, words

MAKE_TARGETS = frozenset(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def lines_of(program: str) -> list[Any]:
    return [
        pytest.param(part[1:], id=f"{document.name}: {' '.join(part)[:60]}")
        for document in DOCUMENTS
        for line in commands(document.read_text("utf-8"))
        if re.search(rf"\b{program}\b", line)
        for part in words(line)
        if part[0] == program
    ]


@pytest.mark.parametrize("arguments", lines_of("mqis"))
def test_a_line_is_a_command_with_its_options(arguments: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    context = click.Context(command)
    rest = list(arguments)
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        assert found is not None, f"{rest[0]}: no such command"
        command, rest = found, rest[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    for word in rest:
        if re.match(r"--?[a-z]", word):
            assert word.partition("=")[0] in {*known, "--help"}, f"{word}: no such option"


@pytest.mark.parametrize("arguments", lines_of("make"))
def test_a_target_of_make_exists(arguments: list[str]) -> None:
    for word in arguments:
        if not re.fullmatch(r"[A-Z]+=.*", word):
            assert word in MAKE_TARGETS


def test_every_command_is_in_the_list() -> None:
    listed = (ROOT / "docs" / "commands.md").read_text("utf-8")
    missing = [name for name in COMMANDS if not re.search(rf"`(mqis )?{name}\b", listed)]
    assert missing == []
