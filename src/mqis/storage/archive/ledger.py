"""The list of the files that are in the archive, verified: ``archived.json`` beside the journal.

Retention trusts only this list, because it is written after a copy was read back and compared.
Without it (a disk was replaced) the archiver compares the files again, and copies none twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from mqis.files import write_whole
from mqis.storage.journal.files import explained

NAME = "archived.json"
_VERSION = 1


@dataclass(slots=True)
class ArchiveLedger:
    """The verified files of one journal in one archive."""

    directory: Path
    #: The directory of the archive that they are in, without credentials.
    target: str = ""
    #: Name -> SHA-256 in hexadecimal digits.
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, directory: Path) -> ArchiveLedger:
        """Reads the list; an unreadable one counts as empty, because it can be made again."""
        try:
            read = json.loads((directory / NAME).read_text(encoding="utf-8"))
            if read["version"] == _VERSION:
                files = {str(name): str(digest) for name, digest in read["files"].items()}
                return cls(directory, str(read["target"]), files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return cls(directory)

    def begin(self, target: str) -> None:
        """Starts over, if the archive is another one than before."""
        if self.target != target:
            self.target = target
            self.files = {}

    def add(self, name: str, digest: str) -> None:
        """Notes a verified file, durably; forgets those that retention has deleted."""
        kept = {n: d for n, d in self.files.items() if (self.directory / n).exists()}
        self.files = kept | {name: digest}
        self._save()

    def _save(self) -> None:
        content = {"version": _VERSION, "target": self.target, "files": self.files}
        path = self.directory / NAME
        with explained(path):
            write_whole(path, json.dumps(content, indent=1))
