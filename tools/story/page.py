"""Writes the outputs of a run into docs/story.md: the ``text`` block behind each command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

#: A command of the page and the block with its output.
_BLOCK = re.compile(r"^```sh\n(?P<command>.*?)\n```\n\n```text\n.*?^```$", re.S | re.M)
#: The most lines of an output, and how many of them are the last ones.
_MOST, _LAST = 26, 6
#: Lines that Spark writes whatever it is asked.
_NOISE = ("WARNING: Using incubator modules", "Setting default log level", "To adjust logging")


def write_page(page: Path, outputs: Mapping[str, str]) -> None:
    """Replaces the outputs; ``outputs`` has them by command."""

    def replaced(found: re.Match[str]) -> str:
        command = found["command"]
        return f"```sh\n{command}\n```\n\n```text\n{shortened(outputs[command])}\n```"

    page.write_text(_BLOCK.sub(replaced, page.read_text("utf-8")), "utf-8")


def shown_commands(text: str) -> list[str]:
    """The commands of a page that have an output."""
    return [found["command"] for found in _BLOCK.finditer(text)]


def shortened(output: str, most: int = _MOST, last: int = _LAST) -> str:
    """The first and last lines of an output, and the number of those between."""
    lines: Sequence[str] = [
        line.rstrip() for line in output.strip("\n").splitlines() if not line.startswith(_NOISE)
    ]
    if len(lines) <= most:
        return "\n".join(lines)
    between = len(lines) - most + 1
    return "\n".join([*lines[: most - last - 1], f"... {between} more lines", *lines[-last:]])
