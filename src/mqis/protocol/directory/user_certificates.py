"""The certificates of a user: lists of them, and digests that are theirs (MS-MQDS 3.1.4.4)."""

from __future__ import annotations

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts, digest_of
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, VarType


def with_digests(given: Properties, stored: Properties) -> Properties:
    """Returns what a client gives a user, with its digests computed; refuses another's digest.

    Signatures are looked up by the digest, so one that is believed gives a certificate the place
    of another. What cannot be read is left to the checks of types and values.
    """
    certificate = given.get(PropId.U_SIGN_CERT) or stored.get(PropId.U_SIGN_CERT)
    data = None if certificate is None else certificate.value
    digests = given.get(PropId.U_DIGEST)
    if not isinstance(data, bytes) or (digests is not None and not _is_list(digests)):
        return given
    try:
        listed = UserSignCerts.from_property(data, Guid.NULL).certificates if data else ()
    except WireError:
        return given
    computed = dict.fromkeys(Guid(digest_of(entry.certificate)) for entry in listed)
    claimed = set(computed) if digests is None else set(_digests(given))
    if claimed != set(computed) or not all(entry.digest_matches for entry in listed):
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            "PROPID_U_DIGEST is not the MD5 of the certificates in PROPID_U_SIGN_CERT",
        )
    return props({**given, PropId.U_DIGEST: tuple(computed)})


def _is_list(variant: PropVariant) -> bool:
    return variant.vt is VarType.VECTOR_CLSID


def with_certificates(user: DirectoryObject, more: Properties) -> dict[int, PropVariant]:
    """Returns the certificates and digests of a user and of ``more``, each once (3.1.4.4)."""
    certificates = certificates_of(user.properties)
    known = {certificate.digest for certificate in certificates}
    certificates += tuple(c for c in certificates_of(more) if c.digest not in known)
    digests = dict.fromkeys((*_digests(user.properties), *_digests(more)))
    try:
        listed = UserSignCerts(certificates)
    except ValueError as error:
        raise DirectoryError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, str(error)) from error
    return props(
        {
            PropId.U_SIGN_CERT: listed.to_bytes(),
            PropId.U_DIGEST: tuple(digests),
        }
    )


def certificates_of(properties: Properties) -> tuple[UserSignCert, ...]:
    found = properties.get(PropId.U_SIGN_CERT)
    data = None if found is None else found.value
    return UserSignCerts.from_bytes(data).certificates if isinstance(data, bytes) and data else ()


def _digests(properties: Properties) -> tuple[Guid, ...]:
    found = properties.get(PropId.U_DIGEST)
    digests = None if found is None else found.value
    return tuple(d for d in digests if isinstance(d, Guid)) if isinstance(digests, tuple) else ()
