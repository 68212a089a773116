"""Digests that servers sign, against bytes written out and hashed by hashlib."""

from __future__ import annotations

from hashlib import md5

import pytest

from mqis.protocol.directory import signature
from mqis.protocol.security.rsa import encoded_digest, sign_md5, verify_md5
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import BASE_PROVIDER, PublicKeys, RsaPublicKey
from mqis.wire.propvariant import PropVariant, VarType
from tests.protocol.directory.world import blob, guid, guids, number, octets, text, texts, ui4
from tests.wire.mqds import vectors

GUID = Guid(bytes(range(16)))


def _md5(hexadecimal: str) -> bytes:
    return md5(bytes.fromhex(hexadecimal), usedforsecurity=False).digest()


@pytest.mark.req("MQDS-3.1.4.7-10")
@pytest.mark.parametrize(
    ("variant", "value"),
    [
        (PropVariant(VarType.UI1, 7), "07"),
        (PropVariant(VarType.I1, -1), "ff"),
        (PropVariant(VarType.I2, -2), "feff"),
        (PropVariant(VarType.UI2, 0x0102), "0201"),
        (PropVariant(VarType.I4, -2), "feffffff"),
        (ui4(0x01020304), "04030201"),
        (PropVariant(VarType.I8, -2), "feffffffffffffff"),
        (PropVariant(VarType.UI8, 1), "0100000000000000"),
        (PropVariant(VarType.BOOL, True), "ffff"),
        (guid(GUID), "000102030405060708090a0b0c0d0e0f"),
        (blob(b"\1\2\3"), "010203"),  # no length
        (octets(b"\1\2\3"), "010203"),
        (text("aß"), "6100df00"),  # no terminator
        (texts("a", "b"), "61006200"),
        (guids(GUID, GUID), "000102030405060708090a0b0c0d0e0f" * 2),
        (PropVariant(VarType.VECTOR_UI2, (1, 2)), "01000200"),
        (PropVariant(VarType.VECTOR_UI4, (1, 2)), "0100000002000000"),
        (PropVariant(VarType.VECTOR_I4, (-1,)), "ffffffff"),
        (PropVariant(VarType.VECTOR_UI8, (1,)), "0100000000000000"),
        (PropVariant(VarType.VECTOR_VARIANT, (ui4(1), text("a"))), "010000006100"),
        (PropVariant(VarType.NULL, None), ""),
        (PropVariant(VarType.EMPTY, None), ""),
    ],
)
def test_values_are_hashed_bare(variant: PropVariant, value: str) -> None:
    assert signature.value_bytes(variant) == bytes.fromhex(value)
    assert signature.properties_digest([103], [variant]) == _md5("01000000 67000000" + value)


@pytest.mark.req("MQDS-3.1.4.7-10")
def test_properties() -> None:
    """Their number, then identifier and value of each."""
    digest = signature.properties_digest([101, 105], [guid(GUID), ui4(9)])
    assert digest == _md5("02000000 65000000 000102030405060708090a0b0c0d0e0f 69000000 09000000")
    assert signature.properties_digest([], []) == _md5("00000000")


@pytest.mark.req("MQDS-3.1.4.11-12")
def test_security() -> None:
    assert signature.security_digest(b"\1\2\0\0") == _md5("01000000 01020000")


@pytest.mark.req("MQDS-3.1.4.20-04")
def test_servers() -> None:
    """Two values, no identifiers, no terminator."""
    assert signature.servers_digest(3, "A;\\") == _md5("02000000 03000000 41003b005c00")


@pytest.mark.req("MQDS-3.3.4.1-04")
def test_blobs() -> None:
    expected = _md5("01000000 41000000 10000000 000102030405060708090a0b0c0d0e0f")
    assert signature.blob_digest(GUID.raw) == expected


# --- the callbacks' vectors -----------------------------------------------------------------------

DIGEST = vectors.octets("MD5(challenge)")
MACHINE_DIGEST = vectors.octets("SignProc digest")
KEY = RsaPublicKey.of(vectors.MODULUS, 65537)


@pytest.mark.req("MQDS-3.1.4.15-03")
def test_challenge_vector() -> None:
    assert signature.challenge_digest(vectors.CHALLENGE) == DIGEST
    signed = sign_md5(vectors.MODULUS, vectors.PRIVATE_EXPONENT, DIGEST)
    assert signed == vectors.SIGNATURE
    assert verify_md5(KEY, DIGEST, signed)


@pytest.mark.req("MQDS-3.1.4.16-02")
def test_machine_properties_vector() -> None:
    properties = [ui4(1000), text("NT")]
    digest = signature.machine_properties_digest(vectors.CHALLENGE, [214, 216], properties)
    assert digest == MACHINE_DIGEST
    signed = sign_md5(vectors.MODULUS, vectors.PRIVATE_EXPONENT, digest)
    assert signed == vectors.MACHINE_SIGNATURE
    assert verify_md5(KEY, digest, signed)


@pytest.mark.parametrize("blob", [vectors.PUBLIC_KEYS, vectors.PUBLIC_KEYS_KEYX])
def test_the_key_as_machines_hold_it(blob: bytes) -> None:
    """Both algorithm identifiers are found in the field, and either key verifies."""
    key = PublicKeys.from_bytes(blob).for_provider(BASE_PROVIDER)
    assert key is not None
    assert verify_md5(key.rsa(), DIGEST, vectors.SIGNATURE)
    assert PublicKeys.from_bytes(blob).to_bytes() == blob


def test_every_flipped_bit_breaks_a_signature() -> None:
    for bit in range(8 * len(vectors.SIGNATURE)):
        broken = bytearray(vectors.SIGNATURE)
        broken[bit // 8] ^= 1 << bit % 8
        assert not verify_md5(KEY, DIGEST, bytes(broken))
    for bit in range(8 * len(DIGEST)):
        other = bytearray(DIGEST)
        other[bit // 8] ^= 1 << bit % 8
        assert not verify_md5(KEY, bytes(other), vectors.SIGNATURE)


@pytest.mark.parametrize("wrong", [b"", vectors.SIGNATURE[:-1], vectors.SIGNATURE + b"\0"])
def test_signatures_have_the_length_of_the_modulus(wrong: bytes) -> None:
    assert not verify_md5(KEY, DIGEST, wrong)


def test_keys_that_cannot_verify_anything() -> None:
    assert not verify_md5(RsaPublicKey.of(0xFFFF, 3), DIGEST, b"\1\2")
    nothing = RsaPublicKey(KEY.key_algorithm, 3, 0, KEY.bit_length)
    assert not verify_md5(nothing, DIGEST, bytes(64))
    with pytest.raises(ValueError, match="too small"):
        encoded_digest(DIGEST, 44)


def test_the_same_signature_in_other_clothes() -> None:
    """A multiple of the modulus more is the same number to RSA, and no signature."""
    small = RsaPublicKey(KEY.key_algorithm, 65537, vectors.MODULUS, 520)
    longer = int.from_bytes(vectors.SIGNATURE, "little") + vectors.MODULUS
    assert not verify_md5(small, DIGEST, longer.to_bytes(65, "little"))


def test_another_key_does_not_verify() -> None:
    other = RsaPublicKey.of(vectors.MODULUS - 2, 65537)
    assert not verify_md5(other, DIGEST, vectors.SIGNATURE)
    assert not verify_md5(KEY, number(1).raw, vectors.SIGNATURE)
