"""Server authentication (MS-MQDS 3.1.1.3): the context behind an auth handle, and its signatures.

The context of S_DSValidateServer is negotiated inside calls and independent of whatever protects
the RPC connection. It proves the server to the client; without one, signatures are zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.authentication import AuthLevel, SecurityContext
from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult


@dataclass(frozen=True, slots=True)
class ServerAuth:
    """The context of an auth handle; ``context`` None is the empty context."""

    context: SecurityContext | None

    def sign(self, digest: bytes, size: int) -> bytes:
        """The signature for a client's buffer of ``size`` bytes."""
        if self.context is None:
            return bytes(size)
        # Asked before it is made: contexts number their messages, and the client would miss one.
        needed = self.context.signature_size(AuthLevel.PRIVACY) + len(digest)
        if needed > size:
            raise DirectoryError(
                HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL,
                f"a signature has {needed} bytes, the buffer {size}",
            )
        return wrap(self.context, digest)


def wrap(context: SecurityContext, data: bytes) -> bytes:
    """GSS_Wrap with confidentiality: the signature, then the sealed data."""
    sealed, signature = context.protect(AuthLevel.PRIVACY, b"", data, b"", False)
    return signature + sealed


def unwrap(context: SecurityContext, token: bytes) -> bytes:
    """GSS_Unwrap: the data, or ``AuthenticationError``."""
    size = context.signature_size(AuthLevel.PRIVACY)
    signature, sealed = token[:size], token[size:]
    return context.unprotect(AuthLevel.PRIVACY, b"", sealed, b"", signature, False)
