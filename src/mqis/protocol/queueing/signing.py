"""Signatures of queue managers over messages (MS-MQMQ 2.5.1, the form of MSMQ 1.0).

Signed are, in this order: CorrelationID, ApplicationTag, body, label, response queue,
administration queue. The text leaves open how the last three enter; here they do as on the wire,
without padding, and a field that is not there adds nothing. Neither destination nor identity nor
time are covered, so a signed message can be replayed to anybody; the duplicate table and the rules
of replication stand against that.
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
    """What becomes of received messages."""

    #: Signatures are not looked at.
    NONE = "none"
    #: Unsigned messages pass unauthenticated; a signature that is there has to be right.
    ACCEPT = "accept"
    #: Only what verifies passes.
    REQUIRE = "require"


class Verdict(Enum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN_SENDER = "unknown sender"


class Signer(Protocol):
    """Signs for this queue manager and knows the keys of others."""

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
    """Whether a message is authenticated, and why it has to be refused, if it has to."""
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
