"""The examples of docs/commands.md and docs/properties.md run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import run
from tests.docs.documents import commands, text_of, words


@pytest.mark.parametrize("name", ["commands.md", "properties.md"])
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [parts[0] for line in commands(text_of(name)) if (parts := words(line))]
    for program, *arguments in lines:
        if program == "mqis":
            result = run(*arguments)
            assert result.exit_code == 0, (arguments, result.output, result.exception)
            assert result.stdout
