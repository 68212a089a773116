"""The file of a backup: a gzipped tar whose first member is the manifest.

It is written under another name, read again from the disk, and only then gets its own: a file that
has its name is whole. Digests find what a disk or a copy has damaged. They are no signature: who
can write the file can write another manifest too.
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
from typing import IO

from mqis.services.backup.manifest import BackupError, Content, FileEntry, Manifest

MODE = 0o600
_MANIFEST, _DIGEST = "manifest.json", "manifest.sha256"
_BLOCK = 1 << 20
#: A manifest of an enterprise with a hundred thousand sites fits.
_MAX_SMALL = 64 << 20
_DAMAGE = (tarfile.TarError, EOFError, zlib.error)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What the system says of writing here, as our error."""
    try:
        yield
    except OSError as error:
        hint = "; free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        reason = error.strerror or error
        raise BackupError(f"{path}: cannot be written: {reason}{hint}") from error


def digest_of(path: Path) -> FileEntry:
    """Size and digest under the file's own name."""
    sha, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            sha.update(block)
            size += len(block)
    return FileEntry(path.name, size, sha.hexdigest())


def write_archive(path: Path, manifest: Manifest, files: Mapping[str, Path]) -> None:
    """All of it, on the disk when this returns; nobody else may read it."""
    data = manifest.to_bytes()
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
    with os.fdopen(number, "wb") as out:
        os.fchmod(out.fileno(), MODE)
        with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar:
            _add(tar, _MANIFEST, len(data), BytesIO(data))
            digest = hashlib.sha256(data).hexdigest().encode()
            _add(tar, _DIGEST, len(digest), BytesIO(digest))
            for entry in manifest.files:
                with files[entry.name].open("rb") as file:
                    _add(tar, entry.name, entry.size, file)
        out.flush()
        os.fsync(out.fileno())


def _add(tar: tarfile.TarFile, name: str, size: int, file: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, MODE
    tar.addfile(member, file)


# --- reading --------------------------------------------------------------------------------------


class Archive:
    """A backup on disk; everything that is read from it has the digest that its manifest says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = self._manifest()

    def verify(self) -> dict[str, bytes]:
        """Read all of it; what is small, which the store is not."""
        small: dict[str, bytes] = {}
        with self._opened() as tar:
            for entry, file in self._members(tar):
                checked = _Checked(entry, file)
                if entry.name == Content.STORE:
                    for _ in checked:
                        pass
                else:
                    small[entry.name] = b"".join(checked)
            if tar.next() is not None:
                raise self._damaged("there is more in it than it says")
            while tar.fileobj is not None and tar.fileobj.read(_BLOCK):
                pass  # to where gzip's own checksum is
        return small

    def extract(self, to: Mapping[str, Path]) -> None:
        """Write the files that ``to`` names, each with mode 0600 and on the disk."""
        with self._opened() as tar:
            for entry, file in self._members(tar):
                if entry.name in to:
                    _write(to[entry.name], _Checked(entry, file))

    def _manifest(self) -> Manifest:
        with self._opened() as tar:
            data, said = (self._small(tar, name) for name in (_MANIFEST, _DIGEST))
        if hashlib.sha256(data).hexdigest().encode() != said:
            raise self._damaged("the manifest is not the one that was written")
        try:
            manifest = Manifest.from_bytes(data)
        except BackupError as error:
            raise BackupError(f"{self.path}: {error}") from error
        names = [entry.name for entry in manifest.files]
        if len(set(names)) != len(names) or not set(names) <= set(Content):
            raise self._damaged(f"it lists {', '.join(names)}")
        return manifest

    def _small(self, tar: tarfile.TarFile, name: str) -> bytes:
        member = tar.next()
        if member is None or member.name != name or member.size > _MAX_SMALL:
            raise self._damaged(f"{name} is not where it belongs")
        file = tar.extractfile(member)
        return b"" if file is None else file.read()

    def _members(self, tar: tarfile.TarFile) -> Iterator[tuple[FileEntry, IO[bytes]]]:
        """The files in the order of the manifest; nothing else is looked at."""
        for name in (_MANIFEST, _DIGEST):
            self._small(tar, name)
        for entry in self.manifest.files:
            member = tar.next()
            file = None if member is None else tar.extractfile(member)
            if member is None or file is None or member.name != entry.name:
                raise self._damaged(f"{entry.name} is missing")
            yield entry, file

    @contextmanager
    def _opened(self) -> Iterator[tarfile.TarFile]:
        try:
            with tarfile.open(self.path, "r:gz") as tar:
                yield tar
        except _DAMAGE as error:
            raise self._damaged(str(error) or "it ends too early") from error
        except OSError as error:
            if error.errno is None:  # gzip's
                raise self._damaged(str(error)) from error
            raise BackupError(f"{self.path}: {error.strerror}") from error
        except _WrongDigest as error:
            raise self._damaged(f"{error} is not what was written") from error

    def _damaged(self, reason: str) -> BackupError:
        return BackupError(f"{self.path}: not a whole backup: {reason}; use another one")


def _write(target: Path, blocks: Iterable[bytes]) -> None:
    with explained(target):
        number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
    with os.fdopen(number, "wb") as out:
        os.fchmod(out.fileno(), MODE)
        for block in blocks:
            with explained(target):
                out.write(block)
        with explained(target):
            out.flush()
            os.fsync(out.fileno())


class _WrongDigest(Exception):
    """A file of an archive, by its name."""


class _Checked:
    """The blocks of one file; at the end it is known whether they are the right ones."""

    def __init__(self, entry: FileEntry, file: IO[bytes]) -> None:
        self._entry = entry
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        sha, size = hashlib.sha256(), 0
        while block := self._file.read(_BLOCK):
            size += len(block)
            if size > self._entry.size:
                break
            sha.update(block)
            yield block
        if size != self._entry.size or sha.hexdigest() != self._entry.sha256:
            raise _WrongDigest(self._entry.name)
