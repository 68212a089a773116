"""Signatures of queue managers over messages (MS-MQMQ 2.5.1, the form of MSMQ 1.0).

Signed are, in this order: CorrelationID, ApplicationTag, body, label, response queue,
administration queue. The text leaves open the form of the last three; here it is that of the wire,
without padding, and an absent field adds nothing. Neither destination nor identity nor
time are covered, so a signed message can be replayed to any machine; the duplicate table and the
rules of replication protect against that.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from mqis.wire.guid import Guid
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MD5, MessageProperties
from mqis.wire.mqqb.securityheader import SecurityHeader, SenderIdType
from mqis.wire.mqqb.userheader import UserHeader


class SigningPolicy(Enum):
    """The policy on signatures of received messages."""

    #: Signatures are ignored.
    NONE = "none"
    #: Unsigned messages are accepted as unauthenticated; a signature has to be valid.
    ACCEPT = "accept"
    #: Only messages with a valid signature are accepted.
    REQUIRE = "require"


class Verdict(Enum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN_SENDER = "unknown sender"


class Signer(Protocol):
    """The port that signs for this queue manager and verifies with the keys of others."""

    def sign(self, parts: tuple[bytes, ...]) -> bytes:
        """The signature as packets carry it."""

    def verify(self, sender: Guid, parts: tuple[bytes, ...], signature: bytes) -> Verdict: ...


def signed_parts(header: UserHeader, properties: MessageProperties) -> tuple[bytes, ...]:
    return (
        properties.correlation_id,
        properties.application_tag.to_bytes(4, "little"),
        properties.body,
        properties.label_octets,
        header.response.octets(),
        header.admin.octets(),
    )


def examine(
    message: UserMessage, policy: SigningPolicy, signer: Signer | None
) -> tuple[bool, str | None]:
    """Returns whether a message is authenticated, and the reason to refuse it, if any."""
    if policy is SigningPolicy.NONE:
        return False, None
    required = policy is SigningPolicy.REQUIRE
    if message.security is None or not message.security.signature:
        return False, "not signed" if required else None
    verdict = _verdict(message, message.security, signer)
    if verdict is Verdict.INVALID:
        return False, "the signature is wrong"
    if verdict is Verdict.UNKNOWN_SENDER and required:
        return False, "no key to verify the signature with"
    return verdict is Verdict.VALID, None


def _verdict(message: UserMessage, security: SecurityHeader, signer: Signer | None) -> Verdict:
    source = message.header.source
    if (
        security.sender_id_type != SenderIdType.QUEUE_MANAGER
        or security.sender_id != source.raw
        or message.properties.hash_algorithm != MD5
    ):
        return Verdict.INVALID
    if signer is None:
        return Verdict.UNKNOWN_SENDER
    parts = signed_parts(message.header, message.properties)
    return signer.verify(source, parts, security.signature)
