"""The address that a peer is counted under."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address

#: One customer has at least this much of IPv6, and could take another address for each connection.
_IPV6_PREFIX = 64


@lru_cache(maxsize=4096)
def peer_key(address: str) -> str:
    """The key under which budgets and limits count ``address``.

    IPv4 as it is, also where IPv6 carries it; IPv6 by its /64; what is no address as it is.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, _IPV6_PREFIX), strict=False))
