"""Assigns addresses and ports to the servers of an enterprise.

Linux has all of 127.0.0.0/8, so every server gets an address of its own there and the ports that
clients expect. Elsewhere all share 127.0.0.1 and each has a block of ports. A port that is busy or
privileged is replaced by another one, and a note says so.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, replace
from hashlib import blake2b
from pathlib import Path

from mqis.config.nodes import NodesError

LOOPBACK = "127.0.0.1"
#: The ports of a server, with the socket type of each.
_KINDS = {
    "rpc": socket.SOCK_STREAM,
    "mapper": socket.SOCK_STREAM,
    "queue": socket.SOCK_STREAM,
    "discovery": socket.SOCK_DGRAM,
    "monitor": socket.SOCK_STREAM,
}
#: Blocks of ports, below the ephemeral ports of the system.
_FIRST, _LAST, _BLOCK = 12_000, 31_900, 10


@dataclass(frozen=True, slots=True)
class Ports:
    rpc: int = 2879
    mapper: int = 135
    queue: int = 1801
    #: UDP.
    discovery: int = 1801
    monitor: int = 9364


@dataclass(frozen=True, slots=True)
class ServerPorts:
    """The address and ports of a server."""

    address: str
    ports: Ports


@dataclass(frozen=True, slots=True)
class Assigned:
    places: Mapping[str, ServerPorts]
    #: Notes about ports that were replaced.
    notes: tuple[str, ...]


def assign(
    run: Path,
    names: Sequence[str],
    known: Mapping[str, ServerPorts] | None = None,
    *,
    own: bool | None = None,
    fixed: Mapping[str, Mapping[str, int]] | None = None,
    running: Set[str] = frozenset(),
) -> Assigned:
    """Assigns a place to each name. Those of ``known`` keep their places as far as possible.

    ``own``: give each server its own address; None: if the system supports that. ``fixed``: ports
    that the plan sets, by server and by field of ``Ports``. ``running``: servers that hold their
    ports already.
    """
    with ExitStack() as stack:
        return _Assigner(stack, run, own, fixed or {}, running).assign(names, known or {})


def own_addresses_work() -> bool:
    """True if loopback has more than one address here."""
    with suppress(OSError), socket.socket() as probe:
        probe.bind(("127.77.1.1", 0))
        return True
    return False


class _Assigner:
    """Assigns ports, and keeps each bound until the end, so that none is assigned twice."""

    def __init__(
        self,
        stack: ExitStack,
        run: Path,
        own: bool | None,
        fixed: Mapping[str, Mapping[str, int]],
        running: Set[str],
    ) -> None:
        self._stack = stack
        self._fixed = fixed
        self._running = running
        digest = blake2b(os.fsencode(run.absolute()), digest_size=4).digest()
        self._seed = int.from_bytes(digest, "big")
        self._own = own_addresses_work() if own is None else own
        self._notes: list[str] = []

    def assign(self, names: Sequence[str], known: Mapping[str, ServerPorts]) -> Assigned:
        found = {name: self._settle(name, known[name]) for name in names if name in known}
        taken = {place.address for place in found.values()}
        fresh = self._addresses(taken)
        for number, name in enumerate(names):
            if name in found:
                continue
            if self._own:
                found[name] = self._settle(name, ServerPorts(next(fresh), Ports()))
            else:
                place = ServerPorts(LOOPBACK, self._block(self._seed + number))
                found[name] = self._as_fixed(name, place)
        return Assigned({name: found[name] for name in names}, tuple(self._notes))

    def _addresses(self, taken: set[str]) -> Iterator[str]:
        """Yields 127.x.y.1 and up: each run directory has its own network."""
        first = next(iter(taken), "")
        if first and first != LOOPBACK:
            net = first.rpartition(".")[0]
        else:
            net = f"127.{10 + self._seed % 200}.{1 + self._seed // 200 % 250}"
        for host in range(1, 255):
            if (address := f"{net}.{host}") not in taken:
                yield address
        raise NodesError("no address is left for another server: an enterprise may have 254")

    def _settle(self, name: str, place: ServerPorts) -> ServerPorts:
        """Returns ``place``, with other ports instead of those that are not available."""
        place = self._as_fixed(name, place)
        if name in self._running:
            return place
        ports = place.ports
        for kind, wanted in zip(_KINDS, astuple(ports), strict=True):
            if kind in self._fixed.get(name, {}):
                continue
            reason = self._hold(place.address, wanted, kind)
            if reason is None:
                continue
            other = self._another(place.address, kind)
            self._notes.append(
                f"{name}: {kind} port {place.address}:{wanted} is {reason}; took {other}"
            )
            ports = replace(ports, **{kind: other})
        return ServerPorts(place.address, ports)

    def _as_fixed(self, name: str, place: ServerPorts) -> ServerPorts:
        """The place with the ports that the plan sets; one that another program has is an error."""
        fixed = self._fixed.get(name, {})
        for kind, wanted in fixed.items():
            if name in self._running and getattr(place.ports, kind) == wanted:
                continue
            reason = self._hold(place.address, wanted, kind)
            if reason is not None:
                key = f"{kind}_port = {wanted}"
                raise NodesError(f"{name}: {key}: this port is {reason} at {place.address}")
        return ServerPorts(place.address, replace(place.ports, **fixed))

    def _hold(self, address: str, port: int, kind: str) -> str | None:
        """Binds a port until the end of the assignment; returns the reason if that fails."""
        made = socket.socket(socket.AF_INET, _KINDS[kind])
        try:
            if _KINDS[kind] == socket.SOCK_STREAM and os.name == "posix":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((address, port))
            if _KINDS[kind] == socket.SOCK_STREAM:
                made.listen(1)
        except OSError as error:
            made.close()
            return {errno.EADDRINUSE: "busy", errno.EACCES: "privileged"}.get(
                error.errno or 0, f"not available ({error.strerror})"
            )
        self._stack.callback(made.close)
        return None

    def _another(self, address: str, kind: str) -> int:
        start = _FIRST + self._seed % (_LAST - _FIRST)
        for step in range(_LAST - _FIRST):
            port = _FIRST + (start - _FIRST + step) % (_LAST - _FIRST)
            if self._hold(address, port, kind) is None:
                return port
        raise NodesError(f"no port is free at {address}")

    def _block(self, seed: int) -> Ports:
        """Finds consecutive ports, each free for its protocol."""
        blocks = (_LAST - _FIRST) // _BLOCK
        for step in range(blocks):
            base = _FIRST + (seed + step) % blocks * _BLOCK
            numbers = range(base, base + len(_KINDS))
            pairs = zip(_KINDS, numbers, strict=True)
            if all(self._hold(LOOPBACK, port, kind) is None for kind, port in pairs):
                return Ports(*numbers)
        raise NodesError(f"no {len(_KINDS)} ports in a row are free at {LOOPBACK}")
