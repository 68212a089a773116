"""Logons to a server: what is counted, who waits, and what the audit trail says."""

from __future__ import annotations

import logging

import pytest

from mqis.protocol.authentication import Addresses, AuthenticationError, AuthLevel, AuthType
from mqis.protocol.security.logons import LogonLimits
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.server.logon import AuditedAuthenticator
from tests.runtime.authentication.pairs import ACCOUNTS, PASSWORD, exchange

LIMITS = LogonLimits(per_account=3, per_address=10, wait_s=60)
HERE, THERE = "192.0.2.1", "192.0.2.2"


class Door:
    """A server's authenticator, and a clock that stands still."""

    def __init__(self) -> None:
        self.now = 1000.0
        server = PyspnegoAuthenticator(ACCOUNTS, "SRV1", "LAB")
        self.authenticator = AuditedAuthenticator(server, LIMITS, clock=lambda: self.now)

    def knock(
        self,
        password: str = PASSWORD,
        *,
        peer: str = HERE,
        name: str = "alice",
        domain: str = "LAB",
        level: int = AuthLevel.PRIVACY,
        auth_type: int = AuthType.NTLM,
    ) -> bool:
        """Returns whether a logon succeeds."""
        client = PyspnegoInitiator(LogonCredentials(name, domain, password))
        acceptor = self.authenticator.acceptor(auth_type, level, Addresses(peer, "10.0.0.1"))
        try:
            exchange(client.initiator(auth_type, level, "host/srv1"), acceptor)
        except AuthenticationError:
            assert acceptor.identity is None
            return False
        assert acceptor.identity is not None
        return True


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture(autouse=True)
def audit(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "mqis.audit")
    return caplog


@pytest.mark.req("SEC-5-03")
def test_who_has_to_wait_is_refused_even_with_the_right_password(door: Door) -> None:
    for _ in range(3):
        assert not door.knock("wrong")
    assert not door.knock()
    door.now += 1
    assert door.knock()


@pytest.mark.req("SEC-5-03")
def test_other_spellings_of_a_name_are_no_further_guesses(door: Door) -> None:
    assert not door.knock("wrong", domain="LAB", name="alice")
    assert not door.knock("wrong", domain="", name="ALICE@lab")
    assert not door.knock("wrong", domain="SRV1", name="Alice")
    assert not door.knock(domain="", name="alice")


@pytest.mark.req("SEC-5-03")
def test_attempts_while_waiting_are_not_judged_and_extend_nothing(door: Door) -> None:
    for _ in range(50):
        assert not door.knock("wrong")
    assert (door.authenticator.failures, door.authenticator.unjudged) == (50, 47)
    door.now += 1
    assert door.knock()


@pytest.mark.req("SEC-5-03")
def test_an_attacker_elsewhere_does_not_lock_the_administrator_out(door: Door) -> None:
    for number in range(200):
        door.knock("wrong", peer=f"198.51.100.{number}")
        door.knock("wrong", peer=THERE)
    assert not door.knock(peer=THERE)
    assert door.knock(peer=HERE)


@pytest.mark.req("SEC-5-03")
def test_an_address_that_fails_often_waits_whatever_name_it_gives(door: Door) -> None:
    for number in range(10):
        assert not door.knock("wrong", name=f"guess{number}")
    assert not door.knock()
    assert door.knock(peer=THERE)
    assert not door.knock(peer="::ffff:192.0.2.1"), "the same address, seen by another socket"
    door.now += 1
    assert door.knock()


@pytest.mark.req("SEC-5-03")
def test_neighbours_in_an_ipv6_network_are_one(door: Door) -> None:
    for number in range(3):
        assert not door.knock("wrong", peer=f"2001:db8:1:1::{number}")
    assert not door.knock(peer="2001:db8:1:1:ffff::1")
    assert door.knock(peer="2001:db8:1:2::1")


@pytest.mark.req("SEC-5-03")
def test_programs_of_this_computer_wait_by_account(door: Door) -> None:
    for number in range(50):
        assert not door.knock("wrong", name=f"guess{number}", peer="127.0.0.1")
    for number in range(3):
        assert not door.knock("wrong", peer=f"127.0.0.{number + 1}")
    assert not door.knock(peer="127.9.9.9"), "loopback is one, whatever its addresses"
    assert door.knock("bob's", name="bob", domain="", peer="127.0.0.1")


@pytest.mark.req("SEC-5-03")
@pytest.mark.parametrize("auth_type", [AuthType.NTLM, AuthType.SPNEGO])
def test_a_success_begins_anew(door: Door, auth_type: int) -> None:
    for _ in range(4):
        assert not door.knock("wrong", auth_type=auth_type)
        assert not door.knock("wrong", auth_type=auth_type)
        assert door.knock(auth_type=auth_type)


@pytest.mark.req("SEC-5-05")
def test_a_failure_is_told_with_peer_account_and_reason(
    door: Door, audit: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        door.knock("wrong", name="ALICE", domain="")
    lines = [(record.getMessage(), vars(record)["details"]) for record in audit.records]
    text = "refused: LAB\\alice cannot log on: NTLM: unknown account or wrong password"
    told = {"peer": HERE}
    assert lines == [(text, told), (text, told), (text, told | {"wait_s": 1.0})]


@pytest.mark.req("SEC-5-05")
def test_a_name_does_not_fill_the_log(door: Door, audit: pytest.LogCaptureFixture) -> None:
    door.knock("wrong", name="x" * 20_000)
    (record,) = audit.records
    assert len(record.getMessage()) < 200


@pytest.mark.req("SEC-5-03")
def test_an_account_under_attack_is_told(door: Door, audit: pytest.LogCaptureFixture) -> None:
    for number in range(12):
        door.knock("wrong", peer=f"198.51.100.{number}")
    alarm = audit.records[-1]
    assert alarm.levelno == logging.ERROR
    assert alarm.getMessage().startswith("many failed logons as LAB\\alice")
    assert vars(alarm)["details"] == {"peer": "198.51.100.11", "failures": 12}


@pytest.mark.req("SEC-5-01", "SEC-5-05")
def test_a_logon_below_the_minimum_is_told(door: Door, audit: pytest.LogCaptureFixture) -> None:
    assert door.knock(level=AuthLevel.PACKET)
    (record,) = audit.records
    text = "LAB\\alice logged on below security.min_level and counts as anonymous"
    assert record.getMessage() == text
    assert vars(record)["details"] == {"peer": HERE, "level": AuthLevel.PACKET}


@pytest.mark.req("SEC-5-05")
def test_a_message_that_is_not_the_callers_is_told_once(
    door: Door, audit: pytest.LogCaptureFixture
) -> None:
    client = PyspnegoInitiator(LogonCredentials("alice", "LAB", PASSWORD))
    initiator = client.initiator(AuthType.NTLM, AuthLevel.INTEGRITY, "host/srv1")
    acceptor = door.authenticator.acceptor(
        AuthType.NTLM, AuthLevel.INTEGRITY, Addresses(HERE, "10.0.0.1")
    )
    exchange(initiator, acceptor)
    for _ in range(3):
        with pytest.raises(AuthenticationError):
            acceptor.unprotect(AuthLevel.INTEGRITY, b"head", b"body", b"tail", bytes(16), False)
    (record,) = audit.records
    assert record.getMessage().startswith("refused: a message that was not signed by LAB\\alice: ")
    assert vars(record)["details"] == {"peer": HERE}
