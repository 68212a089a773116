"""The certificates of a user: MQUSERSIGNCERTS, MQUSERSIGNCERT."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import certificates
from mqis.wire.mqds.certificates import (
    UserSignCert,
    UserSignCerts,
    digest_of,
    is_bare_certificate,
)
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer
from tests.strategies.mqds import user_sign_cert_lists, user_sign_certs

IDENTIFIER = Guid.parse("03020100-0504-0706-0809-0a0b0c0d0e0f")
# MD5 of "abc" (RFC 1321 A.5), a GUID, length 3, "abc"
ENTRY = (
    bytes.fromhex("900150983cd24fb0d6963f7d28e17f72")
    + bytes(range(16))
    + bytes.fromhex("03000000")
    + b"abc"
)
ENTRY_VALUE = UserSignCert.of(b"abc", IDENTIFIER)


@pytest.fixture(scope="module")
def der() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "user")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(Encoding.DER)


def test_layout_of_an_entry() -> None:
    reader = Reader(ENTRY)
    assert UserSignCert.decode(reader) == ENTRY_VALUE
    reader.expect_end("the entry")
    writer = Writer()
    ENTRY_VALUE.encode(writer)
    assert writer.getvalue() == ENTRY


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (bytes(4), UserSignCerts(())),
        (b"\x01\0\0\0" + ENTRY, UserSignCerts((ENTRY_VALUE,))),
        (b"\x02\0\0\0" + ENTRY + ENTRY, UserSignCerts((ENTRY_VALUE, ENTRY_VALUE))),
    ],
)
def test_layout_of_a_list(data: bytes, value: UserSignCerts) -> None:
    assert UserSignCerts.from_bytes(data) == value
    assert value.to_bytes() == data


def test_a_digest_that_does_not_match_is_kept_and_told() -> None:
    assert ENTRY_VALUE.digest_matches
    wrong = UserSignCert(bytes(16), IDENTIFIER, b"abc")
    read = UserSignCerts.from_bytes(UserSignCerts((wrong,)).to_bytes()).certificates[0]
    assert read.digest == bytes(16)
    assert not read.digest_matches


@pytest.mark.parametrize("size", [0, 15, 17])
def test_a_digest_has_16_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        UserSignCert(bytes(size), IDENTIFIER, b"abc")


def test_wrap_makes_a_list_of_one(der: bytes) -> None:
    wrapped = UserSignCerts.wrap(der, IDENTIFIER)
    assert wrapped.to_bytes() == (
        b"\x01\0\0\0" + digest_of(der) + IDENTIFIER.raw + len(der).to_bytes(4, "little") + der
    )


class TestProperty:
    def test_a_bare_certificate_is_wrapped(self, der: bytes) -> None:
        assert der[0] == 0x30
        assert UserSignCerts.from_property(der, IDENTIFIER) == UserSignCerts.wrap(der, IDENTIFIER)

    def test_a_list_is_taken_as_it_is(self, der: bytes) -> None:
        stored = UserSignCerts.wrap(der, IDENTIFIER)
        assert UserSignCerts.from_property(stored.to_bytes(), Guid.NULL) == stored

    def test_a_list_of_48_begins_as_a_certificate_does(self) -> None:
        stored = UserSignCerts((ENTRY_VALUE,) * 48)
        data = stored.to_bytes()
        assert data[0] == 0x30
        assert UserSignCerts.from_property(data, Guid.NULL) == stored
        for size in range(len(data)):
            with pytest.raises(WireError):
                UserSignCerts.from_property(data[:size], Guid.NULL)

    def test_a_certificate_that_is_cut_or_followed_by_something(self, der: bytes) -> None:
        for data in (der[:-1], der + b"\0", b""):
            with pytest.raises(WireError):
                UserSignCerts.from_property(data, IDENTIFIER)

    def test_a_certificate_over_the_limit(self) -> None:
        size = certificates.MAX_CERTIFICATE_BYTES
        with pytest.raises(WireError):
            UserSignCerts.from_property(b"\x30\x83" + size.to_bytes(3) + b"0" * size, IDENTIFIER)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"\x30\x020b", True, id="short"),
        pytest.param(b"\x30\x81\x80" + b"0" * 0x80, True, id="one-byte-length"),
        pytest.param(b"\x30\x82\x01\x00" + b"0" * 0x100, True, id="two-byte-length"),
        pytest.param(b"\x30\x00", False, id="empty"),
        pytest.param(b"\x30\x02\x02b", False, id="begins-with-an-integer"),
        pytest.param(b"\x31\x020b", False, id="set"),
        pytest.param(b"\x30\x030b", False, id="cut"),
        pytest.param(b"\x30\x010b", False, id="longer"),
        pytest.param(b"\x30\x80", False, id="indefinite"),
        pytest.param(b"\x30\x800\0\0", False, id="indefinite-with-end"),
        pytest.param(b"\x30\x81\x020b", False, id="not-shortest"),
        pytest.param(b"\x30\x82\x00\x80" + b"0" * 0x80, False, id="leading-zero"),
        pytest.param(b"\x30\x82\x01", False, id="cut-length"),
        pytest.param(b"\x30", False, id="no-length"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_what_counts_as_a_bare_certificate(data: bytes, expected: bool) -> None:
    assert is_bare_certificate(data) is expected


def test_count_is_refused_before_an_entry_is_read() -> None:
    count = certificates.MAX_CERTIFICATES + 1
    data = count.to_bytes(4, "little") + bytes(UserSignCert.SMALLEST * count)
    with pytest.raises(WireError, match="1025 items, at most 1024") as caught:
        UserSignCerts.from_bytes(data)
    assert caught.value.offset == 0
    with pytest.raises(WireError, match="2 items do not fit"):
        UserSignCerts.from_bytes(b"\x02\0\0\0" + bytes(2 * UserSignCert.SMALLEST - 1))
    with pytest.raises(ValueError, match="at most 1024 certificates"):
        UserSignCerts((ENTRY_VALUE,) * count)


def test_certificate_length_over_the_limit() -> None:
    size = certificates.MAX_CERTIFICATE_BYTES + 1
    data = bytes(32) + size.to_bytes(4, "little") + bytes(size)
    with pytest.raises(WireError, match="CertificateLength 1048577") as caught:
        UserSignCert.decode(Reader(data))
    assert caught.value.offset == 32
    with pytest.raises(ValueError, match="at most 1048576 bytes"):
        UserSignCert.of(bytes(size), IDENTIFIER)


def test_bytes_behind_the_list() -> None:
    with pytest.raises(WireError, match="1 bytes after the end of MQUSERSIGNCERTS"):
        UserSignCerts.from_bytes(b"\x01\0\0\0" + ENTRY + b"\0")


@given(user_sign_cert_lists())
def test_round_trip(value: UserSignCerts) -> None:
    assert UserSignCerts.from_bytes(value.to_bytes()) == value


@given(user_sign_certs())
def test_round_trip_of_an_entry(value: UserSignCert) -> None:
    writer = Writer()
    value.encode(writer)
    assert UserSignCert.decode(Reader(writer.getvalue())) == value


@given(st.binary(max_size=120))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    try:
        value = UserSignCerts.from_bytes(data)
    except WireError:
        return
    assert value.to_bytes() == data


@given(st.binary(max_size=80).map(lambda tail: b"\x30" + tail) | st.binary(max_size=80))
def test_any_property_value_decodes_or_raises_wire_error(data: bytes) -> None:
    try:
        value = UserSignCerts.from_property(data, IDENTIFIER)
    except WireError:
        return
    assert data in (value.to_bytes(), *(entry.certificate for entry in value.certificates))


@given(user_sign_cert_lists())
def test_every_proper_prefix_is_refused(value: UserSignCerts) -> None:
    data = value.to_bytes()
    for size in range(len(data)):
        with pytest.raises(WireError):
            UserSignCerts.from_bytes(data[:size])
