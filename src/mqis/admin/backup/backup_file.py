"""The file of a backup: a gzipped tar whose first member is the manifest.

It is written under a temporary name, read back from the disk, and only then renamed: a file with
its final name is complete. Digests detect damage by a disk or a copy. They are not a signature:
anyone who can write the file can replace the manifest too.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tarfile import TarError
from typing import IO

from mqis.admin.backup.manifest import Content, FileEntry, Manifest
from mqis.admin.backup.unpacking import Unpacker
from mqis.files import FILE_MODE, flush, system_reason, whole_file
from mqis.wire.errors import MqisError

_MANIFEST, _DIGEST = "manifest.json", "manifest.sha256"
_BLOCK = 1 << 20
#: A manifest of an enterprise with a hundred thousand sites fits.
_MAX_MANIFEST = 32 << 20
#: The files that are read into memory, with their maximum sizes; the store goes to the disk.
_MAX_SIZES: dict[str, int] = {
    Content.CONFIG: 1 << 20,
    Content.ACCOUNTS: 64 << 20,
    Content.KEY: 1 << 20,
    Content.KEYTAB: 16 << 20,
}
_DAMAGE = (tarfile.TarError, EOFError, zlib.error)


@contextmanager
def explained(path: Path, done: str = "written") -> Iterator[None]:
    """Turns an ``OSError`` into a ``MqisError``; ``done`` is what was to be done."""
    try:
        yield
    except OSError as error:
        hint = "; free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        reason = system_reason(error)
        raise MqisError(f"{path}: cannot be {done}: {reason}{hint}") from error


def digest_of(path: Path) -> FileEntry:
    """The entry of a file in the manifest: its name, size and digest."""
    sha, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            sha.update(block)
            size += len(block)
    return FileEntry(path.name, size, sha.hexdigest())


def write_archive(path: Path, manifest: Manifest, files: Mapping[str, Path]) -> None:
    """Writes the archive durably, with mode 0600."""
    data = manifest.to_bytes()
    with (
        whole_file(path) as out,
        tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar,
    ):
        _add(tar, _MANIFEST, len(data), BytesIO(data))
        digest = hashlib.sha256(data).hexdigest().encode()
        _add(tar, _DIGEST, len(digest), BytesIO(digest))
        for entry in manifest.files:
            with files[entry.name].open("rb") as file:
                _add(tar, entry.name, entry.size, file)


def _add(tar: tarfile.TarFile, name: str, size: int, file: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, FILE_MODE
    tar.addfile(member, file)


# --- reading --------------------------------------------------------------------------------------


class Archive:
    """A backup on disk; all data that is read from it is checked against the manifest's digests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = self._manifest()

    def verify(self) -> dict[str, bytes]:
        """Reads and checks all files; returns the small ones, that is, all but the store."""
        small: dict[str, bytes] = {}
        with self._opened() as files:
            for entry in self._entries(files):
                checked = _checked(entry, files)
                if entry.name == Content.STORE:
                    for _ in checked:
                        pass
                else:
                    small[entry.name] = b"".join(checked)
            if files.next() is not None:
                raise TarError("it holds more than its manifest lists")
            files.end()
        return small

    def extract(self, to: Mapping[str, Path]) -> None:
        """Writes the files that ``to`` names durably, each with mode 0600."""
        with self._opened() as files:
            for entry in self._entries(files):
                if entry.name in to:
                    _write(to[entry.name], _checked(entry, files))

    def _manifest(self) -> Manifest:
        with self._opened() as files:
            data, digest = (_small(files, name) for name in (_MANIFEST, _DIGEST))
        if hashlib.sha256(data).hexdigest().encode() != digest:
            raise self._damaged("the manifest was changed")
        try:
            manifest = Manifest.from_bytes(data)
        except MqisError as error:
            raise MqisError(f"{self.path}: {error}") from error
        names = [entry.name for entry in manifest.files]
        if len(set(names)) != len(names) or not set(names) <= set(Content):
            raise self._damaged(f"its manifest lists the files {', '.join(names)}")
        for entry in manifest.files:
            if entry.size > _MAX_SIZES.get(entry.name, entry.size):
                raise self._damaged(f"{entry.name} has {entry.size:,} bytes, which is too much")
        return manifest

    def _entries(self, files: Unpacker) -> Iterator[FileEntry]:
        """Yields the files in the order of the manifest; raises TarError for any other."""
        for name in (_MANIFEST, _DIGEST):
            _small(files, name)
        for entry in self.manifest.files:
            member = files.next()
            if member is None or member.name != entry.name:
                raise TarError(f"{entry.name} is missing")
            if member.size != entry.size:
                raise TarError(f"{entry.name} has another size than its manifest says")
            yield entry

    @contextmanager
    def _opened(self) -> Iterator[Unpacker]:
        try:
            with self.path.open("rb") as file:
                yield Unpacker(file)
        except _DAMAGE as error:
            raise self._damaged(str(error) or "it ends too early") from error
        except OSError as error:
            if error.errno is None:  # gzip's
                raise self._damaged(str(error)) from error
            raise MqisError(f"{self.path}: {system_reason(error)}") from error

    def _damaged(self, reason: str) -> MqisError:
        return MqisError(
            f"{self.path}: this backup is damaged or incomplete: {reason}; use another one"
        )


def _small(files: Unpacker, name: str) -> bytes:
    member = files.next()
    if member is None or member.name != name or member.size > _MAX_MANIFEST:
        raise TarError(f"{name} is not at its place in the file")
    return b"".join(files.blocks())


def _checked(entry: FileEntry, files: Unpacker) -> Iterator[bytes]:
    """Yields the blocks of one file; raises TarError at the end if the digest is wrong."""
    sha = hashlib.sha256()
    for block in files.blocks():
        sha.update(block)
        yield block
    if sha.hexdigest() != entry.sha256:
        raise TarError(f"{entry.name} was changed: its digest is wrong")


def _write(target: Path, blocks: Iterable[bytes]) -> None:
    with explained(target):
        number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
    with os.fdopen(number, "wb") as out:
        os.fchmod(out.fileno(), FILE_MODE)
        for block in blocks:
            with explained(target):
                out.write(block)
        with explained(target):
            out.flush()
            flush(out.fileno())
