"""Options that commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from mqis.cli.options import spread

LevelOption = Annotated[int, typer.Option("--level", "-l", min=1, help="How high.")]


@dataclass(frozen=True)
class Shared:
    name: str = "nobody"
    level: LevelOption = 1


@dataclass(frozen=True)
class More(Shared):
    loud: bool = False


app = typer.Typer()


@app.command()
@spread
def plain(
    word: str, *, shared: Shared, json: Annotated[bool, typer.Option("--json")] = False
) -> None:
    """Prints its arguments."""
    typer.echo(f"{word} {shared} {json}")


@app.command()
@spread
def more(*, more: More) -> None:
    typer.echo(repr(more))


def told(*words: str) -> str:
    result = CliRunner().invoke(app, words)
    return str(result.output).strip()


def test_each_field_is_an_option_and_the_command_gets_all_of_them() -> None:
    assert told("plain", "w") == "w Shared(name='nobody', level=1) False"
    assert told("plain", "w", "--json", "-l", "3", "--name", "x") == (
        "w Shared(name='x', level=3) True"
    )


def test_fields_of_a_base_come_first() -> None:
    assert told("more", "--loud", "--level", "2") == "More(name='nobody', level=2, loud=True)"


def test_help_and_limits_are_those_of_the_field() -> None:
    shown = told("plain", "--help")
    assert "Prints its arguments." in shown
    assert "How high." in shown
    assert "--shared" not in shown
    assert "0 is not in the range x>=1" in " ".join(told("plain", "w", "--level", "0").split())
