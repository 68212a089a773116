"""Certificates of machines and users, and the digests by which they are found (3.1.6.1.1.9)."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.activedirectory.codecs import GUIDS
from mqis.protocol.activedirectory.steps import invalid, value_in
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AttributeChange, ModifyKind
from mqis.wire.ldap.filters import Or, Present
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties

#: The attributes of which a user of Message Queuing has one; most accounts of a forest have none.
_CERTIFICATES = ("mSMQSignCertificates", "mSMQDigests")
CERTIFIED = Or(tuple(Present(attribute) for attribute in _CERTIFICATES))


def is_certified(entry: LdapEntry) -> bool:
    """Returns whether ``CERTIFIED`` finds an entry."""
    return any(entry.values(attribute) for attribute in _CERTIFICATES)


def certificate_attributes(
    properties: Properties,
) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """What the signing keys of a machine become at its computer's entry; nothing if not given.

    The octets are kept as they come. They are a list of certificates by MS-MQDSSM and a list of
    public keys everywhere else (E-MQDSSM-22); keys have no digests.
    """
    value = value_in(properties, PropId.QM_SIGN_PKS)
    if not isinstance(value, bytes):
        value = value_in(properties, PropId.QM_SIGN_PK)
    if not isinstance(value, bytes):
        return
    yield "mSMQSignCertificates", (value,) if value else ()
    yield "mSMQDigests", _digests(value)


def _digests(value: bytes) -> tuple[bytes, ...]:
    """The Digest field of each certificate, a value of 16 octets each, in their order.

    Signatures are looked up by it: one that belongs to another certificate is refused (SEC-1-03).
    """
    try:
        listed = UserSignCerts.from_bytes(value).certificates if value else ()
    except WireError:
        return ()
    if not all(entry.digest_matches for entry in listed):
        raise invalid("the Digest of a certificate is not the MD5 of the certificate")
    return tuple(dict.fromkeys(entry.digest for entry in listed))


def user_changes(properties: Properties, read: Properties) -> Iterator[AttributeChange]:
    """Exchanges the certificates of a user, together with their digests (3.1.6.7.6.4).

    Values that were read are deleted one by one. If another server has changed the list since, the
    directory refuses the whole modification, and no certificate is lost (E-MQDSSM-55).
    """
    value = value_in(properties, PropId.U_SIGN_CERT)
    if not isinstance(value, bytes):
        return
    try:
        listed = UserSignCerts.from_property(value, Guid.NULL) if value else UserSignCerts(())
    except WireError as error:
        raise invalid(f"PROPID_U_SIGN_CERT: {error}") from error
    held, digests = value_in(read, PropId.U_SIGN_CERT), value_in(read, PropId.U_DIGEST)
    before = (held,) if isinstance(held, bytes) and held else ()
    known = GUIDS.encode(digests) if isinstance(digests, tuple) else ()
    yield from _exchange("mSMQSignCertificates", before, (listed.to_bytes(),) if value else ())
    yield from _exchange("mSMQDigests", known, _digests(listed.to_bytes()))


def _exchange(
    attribute: str, before: tuple[bytes, ...], after: tuple[bytes, ...]
) -> Iterator[AttributeChange]:
    for kind, values, others in (
        (ModifyKind.DELETE, before, after),
        (ModifyKind.ADD, after, before),
    ):
        found = tuple(value for value in values if value not in others)
        if found:
            yield AttributeChange(kind, attribute, found)
