"""The faults of an estate that its directory shows: what, why it hurts, and the repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from mqis.findings import Finding, Gravity, Limit
from mqis.wire.ldap.changes import EntryChange
from mqis.wire.ldap.ldif import write_ldif


class EstateCheck(Enum):
    """A check: the fault that it finds, and the symptom that users see."""

    CLONED_QUEUE_MANAGER = (
        "two computers have the identity of one queue manager",
        (
            "messages for one of them arrive at the other, or are dropped as duplicates; each "
            "start of one takes the place of the other"
        ),
    )
    NO_COMPUTER = (
        "a queue manager is registered where there is no computer",
        "senders find its queues, and their messages wait in outgoing queues until they expire",
    )
    DISABLED_COMPUTER = (
        "a queue manager belongs to a disabled computer account",
        (
            "the computer cannot log on: remote reads and authenticated messages fail with access "
            "denied, and messages for it wait in outgoing queues"
        ),
    )
    QUEUE_WITHOUT_MACHINE = (
        "a queue stands below no queue manager",
        "searches list the queue; opening it fails with MQ_ERROR_MACHINE_NOT_FOUND",
    )
    LINK_TO_NOWHERE = (
        "a routing link leads to a site that does not exist",
        (
            "routes are computed over a link that nothing can pass; programs that read all links "
            "report it, or fail at it"
        ),
    )
    LINK_WITHOUT_GATES = (
        "a routing link appoints no gate",
        (
            "each routing server tries to reach the other site itself; where a firewall lets only "
            "gates through, messages between the sites wait"
        ),
    )
    BAD_GATE = (
        "a routing link names a gate that cannot route",
        "messages between the sites wait in the outgoing queues for a server that takes none",
    )
    SITE_WITHOUT_ROUTER = (
        "a site with queue managers has no routing server",
        (
            "its computers connect to those of other sites directly; where they cannot, their "
            "messages wait"
        ),
    )
    LEFT_SETTINGS = (
        "settings of a server that serves no more",
        (
            "clients ask a server that does not answer: opening queues takes a time-out longer, "
            "and routes lead through a computer that does not route"
        ),
    )
    SERVICE_NAME_MISSING = (
        "a computer lacks the service principal names of its host",
        (
            "Kerberos does not find the queue manager: logons fall back to NTLM, or remote reads "
            "fail with access denied where that is off"
        ),
    )
    SERVICE_NAME_DOUBLED = (
        "two accounts have one service principal name",
        "Kerberos cannot tell them apart: logons to the queue manager fail (KRB_AP_ERR_MODIFIED)",
    )
    COMPUTER_NAME_DOUBLED = (
        "two computers have one name, and one of them at least has a queue manager",
        (
            "senders find one of them or the other by that name: messages arrive at the wrong "
            "computer, or opening a queue fails"
        ),
    )
    CONFLICTING_ENTRY = (
        "two domain controllers made entries of one name, and one of them was renamed for it",
        (
            "senders find the entry that kept the name, which may be the one that nobody uses: its "
            "identifier and keys are not those of the queue manager"
        ),
    )
    MACHINE_WITHOUT_SITE = (
        "a queue manager is in no site, or in one that does not exist",
        (
            "no route leads to it but a direct connection, and it finds no routing server: where "
            "a firewall is between, its messages wait"
        ),
    )
    OPEN_QUEUE = (
        "everyone, even anonymous users, may use the queue",
        "anybody who reaches the computer can fill the queue, or read what others have sent",
    )
    CERTIFICATE_EXPIRED = (
        "a certificate that a user signs messages with has expired",
        "receivers that want authentication drop the user's messages (bad signature)",
    )
    UNKNOWN_USER = (
        "certificates of a user who is not in the directory",
        "messages that are signed with them are taken for those of an account that is gone",
    )
    ALIAS_TO_NOWHERE = (
        "a queue alias stands for no queue",
        "messages to the alias, and to each list that has it, are not sent at all",
    )
    BAD_LIST_MEMBER = (
        "a distribution list of queues has a member that nothing can be sent to",
        "the whole list cannot be resolved: messages to it reach none of its queues",
    )
    ADDRESS_OUTSIDE_SITE = (
        "a computer's address belongs to another site than its queue manager",
        "messages take the routes of the wrong site: slow, or through gates that refuse them",
    )

    def __init__(self, explanation: str, symptom: str) -> None:
        self.explanation = explanation
        self.symptom = symptom

    @property
    def label(self) -> str:
        """The name in tables and JSON."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that a check cannot tell about one entry, and what would show it."""

    check: EstateCheck
    where: str
    reason: str
    advice: str


def limits_of(unseen: Iterable[Unseen]) -> Iterator[Limit]:
    """Counts what cannot be told for the same reason, with an example."""
    groups: dict[tuple[EstateCheck, str, str], list[str]] = {}
    for each in unseen:
        groups.setdefault((each.check, each.reason, each.advice), []).append(each.where)
    for (check, reason, advice), places in groups.items():
        example = f"{reason}, such as {min(places)}"
        yield Limit(check.label, example, advice, len(set(places)))


def finding(
    check: EstateCheck, where: str, detail: str, todo: str, repair: tuple[EntryChange, ...] = ()
) -> Finding:
    """One fault: ``where`` names the entry, ``todo`` says what to do, ``repair`` what LDIF does."""
    about = check.label, Gravity.ERROR, check.explanation, todo, where, detail, check.symptom
    return Finding(*about, repair=repair)


def ldif_of(found: Finding) -> str:
    """The repair as LDIF; empty if it takes a decision."""
    return "".join(write_ldif(found.repair)) if found.repair else ""
