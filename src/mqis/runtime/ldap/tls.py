"""TLS towards directory servers: certificate checks, and plain reasons."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from mqis.protocol.ldap.errors import LdapError

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
            reason = getattr(error, "strerror", None) or str(error)
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
