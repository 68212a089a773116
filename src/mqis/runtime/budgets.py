"""The budgets of one server's callers: handles, lookups, memory, concurrent walks, changes.

The process's numbers come from the configuration; those of the other levels are shares of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from mqis.protocol.budget import Budget, HourlyBudget, Quota

MAX_HANDLES = 8192
MAX_LOOKUPS = 1024
MEMORY_BYTES = 256 * 1024 * 1024
#: Lookups that walk the store at the same time; each of them keeps a view open.
WALKS = Quota(connection=1, address=2, anonymous=2, process=4)


def handle_budget(most: int = MAX_HANDLES) -> Budget:
    return Budget(Quota.of(most, connection=1 / 32, address=1 / 8))


def lookup_budget(most: int = MAX_LOOKUPS) -> Budget:
    return Budget(Quota.of(most, connection=1 / 16, address=1 / 4))


def memory_budget(most: int = MEMORY_BYTES) -> Budget:
    """Bytes of stubs, decoded requests, rows kept by lookups, and answers not read yet."""
    return Budget(Quota.of(most, connection=3 / 8, address=1 / 2))


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets by resource."""

    handles: Budget = field(default_factory=handle_budget)
    lookups: Budget = field(default_factory=lookup_budget)
    memory: Budget = field(default_factory=memory_budget)
    walks: Budget = field(default_factory=lambda: Budget(WALKS))
    #: Changes, and the bytes of them; ``Allowance`` has the limits, which can change.
    changes: HourlyBudget = field(default_factory=HourlyBudget)
    written: HourlyBudget = field(default_factory=HourlyBudget)
    #: Held to use or give back something of an hour: the writer's thread and the loop both do.
    hours: Lock = field(default_factory=Lock)
