"""Channel bindings: a logon inside TLS that nobody in between can pass on to the server."""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes


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
