"""The plan of a generated enterprise: its size, and its servers."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.replication.server_identity import Role
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

ENTERPRISE_NAME = "Generated"


@dataclass(frozen=True, slots=True)
class GeneratePlan:
    """The enterprise to make. ``backups`` is the number of sites with a BSC; None: two of three."""

    sites: int = 3
    machines: int = 20
    queues: int = 100
    changes: int = 2000
    seed: int = 1
    backups: int | None = None
    #: The number of faults of each kind; 0: no faults and no damaged journal.
    faults: int = 1
    #: The share of changes that create a queue; somewhat fewer delete one, all others are updates.
    churn: float = 0.1
    #: The number of last changes that are propagated one by one to every server; None: all. Most
    #: servers get the earlier changes by synchronisation, as final objects: a million changes that
    #: are each sent to 200 servers would be 200 million records.
    live: int | None = None
    #: The number of faults of each kind in the directory itself, which all replicas agree on.
    hygiene: int = 0
    #: The number of objects that a replica lacks after an outage; another replica is empty. 0: no
    #: outage.
    outage: int = 0
    #: The number of segments of each journal, roughly: all servers seal theirs now and then.
    segments: int = 1

    def __post_init__(self) -> None:
        if self.sites < 1 or self.machines < self.sites or self.queues < 1 or self.changes < 0:
            raise MqisError(
                "the enterprise is too small: it needs at least one site, one machine for each "
                "site, and one queue"
            )
        if not 0 <= self.churn <= 0.5:
            raise MqisError(
                f"churn is {self.churn:g}; it is the share of new queues among changes, 0 to 0.5"
            )
        if not 0 <= self.backup_count <= self.sites:
            raise MqisError(
                f"{self.backup_count} backup controllers are too many for {self.sites} sites: "
                "a site has one or none"
            )
        if self.faults and (self.sites < 2 or self.backup_count < 2):
            raise MqisError(
                "faults need at least two sites and two backup controllers: give more sites, or "
                "--faults 0"
            )

        if self.outage and (not self.faults or self.backup_count < 4):
            raise MqisError("an outage needs faults and four backup controllers: give more sites")
        if self.machines < 3 * self.hygiene:
            raise MqisError(
                f"{self.hygiene} faults of each kind in the directory need {3 * self.hygiene} "
                f"machines, not {self.machines}: give more machines, or fewer with --hygiene"
            )

    @property
    def backup_count(self) -> int:
        return self.sites * 2 // 3 if self.backups is None else self.backups

    @property
    def apart(self) -> int:
        """The number of changes that are made while most servers are away."""
        return 0 if self.live is None else max(0, self.changes - self.live)


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """A directory server."""

    name: str
    id: Guid
    site: Guid
    role: Role
    #: The name of its site's PSC; its own name for a PSC.
    psc: str


def name_of(site: int, suffix: str) -> str:
    return f"s{site + 1:03}-{suffix}"
