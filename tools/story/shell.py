"""Runs the commands of the story as they are written, in a directory of their own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner

from mqis.cli.main import app
from mqis.wire.errors import MqisError
from tools.story.commands import RUN


class StoryError(Exception):
    """Something is not as wanted; the story ends here."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    command: str
    status: int
    text: str


@dataclass
class StoryShell:
    """``alone`` runs each command as a process, else in this one, which takes less time."""

    directory: Path
    alone: bool = True
    variables: dict[str, str] = field(default_factory=dict)
    user: str = "admin"

    @property
    def run_directory(self) -> Path:
        return self.directory / RUN

    def run(self, command: str, *, wanted: int | None = 0, user: str | None = None) -> str:
        """Runs a command and returns its output; raises an error for another exit status."""
        output = self.output(command, user)
        if wanted is not None and output.status != wanted:
            raise StoryError(
                f"{command}: exit status {output.status} instead of {wanted}:\n{output.text}"
            )
        return output.text

    def output(self, command: str, user: str | None = None) -> CommandOutput:
        words = shlex.split(self._expanded(command))[1:]
        environment = self._environment(user or self.user)
        done = (self._process if self.alone else self._here)(words, environment)
        return CommandOutput(command, *done)

    def _expanded(self, command: str) -> str:
        """Replaces variables, as a shell would."""
        text = command
        for name, value in self.variables.items():
            text = text.replace(f"${name}", value)
        return text

    def _environment(self, user: str) -> dict[str, str]:
        password = self.run_directory / "passwords" / user
        return {
            "MQIS_USER": f"NORTHWIND\\{user}",
            "MQIS_PASSWORD_FILE": str(password),
            "COLUMNS": "100",
        }

    def _process(self, words: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "mqis.cli.main", *words],
            cwd=self.directory,
            env=os.environ | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def _here(self, words: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
        with chdir(self.directory):
            done = CliRunner(env=dict(environment)).invoke(app, words)
        if isinstance(done.exception, MqisError):
            return 1, f"mqis: {done.exception}\n"
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output
