"""The networks of this computer: their local and broadcast addresses.

On Linux they are read by interface ioctls (netdevice(7)). Elsewhere the host's name is resolved,
as on Windows (MS-MQSD note <17>), and broadcasts go to 255.255.255.255.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

LOOPBACK_BROADCAST = "127.255.255.255"
LIMITED_BROADCAST = "255.255.255.255"

_SIOCGIFCONF, _SIOCGIFFLAGS, _SIOCGIFBRDADDR = 0x8912, 0x8913, 0x8919
_IFF_UP, _IFF_BROADCAST, _IFF_LOOPBACK, _IFF_POINTOPOINT = 0x1, 0x2, 0x8, 0x10
#: struct ifreq: a name and a union.
_NAME = 16
_IFREQ = _NAME + (24 if struct.calcsize("P") == 8 else 16)
_MAX_INTERFACES = 1024


@dataclass(frozen=True, slots=True)
class LocalNetwork:
    """An IPv4 address of this computer and the broadcast address of its network."""

    address: str
    broadcast: str
    #: True for, say, a dial-up connection, which may lead to another network every time.
    point_to_point: bool = False

    @property
    def loopback(self) -> bool:
        return IPv4Address(self.address).is_loopback


def local_networks() -> list[LocalNetwork]:
    """The networks that are up; loopback only if there is no other."""
    found = list(dict.fromkeys(_interfaces()))
    real = [network for network in found if not network.loopback]
    return real or [network for network in found if network.loopback]


def network_of(address: str) -> LocalNetwork:
    """The network of a local address; every 127.x.y.z is local without configuration."""
    known = {network.address: network for network in _interfaces()}
    if address in known:
        return known[address]
    loopback = IPv4Address(address).is_loopback
    return LocalNetwork(address, LOOPBACK_BROADCAST if loopback else LIMITED_BROADCAST)


def _interfaces() -> Iterator[LocalNetwork]:
    return _linux_interfaces() if sys.platform == "linux" else _addresses_of_this_host()


def _addresses_of_this_host() -> Iterator[LocalNetwork]:
    try:
        addresses = socket.gethostbyname_ex(socket.gethostname())[2]
    except OSError:
        addresses = ["127.0.0.1"]
    for address in addresses:
        loopback = IPv4Address(address).is_loopback
        yield LocalNetwork(address, LOOPBACK_BROADCAST if loopback else LIMITED_BROADCAST)


def _linux_interfaces() -> Iterator[LocalNetwork]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name, address in _configured(sock):
            (flags,) = struct.unpack_from("=H", _ioctl(sock, _SIOCGIFFLAGS, name), _NAME)
            if not flags & _IFF_UP:
                continue
            broadcast = LIMITED_BROADCAST
            if flags & _IFF_LOOPBACK:
                broadcast = LOOPBACK_BROADCAST
            elif flags & _IFF_BROADCAST:
                broadcast = _address_in(_ioctl(sock, _SIOCGIFBRDADDR, name, address))
                if broadcast == "0.0.0.0":  # configured without one
                    broadcast = LIMITED_BROADCAST
            yield LocalNetwork(address, broadcast, bool(flags & _IFF_POINTOPOINT))


def _configured(sock: socket.socket) -> Iterator[tuple[bytes, str]]:
    """The interface and address, for each address of each interface."""
    import fcntl  # noqa: PLC0415 -- not on every system
    from array import array  # noqa: PLC0415

    buffer = array("B", bytes(_IFREQ * _MAX_INTERFACES))
    place, size = buffer.buffer_info()
    reply = fcntl.ioctl(sock, _SIOCGIFCONF, struct.pack("iP", size, place))
    used = struct.unpack_from("i", reply)[0]
    raw = buffer.tobytes()
    for at in range(0, used, _IFREQ):
        entry = raw[at : at + _IFREQ]
        yield entry[:_NAME].partition(b"\0")[0], _address_in(entry)


def _ioctl(sock: socket.socket, number: int, name: bytes, address: str | None = None) -> bytes:
    """The ifreq that an ioctl fills in; ``address`` selects one of several on an interface."""
    import fcntl  # noqa: PLC0415

    union = b""
    if address is not None:
        union = struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(address))
    request = struct.pack(f"{_NAME}s{_IFREQ - _NAME}s", name, union)
    return fcntl.ioctl(sock, number, request)


def _address_in(ifreq: bytes) -> str:
    """The address in the sockaddr_in (family, port, address) after the name."""
    return socket.inet_ntoa(ifreq[_NAME + 4 : _NAME + 8])


# --- UDP sockets for discovery, ready for an event loop -------------------------------------------

#: The buffer for a burst of requests; datagrams beyond it are lost.
_RECEIVE_BUFFER = 4 * 1024 * 1024


def listening_socket(address: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket bound to an address of a server.

    ``shared``: other sockets may bind the same address, and a broadcast reaches them all. That is
    for broadcast addresses only: of two servers at one address, only one would get a datagram.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        made.bind((address, port))
    except BaseException:
        made.close()
        raise
    return made


def broadcasting_socket(address: str) -> socket.socket:
    """A socket bound to an address of a client and to any free port (2.1)."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        made.bind((address, 0))
    except BaseException:
        made.close()
        raise
    return made
