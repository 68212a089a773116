"""Signatures over messages, and what the three policies make of them."""

from __future__ import annotations

from dataclasses import replace
from hashlib import md5

import pytest

from mqis.protocol.queueing.events import Delivered, Refused
from mqis.protocol.queueing.queued_message import QueuedMessage, build_packet
from mqis.protocol.queueing.signing import (
    Signer,
    SigningPolicy,
    Verdict,
    examine,
    signed_parts,
)
from mqis.runtime.node.signer import MachineKey, MachineSigner
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import MD5, MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.securityheader import SenderIdType
from mqis.wire.mqqb.userheader import UserHeader
from tests.protocol.queueing.wires import PSC1, PSC2, Wires, manager

KEY = MachineKey.generate(1024)
KEYS = {PSC1: (KEY.public,), PSC2: (KEY.public,)}
SIGNER = MachineSigner(KEY, lambda guid: KEYS.get(guid, ()))
STRANGER = MachineSigner(KEY, lambda _guid: ())
NONE, ACCEPT, REQUIRE = SigningPolicy.NONE, SigningPolicy.ACCEPT, SigningPolicy.REQUIRE


def packet(signer: Signer | None, body: bytes = b"body") -> UserMessage:
    message = QueuedMessage(body, acknowledge=True)
    decoded = decode_packet(build_packet(message, MessageIdentifier(PSC1, 7), "PSC2", 0, signer))
    assert isinstance(decoded, UserMessage)
    return decoded


SIGNED, UNSIGNED = packet(SIGNER), packet(None)
assert SIGNED.security is not None
TAMPERED = replace(SIGNED, properties=replace(SIGNED.properties, body=b"bodx"))
CUT = replace(SIGNED, security=replace(SIGNED.security, signature=SIGNED.security.signature[:-4]))
#: Signed by PSC1, sent as PSC2.
BORROWED = replace(SIGNED, header=replace(SIGNED.header, source=PSC2))
BY_USER = replace(SIGNED, security=replace(SIGNED.security, sender_id_type=SenderIdType.SID))
SHA1 = replace(SIGNED, properties=replace(SIGNED.properties, hash_algorithm=0x8004))


@pytest.mark.req("MQDSRP-3.1.7.2.1-04")
def test_what_is_signed_in_which_order() -> None:
    header = UserHeader(
        PSC1,
        7,
        QueueName.of_direct("OS:A\\q"),
        admin=QueueName.at_source(1),
        response=QueueName.of_direct("OS:B\\q"),
    )
    properties = MessageProperties(
        b"body", correlation_id=bytes(range(20)), label="L\0", application_tag=0x01020304
    )
    response = b"\x0e\0" + "OS:B\\q\0".encode("utf-16-le")
    assert b"".join(signed_parts(header, properties)) == (
        bytes(range(20)) + b"\x04\x03\x02\x01" + b"body" + b"L\0\0\0" + response + b"\x01\0\0\0"
    )


def test_fields_that_are_not_there_add_nothing() -> None:
    header = UserHeader(PSC1, 7, QueueName.of_direct("OS:A\\q"))
    assert b"".join(signed_parts(header, MessageProperties(b"body"))) == bytes(24) + b"body"
    same = replace(header, admin=QueueName.at_source(1), response=QueueName.SAME_AS_ADMIN)
    assert b"".join(signed_parts(same, MessageProperties())) == bytes(24) + b"\x01\0\0\0"


@pytest.mark.req("MQDSRP-3.1.7.2.1-03", "MQDSRP-5.1-02")
def test_a_message_is_signed_by_its_queue_manager() -> None:
    """Checked with nothing but arithmetic: PKCS #1 v1.5 over MD5, least significant byte first."""
    security = SIGNED.security
    assert security is not None
    assert security.sender_id_type == 2
    assert security.sender_id == PSC1.raw
    assert security.default_provider
    assert SIGNED.properties.hash_algorithm == MD5 == 0x8003
    assert len(security.signature) == 128
    key = KEY.public
    number = pow(int.from_bytes(security.signature, "little"), key.exponent, key.modulus)
    digest = md5(bytes(24) + b"body" + b"\x01\0\0\0").digest()
    info = bytes.fromhex("3020300c06082a864886f70d020505000410") + digest
    assert number.to_bytes(128, "big") == b"\0\x01" + b"\xff" * (125 - len(info)) + b"\0" + info


@pytest.mark.req("MQDSRP-3.1.7.2.1-03")
def test_without_a_key_the_sender_is_named_all_the_same() -> None:
    security = UNSIGNED.security
    assert security is not None
    assert (security.sender_id_type, security.sender_id) == (2, PSC1.raw)
    assert (security.signature, security.default_provider) == (b"", False)


def test_verdicts() -> None:
    parts = signed_parts(SIGNED.header, SIGNED.properties)
    assert SIGNED.security is not None
    signature = SIGNED.security.signature
    assert SIGNER.verify(PSC1, parts, signature) is Verdict.VALID
    assert SIGNER.verify(PSC1, (*parts, b"x"), signature) is Verdict.INVALID
    assert SIGNER.verify(Guid.NULL, parts, signature) is Verdict.UNKNOWN_SENDER


@pytest.mark.parametrize(
    ("message", "signer", "none", "accept", "require"),
    [
        (SIGNED, SIGNER, (False, None), (True, None), (True, None)),
        (UNSIGNED, SIGNER, (False, None), (False, None), (False, "not signed")),
        (TAMPERED, SIGNER, (False, None), (False, "wrong"), (False, "wrong")),
        (CUT, SIGNER, (False, None), (False, "wrong"), (False, "wrong")),
        (BORROWED, SIGNER, (False, None), (False, "wrong"), (False, "wrong")),
        (BY_USER, SIGNER, (False, None), (False, "wrong"), (False, "wrong")),
        (SHA1, SIGNER, (False, None), (False, "wrong"), (False, "wrong")),
        (SIGNED, STRANGER, (False, None), (False, None), (False, "no key")),
        (SIGNED, None, (False, None), (False, None), (False, "no key")),
        (replace(SIGNED, security=None), SIGNER, (False, None), (False, None), (False, "not sig")),
    ],
    ids=[
        "signed",
        "unsigned",
        "tampered",
        "cut",
        "borrowed",
        "by a user",
        "with SHA-1",
        "unknown sender",
        "no signer",
        "no security header",
    ],
)
def test_policies(
    message: UserMessage,
    signer: Signer | None,
    none: tuple[bool, str | None],
    accept: tuple[bool, str | None],
    require: tuple[bool, str | None],
) -> None:
    for policy, (authenticated, refusal) in ((NONE, none), (ACCEPT, accept), (REQUIRE, require)):
        found, reason = examine(message, policy, signer)
        assert found == authenticated
        assert (reason is None) == (refusal is None)
        assert refusal is None or (reason is not None and refusal in reason)


@pytest.mark.parametrize("policy", SigningPolicy)
@pytest.mark.parametrize("signs", [True, False])
def test_policies_between_two_queue_managers(policy: SigningPolicy, signs: bool) -> None:
    source = manager(PSC1, "PSC1", signer=SIGNER if signs else None)
    target = manager(PSC2, "PSC2", signer=SIGNER, policy=policy)
    wires = Wires(source, target)
    wires.send("psc1", "PSC2", QueuedMessage(b"signed?"))
    wires.run()
    if policy is REQUIRE and not signs:
        assert [event.reason for event in wires.of("psc2", Refused)] == ["not signed"]
        assert wires.of("psc2", Delivered) == []
    else:
        (delivered,) = wires.of("psc2", Delivered)
        assert delivered.authenticated == (signs and policy is not NONE)


def test_policy_none_does_not_sign() -> None:
    wires = Wires(
        manager(PSC1, "PSC1", signer=SIGNER, policy=NONE), manager(PSC2, "PSC2", policy=REQUIRE)
    )
    wires.send("psc1", "PSC2", QueuedMessage(b"x"))
    wires.run()
    assert [event.reason for event in wires.of("psc2", Refused)] == ["not signed"]


def test_a_forged_message_does_not_make_the_real_one_a_duplicate() -> None:
    """A refused message is not remembered, or anybody could silence anybody."""
    source, target = manager(PSC1, "PSC1"), manager(PSC2, "PSC2", signer=SIGNER, policy=REQUIRE)
    wires = Wires(source, target)
    forged = wires.send("psc1", "PSC2", QueuedMessage(b"forged"))
    wires.run()
    assert target.statistics.refused == 1
    real = manager(PSC1, "PSC1", signer=SIGNER)
    wires = Wires(real, target)
    genuine = wires.send("psc1", "PSC2", QueuedMessage(b"real"))
    wires.run()
    assert genuine == forged
    assert [event.body for event in wires.of("psc2", Delivered)] == [b"real"]
