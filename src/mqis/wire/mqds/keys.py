"""Public keys of machines and sites (MS-MQDS 2.2.18 to 2.2.20, MS-MQMQ 2.2.1 and 2.2.2).

A key travels as a PUBLICKEYBLOB, either on its own behind a length (MQDS_PublicKey, the argument
of the security calls) or in a list with the name of the provider that made it (MQDSPUBLICKEYS,
the value of the key properties).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Self

from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

#: The providers whose keys the machine properties name (MS-MQDS 3.1.4.21.8.1.7).
BASE_PROVIDER = "Microsoft Base Cryptographic Provider v1.0"
ENHANCED_PROVIDER = "Microsoft Enhanced Cryptographic Provider v1.0"
ENHANCED_AES_PROVIDER = "Microsoft Enhanced RSA and AES Cryptographic Provider"

#: Limits of the decoder. The largest RSA key that CryptoAPI makes has 16384 bits.
MAX_MODULUS_BITS = 16_384
MAX_KEY_BYTES = 65_536
MAX_PROVIDER_UNITS = 256
MAX_KEYS = 256


class KeyAlgorithm(IntEnum):
    """aiKeyAlg. MS-MQMQ 2.2.1 lists only CALG_RSA_KEYX, MS-MQDS 2.2.19 both; both are accepted."""

    CALG_RSA_KEYX = 0x0000A400
    CALG_RSA_SIGN = 0x00002400


class ProviderType(IntEnum):
    """ulProviderType; unknown numbers are kept."""

    PROV_RSA_FULL = 1
    PROV_RSA_AES = 24


_ALGORITHMS = {int(algorithm): algorithm for algorithm in KeyAlgorithm}
_PUBLICKEYBLOB = 0x06
_BLOB_VERSION = 0x02
_MAGIC = 0x31415352  # "RSA1"


# BLOBHEADER (2.2.19)               RSAPUBKEY (2.2.18)
#   u8   bType      0x06              u32  magic    0x31415352
#   u8   bVersion   0x02              u32  bitLen   a multiple of 8
#   u16  wReserved  0                 u32  pubExp
#   u32  aiKeyAlg                     bitLen/8 bytes: modulus, least significant byte first
@dataclass(frozen=True, slots=True)
class RsaPublicKey(Structure):
    """A BLOBHEADER followed by an RSAPUBKEY."""

    NAME: ClassVar[str] = "the public key"

    key_algorithm: KeyAlgorithm
    exponent: int
    modulus: int
    bit_length: int

    def __post_init__(self) -> None:
        if not 0 < self.bit_length <= MAX_MODULUS_BITS or self.bit_length % 8:
            raise ValueError(
                f"a modulus has a multiple of 8 up to {MAX_MODULUS_BITS} bits, "
                f"not {self.bit_length}"
            )
        if self.modulus < 0 or self.modulus.bit_length() > self.bit_length:
            raise ValueError(f"the modulus does not fit in {self.bit_length} bits")
        if not 0 <= self.exponent < 1 << 32:
            raise ValueError(f"the exponent {self.exponent} does not fit in 32 bits")

    @classmethod
    def of(
        cls,
        modulus: int,
        exponent: int,
        key_algorithm: KeyAlgorithm = KeyAlgorithm.CALG_RSA_KEYX,
    ) -> RsaPublicKey:
        """Makes a key of these numbers, with as many whole bytes as the modulus needs."""
        return cls(key_algorithm, exponent, modulus, (modulus.bit_length() + 7) // 8 * 8)

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        algorithm = _decode_header(reader)
        at = reader.offset
        magic = reader.u32()
        if magic != _MAGIC:
            raise reader.error(f"RSAPUBKEY magic is 0x{_MAGIC:08x}, not 0x{magic:08x}", at)
        at = reader.offset
        bit_length = reader.u32()
        if not 0 < bit_length <= MAX_MODULUS_BITS or bit_length % 8:
            raise reader.error(
                f"RSAPUBKEY bitLen {bit_length} is not a multiple of 8 up to {MAX_MODULUS_BITS}",
                at,
            )
        exponent = reader.u32()
        modulus = int.from_bytes(reader.bytes(bit_length // 8, "modulus"), "little")
        return cls(algorithm, exponent, modulus, bit_length)

    def encode(self, writer: Writer) -> None:
        writer.u8(_PUBLICKEYBLOB)
        writer.u8(_BLOB_VERSION)
        writer.u16(0)
        writer.u32(self.key_algorithm)
        writer.u32(_MAGIC)
        writer.u32(self.bit_length)
        writer.u32(self.exponent)
        writer.bytes(self.modulus.to_bytes(self.bit_length // 8, "little"))


def _decode_header(reader: Reader) -> KeyAlgorithm:
    at = reader.offset
    kind, version, reserved = reader.u8(), reader.u8(), reader.u16()
    if kind != _PUBLICKEYBLOB:
        raise reader.error(f"BLOBHEADER type 0x{kind:02x} is not PUBLICKEYBLOB (0x06)", at)
    if version != _BLOB_VERSION:
        raise reader.error(f"BLOBHEADER version is 2, not {version}", at + 1)
    if reserved:
        raise reader.error(f"BLOBHEADER reserves two zero bytes, not 0x{reserved:04x}", at + 2)
    number = reader.u32()
    algorithm = _ALGORITHMS.get(number)
    if algorithm is None:
        raise reader.error(f"key algorithm 0x{number:08x} is not one of RSA", at + 4)
    return algorithm


# MQDS_PublicKey (2.2.20)
#   u32  dwPublicKeyBlobSize   bytes that follow
#   8    BLOBHEADER
#   ...  RSAPUBKEY
@dataclass(frozen=True, slots=True)
class MqdsPublicKey(Structure):
    """One key behind its length, as S_DSSetObjectSecurity takes it."""

    NAME: ClassVar[str] = "MQDS_PublicKey"

    key: RsaPublicKey

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        part = reader.sub(reader.u32(), "MQDS_PublicKey")
        key = RsaPublicKey.decode(part)
        part.expect_end("the public key")
        return cls(key)

    def encode(self, writer: Writer) -> None:
        blob = self.key.to_bytes()
        writer.u32(len(blob))
        writer.bytes(blob)


# MQDSPUBLICKEY (MS-MQMQ 2.2.1)
#   u32  ulKeyLen         bytes of aBuf
#   u32  ulProviderLen    bytes of sProviderName with its terminating zero
#   u32  ulProviderType
#   ...  sProviderName    UTF-16LE, 16-bit zero
#   ...  aBuf             BLOBHEADER, RSAPUBKEY
@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key and its provider. The key stays undecoded, so that lists are passed on unchanged."""

    provider_name: str
    provider_type: int
    blob: bytes

    SMALLEST: ClassVar[int] = 12 + 2

    def __post_init__(self) -> None:
        if "\0" in self.provider_name:
            raise ValueError("a provider name cannot hold a zero character")
        if len(self._name_bytes) // 2 > MAX_PROVIDER_UNITS:
            raise ValueError(f"a provider name has at most {MAX_PROVIDER_UNITS} characters")
        if len(self.blob) > MAX_KEY_BYTES:
            raise ValueError(f"a key has at most {MAX_KEY_BYTES} bytes, not {len(self.blob)}")
        if not 0 <= self.provider_type < 1 << 32:
            raise ValueError(f"the provider type {self.provider_type} does not fit in 32 bits")

    @property
    def _name_bytes(self) -> bytes:
        return self.provider_name.encode("utf-16-le", "surrogatepass")

    @classmethod
    def of(
        cls,
        key: RsaPublicKey,
        provider_name: str = BASE_PROVIDER,
        provider_type: int = ProviderType.PROV_RSA_FULL,
    ) -> PublicKey:
        return cls(provider_name, provider_type, key.to_bytes())

    def rsa(self) -> RsaPublicKey:
        """The key as numbers; raises ``WireError`` if aBuf is not an RSA key."""
        return RsaPublicKey.from_bytes(self.blob)

    @classmethod
    def decode(cls, reader: Reader) -> PublicKey:
        at = reader.offset
        key_size = reader.u32()
        if key_size > MAX_KEY_BYTES:
            raise reader.error(f"ulKeyLen {key_size}, at most {MAX_KEY_BYTES} are allowed", at)
        name_size = reader.u32()
        provider_type = reader.u32()
        name_part = reader.sub(name_size, "provider name")
        provider_name = name_part.utf16z(MAX_PROVIDER_UNITS, "provider name")
        name_part.expect_end("the provider name")
        return cls(provider_name, provider_type, reader.bytes(key_size, "aBuf"))

    def encode(self, writer: Writer) -> None:
        writer.u32(len(self.blob))
        writer.u32(len(self._name_bytes) + 2)
        writer.u32(self.provider_type)
        writer.utf16z(self.provider_name)
        writer.bytes(self.blob)


# MQDSPUBLICKEYS (MS-MQMQ 2.2.2)
#   u32  ulLen         bytes of the whole structure, this field included
#   u32  cNumofKeys
#   ...  aPublicKeys   MQDSPUBLICKEY, one after the other without padding
@dataclass(frozen=True, slots=True)
class PublicKeys(Structure):
    """The keys of a machine or a site, one per provider."""

    NAME: ClassVar[str] = "MQDSPUBLICKEYS"

    keys: tuple[PublicKey, ...]

    def __post_init__(self) -> None:
        if len(self.keys) > MAX_KEYS:
            raise ValueError(f"a list has at most {MAX_KEYS} keys, not {len(self.keys)}")

    def for_provider(self, provider_name: str) -> PublicKey | None:
        """The first key of the provider with exactly this name, or None."""
        return next((key for key in self.keys if key.provider_name == provider_name), None)

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        at = reader.offset
        size = reader.u32()
        if size < 8:
            raise reader.error(f"MQDSPUBLICKEYS has at least 8 bytes, ulLen says {size}", at)
        part = reader.sub(size - 4, "MQDSPUBLICKEYS")
        count = part.count(MAX_KEYS, PublicKey.SMALLEST, "MQDSPUBLICKEYS")
        keys = tuple(PublicKey.decode(part) for _ in range(count))
        part.expect_end("MQDSPUBLICKEYS")
        return cls(keys)

    def encode(self, writer: Writer) -> None:
        start = len(writer)
        writer.u32(0)
        writer.u32(len(self.keys))
        for key in self.keys:
            key.encode(writer)
        writer.patch_u32(start, len(writer) - start)


def key_list(*keys: RsaPublicKey) -> bytes:
    """Encodes keys of the base provider as the properties of machines and sites hold them."""
    return PublicKeys(tuple(PublicKey.of(key) for key in keys)).to_bytes()
