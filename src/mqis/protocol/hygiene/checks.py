"""The checks: the fault that each finds, and the repair."""

from __future__ import annotations

from enum import StrEnum
from shlex import quote

from mqis.findings import Finding, Gravity, Subject


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


#: The repair of each fault; ``finding`` fills in the object.
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


def finding(check: Check, about: Subject, detail: str = "") -> Finding:
    """A fault of one object; the advice has a command for this object where there is one."""
    name = quote(about.name or about.id)
    todo = _ADVICE[check].format(type=about.type, id=about.id, path=name)
    objects: tuple[Subject, ...] = (about,)
    if check is Check.DUPLICATE_ID:  # the detail is the partition
        objects = about, Subject("partition", None, detail)
        detail = f"{about.id} in partition {detail}"
    fault = check.label, Gravity.ERROR, check.value, todo, str(about), detail
    return Finding(*fault, objects=objects)


def finding_row(found: Finding) -> dict[str, str | None]:
    """The columns of a finding in tables and JSON; of a doubled identifier, the partition."""
    about, *partition = found.objects
    return {
        "check": found.check,
        "explanation": found.what,
        "type": about.type,
        "id": about.id,
        "path": about.name,
        "detail": partition[0].id if partition else found.detail,
        "advice": found.todo,
    }
