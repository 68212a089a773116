"""Tickets out of the tokens of logons, and into caches of credentials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ldap.ber import element, integer, sequence
from mqis.wire.security.tickets import KerberosName, ShownTicket, ticket_of

TICKET = element(0x61, sequence(element(0xA0, integer(5)), b"\xa3\x03\x04\x01x"))
OPTIONS = element(0xA2, element(0x03, bytes(5)))
AUTHENTICATOR = element(0xA4, sequence(b"\x04\x01y"))


def request(
    *, version: int = 5, message: int = 14, ticket: bytes = TICKET, more: bytes = b""
) -> bytes:
    fields = (
        element(0xA0, integer(version)),
        element(0xA1, integer(message)),
        OPTIONS,
        element(0xA3, ticket),
        AUTHENTICATOR,
        more,
    )
    return element(0x6E, sequence(*fields))


def framed(token: bytes, *, mechanism: str = "2a864886f712010202", kind: bytes = b"\1\0") -> bytes:
    return element(0x60, element(0x06, bytes.fromhex(mechanism)), kind, token)


def test_a_ticket_is_taken_from_either_form_of_a_token() -> None:
    assert ticket_of(request()) == TICKET  # DCE style
    assert ticket_of(framed(request())) == TICKET


@pytest.mark.req("SEC-27-02")
@pytest.mark.parametrize(
    "token",
    [
        b"",
        request(version=4),
        request(message=15),
        request(ticket=b"\x04\x01x"),
        request(ticket=TICKET + TICKET)[:-1],
        request(more=b"\x04\0"),
        request() + b"\0",
        framed(request(), mechanism="2b0601050502"),
        framed(request(), kind=b"\2\0"),
        framed(request()) + b"\0",
    ],
    ids=range(10),
)
def test_anything_else_is_no_ticket(token: bytes) -> None:
    with pytest.raises(WireError):
        ticket_of(token)


@given(st.binary(max_size=200))
def test_garbage_is_refused(token: bytes) -> None:
    with pytest.raises(WireError):
        ticket_of(token)


@pytest.mark.req("SEC-27-02")
def test_a_second_ticket_beside_the_first_is_never_taken() -> None:
    """A library might read another one than we do."""
    twice = element(0x6E, sequence(*(element(0xA3, TICKET),) * 2))
    with pytest.raises(WireError):
        ticket_of(twice)
    behind = request(ticket=TICKET + element(0x61, b"stolen"))
    with pytest.raises(WireError):
        ticket_of(behind)


def test_a_credential_as_a_cache_keeps_it() -> None:
    client = KerberosName(b"LAB", (b"alice",))
    shown = ShownTicket(client, KerberosName(b"LAB", (b"host", b"srv1")), b"ticket", 1, 0x01020304)
    assert shown.encode() == (
        bytes.fromhex("00000001 00000001 00000003")
        + b"LAB\0\0\0\5alice"
        + bytes.fromhex("00000001 00000002 00000003")
        + b"LAB\0\0\0\4host\0\0\0\4srv1"
        + bytes.fromhex("0012 00000020")
        + bytes(32)
        + bytes.fromhex("00000001 00000001 01020304 00000000 00 40000000")
        + bytes(8)
        + b"\0\0\0\6ticket"
        + bytes(4)
    )
