"""The identity of this server in the enterprise."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mqis.protocol.directory.objects import name_key
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier


class Role(Enum):
    """A PEC is the PSC of its own site as well; a BSC owns nothing."""

    PEC = "pec"
    PSC = "psc"
    BSC = "bsc"


@dataclass(frozen=True, slots=True)
class Server:
    """The facts that a server knows of itself before it has a directory.

    ``seeds`` are the servers that it may believe before the directory tells of them: the PEC, and
    a backup controller's PSC. How they became known is the administrator's business (3.1.3.1).
    """

    name: str
    id: Guid
    site: Guid
    role: Role
    #: The machine name of the PEC.
    pec: str
    #: The PSC of the own site, which a BSC has to know.
    psc: str = ""
    seeds: dict[Guid, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role is Role.BSC and not self.psc:
            raise ValueError("a backup site controller has to know its PSC")

    @property
    def is_pec(self) -> bool:
        return self.role is Role.PEC

    @property
    def is_psc(self) -> bool:
        """The text's "is a PSC", which includes the PEC."""
        return self.role is not Role.BSC

    @property
    def is_bsc(self) -> bool:
        return self.role is Role.BSC

    def is_called(self, name: str) -> bool:
        return name_key(name) == name_key(self.name)


# --- The sender of a replication message ----------------------------------------------------------


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
