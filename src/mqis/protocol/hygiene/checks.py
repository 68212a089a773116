"""The checks: the fault that each finds, and the repair."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from shlex import quote

from mqis.wire.mqds.objecttype import ObjectType


class Check(StrEnum):
    """A check: its name is the column ``check`` of a finding, its value the ``explanation``."""

    DUPLICATE_ID = "several partitions have an object with this identifier"
    DUPLICATE_NAME = "several objects of this type have this name"
    ORPHANED_QUEUE = "the queue's machine is not in the directory"
    ORPHANED_MACHINE = "the machine's site is not in the directory"
    UNKNOWN_SITE = "the routing link joins a site that is not in the directory"
    UNKNOWN_GATE = "a machine that is not in the directory is named as a gate"
    UNKNOWN_ROUTER = "the machine's in- or out-routing server is not in the directory"
    UNKNOWN_NETWORK = "the machine's connected network is not in the directory"
    BAD_GATE = "a machine is named as a gate but cannot be one"
    BAD_LINK = "the routing link cannot be used"
    DOUBLED_LINK = "another routing link joins the same two sites"
    NO_GATE = "the site has no gate, so no messages are routed to it or through it"
    CUT_OFF = "messages find no route between this site and most others"
    WRITABLE = "everyone, even anonymous users, may send to the queue"

    @property
    def label(self) -> str:
        """The name in tables and JSON."""
        return self.name.lower()


#: The repair of each fault; ``HygieneFinding.advice`` fills in the object.
_ADVICE = {
    Check.DUPLICATE_ID: "delete one of them at the server that owns its partition, and create it "
    "again: it gets a new identifier",
    Check.DUPLICATE_NAME: "if nobody uses this one: mqis delete {type} {id}",
    Check.ORPHANED_QUEUE: "mqis delete queue {path}, or give it to the machine that hosts it now: "
    "mqis set queue {path} qmid=MACHINE",
    Check.ORPHANED_MACHINE: "mqis set machine {path} site_ids=SITE, or delete it",
    Check.UNKNOWN_SITE: "mqis delete link {id}",
    Check.UNKNOWN_GATE: "name only machines that exist: mqis set {type} {path} gates=MACHINE,...",
    Check.UNKNOWN_ROUTER: "name only servers that exist: mqis set machine {path} infrs=... "
    "outfrs=...",
    Check.UNKNOWN_NETWORK: "name only networks that exist: mqis set machine {path} cns=...",
    Check.BAD_GATE: "name a routing server of the site: mqis set {type} {path} gates=MACHINE",
    Check.BAD_LINK: "mqis set link {id} cost=N, or mqis delete link {id}",
    Check.DOUBLED_LINK: "mqis delete link {id}",
    Check.NO_GATE: "name a routing server of the site: mqis set site {path} gates=MACHINE",
    Check.CUT_OFF: "list the pairs that are cut off, and why: mqis routes --stuck",
    Check.WRITABLE: "allow only those who send to it: mqis security queue {path} --set SDDL",
}


@dataclass(frozen=True, slots=True, order=True)
class HygieneFinding:
    """One fault of one object. ``type`` is the label of the object's type."""

    check: str
    type: str
    path: str | None
    id: str
    detail: str = ""

    @property
    def explanation(self) -> str:
        return Check[self.check.upper()].value

    @property
    def advice(self) -> str:
        """The repair, with a command for this object where there is one."""
        name = quote(self.id if self.path is None else self.path)
        return _ADVICE[Check[self.check.upper()]].format(type=self.type, id=self.id, path=name)

    @property
    def shown_detail(self) -> str:
        """The detail for people: of a doubled identifier that itself, and where it is used."""
        if self.check == Check.DUPLICATE_ID.label:
            return f"{self.id} in partition {self.detail}"
        return self.detail

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """The sort key of a list of findings."""
        return self.check, self.type, self.path or "", self.id, self.detail


def finding(
    check: Check, kind: ObjectType, id_: object, path: str | None, detail: str = ""
) -> HygieneFinding:
    return HygieneFinding(check.label, kind.label, path, str(id_), detail)
