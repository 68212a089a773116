"""Names of the replication queue (MC-MQDSRP 1.9, 3.1.1.2.1) and of the machines that have one."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

MQIS_QUEUE: Final = "private$\\mqis_queue$"
#: The number of that private queue on every queue manager.
MQIS_QUEUE_ID: Final = 1
#: The queue to which changes of a queue manager's objects are reported (MS-MQCN 1.9).
NOTIFY_QUEUE: Final = "private$\\notify_queue$"
MAX_MACHINE_NAME: Final = 256

_OS = "OS:"


def queue_path(machine: str) -> str:
    """The path name of a machine's replication queue."""
    if not 0 < len(machine) <= MAX_MACHINE_NAME:
        raise ValueError(f"a machine name has 1 to {MAX_MACHINE_NAME} characters")
    if "\\" in machine or not machine.isprintable() or any(c.isspace() for c in machine):
        raise ValueError(f"{machine!r} is not a machine name: visible characters only, no \\")
    return f"{machine}\\{MQIS_QUEUE}"


def direct_name(machine: str) -> str:
    """The direct name of the replication queue as in a packet, without the prefix."""
    return _OS + queue_path(machine)


def machine_of(name: str, queue: str = MQIS_QUEUE) -> str | None:
    """The machine in a packet's direct name, if that is of its replication queue."""
    head, _, rest = name.partition("\\")
    if head[:3].upper() != _OS or rest.casefold() != queue:
        return None
    return head[3:] or None


@lru_cache(maxsize=4096)
def canonical(machine: str) -> str:
    """One spelling for the NetBIOS and DNS names of a machine; addresses stay unchanged."""
    folded = machine.casefold()
    if ":" in folded or folded.replace(".", "").isdigit():
        return folded
    return folded.partition(".")[0]
