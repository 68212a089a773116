"""Interfaces as an association sees them, without their stubs."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.rpc.syntax import NDR20, NDR64, SyntaxId


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
