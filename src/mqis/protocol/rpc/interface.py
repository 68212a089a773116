"""What an association machine has to know of an interface. Stubs are somebody else's."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.rpc.syntax import NDR20, NDR64, SyntaxId


@dataclass(frozen=True, slots=True)
class Interface:
    """An RPC interface as bind, alter_context and dispatch see it.

    ``transfer_syntaxes`` come in the order of preference. Context handles are valid for all
    interfaces of the association group unless an interface is strict: then its handles are its
    own, and it takes no other's.
    """

    name: str
    syntax: SyntaxId
    operations: int
    transfer_syntaxes: tuple[SyntaxId, ...] = (NDR64, NDR20)
    strict_context_handles: bool = False

    def offers(self, wanted: SyntaxId) -> bool:
        """Same UUID and major version; a minor version up to ours."""
        mine = self.syntax
        same = wanted.uuid == mine.uuid and wanted.major == mine.major
        return same and wanted.minor <= mine.minor
