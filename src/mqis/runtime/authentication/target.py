"""The server that an NTLM client meant to log on to (MS-NLMP 2.2.2.1, MsvAvTargetName).

Clients that know it send a service principal name, such as ``host/ams-dir1`` or
``cifs/10.0.2.1:2879``, protected by their proof. It exposes a logon that an attacker collected
under another name and relays to us. There is no channel binding, since nothing here runs over
TLS, so this name alone shows for which server a logon was meant.

Only the host is compared: logons meant for other services of the same computer give no access that
the caller would not have anyway, and libraries send ``cifs`` or ``host`` for any service.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

from mqis.protocol.authentication import Addresses
from mqis.runtime.peers import is_loopback, parse_address


class OwnNames:
    """The names of this server.

    Addresses need not be listed: the local address of a connection is a name of ours, and loopback
    addresses and ``localhost`` are for connections from this computer.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_folded(name) for name in names if name)

    @classmethod
    def of(cls, server: str, domain: str, others: Iterable[str] = ()) -> OwnNames:
        """The names in the directory and of the computer, alone and in their domains.

        DNS is not queried: an attacker who answers for it could give us any name.
        """
        host, _, dns_domain = socket.gethostname().partition(".")
        alone = [name for name in (server, host) if name]
        inside = [f"{name}.{suffix}" for name in alone for suffix in (domain, dns_domain) if suffix]
        return cls((*alone, *inside, *others))

    def include(self, target: str, addresses: Addresses) -> bool:
        """Returns whether a service principal name means this server."""
        host = host_of(target)
        if _folded(target) in self._names or _folded(host) in self._names:
            return True
        address = parse_address(host)
        if address is None:
            return _folded(host) == "localhost" and is_loopback(addresses.peer)
        if address.is_loopback and is_loopback(addresses.peer):
            return True
        return address == parse_address(addresses.local)


def host_of(target: str) -> str:
    """The host of ``service/host``, ``service/host:port/name`` or of a lone ``host``."""
    parts = target.split("/")
    host = parts[1] if len(parts) > 1 else parts[0]
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _folded(name: str) -> str:
    address = parse_address(name)
    return name.rstrip(".").lower() if address is None else str(address)
