"""The header of a journal segment, versions 1 to 3 (docs/journal.md).

Version 2 chains the segments. Its seal has the digest of the whole segment before, whose header has
the digest of the one before that, and so on; a signature of the server over the header therefore
covers everything that lies before it. Version 1 has no seal. A segment of version 3 ends with an
index (``wire.journal.index``) when it is sealed; its header is that of version 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct
from struct import error as struct_error
from typing import ClassVar, Self
from zlib import crc32

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

MAGIC = b"MQISJRNL"
UNSEALED_VERSION, SEALED_VERSION, INDEXED_VERSION = 1, 2, 3

#: The fields under the CRC: number, first lsn, server, snapshot lsn, two name lengths, reserved.
_COVERED = Struct("<QQ16sQHHI")
_COVERED_AT = 16
FIXED_SIZE = _COVERED_AT + _COVERED.size
_LENGTH_AT, _LENGTH_SIZE = 10, 2
#: The fields of a seal: digest and size of the segment before, digest of the snapshot, key id.
_SEAL = Struct("<32sQ32s32s")
DIGEST_SIZE = 32
#: Stands for no segment before, no snapshot, and no key.
NO_DIGEST = bytes(DIGEST_SIZE)
#: The length of a signature by the largest RSA key, of 16384 bits.
MAX_SIGNATURE = 2048


@dataclass(frozen=True, slots=True)
class SegmentSeal:
    """The digests of what lies before a segment, and the server's signature over the header."""

    #: SHA-256 and length of the whole segment before, its header included.
    previous_digest: bytes = NO_DIGEST
    previous_size: int = 0
    #: SHA-256 of the snapshot file that the header names.
    snapshot_digest: bytes = NO_DIGEST
    #: SHA-256 of the public key (``wire.security.keyinfo``), and RSA over SHA-256 (PKCS #1 v1.5).
    key_id: bytes = NO_DIGEST
    signature: bytes = b""

    def __post_init__(self) -> None:
        for digest in (self.previous_digest, self.snapshot_digest, self.key_id):
            if len(digest) != DIGEST_SIZE:
                raise ValueError(f"a digest has {DIGEST_SIZE} bytes, not {len(digest)}")
        if len(self.signature) > MAX_SIGNATURE:
            raise ValueError(f"a signature has at most {MAX_SIGNATURE} bytes")
        if bool(self.signature) != self.is_signed:
            raise ValueError("a signature and the key that made it stand together")

    @property
    def is_signed(self) -> bool:
        return self.key_id != NO_DIGEST

    @classmethod
    def of(cls, fixed: bytes, signature: bytes, at: int) -> SegmentSeal:
        previous, size, snapshot, key_id = _SEAL.unpack(fixed)
        try:
            return cls(previous, size, snapshot, key_id, signature)
        except ValueError as error:
            raise WireError(f"the seal of the segment header is wrong: {error}", at) from None

    def fields(self) -> bytes:
        """The fields without the signature, which stands at the end of the header."""
        return _SEAL.pack(
            self.previous_digest, self.previous_size, self.snapshot_digest, self.key_id
        )


@dataclass(frozen=True, slots=True)
class SegmentHeader(Structure):
    """The segment's server, number and first record, and the snapshot that precedes it."""

    server: str
    server_id: Guid
    number: int
    first_lsn: int
    #: The snapshot file beside the segment, or empty. It contains all records up to
    #: ``snapshot_lsn``.
    snapshot: str = ""
    snapshot_lsn: int = 0
    #: None: the header has version 1.
    seal: SegmentSeal | None = None
    #: True if an index is written when the segment is sealed: version 3, which has a seal.
    indexed: bool = False

    NAME: ClassVar[str] = "the segment header"

    def __post_init__(self) -> None:
        if self.indexed and self.seal is None:
            raise ValueError("a segment with an index has a seal")

    @property
    def version(self) -> int:
        if self.seal is None:
            return UNSEALED_VERSION
        return INDEXED_VERSION if self.indexed else SEALED_VERSION

    @property
    def is_signed(self) -> bool:
        return self.seal is not None and self.seal.is_signed

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        at = reader.offset
        version, covered = _checked(reader)
        number, first, server_id, snapshot_lsn, name, snapshot, reserved = _COVERED.unpack_from(
            covered
        )
        names_at = _COVERED.size + (0 if version == UNSEALED_VERSION else _SEAL.size)
        rest_at = names_at + name + snapshot
        unsealed = version == UNSEALED_VERSION
        if rest_at > len(covered) or reserved or (unsealed and rest_at != len(covered)):
            raise WireError("the lengths in the segment header do not add up", at)
        seal = None
        if not unsealed:
            seal = SegmentSeal.of(covered[_COVERED.size : names_at], covered[rest_at:], at)
        return cls(
            _text(covered[names_at : names_at + name], at),
            Guid(server_id),
            number,
            first,
            _text(covered[names_at + name : rest_at], at),
            snapshot_lsn,
            seal,
            version == INDEXED_VERSION,
        )

    def encode(self, writer: Writer) -> None:
        covered = self._fields() + (b"" if self.seal is None else self.seal.signature)
        length = _COVERED_AT + len(covered)
        if length >= 1 << 8 * _LENGTH_SIZE:
            raise ValueError(f"a segment header of {length} bytes does not fit in 16 bits")
        writer.bytes(MAGIC)
        writer.u16(self.version)
        writer.u16(length)
        writer.u32(crc32(covered))
        writer.bytes(covered)

    def signed_bytes(self) -> bytes:
        """The bytes under the signature: magic, version, and all from offset 16 up to it."""
        return MAGIC + self.version.to_bytes(2, "little") + self._fields()

    def signed_with(self, key_id: bytes, sign: Callable[[bytes], bytes]) -> SegmentHeader:
        """The header with the signature that ``sign`` makes; it has to have a seal."""
        if self.seal is None:
            raise ValueError("only a header with a seal can be signed")
        # The signature does not cover itself, so any will do until it is there.
        unsigned = replace(self.seal, key_id=key_id, signature=b"?")
        signature = sign(replace(self, seal=unsigned).signed_bytes())
        return replace(self, seal=replace(unsigned, signature=signature))

    def _fields(self) -> bytes:
        names = [n.encode("utf-8", "surrogatepass") for n in (self.server, self.snapshot)]
        try:
            fixed = _COVERED.pack(
                self.number,
                self.first_lsn,
                self.server_id.raw,
                self.snapshot_lsn,
                *map(len, names),
                0,
            )
            sealed = b"" if self.seal is None else self.seal.fields()
        except struct_error as error:
            raise ValueError(f"a field of {self!r} does not fit: {error}") from None
        return b"".join((fixed, sealed, *names))


def segment_header(data: bytes) -> tuple[SegmentHeader, int]:
    """Decodes the header of a segment; returns it with the offset of the first record."""
    reader = Reader(data)
    return SegmentHeader.decode(reader), reader.offset


def header_length(start: bytes) -> int:
    """The length that a header states in its first bytes; nothing else of it is looked at."""
    return int.from_bytes(start[_LENGTH_AT : _LENGTH_AT + _LENGTH_SIZE], "little")


def is_unfinished_header(start: bytes, size: int) -> bool:
    """Returns whether a file of ``size`` bytes ends within its header, or has only zeros."""
    return not start.strip(b"\0") or size < max(FIXED_SIZE, header_length(start))


def _checked(reader: Reader) -> tuple[int, bytes]:
    """The version, and the bytes that the checksum covers."""
    at = reader.offset
    if reader.bytes(8, "the segment's magic") != MAGIC:
        raise WireError("this is not a journal segment", at)
    version, length, crc = reader.u16(), reader.u16(), reader.u32()
    if not UNSEALED_VERSION <= version <= INDEXED_VERSION:
        known = f"{UNSEALED_VERSION} to {INDEXED_VERSION}"
        reason = f"the journal segment has format version {version}, mqis reads {known}"
        raise WireError(reason, at + 8)
    smallest = FIXED_SIZE + (0 if version == UNSEALED_VERSION else _SEAL.size)
    if length < smallest:
        raise WireError(f"{length} is not a possible length of a segment header", at + 10)
    covered = reader.bytes(length - _COVERED_AT, "the segment header")
    if crc32(covered) != crc:
        raise WireError("the checksum of the segment header does not match", at)
    return version, covered


def _text(raw: bytes, at: int) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise WireError("a name in the segment header is not UTF-8", at) from None
