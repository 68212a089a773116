"""How large the enterprise is, and which servers it has."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.replication.server import Role
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

ENTERPRISE_NAME = "Generated"


class GenerateError(MqisError):
    """A plan cannot be carried out: why, and what to change."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make. ``backups``: how many sites have a backup controller; None: two of three."""

    sites: int = 3
    machines: int = 20
    queues: int = 100
    changes: int = 2000
    seed: int = 1
    backups: int | None = None
    #: How many faults of each kind; 0: none at all, and no damage either.
    faults: int = 1
    #: Of the changes so many make a queue; a few less delete one, all others are updates.
    churn: float = 0.1
    #: The last so many changes reach every server one by one. Of those before them most servers
    #: hear by a synchronisation, which brings objects as they are then: a million changes that
    #: each go to 200 servers would be 200 million records. None: all do.
    live: int | None = None

    def __post_init__(self) -> None:
        if self.sites < 1 or self.machines < self.sites or self.queues < 1 or self.changes < 0:
            raise GenerateError("an enterprise has a site, a machine in each, and a queue at least")
        if not 0 <= self.churn <= 0.5:
            raise GenerateError("churn is the share of new queues among changes: 0 to 0.5")
        if not 0 <= self.backup_count <= self.sites:
            raise GenerateError(f"{self.backup_count} backup controllers: a site has one or none")
        if self.faults and (self.sites < 2 or self.backup_count < 2):
            raise GenerateError(
                "faults need two sites and two backup controllers at least: more sites, or "
                "--faults 0"
            )

    @property
    def backup_count(self) -> int:
        return self.sites * 2 // 3 if self.backups is None else self.backups

    @property
    def apart(self) -> int:
        """How many changes are made while most servers are away."""
        return 0 if self.live is None else max(0, self.changes - self.live)


@dataclass(frozen=True, slots=True)
class Member:
    """A directory server."""

    name: str
    id: Guid
    site: Guid
    role: Role
    #: The PSC of its site, which is itself for a PSC.
    psc: str


def name_of(site: int, suffix: str) -> str:
    return f"s{site + 1:03}-{suffix}"
