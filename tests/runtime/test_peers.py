"""What limits count a peer by, and who is this computer itself."""

from __future__ import annotations

import pytest

from mqis.runtime.peers import is_loopback, peer_key


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:ffff:ffff:ffff", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_peer_key(address: str, key: str) -> None:
    assert peer_key(address) == key


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", "::1%lo"])
def test_this_computer(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "::", "0.0.0.0", "fe80::1%lo", "::127.0.0.1", "::ffff:10.0.0.1", "", "x"],
)
def test_others(address: str) -> None:
    assert not is_loopback(address)
