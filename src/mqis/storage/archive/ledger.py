"""The list of the files that are in the archive, verified: ``archived.json`` beside the journal.

Retention trusts only this list, because it is written after a copy was read back and compared.
Without it (a disk was replaced) the archiver compares the files again, and copies none twice.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from mqis.storage.journal.files import explained, flush, flush_directory

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
        aside = path.with_name(f"{NAME}.new")
        with explained(path):
            number = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(number, "w", encoding="utf-8") as out:
                json.dump(content, out, indent=1)
                out.flush()
                flush(out.fileno())
            aside.replace(path)
            flush_directory(self.directory)
