"""The header of version 2: its seal, its signature, and headers of version 1 beside it."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import SegmentHeader, SegmentSeal, segment_header
from mqis.wire.journal.segmentheader import MAX_SIGNATURE, NO_DIGEST
from tests.strategies.journal import guids, texts

SEAL = SegmentSeal(b"p" * 32, 4711, b"n" * 32, b"k" * 32, b"signature")
HEADER = SegmentHeader("PSC1", Guid(b"s" * 16), 7, 1001, "snapshot-1.jsonl", 1000, SEAL)
FIELDS = (
    bytes.fromhex(
        "0700000000000000 e903000000000000" + "73" * 16 + "e803000000000000 0400 1000 00000000"
    )
    + b"p" * 32
    + (4711).to_bytes(8, "little")
    + b"n" * 32
    + b"k" * 32
    + b"PSC1snapshot-1.jsonl"
)


def header_bytes(covered: bytes, version: int = 2) -> bytes:
    """A header around these bytes, with the right length and checksum."""
    length = (16 + len(covered)).to_bytes(2, "little")
    return (
        b"MQISJRNL"
        + version.to_bytes(2, "little")
        + length
        + crc32(covered).to_bytes(4, "little")
        + covered
    )


VECTOR = header_bytes(FIELDS + b"signature")


def test_vector_both_ways() -> None:
    assert HEADER.to_bytes() == VECTOR
    assert segment_header(VECTOR + b"records") == (HEADER, len(VECTOR))
    assert HEADER.version == 2
    assert HEADER.is_signed


def test_a_header_without_a_seal_has_version_1() -> None:
    data = replace(HEADER, seal=None).to_bytes()
    assert data[8:10] == b"\1\0"
    header, _ = segment_header(data)
    assert (header.version, header.seal, header.is_signed) == (1, None, False)


digests = st.binary(min_size=32, max_size=32)
signatures = st.tuples(digests.filter(any), st.binary(min_size=1, max_size=MAX_SIGNATURE))


unsigned = st.builds(SegmentSeal, digests, st.integers(0, 2**64 - 1), digests)


@given(unsigned, st.none() | signatures, texts, guids)
def test_round_trip(
    seal: SegmentSeal, signature: tuple[bytes, bytes] | None, name: str, server: Guid
) -> None:
    if signature is not None:
        seal = replace(seal, key_id=signature[0], signature=signature[1])
    for indexed in (False, True):
        header = SegmentHeader(name, server, 1, 2, name, 3, seal, indexed)
        assert header.version == 2 + indexed
        assert SegmentHeader.from_bytes(header.to_bytes()) == header


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (header_bytes(FIELDS + b"signature", 4), "format version 4, mqis reads 1 to 3"),
        (header_bytes(FIELDS[:-30]), "not a possible length"),
        (header_bytes(FIELDS[:-1]), "do not add up"),
        (header_bytes(FIELDS), "a signature and the key that made it"),
        (header_bytes(FIELDS + bytes(MAX_SIGNATURE + 1)), "a signature has at most"),
        (header_bytes(FIELDS + b"signature", 1), "do not add up"),
        (VECTOR[:-1] + b"E", "checksum"),
    ],
)
def test_damage(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        segment_header(data)


@given(st.binary(max_size=100), st.integers(0, len(VECTOR)))
def test_garbage_raises_only_wire_error(noise: bytes, at: int) -> None:
    for data in (VECTOR[:at] + noise, header_bytes((FIELDS[:at] + noise)[:200])):
        offset = 0
        try:
            segment_header(data)
        except WireError as error:
            offset = error.offset
        assert 0 <= offset <= len(data)


def test_a_seal_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        SegmentSeal(b"short")
    with pytest.raises(ValueError, match="stand together"):
        SegmentSeal(key_id=b"k" * 32)
    with pytest.raises(ValueError, match="fit"):
        replace(HEADER, seal=SegmentSeal(NO_DIGEST, 1 << 64)).to_bytes()
    with pytest.raises(ValueError, match="fit"):
        replace(HEADER, server="x" * 65_500).to_bytes()


def test_the_signature_covers_everything_but_itself() -> None:
    seen: list[bytes] = []

    def sign(data: bytes) -> bytes:
        seen.append(data)
        return b"another"

    signed = HEADER.signed_with(b"K" * 32, sign)
    assert signed.seal == replace(SEAL, key_id=b"K" * 32, signature=b"another")
    assert seen == [b"MQISJRNL\2\0" + FIELDS.replace(b"k" * 32, b"K" * 32)]
    assert signed.signed_bytes() == seen[0], "whatever the length of the signature"
    with pytest.raises(ValueError, match="with a seal"):
        replace(HEADER, seal=None).signed_with(b"K" * 32, sign)
