"""Addresses of peers: what limits count them by, and which are this computer itself."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

#: What one customer of a network has: whoever has one address of it has them all.
_IPV6_PREFIX = 64


def peer_key(address: str) -> str:
    """Return what limits per address count ``address`` by.

    An IPv4 address that is mapped into IPv6 is the IPv4 address. Any other IPv6 address counts by
    its /64. What is no address counts as it stands.
    """
    known = _parse(address)
    if isinstance(known, IPv6Address):
        return str(IPv6Network((known, _IPV6_PREFIX), strict=False))
    return address if known is None else str(known)


def is_loopback(address: str) -> bool:
    """Return whether ``address`` is this computer itself; a name never is."""
    known = _parse(address)
    return known is not None and known.is_loopback


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    """The address without its scope, and without IPv6 around an IPv4 address."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(known, "ipv4_mapped", None) or known
