"""Addresses of peers, in the form in which tables count by address.

The owner of one IPv6 address has all 2^64 of its network, so these count as one. An IPv4 address
that a dual-stack socket shows as ``::ffff:192.0.2.1`` is that IPv4 address.
"""

from __future__ import annotations

import os
import re
import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_IPV6_PREFIX = 64


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parses an address, without scope and with mapped IPv4 unpacked; None if it is none."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@lru_cache(maxsize=4096)
def source_of(peer: str) -> str:
    """The key by which a peer is counted: its IPv4 address or its IPv6 network of 64 bits.

    A text that is no address (a local socket has none) is its own key.
    """
    address = parse_address(peer)
    if address is None:
        return peer
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return str(IPv6Network((int(address), _IPV6_PREFIX), strict=False))
    return str(address)


def is_loopback(peer: str) -> bool:
    """True if the peer is this computer, whose users could stop the server by other means."""
    address = parse_address(peer)
    return address is not None and address.is_loopback


def computer_of(peer: str) -> str:
    """The key of ``source_of``, but one key for the millions of loopback addresses."""
    return "loopback" if is_loopback(peer) else source_of(peer)


_NUMBER = re.compile(r"\[Errno (\d+)\]")


def reason_of(error: OSError) -> str:
    """Returns ``Connection refused`` for ``[Errno 111] Connect call failed ('127.0.0.1', 1)``.

    The caller names the address itself, and an error names it once. For a host with several
    addresses asyncio joins the texts of all attempts into one error without a number.
    """
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    numbers = [error.errno] if error.errno else map(int, _NUMBER.findall(str(error)))
    texts = dict.fromkeys(os.strerror(number) for number in numbers)
    return ", ".join(texts) or str(error) or type(error).__name__
