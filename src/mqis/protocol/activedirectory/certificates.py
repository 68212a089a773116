"""Certificates of machines and users, and the digests by which they are found (3.1.6.1.1.9)."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.activedirectory.steps import invalid, value_in
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCerts, digest_of
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties

_MACHINE_CERTIFICATES = (PropId.QM_SIGN_PKS, PropId.QM_SIGN_PK)


def certificate_attributes(
    properties: Properties,
) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """What the signing keys of a machine become at its computer's entry; nothing if not given.

    The octets are kept as they come. They are a list of certificates by MS-MQDSSM and a list of
    public keys everywhere else (E-MQDSSM-22); keys have no digests.
    """
    found = (value_in(properties, propid) for propid in _MACHINE_CERTIFICATES)
    value = next((octets for octets in found if isinstance(octets, bytes)), None)
    if value is None:
        return
    yield "mSMQSignCertificates", (value,) if value else ()
    yield "mSMQDigests", _digests(value)


def _digests(value: bytes) -> tuple[bytes, ...]:
    """One value of 16 octets for each certificate, computed here and never believed."""
    try:
        listed = UserSignCerts.from_bytes(value).certificates if value else ()
    except WireError:
        return ()
    return tuple(dict.fromkeys(digest_of(entry.certificate) for entry in listed))


def user_attributes(properties: Properties) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """The certificates of a user and their digests, which are written together (3.1.6.7.6.4)."""
    value = value_in(properties, PropId.U_SIGN_CERT)
    if not isinstance(value, bytes):
        return
    try:
        listed = UserSignCerts.from_property(value, Guid.NULL) if value else UserSignCerts(())
    except WireError as error:
        raise invalid(f"PROPID_U_SIGN_CERT: {error}") from error
    yield "mSMQSignCertificates", (listed.to_bytes(),) if value else ()
    yield "mSMQDigests", _digests(listed.to_bytes())
