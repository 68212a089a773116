"""Values that tell objects apart: no two numbers give the same one.

A fixture whose objects share a descriptor, a key or a time cannot tell a right answer from that of
another object. So each object takes its values from here, by a number of its own; the same number
always gives the same values.
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.descriptors import MachinePolicy, default_descriptor
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    ENHANCED_PROVIDER,
    KeyAlgorithm,
    PublicKey,
    PublicKeys,
    RsaPublicKey,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

_YEAR_2000 = 946_684_800
#: Times of greater numbers repeat: seconds since 1970 have 31 bits.
_MOST_TIMES = 2**28


def owner(number: int) -> Sid:
    return Sid.parse(f"S-1-5-21-11-12-13-{number}")


def group(number: int) -> Sid:
    return Sid.parse(f"S-1-5-21-21-22-23-{number}")


def descriptor(object_type: ObjectType, number: int) -> SecurityDescriptor:
    """A descriptor with an owner and a group of its own: others may read, the owner everything."""
    usual = default_descriptor(object_type, owner(number), MachinePolicy.OWNER)
    return replace(usual, group=group(number))


def sddl(number: int) -> str:
    """A descriptor with all four parts, of which others may read it but not change it."""
    parts = f"O:{owner(number)}G:{group(number)}D:(A;;0x20020;;;WD)(A;;0x1;;;{owner(number)})"
    return f"{parts}S:(AU;FA;{0x100 + number % 0x100:#x};;;{group(number)})"


def key(number: int, algorithm: KeyAlgorithm = KeyAlgorithm.CALG_RSA_KEYX) -> RsaPublicKey:
    return RsaPublicKey.of((0xC0FFEE << 64) + 2 * number + 1, 65537, algorithm)


def key_list(number: int) -> bytes:
    """One key for each provider, the base provider's first."""
    return PublicKeys(
        (
            PublicKey.of(key(2 * number), BASE_PROVIDER),
            PublicKey.of(key(2 * number + 1), ENHANCED_PROVIDER),
        )
    ).to_bytes()


def encryption_keys(number: int) -> bytes:
    return key_list(2 * number)


def signing_keys(number: int) -> bytes:
    return key_list(2 * number + 1)


def certificate(number: int) -> bytes:
    """The shortest thing that looks like X.509: a DER SEQUENCE that begins with another one."""
    return bytes.fromhex("3008 3006 0204") + number.to_bytes(4, "big")


def certificates(*numbers: int) -> UserSignCerts:
    """A list of certificates, each entered under a GUID of its own."""
    return UserSignCerts(
        tuple(UserSignCert.of(certificate(n), Guid(n.to_bytes(16, "big"))) for n in numbers)
    )


def created_at(number: int) -> int:
    """Seconds since 1970; nothing was made in the second in which another was."""
    return _YEAR_2000 + 2 * (number % _MOST_TIMES)


def modified_at(number: int) -> int:
    """Later than ``created_at``, and before the next one."""
    return created_at(number) + 1
