"""What can happen in a run besides what the servers do themselves.

A step is a value: a run is its scenario, and a scenario with fewer steps is a smaller run of the
same kind. ``salt`` decides what a step leaves open, from what it finds when its time comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """What a client asks for."""

    CREATE_QUEUE = "create queue"
    CREATE_QUEUES = "create queues"
    UPDATE_QUEUE = "update queue"
    DELETE_QUEUE = "delete queue"
    CREATE_MACHINE = "create machine"
    UPDATE_MACHINE = "update machine"
    MOVE_MACHINE = "move machine"
    RECREATE_MACHINE = "recreate machine"
    DELETE_MACHINE = "delete machine"
    CREATE_USER = "create user"
    DELETE_USER = "delete user"
    CREATE_NETWORK = "create network"
    UPDATE_NETWORK = "update network"
    DELETE_NETWORK = "delete network"
    CREATE_LINK = "create link"
    UPDATE_LINK = "update link"
    DELETE_LINK = "delete link"
    CREATE_SITE = "create site"
    DELETE_SITE = "delete site"
    UPDATE_SITE = "update site"
    UPDATE_ENTERPRISE = "update enterprise"


class CrashPoint(StrEnum):
    """Where in an operation the power goes."""

    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"
    AMID_EFFECTS = "amid effects"


class Trick(StrEnum):
    """What a stranger does with messages that he has heard."""

    REPLAY = "replay"
    REORDER = "replay in another order"
    REDIRECT = "replay to another server"
    FLIP = "flip bits"
    REWRITE = "rewrite under the old signature"
    UNSIGN = "rewrite without a signature"


class Falsehood(StrEnum):
    """What a hostile backup controller says, under its own signature."""

    REQUEST = "request"
    IMPERSONATION = "request in another name"
    MISPLACED = "request in the wrong partition"
    COLLISION = "request for a taken identifier"
    ROLE = "request for a role"
    KEY = "request for a key"
    DESCRIPTOR = "request for a descriptor"
    SITE = "request for a site"
    ENTERPRISE = "request for the enterprise"
    SERVER = "request against a server"
    ANSWER = "answer of another"
    PROPAGATION = "changes of another"
    HEARTBEAT = "numbers of another"
    SYNC_REPLY = "reply of another"
    PURGE = "purge"
    ACKNOWLEDGEMENT = "acknowledgement"
    SYNC_REQUEST = "ask for everything"


@dataclass(frozen=True, slots=True)
class Operate:
    """A client changes something at a server."""

    at: float
    server: int
    change: Change
    salt: int


@dataclass(frozen=True, slots=True)
class Crash:
    """A server stops within its next operation, and comes back after a while."""

    at: float
    server: int
    point: CrashPoint
    down_s: float


@dataclass(frozen=True, slots=True)
class FailCommit:
    """The disk refuses the next commit; the server starts again from what is stored."""

    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Nothing gets from one server to another, or neither way; what waits goes on afterwards."""

    at: float
    first: int
    second: int
    one_way: bool
    for_s: float


@dataclass(frozen=True, slots=True)
class Isolate:
    """A server is cut off from all others."""

    at: float
    server: int
    for_s: float


@dataclass(frozen=True, slots=True)
class Clog:
    """A line swallows everything and gives it back at once, in any order."""

    at: float
    first: int
    second: int
    for_s: float


@dataclass(frozen=True, slots=True)
class Backup:
    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Restore:
    """A server loses its disk and gets its last backup."""

    at: float
    server: int
    down_s: float


@dataclass(frozen=True, slots=True)
class Join:
    """A new server."""

    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Stranger:
    """Somebody without a key sends what he has heard."""

    at: float
    trick: Trick
    salt: int


@dataclass(frozen=True, slots=True)
class Lie:
    """A hostile backup controller sends something of its own making."""

    at: float
    server: int
    falsehood: Falsehood
    salt: int


Hostile = Stranger | Lie
Step = Operate | Crash | FailCommit | Cut | Isolate | Clog | Backup | Restore | Join | Hostile
