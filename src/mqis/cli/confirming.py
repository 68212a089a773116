"""The question before a change that takes something away or brings it back."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mqis.wire.errors import MqisError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Needed in scripts.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the plan; change nothing.")]


def confirm(question: str, *, yes: bool) -> None:
    """Asks on a terminal; raises ``MqisError`` for a no, or if nobody can be asked."""
    if yes:
        return
    if not is_terminal():
        raise MqisError(
            "nothing was changed: there is no terminal to ask on; --yes confirms, and --dry-run "
            "shows the plan alone"
        )
    if not typer.confirm(question, default=False, err=True):
        raise MqisError("nothing was changed")


def is_terminal() -> bool:
    return sys.stdin.isatty()
