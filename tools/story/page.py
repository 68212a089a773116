"""Writes the outputs of a run into docs/story.md: the ``text`` block behind each command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

#: A command of the page and the block with its output.
_BLOCK = re.compile(r"^```sh\n(?P<command>.*?)\n```\n\n```text\n.*?^```$", re.S | re.M)
#: The most lines of an output.
_MOST = 24


def write_page(page: Path, outputs: Mapping[str, str]) -> None:
    """Replaces the outputs; ``outputs`` has them by command."""

    def replaced(found: re.Match[str]) -> str:
        command = found["command"]
        return f"```sh\n{command}\n```\n\n```text\n{shortened(outputs[command])}\n```"

    page.write_text(_BLOCK.sub(replaced, page.read_text("utf-8")), "utf-8")


def shown_commands(text: str) -> list[str]:
    """The commands of a page that have an output."""
    return [found["command"] for found in _BLOCK.finditer(text)]


def shortened(output: str, most: int = _MOST) -> str:
    """The first lines of an output, and the number of the others."""
    lines: Sequence[str] = [line.rstrip() for line in output.strip("\n").splitlines()]
    if len(lines) <= most:
        return "\n".join(lines)
    return "\n".join([*lines[: most - 1], f"... {len(lines) - most + 1} more lines"])
