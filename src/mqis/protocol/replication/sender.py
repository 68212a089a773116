"""The sender of a replication message."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message, as far as it is known."""

    id: Guid
    #: The machine name that the directory, or the administrator, has for it; None: unknown.
    name: str | None
    authenticated: bool
    identifier: MessageIdentifier
    session: int

    @property
    def label(self) -> str:
        return self.name or str(self.id)
