"""Examines an estate: all checks over its facts, and those that the facts do not suffice for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from mqis.findings import CheckReport, Finding, Limit
from mqis.protocol.activedirectory.estate import identities, recipients, topology
from mqis.protocol.activedirectory.estate.facts import (
    CertificatesFact,
    EstateFacts,
    QueueFact,
)
from mqis.protocol.activedirectory.estate.findings import (
    EstateCheck,
    Unseen,
    finding,
    limits_of,
)
from mqis.protocol.activedirectory.estate.index import EstateIndex
from mqis.protocol.activedirectory.estate.open_queues import closed
from mqis.protocol.activedirectory.estate.sight import EstateSight
from mqis.protocol.activedirectory.rights import READ_PARTS
from mqis.wire.ldap.changes import (
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)
from mqis.wire.security.sid import Sid

#: What to do if the source cannot answer a check.
_ASK = "check the domain controller itself: mqis estate check ldaps://DC"


def examine_estate(facts: EstateFacts) -> CheckReport:
    """Judges all facts together. A check that the source cannot answer is named, not passed."""
    index = EstateIndex(facts)
    told = [
        each
        for check, judge in _CHECKS.items()
        if check not in facts.untold
        for each in judge(index)
    ]
    found = [each for each in told if isinstance(each, Finding)]
    limits = [Limit(check.label, reason, _ASK) for check, reason in facts.untold.items()]
    limits += limits_of(each for each in told if isinstance(each, Unseen))
    limits += _unread_domains(facts.sight)
    return CheckReport(
        tuple(sorted(found, key=attrgetter("place"))),
        tuple(sorted(limits, key=attrgetter("check", "reason"))),
        _counts(facts),
        tuple(facts.unreadable),
    )


def _unread_domains(sight: EstateSight) -> Iterator[Limit]:
    if sight.unread:
        reason = f"of the forest, {', '.join(sight.unread)} was not read"
        if sight.no_catalogue:
            reason += f", and no global catalogue answered ({sight.no_catalogue})"
        yield Limit("", reason, "check a domain controller of each domain", len(sight.unread))
    elif not sight.forest and not sight.everything:
        yield Limit(
            "",
            "the source does not tell which domains the forest has",
            "an account with the right Read all properties on the crossRef entries of "
            "CN=Partitions in the configuration sees them; a dump has to contain them",
        )


def _counts(facts: EstateFacts) -> dict[str, int]:
    return {
        "computer": sum(account.is_computer for account in facts.accounts),
        "machine": len(facts.machines),
        "queue": len(facts.queues),
        "site": len(facts.sites),
        "link": len(facts.links),
        "settings": len(facts.settings),
    }


def _queues_without_machine(index: EstateIndex) -> Iterator[Finding | Unseen]:
    sight = index.facts.sight
    for queue in index.facts.queues:
        if queue.machine in index.machines:
            continue
        if not sight.is_seen(queue.machine) and not sight.everything:
            yield Unseen(
                EstateCheck.QUEUE_WITHOUT_MACHINE,
                queue.where,
                "the entry above a queue is not seen",
                identities.SHOWING,
            )
        else:
            yield finding(
                EstateCheck.QUEUE_WITHOUT_MACHINE,
                queue.where,
                f"{queue.machine} is no queue manager",
                "delete the queue, or move it below the queue manager that hosts it",
                (DeleteEntry(queue.where),),
            )


def _open_queues(index: EstateIndex) -> Iterator[Finding | Unseen]:
    for queue in index.facts.queues:
        if not queue.descriptor_seen:
            yield Unseen(
                EstateCheck.OPEN_QUEUE,
                queue.where,
                "the security descriptor of a queue cannot be read",
                "give the account the right Read permissions on the queues; a dump has to ask for "
                "nTSecurityDescriptor by name",
            )
        elif queue.open_for:
            yield finding(
                EstateCheck.OPEN_QUEUE,
                queue.where,
                f"everyone may {queue.open_for}",
                "allow only those who use the queue; the LDIF takes away everyone's rights on "
                "messages",
                _closing(queue),
            )


def _closing(queue: QueueFact) -> tuple[EntryChange, ...]:
    new = None if queue.descriptor is None else closed(queue.descriptor)
    if new is None:
        return ()
    change = AttributeChange(ModifyKind.REPLACE, "nTSecurityDescriptor", (new.to_bytes(),))
    return (ModifyEntry(queue.where, (change,), int(READ_PARTS)),)


def _expired_certificates(index: EstateIndex) -> Iterator[Finding]:
    for user in index.facts.certificates:
        if user.expired:
            yield finding(
                EstateCheck.CERTIFICATE_EXPIRED,
                user.where,
                f"{len(user.expired)} expired, the last one {min(user.expired)} days ago",
                "let the user register a new certificate, and remove the old ones",
                _without_expired(user),
            )


def _without_expired(user: CertificatesFact) -> tuple[EntryChange, ...]:
    """Deletes the values as they were read, so that a change made meanwhile is not lost."""
    certificates, digests = "mSMQSignCertificates", "mSMQDigests"
    changes = [AttributeChange(ModifyKind.DELETE, certificates, user.listed)]
    if user.left:
        changes.append(AttributeChange(ModifyKind.ADD, certificates, user.left))
    if user.expired_digests:
        changes.append(AttributeChange(ModifyKind.DELETE, digests, user.expired_digests))
    return (ModifyEntry(user.where, tuple(changes)),)


def _unknown_users(index: EstateIndex) -> Iterator[Finding | Unseen]:
    for user in index.facts.certificates:
        if not user.migrated or user.sid in index.facts.sids:
            continue
        if not user.sid or not index.facts.sight.knows_users_of(user.sid):
            yield Unseen(
                EstateCheck.UNKNOWN_USER,
                user.where,
                "the user of certificates is of a domain that was not looked at, or cannot be read",
                f"{topology.ASKING}; look for a user of another forest there",
            )
        elif index.is_veiled:
            yield Unseen(
                EstateCheck.UNKNOWN_USER,
                user.where,
                "entries that others refer to are not seen; the user of certificates may be too",
                identities.SHOWING,
            )
        else:
            yield finding(
                EstateCheck.UNKNOWN_USER,
                user.where,
                f"{Sid.from_bytes(user.sid)} is no user",
                "delete the entry",
                (DeleteEntry(user.where),),
            )


_CHECKS: dict[EstateCheck, Callable[[EstateIndex], Iterator[Finding | Unseen]]] = {
    EstateCheck.CLONED_QUEUE_MANAGER: identities.cloned_queue_managers,
    EstateCheck.NO_COMPUTER: identities.machines_without_computer,
    EstateCheck.DISABLED_COMPUTER: identities.machines_of_disabled_computers,
    EstateCheck.QUEUE_WITHOUT_MACHINE: _queues_without_machine,
    EstateCheck.LINK_TO_NOWHERE: topology.links_to_nowhere,
    EstateCheck.LINK_WITHOUT_GATES: topology.links_without_gates,
    EstateCheck.BAD_GATE: topology.bad_gates,
    EstateCheck.SITE_WITHOUT_ROUTER: topology.sites_without_router,
    EstateCheck.LEFT_SETTINGS: topology.left_settings,
    EstateCheck.SERVICE_NAME_MISSING: identities.missing_service_names,
    EstateCheck.SERVICE_NAME_DOUBLED: identities.doubled_service_names,
    EstateCheck.COMPUTER_NAME_DOUBLED: identities.doubled_computer_names,
    EstateCheck.CONFLICTING_ENTRY: identities.conflicting_entries,
    EstateCheck.MACHINE_WITHOUT_SITE: topology.machines_without_site,
    EstateCheck.OPEN_QUEUE: _open_queues,
    EstateCheck.CERTIFICATE_EXPIRED: _expired_certificates,
    EstateCheck.UNKNOWN_USER: _unknown_users,
    EstateCheck.ALIAS_TO_NOWHERE: recipients.aliases_to_nowhere,
    EstateCheck.BAD_LIST_MEMBER: recipients.bad_list_members,
    EstateCheck.ADDRESS_OUTSIDE_SITE: topology.addresses_outside_site,
}
