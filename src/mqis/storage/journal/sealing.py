"""The seals of new segments: digests of what lies before, and the server's signature.

The digest of a segment is computed from the bytes as they are written, not from the file at its
end: somebody who changes the file of a running server does not get that change sealed.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from mqis.storage.journal.journal_files import explained
from mqis.wire.journal import SegmentHeader, SegmentSeal
from mqis.wire.journal.segmentheader import NO_DIGEST

_READ_BYTES = 1 << 20


class SealingKey(Protocol):
    """The server's private key, and the identifier of its public half (``security.keyinfo``)."""

    @property
    def key_id(self) -> bytes: ...

    def sign_sha256(self, data: bytes) -> bytes: ...


class Sealer:
    """Computes digests while a journal is written, and seals its headers."""

    def __init__(self, key: SealingKey | None) -> None:
        self._key = key
        self._running = sha256()
        self._flushed = sha256()
        self._previous = SegmentSeal()
        #: The last snapshot that a header named, and its digest.
        self._snapshot = ("", NO_DIGEST)

    def use(self, key: SealingKey) -> None:
        """Seals the headers from now on with another key; any thread may call it."""
        self._key = key

    @property
    def key_id(self) -> bytes:
        """The identifier of the key that seals, zeros without a key."""
        return NO_DIGEST if self._key is None else self._key.key_id

    def restart(self, data: bytes = b"") -> None:
        """Begins a segment whose first bytes are ``data``."""
        self._running = sha256(data)
        self.mark()

    def add(self, data: bytes) -> None:
        self._running.update(data)

    def mark(self) -> None:
        """Remembers that everything up to here is on the disk."""
        self._flushed = self._running.copy()

    def back(self) -> None:
        """Forgets what was added after the last ``mark``."""
        self._running = self._flushed.copy()

    def finish(self, size: int) -> None:
        """Ends the segment; the next header seals it."""
        self._previous = SegmentSeal(self._running.digest(), size)

    def sealed(self, header: SegmentHeader, directory: Path) -> SegmentHeader:
        """The header with a seal, signed if there is a key."""
        if header.snapshot and header.snapshot != self._snapshot[0]:
            self._snapshot = (header.snapshot, file_digest(directory / header.snapshot))
        digest = self._snapshot[1] if header.snapshot else NO_DIGEST
        header = replace(header, seal=replace(self._previous, snapshot_digest=digest))
        key = self._key
        return header if key is None else header.signed_with(key.key_id, key.sign_sha256)


def file_digest(path: Path) -> bytes:
    """The SHA-256 of a file."""
    digest = sha256()
    with explained(path), path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            digest.update(data)
    return digest.digest()
