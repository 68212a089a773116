"""The steps of a scenario: clients' operations, faults and attacks.

A step is a value, so a scenario with fewer steps is a smaller run of the same kind. ``salt`` seeds
the random choices that a step makes when its time comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """The operation of a client."""

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
    UPDATE_DESCRIPTOR = "update descriptor"
    UNDELETE = "undelete"


class CrashPoint(StrEnum):
    """The point of an operation at which a server crashes."""

    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"
    AMID_EFFECTS = "amid effects"


class Trick(StrEnum):
    """The use that a stranger makes of recorded messages."""

    REPLAY = "replay"
    REORDER = "replay in another order"
    REDIRECT = "replay to another server"
    FLIP = "flip bits"
    REWRITE = "rewrite under the old signature"
    UNSIGN = "rewrite without a signature"


class Falsehood(StrEnum):
    """The false message of a hostile server, under its own signature."""

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
    FOREIGN_DELETE = "deletion of a foreign object"
    FOREIGN_UPDATE = "update of a foreign object"


#: The lies of an authority, under numbers of its own partition; all others are a BSC's.
OVERREACHES = (Falsehood.FOREIGN_DELETE, Falsehood.FOREIGN_UPDATE)


@dataclass(frozen=True, slots=True)
class Operate:
    """A client changes an object at a server."""

    at: float
    server: int
    change: Change
    salt: int


@dataclass(frozen=True, slots=True)
class Crash:
    """A server crashes in its next operation and restarts after ``down_s``."""

    at: float
    server: int
    point: CrashPoint
    down_s: float


@dataclass(frozen=True, slots=True)
class FailCommit:
    """The next commit of a server fails; the server restarts from its store."""

    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A line between two servers is cut, one way or both; held messages go on afterwards."""

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
    """A line holds all messages, and then releases them at once, in any order."""

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
    """A server loses its disk and is restored from its last backup, which may serve again."""

    at: float
    server: int
    down_s: float


@dataclass(frozen=True, slots=True)
class Join:
    """A new server joins."""

    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Retire:
    """The only server of a site is switched off for good, and the site is deleted at the PEC."""

    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Resettle:
    """The only server of a site is switched off, and the site is deleted and made again at once.

    Site and server keep their names and get new identifiers; the server begins with nothing.
    """

    at: float
    server: int


@dataclass(frozen=True, slots=True)
class Slip:
    """The site of a running server is deleted at the PEC, and undeleted later."""

    at: float
    server: int
    for_s: float


@dataclass(frozen=True, slots=True)
class Promote:
    """The PSC of a site is switched off, and a BSC takes its place.

    The former PSC comes back as a BSC after ``back_s``, or never.
    """

    at: float
    server: int
    back_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stranger:
    """A stranger without a key sends a recorded message, unchanged or altered."""

    at: float
    trick: Trick
    salt: int


@dataclass(frozen=True, slots=True)
class Lie:
    """A hostile server sends a message that it has made up."""

    at: float
    server: int
    falsehood: Falsehood
    salt: int


Hostile = Stranger | Lie
Disturbance = Crash | FailCommit | Cut | Isolate | Clog | Backup | Restore
Administration = Join | Retire | Resettle | Slip | Promote
Step = Operate | Disturbance | Administration | Hostile
