"""The endpoint map: the registrations of a host, and their search (C706 appendix O).

One registry serves all servers of a host that share it; it is changed locally, not over the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.rpc.epmapper import Inquiry, VersionOption
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.tower import TCP_PROTOCOLS, Tower


@dataclass(frozen=True, slots=True)
class Registration:
    """An interface on a TCP port, for one object or for all."""

    interface: SyntaxId
    port: int
    address: str
    annotation: str = ""
    object: Guid = Guid.NULL

    @property
    def tower(self) -> Tower:
        return Tower.tcp(self.interface, self.port, self.address, NDR20)


class EndpointRegistry:
    """Registrations, in the order in which they were made."""

    def __init__(self) -> None:
        self._entries: list[Registration] = []

    def insert(self, registration: Registration, *, replace: bool = True) -> None:
        """Adds a registration; ``replace`` first removes those of the same interface and object."""
        if replace:
            self.delete(registration.interface, registration.object)
        self._entries.append(registration)

    def delete(self, interface: SyntaxId, target: Guid = Guid.NULL) -> None:
        self._entries = [e for e in self._entries if (e.interface, e.object) != (interface, target)]

    def map(self, tower: Tower, target: Guid) -> Iterator[Registration]:
        """The registrations that match ``tower``, those for the object ``target`` first."""
        wanted, transfer = tower.interface, tower.transfer
        if wanted is None or transfer is None or tower.protocols[:3] != TCP_PROTOCOLS:
            return
        fitting = [e for e in self._entries if compatible(e.interface, wanted)]
        if target:
            yield from (e for e in fitting if e.object == target)
        yield from (e for e in fitting if not e.object)

    def lookup(
        self, inquiry: int, target: Guid, interface: SyntaxId | None, version_option: int
    ) -> Iterator[Registration]:
        """The registrations that match an inquiry."""
        for entry in self._entries:
            if inquiry in (Inquiry.BY_OBJECT, Inquiry.BY_BOTH) and entry.object != target:
                continue
            by_interface = inquiry in (Inquiry.BY_INTERFACE, Inquiry.BY_BOTH)
            if by_interface and not _version_fits(entry.interface, interface, version_option):
                continue
            yield entry


def compatible(offered: SyntaxId, wanted: SyntaxId) -> bool:
    """True for the same interface and major version, and at least the minor version wanted."""
    same = offered.uuid == wanted.uuid and offered.major == wanted.major
    return same and offered.minor >= wanted.minor


def _version_fits(offered: SyntaxId, wanted: SyntaxId | None, option: int) -> bool:
    if wanted is None or offered.uuid != wanted.uuid:
        return False
    own_version, wanted_version = (offered.major, offered.minor), (wanted.major, wanted.minor)
    return {
        VersionOption.ALL: True,
        VersionOption.COMPATIBLE: compatible(offered, wanted),
        VersionOption.EXACT: own_version == wanted_version,
        VersionOption.MAJOR_ONLY: own_version[0] == wanted_version[0],
        VersionOption.UP_TO: own_version <= wanted_version,
    }.get(VersionOption(option) if option in list(VersionOption) else VersionOption.ALL, True)


# --- Interfaces as an association sees them, without their stubs ----------------------------------


@dataclass(frozen=True, slots=True)
class Interface:
    """An RPC interface as bind, alter_context and dispatch use it.

    ``transfer_syntaxes`` are in order of preference. Context handles are valid for all
    interfaces of the association group unless an interface is strict: then other interfaces
    cannot use its handles, nor it theirs.
    """

    name: str
    syntax: SyntaxId
    operations: int
    transfer_syntaxes: tuple[SyntaxId, ...] = (NDR64, NDR20)
    strict_context_handles: bool = False

    def offers(self, wanted: SyntaxId) -> bool:
        """True for the same UUID and major version, and a minor version up to this one's."""
        mine = self.syntax
        same = wanted.uuid == mine.uuid and wanted.major == mine.major
        return same and wanted.minor <= mine.minor
