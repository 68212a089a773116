"""Addresses of peers, as tables count them."""

from __future__ import annotations

import pytest

from mqis.runtime.peers import computer_of, is_loopback, parse_address, source_of

SOURCES = [
    ("192.0.2.1", "192.0.2.1"),
    ("::ffff:192.0.2.1", "192.0.2.1"),
    ("::ffff:127.0.0.1", "127.0.0.1"),
    ("127.0.0.2", "127.0.0.2"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
    ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
    ("fe80::1%eth0", "fe80::/64"),
    ("::1", "::1"),
    ("", ""),
    ("/run/socket", "/run/socket"),
]


@pytest.mark.req("SEC-5-03")
@pytest.mark.parametrize(("peer", "source"), SOURCES)
def test_what_a_peer_counts_as(peer: str, source: str) -> None:
    assert source_of(peer) == source


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_all_of_loopback_is_this_computer(peer: str) -> None:
    assert is_loopback(peer)
    assert computer_of(peer) == "loopback"


@pytest.mark.parametrize("peer", ["192.0.2.1", "2001:db8::1", "", "localhost"])
def test_others_are_not(peer: str) -> None:
    assert not is_loopback(peer)
    assert computer_of(peer) == source_of(peer)


def test_what_is_no_address() -> None:
    assert parse_address("localhost") is None
    assert str(parse_address("fe80::1%eth0")) == "fe80::1"
