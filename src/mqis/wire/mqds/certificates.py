"""The certificates that a user signs with (MS-MQMQ 2.2.21, 2.2.22): PROPID_U_SIGN_CERT."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Self

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

#: Limits of the decoder.
MAX_CERTIFICATES = 1024
MAX_CERTIFICATE_BYTES = 1 << 20

_DER_SEQUENCE = 0x30


# MQUSERSIGNCERT (2.2.22)
#   16   Digest              MD5 of Certificate
#   16   Identifier          GUID, chosen by the party that registers the certificate
#   u32  CertificateLength
#   ...  Certificate         X.509
@dataclass(frozen=True, slots=True)
class UserSignCert:
    """One certificate. A wrong digest is kept: see ``digest_matches``."""

    digest: bytes
    identifier: Guid
    certificate: bytes

    SMALLEST: ClassVar[int] = 16 + 16 + 4

    def __post_init__(self) -> None:
        if len(self.digest) != 16:
            raise ValueError(f"a digest has 16 bytes, not {len(self.digest)}")
        if len(self.certificate) > MAX_CERTIFICATE_BYTES:
            raise ValueError(
                f"a certificate has at most {MAX_CERTIFICATE_BYTES} bytes, "
                f"not {len(self.certificate)}"
            )

    @classmethod
    def of(cls, certificate: bytes, identifier: Guid) -> UserSignCert:
        return cls(digest_of(certificate), identifier, certificate)

    @property
    def digest_matches(self) -> bool:
        return self.digest == digest_of(self.certificate)

    @classmethod
    def decode(cls, reader: Reader) -> UserSignCert:
        digest = reader.bytes(16, "Digest")
        identifier = reader.guid()
        at = reader.offset
        size = reader.u32()
        if size > MAX_CERTIFICATE_BYTES:
            raise reader.error(
                f"CertificateLength {size}, at most {MAX_CERTIFICATE_BYTES} are allowed", at
            )
        return cls(digest, identifier, reader.bytes(size, "Certificate"))

    def encode(self, writer: Writer) -> None:
        writer.bytes(self.digest)
        writer.guid(self.identifier)
        writer.u32(len(self.certificate))
        writer.bytes(self.certificate)


def digest_of(certificate: bytes) -> bytes:
    """The MD5 by which a certificate is looked up; it has no security purpose."""
    return hashlib.md5(certificate, usedforsecurity=False).digest()


# MQUSERSIGNCERTS (2.2.21)
#   u32  CertificateCount
#   ...  Certificates        MQUSERSIGNCERT, one after the other without padding
@dataclass(frozen=True, slots=True)
class UserSignCerts(Structure):
    """The certificates of one user."""

    NAME: ClassVar[str] = "MQUSERSIGNCERTS"

    certificates: tuple[UserSignCert, ...]

    def __post_init__(self) -> None:
        if len(self.certificates) > MAX_CERTIFICATES:
            raise ValueError(
                f"a list has at most {MAX_CERTIFICATES} certificates, not {len(self.certificates)}"
            )

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        count = reader.count(MAX_CERTIFICATES, UserSignCert.SMALLEST, "MQUSERSIGNCERTS")
        return cls(tuple(UserSignCert.decode(reader) for _ in range(count)))

    def encode(self, writer: Writer) -> None:
        writer.u32(len(self.certificates))
        for certificate in self.certificates:
            certificate.encode(writer)

    @classmethod
    def wrap(cls, certificate: bytes, identifier: Guid) -> UserSignCerts:
        """Makes a list of this certificate alone."""
        return cls((UserSignCert.of(certificate, identifier),))

    @classmethod
    def from_property(cls, data: bytes, identifier: Guid) -> UserSignCerts:
        """Decodes a property value that is a list, or one bare certificate.

        MS-MQDS describes PROPID_U_SIGN_CERT both ways. The list is tried first, since a list of
        48 entries begins with 0x30 too; a certificate would have an impossible count. A bare
        certificate gets ``identifier``.
        """
        try:
            return cls.from_bytes(data)
        except WireError:
            if len(data) > MAX_CERTIFICATE_BYTES or not is_bare_certificate(data):
                raise
            return cls.wrap(data, identifier)


def is_bare_certificate(data: bytes) -> bool:
    """Returns whether ``data`` is a DER SEQUENCE that begins with another, like X.509 (X.690 8.1).

    The rest of the certificate is not checked here: its users check it.
    """
    reader = Reader(data)
    try:
        if reader.u8() != _DER_SEQUENCE:
            return False
        size = reader.u8()
        if size >= 0x80:
            digits = reader.bytes(size & 0x7F, "length")
            size = int.from_bytes(digits, "big")
            if size < 0x80 or digits.startswith(b"\0"):  # indefinite, or not the shortest form
                return False
        return size == reader.remaining and reader.u8() == _DER_SEQUENCE
    except WireError:
        return False
