"""Public keys as OpenSSL reads them, compared with the library's encoding."""

from __future__ import annotations

from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.security.keyinfo import key_id, key_info, key_pem

FORM = PublicFormat.SubjectPublicKeyInfo


@pytest.mark.parametrize("bits", [1024, 1031, 2047, 2048, 4096])
@pytest.mark.parametrize("exponent", [3, 65537, 0x80000001])
def test_the_encoding_is_that_of_the_library(bits: int, exponent: int) -> None:
    modulus = (1 << bits) - 5
    library = RSAPublicNumbers(exponent, modulus).public_key()
    key = RsaPublicKey.of(modulus, exponent)
    assert key_info(key) == library.public_bytes(Encoding.DER, FORM)
    assert key_pem(key) == library.public_bytes(Encoding.PEM, FORM).decode()
    assert key_id(key) == sha256(key_info(key)).digest()
