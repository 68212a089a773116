"""A directory of backups: what it holds, whether each is intact, and how many are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mqis.admin.backup.backup_file import Archive, explained
from mqis.admin.backup.manifest import Content, Manifest
from mqis.admin.backup.taking_backup import SUFFIX
from mqis.protocol.directory.objects import name_key
from mqis.wire.errors import MqisError


@dataclass(frozen=True, slots=True)
class StoredBackup:
    """A file of the directory. Of one that cannot be read there is no manifest, but a reason."""

    path: Path
    size: int
    manifest: Manifest | None
    fault: str = ""

    @property
    def age_key(self) -> tuple[str, int, str]:
        """The later the backup, the higher. Those of one second have names with numbers: -1, -2."""
        created = "" if self.manifest is None else self.manifest.created
        return created, len(self.path.stem), self.path.stem

    @property
    def has_key(self) -> bool:
        """True if the server's signing key is in it."""
        return self.manifest is not None and self.manifest.holds(Content.KEY)


def backups_in(directory: Path, *, verify: bool = False) -> list[StoredBackup]:
    """The backups of a directory by server, the newest first; ``verify`` reads each as a whole."""
    with explained(directory, "read"):
        paths = sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    found = sorted((_stored(path, verify=verify) for path in paths), key=lambda b: b.age_key)
    found.reverse()
    return sorted(found, key=lambda b: "" if b.manifest is None else name_key(b.manifest.server))


def lost_keys(backups: Iterable[StoredBackup]) -> Iterator[tuple[StoredBackup, StoredBackup]]:
    """The newest backup of each server whose key is in an older one only, and that one."""
    for found in _by_server(backups):
        keyed = next((backup for backup in found if backup.has_key), None)
        if keyed is not None and keyed is not found[0]:
            yield found[0], keyed


def _by_server(backups: Iterable[StoredBackup]) -> Iterable[list[StoredBackup]]:
    by_server: defaultdict[tuple[str, str], list[StoredBackup]] = defaultdict(list)
    for backup in backups:
        if backup.manifest is not None:
            owner = name_key(backup.manifest.enterprise), name_key(backup.manifest.server)
            by_server[owner].append(backup)
    return by_server.values()


def _stored(path: Path, *, verify: bool) -> StoredBackup:
    size = path.stat().st_size
    try:
        archive = Archive(path)
        if verify:
            archive.verify()
    except MqisError as error:
        return StoredBackup(path, size, None, str(error).removeprefix(f"{path}: "))
    return StoredBackup(path, size, archive.manifest)


def prune(directory: Path, keep: int) -> Iterator[Path]:
    """Deletes all but the newest backups of each server of an enterprise; yields their paths.

    A file that cannot be read is nobody's, and stays; so does the newest one with a signing key,
    because a key that a server has lost comes back from there alone.
    """
    for backups in _by_server(backups_in(directory)):
        keyed = next((backup for backup in backups if backup.has_key), None)
        for old in backups[keep:]:
            if old is keyed:
                continue
            with explained(old.path):
                old.path.unlink()
            yield old.path
