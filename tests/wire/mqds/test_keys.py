"""Public keys: RSAPUBKEY, BLOBHEADER, MQDS_PublicKey, MQDSPUBLICKEY, MQDSPUBLICKEYS."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.mqds import keys
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    ENHANCED_AES_PROVIDER,
    ENHANCED_PROVIDER,
    KeyAlgorithm,
    MqdsPublicKey,
    ProviderType,
    PublicKey,
    PublicKeys,
    RsaPublicKey,
    key_list,
)
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer
from tests.strategies.mqds import (
    mqds_public_keys,
    public_key_lists,
    public_keys,
    rsa_public_keys,
)

HEADER = bytes.fromhex("06 02 0000 00a40000")
# magic "RSA1", bitLen 32, pubExp 65537, modulus 0x89abcdef least significant byte first
KEY = bytes.fromhex("52534131 20000000 01000100 efcdab89")
BLOB = HEADER + KEY
VALUE = RsaPublicKey(KeyAlgorithm.CALG_RSA_KEYX, 65537, 0x89ABCDEF, 32)

# An RSA key of 512 bits, the size that the base provider makes.
MODULUS_512 = int(
    "e0d16332ecab969c3d54f8b7f15724af7422e6bad31a2ee00c698e04e3b13508"
    "db92fa01a4b6c25536311e6fb2ebacb707773fe6db2c57bda49336ffef74cbb3",
    16,
)
BLOB_512 = bytes.fromhex(
    "06020000 00240000 52534131 00020000 01000100"
    "b3cb74efff3693a4bd572cdbe63f7707b7acebb26f1e313655c2b6a401fa92db"
    "0835b1e3048e690ce02e1ad3bae62274af2457f1b7f8543d9c96abec3263d1e0"
)


def changed(data: bytes, place: int, value: int) -> bytes:
    return data[:place] + bytes([value]) + data[place + 1 :]


class TestRsaPublicKey:
    @pytest.mark.req("MQDS-2.2.18-01", "MQDS-2.2.19-01")
    @pytest.mark.parametrize(
        ("data", "value"),
        [
            (BLOB, VALUE),
            (BLOB_512, RsaPublicKey(KeyAlgorithm.CALG_RSA_SIGN, 65537, MODULUS_512, 512)),
        ],
    )
    def test_layout(self, data: bytes, value: RsaPublicKey) -> None:
        assert RsaPublicKey.from_bytes(data) == value
        assert value.to_bytes() == data
        assert len(data) == 8 + 12 + value.bit_length // 8

    @pytest.mark.req("MQDS-2.2.19-01")
    @pytest.mark.parametrize(
        ("algorithm", "digits"),
        [(KeyAlgorithm.CALG_RSA_KEYX, "00a40000"), (KeyAlgorithm.CALG_RSA_SIGN, "00240000")],
    )
    def test_header(self, algorithm: KeyAlgorithm, digits: str) -> None:
        data = RsaPublicKey(algorithm, 65537, 0x89ABCDEF, 32).to_bytes()
        assert data[:8] == bytes.fromhex("06020000" + digits)
        assert RsaPublicKey.from_bytes(data).key_algorithm is algorithm

    @pytest.mark.req("MQDS-2.2.18-02")
    def test_modulus_begins_with_its_least_significant_byte(self) -> None:
        data = RsaPublicKey(KeyAlgorithm.CALG_RSA_KEYX, 3, 0x0102, 32).to_bytes()
        assert data[20:] == b"\x02\x01\x00\x00"
        assert RsaPublicKey.from_bytes(data).modulus == 0x0102

    def test_bit_length_of_a_made_key_is_that_of_whole_bytes(self) -> None:
        assert RsaPublicKey.of(0x1FF, 3).bit_length == 16
        assert RsaPublicKey.of(0xFF, 3).bit_length == 8
        assert RsaPublicKey.of(MODULUS_512, 65537).bit_length == 512

    @pytest.mark.req("MQDS-2.2.20-02")
    @pytest.mark.parametrize(
        ("place", "value", "offset"),
        [
            pytest.param(0, 0x07, 0, id="type"),
            pytest.param(1, 0x03, 1, id="version"),
            pytest.param(8, 0x51, 8, id="magic", marks=pytest.mark.req("MQDS-2.2.18-01")),
            pytest.param(11, 0x32, 8, id="magic-of-a-private-key"),
        ],
    )
    def test_wrong_type_version_or_magic(self, place: int, value: int, offset: int) -> None:
        with pytest.raises(WireError) as caught:
            RsaPublicKey.from_bytes(changed(BLOB, place, value))
        assert caught.value.offset == offset

    @pytest.mark.req("MQDS-2.2.19-01")
    @pytest.mark.parametrize(
        ("place", "value", "offset"),
        [
            pytest.param(2, 1, 2, id="reserved-low"),
            pytest.param(3, 1, 2, id="reserved-high"),
            pytest.param(4, 1, 4, id="algorithm-low"),
            pytest.param(5, 0x66, 4, id="algorithm"),
            pytest.param(7, 1, 4, id="algorithm-high"),
        ],
    )
    def test_wrong_reserved_or_algorithm(self, place: int, value: int, offset: int) -> None:
        with pytest.raises(WireError) as caught:
            RsaPublicKey.from_bytes(changed(BLOB, place, value))
        assert caught.value.offset == offset

    @pytest.mark.parametrize("bits", [0, 1, 31, 33, keys.MAX_MODULUS_BITS + 8, 0xFFFFFFF8])
    def test_bit_length_out_of_bounds(self, bits: int) -> None:
        data = BLOB[:12] + bits.to_bytes(4, "little") + BLOB[16:] + bytes(8192)
        with pytest.raises(WireError, match=f"bitLen {bits} ") as caught:
            RsaPublicKey.decode(Reader(data))
        assert caught.value.offset == 12

    def test_the_largest_modulus(self) -> None:
        bits = keys.MAX_MODULUS_BITS
        value = RsaPublicKey(KeyAlgorithm.CALG_RSA_KEYX, 3, (1 << bits) - 1, bits)
        assert RsaPublicKey.from_bytes(value.to_bytes()) == value

    @pytest.mark.parametrize(
        ("exponent", "modulus", "bits"),
        [
            (-1, 1, 8),
            (1 << 32, 1, 8),
            (3, -1, 8),
            (3, 256, 8),
            (3, 1, 0),
            (3, 1, 12),
            (3, 1, keys.MAX_MODULUS_BITS + 8),
        ],
    )
    def test_numbers_that_the_fields_cannot_hold(
        self, exponent: int, modulus: int, bits: int
    ) -> None:
        with pytest.raises(ValueError, match="bits"):
            RsaPublicKey(KeyAlgorithm.CALG_RSA_KEYX, exponent, modulus, bits)

    def test_bytes_behind_the_key(self) -> None:
        with pytest.raises(WireError, match="1 bytes after the end of the public key"):
            RsaPublicKey.from_bytes(BLOB + b"\0")

    @pytest.mark.req("MQDS-2.2.18-01", "MQDS-2.2.18-02")
    @pytest.mark.parametrize("bits", [1024, 2048])
    def test_a_key_of_another_library_keeps_its_numbers(self, bits: int) -> None:
        made = rsa.generate_private_key(public_exponent=65537, key_size=bits).public_key()
        numbers = made.public_numbers()
        data = RsaPublicKey.of(numbers.n, numbers.e).to_bytes()
        assert len(data) == 20 + bits // 8
        read = RsaPublicKey.from_bytes(data)
        again = rsa.RSAPublicNumbers(read.exponent, read.modulus).public_key()
        assert read.bit_length == bits
        assert again == made

    @given(rsa_public_keys())
    def test_round_trip(self, value: RsaPublicKey) -> None:
        assert RsaPublicKey.from_bytes(value.to_bytes()) == value


class TestMqdsPublicKey:
    @pytest.mark.req("MQDS-2.2.20-01")
    def test_layout(self) -> None:
        data = bytes.fromhex("18000000") + BLOB
        assert len(BLOB) == 0x18
        assert MqdsPublicKey.from_bytes(data) == MqdsPublicKey(VALUE)
        assert MqdsPublicKey(VALUE).to_bytes() == data

    @pytest.mark.req("MQDS-2.2.20-02")
    @pytest.mark.parametrize(
        ("size", "tail"),
        [
            pytest.param(0x18, b"\0", id="more-bytes-than-told"),
            pytest.param(0x19, b"", id="fewer-bytes-than-told"),
            pytest.param(0x19, b"\0", id="longer-than-the-key"),
            pytest.param(0x17, b"", id="shorter-than-the-key"),
            pytest.param(0x1C, b"", id="counts-itself"),
            pytest.param(0x10, b"", id="counts-the-key-without-header"),
            pytest.param(0, b"", id="zero"),
            pytest.param(0xFFFFFFFF, b"", id="huge"),
        ],
    )
    def test_length_that_disagrees(self, size: int, tail: bytes) -> None:
        with pytest.raises(WireError):
            MqdsPublicKey.from_bytes(size.to_bytes(4, "little") + BLOB + tail)

    @pytest.mark.req("MQDS-2.2.20-02")
    @pytest.mark.parametrize("place", [4, 5, 12])
    def test_wrong_type_version_or_magic(self, place: int) -> None:
        data = MqdsPublicKey(VALUE).to_bytes()
        with pytest.raises(WireError):
            MqdsPublicKey.from_bytes(changed(data, place, 0x41))

    @given(mqds_public_keys())
    def test_round_trip(self, value: MqdsPublicKey) -> None:
        assert MqdsPublicKey.from_bytes(value.to_bytes()) == value


# ulKeyLen 24, ulProviderLen 6, PROV_RSA_AES, "AB" and its zero, aBuf
ENTRY = bytes.fromhex("18000000 06000000 18000000 4100 4200 0000") + BLOB
ENTRY_VALUE = PublicKey("AB", ProviderType.PROV_RSA_AES, BLOB)


class TestPublicKey:
    def test_layout(self) -> None:
        reader = Reader(ENTRY)
        assert PublicKey.decode(reader) == ENTRY_VALUE
        reader.expect_end("the entry")
        writer = Writer()
        ENTRY_VALUE.encode(writer)
        assert writer.getvalue() == ENTRY

    def test_of_a_key_and_back(self) -> None:
        made = PublicKey.of(VALUE)
        assert made == PublicKey(BASE_PROVIDER, 1, BLOB)
        assert made.rsa() == VALUE

    def test_rsa_of_other_bytes(self) -> None:
        with pytest.raises(WireError):
            PublicKey(BASE_PROVIDER, 1, b"no key").rsa()
        with pytest.raises(WireError):
            PublicKey(BASE_PROVIDER, 1, BLOB + b"\0").rsa()

    def test_an_unknown_provider_type_is_kept(self) -> None:
        value = PublicKey("AB", 99, BLOB)
        writer = Writer()
        value.encode(writer)
        assert PublicKey.decode(Reader(writer.getvalue())).provider_type == 99

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("04000000 01000000 4100 4200", id="no-zero"),
            pytest.param("05000000 01000000 4100 0000 00", id="odd"),
            pytest.param("06000000 01000000 4100 0000 0000", id="zero-inside"),
            pytest.param("00000000 01000000", id="without-even-a-zero"),
            pytest.param("01000000 01000000 00", id="half-a-zero"),
        ],
    )
    def test_provider_name_that_is_not_its_length(self, name: str) -> None:
        data = bytes.fromhex("18000000" + name) + BLOB
        with pytest.raises(WireError):
            PublicKey.decode(Reader(data))

    def test_key_length_over_the_limit(self) -> None:
        size = keys.MAX_KEY_BYTES + 1
        data = size.to_bytes(4, "little") + ENTRY[4:18] + bytes(size)
        with pytest.raises(WireError, match="ulKeyLen 65537") as caught:
            PublicKey.decode(Reader(data))
        assert caught.value.offset == 0

    def test_provider_name_over_the_limit(self) -> None:
        units = keys.MAX_PROVIDER_UNITS + 1
        name = "x".encode("utf-16-le") * units + b"\0\0"
        data = bytes(4) + len(name).to_bytes(4, "little") + bytes(4) + name
        with pytest.raises(WireError, match="longer than 256 characters"):
            PublicKey.decode(Reader(data))

    @pytest.mark.parametrize(
        ("name", "kind", "size"),
        [
            ("a\0b", 1, 0),
            ("x" * (keys.MAX_PROVIDER_UNITS + 1), 1, 0),
            ("\U0001f600" * (keys.MAX_PROVIDER_UNITS // 2 + 1), 1, 0),
            ("x", -1, 0),
            ("x", 1 << 32, 0),
            ("x", 1, keys.MAX_KEY_BYTES + 1),
        ],
    )
    def test_what_could_not_be_read_again_cannot_be_made(
        self, name: str, kind: int, size: int
    ) -> None:
        with pytest.raises(ValueError, match=r"zero character|at most|32 bits"):
            PublicKey(name, kind, bytes(size))

    @given(public_keys())
    def test_round_trip(self, value: PublicKey) -> None:
        writer = Writer()
        value.encode(writer)
        reader = Reader(writer.getvalue())
        assert PublicKey.decode(reader) == value
        reader.expect_end("the entry")


class TestPublicKeys:
    @pytest.mark.parametrize(
        ("data", "value"),
        [
            (bytes.fromhex("08000000 00000000"), PublicKeys(())),
            (bytes.fromhex("32000000 01000000") + ENTRY, PublicKeys((ENTRY_VALUE,))),
            (
                bytes.fromhex("5c000000 02000000") + ENTRY + ENTRY,
                PublicKeys((ENTRY_VALUE, ENTRY_VALUE)),
            ),
        ],
    )
    def test_layout(self, data: bytes, value: PublicKeys) -> None:
        assert PublicKeys.from_bytes(data) == value
        assert value.to_bytes() == data

    def test_one_key_of_the_base_provider(self) -> None:
        name = (
            "4d006900630072006f0073006f0066007400200042006100730065002000430072007900700074006f00"
            "67007200610070006800690063002000500072006f00760069006400650072002000760031002e003000"
            "0000"
        )
        data = bytes.fromhex("be000000 01000000 54000000 56000000 01000000" + name) + BLOB_512
        key = RsaPublicKey.of(MODULUS_512, 65537, KeyAlgorithm.CALG_RSA_SIGN)
        assert PublicKeys((PublicKey.of(key),)).to_bytes() == data
        read = PublicKeys.from_bytes(data).for_provider(BASE_PROVIDER)
        assert read is not None
        assert read.rsa() == key

    def test_the_length_is_patched_where_the_structure_begins(self) -> None:
        writer = Writer()
        writer.u32(0xAAAAAAAA)
        PublicKeys(()).encode(writer)
        assert writer.getvalue() == bytes.fromhex("aaaaaaaa 08000000 00000000")

    def test_lookup_takes_the_first_of_exactly_that_name(self) -> None:
        enhanced = PublicKey(ENHANCED_PROVIDER, 1, b"1")
        base, later = PublicKey(BASE_PROVIDER, 1, b"2"), PublicKey(BASE_PROVIDER, 1, b"3")
        found = PublicKeys((enhanced, base, later))
        assert found.for_provider(BASE_PROVIDER) is base
        assert found.for_provider(ENHANCED_PROVIDER) is enhanced
        assert found.for_provider(ENHANCED_AES_PROVIDER) is None
        assert found.for_provider(BASE_PROVIDER.lower()) is None

    @pytest.mark.parametrize(
        ("size", "count", "tail"),
        [
            pytest.param(0x31, 1, b"", id="shorter-than-its-keys"),
            pytest.param(0x33, 1, b"", id="longer-than-the-data"),
            pytest.param(0x33, 1, b"\0", id="longer-than-its-keys"),
            pytest.param(0x32, 1, b"\0", id="bytes-behind-it"),
            pytest.param(0x2E, 1, b"", id="does-not-count-itself"),
            pytest.param(0x32, 0, b"", id="no-keys-counted"),
            pytest.param(0x32, 2, b"", id="one-key-too-many-counted"),
            pytest.param(7, 1, b"", id="smaller-than-its-header"),
            pytest.param(0, 1, b"", id="zero"),
        ],
    )
    def test_length_or_count_that_disagrees(self, size: int, count: int, tail: bytes) -> None:
        head = size.to_bytes(4, "little") + count.to_bytes(4, "little")
        with pytest.raises(WireError):
            PublicKeys.from_bytes(head + ENTRY + tail)

    def test_count_is_refused_before_a_key_is_read(self) -> None:
        body = bytes(14) * (keys.MAX_KEYS + 1)
        size, count = 8 + len(body), keys.MAX_KEYS + 1
        data = size.to_bytes(4, "little") + count.to_bytes(4, "little") + body
        with pytest.raises(WireError, match="257 items, at most 256") as caught:
            PublicKeys.from_bytes(data)
        assert caught.value.offset == 4
        with pytest.raises(ValueError, match="at most 256 keys"):
            PublicKeys((ENTRY_VALUE,) * count)

    def test_list_of_one_key(self) -> None:
        assert PublicKeys.from_bytes(key_list(VALUE)).keys == (PublicKey.of(VALUE),)

    @given(public_key_lists())
    def test_round_trip(self, value: PublicKeys) -> None:
        assert PublicKeys.from_bytes(value.to_bytes()) == value


@given(st.binary(max_size=120))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    for kind in (RsaPublicKey, MqdsPublicKey, PublicKeys):
        try:
            value = kind.from_bytes(data)
        except WireError:
            continue
        assert value.to_bytes() == data


@given(st.data(), st.binary(min_size=1, max_size=3))
def test_a_damaged_list_decodes_or_raises_wire_error(data: st.DataObject, patch: bytes) -> None:
    good = data.draw(public_key_lists()).to_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    bad = (good[:place] + patch + good[place + len(patch) :])[: len(good)]
    try:
        value = PublicKeys.from_bytes(bad)
    except WireError:
        return
    assert value.to_bytes() == bad


@given(rsa_public_keys() | mqds_public_keys() | public_key_lists())
def test_every_proper_prefix_is_refused(value: RsaPublicKey | MqdsPublicKey | PublicKeys) -> None:
    data = value.to_bytes()
    for size in range(len(data)):
        with pytest.raises(WireError):
            type(value).from_bytes(data[:size])


@given(public_keys())
def test_every_proper_prefix_of_an_entry_is_refused(value: PublicKey) -> None:
    writer = Writer()
    value.encode(writer)
    data = writer.getvalue()
    for size in range(len(data)):
        with pytest.raises(WireError):
            PublicKey.decode(Reader(data[:size]))
