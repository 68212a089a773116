"""Channels: security contexts that sign and seal the PDUs of either side of a connection."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.authentication import AuthenticationError, AuthLevel, SecurityContext
from mqis.wire.rpc.pdu import STUB_OFFSET, Pdu
from mqis.wire.rpc.trailer import PAD_TO, TRAILER_SIZE, AuthTrailer, fixed_part

#: Levels whose PDUs carry a signature.
PROTECTED = frozenset({AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY})


@dataclass(slots=True)
class Channel:
    """A security context, its auth_context_id, and the level at which it is used."""

    id: int
    type: int
    level: int
    context: SecurityContext

    @property
    def complete(self) -> bool:
        return self.context.complete

    @property
    def protects(self) -> bool:
        return self.level in PROTECTED

    @property
    def overhead(self) -> int:
        """The bytes of a protected PDU besides its stub and padding."""
        return TRAILER_SIZE + self.signature_size

    @property
    def signature_size(self) -> int:
        return self.context.signature_size(self.level)

    def trailer(self, pad_length: int = 0, token: bytes = b"") -> AuthTrailer:
        return AuthTrailer(self.type, self.level, self.id, token, pad_length)

    def protect(self, head: bytes, stub: bytes, *, sign_header: bool) -> bytes:
        """The whole PDU; ``head`` ends where the stub starts and has the final lengths."""
        pad = bytes(-len(stub) % PAD_TO)
        trailer = fixed_part(self.type, self.level, self.id, len(pad))
        body, signature = self.context.protect(self.level, head, stub + pad, trailer, sign_header)
        return head + body + trailer + signature

    def unprotect(self, pdu: Pdu, *, sign_header: bool) -> bytes:
        """The stub of a PDU that carries a trailer, verified, without its padding."""
        header, body, trailer = pdu.signed_parts
        auth = pdu.auth
        if auth is None:
            raise AuthenticationError("a protected PDU has a security trailer")
        if self.protects:
            body = self.context.unprotect(
                self.level, header, body, trailer, auth.token, sign_header
            )
        if auth.pad_length > len(body):
            raise AuthenticationError("the padding is longer than the stub")
        return body[: len(body) - auth.pad_length]

    def open(self, data: bytes, trailer_at: int, *, sign_header: bool) -> bytes:
        """The stub and padding of a protected PDU without object, verified.

        It is not decoded: its trailer begins at ``trailer_at``.
        """
        token_at = trailer_at + TRAILER_SIZE
        return self.context.unprotect(
            self.level,
            data[:STUB_OFFSET],
            data[STUB_OFFSET:trailer_at],
            data[trailer_at:token_at],
            data[token_at:],
            sign_header,
        )
