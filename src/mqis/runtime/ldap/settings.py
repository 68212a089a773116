"""The settings of a directory connection."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from mqis.files import system_reason
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.ldap_logon import LdapLogin
from mqis.wire.ldap.messages import MAXIMUM_MESSAGE

# --- TLS towards directory servers: certificate checks, and plain reasons -------------------------

#: Numbers of OpenSSL for X509_V_ERR_CERT_HAS_EXPIRED, ..._HOSTNAME_MISMATCH, ..._IP_ADDRESS_...
_EXPIRED = 10
_WRONG_NAME = (62, 64)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """``ca_file`` replaces the authorities of the computer; ``server_name`` the name in the URL."""

    ca_file: Path | None = None
    server_name: str | None = None

    def context(self) -> ssl.SSLContext:
        if self.ca_file is None:
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            return context
        only_given = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        only_given.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            only_given.load_verify_locations(self.ca_file)
        except (OSError, ssl.SSLError) as error:
            reason = system_reason(error)
            raise LdapError(
                f"{self.ca_file}: no certificates can be read from it: {reason}; give a PEM file"
            ) from error
        return only_given


def explain(error: ssl.SSLError, where: str, name: str) -> LdapError:
    """Says in plain words why TLS failed, and what to do."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        reason = error.reason or str(error)
        return LdapError(f"{where}: no TLS: {reason}; does the server speak LDAPS on this port?")
    if error.verify_code == _EXPIRED:
        return LdapError(f"{where}: the certificate of the server has expired; renew it there")
    if error.verify_code in _WRONG_NAME:
        return LdapError(
            f"{where}: the certificate of the server is not for {name}; connect by a name that is "
            "in it, or give that name as the server's name"
        )
    return LdapError(
        f"{where}: the certificate of the server is not trusted ({error.verify_message}); give the "
        "certificate of the authority that issued it as the CA file"
    )


# --- Channel bindings: a logon inside TLS that nobody in between can pass on to the server --------


def channel_binding(certificate: bytes) -> bytes:
    """The tls-server-end-point binding (RFC 5929 4): a hash of the server's certificate."""
    return b"tls-server-end-point:" + _fingerprint(certificate)


def _fingerprint(certificate: bytes) -> bytes:
    parsed = x509.load_der_x509_certificate(certificate)
    algorithm: hashes.HashAlgorithm = hashes.SHA256()
    try:
        used = parsed.signature_hash_algorithm
    except UnsupportedAlgorithm:
        used = None
    if used is not None and not isinstance(used, hashes.MD5 | hashes.SHA1):
        algorithm = used
    return parsed.fingerprint(algorithm)


# --- The settings of a directory connection -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LdapSettings:
    """The servers in order of preference, the logon, and limits."""

    servers: tuple[LdapUrl, ...]
    login: LdapLogin = field(default_factory=LdapLogin)
    tls: TlsSettings = field(default_factory=TlsSettings)
    #: Begins TLS on ``ldap://`` before anything else is said.
    start_tls: bool = False
    connect_timeout_s: float = 10.0
    #: For each answer, not for a whole search.
    operation_timeout_s: float = 60.0
    #: Memory for answers that have arrived and are not read yet.
    buffer_limit: int = MAXIMUM_MESSAGE
