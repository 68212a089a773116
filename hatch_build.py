"""Hooks of the build: the commit is recorded in the package, and the README gets absolute links.

hatchling loads this file (``[tool.hatch]`` in pyproject.toml). A package index shows the README
without the files that it links to; there links and pictures lead to the project's ``Source`` URL.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link or picture of Markdown; what it leads to is the second group.
_LINK = re.compile(r"(\]\()([^()\s]+)(?=\))")
_RECORD = "COMMIT"


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        shown = with_absolute_links(text, metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}


class CustomBuildHook(BuildHookInterface[Any]):
    _made: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or (Path(self.root) / "src" / "mqis" / _RECORD).exists():
            return  # an editable installation asks git, a source distribution has the file
        found = commit(Path(self.root))
        if found is not None:
            self._made = tempfile.TemporaryDirectory(prefix="mqis-build-")
            record = Path(self._made.name) / _RECORD
            record.write_text(f"{found}\n", "utf-8")
            inside = "mqis" if self.target_name == "wheel" else "src/mqis"
            build_data["force_include"][str(record)] = f"{inside}/{_RECORD}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._made is not None:
            self._made.cleanup()


def with_absolute_links(text: str, base: str) -> str:
    """The text with its relative links below ``base``; links within the page stay."""

    def absolute(match: re.Match[str]) -> str:
        target = match[2]
        relative = not re.match(r"[a-z]+:|#", target)
        return f"{match[1]}{base}{target}" if relative else match[0]

    return _LINK.sub(absolute, text)


def commit(root: Path) -> str | None:
    """The commit that is built; ``MQIS_COMMIT`` names it where there is no repository."""
    if given := os.environ.get("MQIS_COMMIT"):
        return given
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() or None
