"""Checks of computers and queue managers: clones, orphans, disabled accounts, service names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter

from mqis.findings import Finding
from mqis.protocol.activedirectory.estate.facts import AccountFact, MachineFact, SettingsFact
from mqis.protocol.activedirectory.estate.findings import EstateCheck, Unseen, finding
from mqis.protocol.activedirectory.estate.index import EstateIndex
from mqis.protocol.activedirectory.estate.sight import domain_of, name_of, parent_of
from mqis.protocol.activedirectory.made import CONFLICT_MARK
from mqis.texts import counted
from mqis.wire.ldap.changes import AttributeChange, DeleteEntry, ModifyEntry, ModifyKind
from mqis.wire.ldap.names import DistinguishedName

_NEW_IDENTITY = (
    "on the clone: stop Message Queuing, set the DWORD SysPrep to 1 below "
    "HKLM\\SOFTWARE\\Microsoft\\MSMQ\\Parameters, and start it: it takes a new identity"
)
#: The mark as it stands in a distinguished name.
_ESCAPED_MARK = CONFLICT_MARK.replace("\n", "\\0A")

#: The rights that show an entry, for what an account does not see.
SHOWING = (
    "an account with the rights List contents and Read all properties on the entry and its "
    "container sees it; a dump has to contain the entry, of whatever class it is"
)


def cloned_queue_managers(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """Finds one identity, or one encryption key, at two computers."""
    yield from _doubled(index, lambda machine: machine.id.raw, "the same objectGUID as")
    yield from _doubled(index, lambda machine: machine.keys, "the same encryption key as")
    for settings in index.facts.settings:
        owner = index.machine_ids.get(settings.machine) if settings.machine is not None else None
        if owner is not None and _computer_name(owner) != settings.server.casefold():
            yield from _strange_settings(index, settings, owner)


def _strange_settings(
    index: EstateIndex, settings: SettingsFact, owner: MachineFact
) -> Iterator[Finding | Unseen]:
    """Judges settings under another name than that of their queue manager's computer.

    The server entry refers to its computer (serverReference), and Active Directory follows a
    renamed computer there: so a server that was renamed is told from a clone. Without a reference,
    a computer that has the old name now may be a clone or not, and settings stay.
    """
    server = index.facts.servers.get(parent_of(settings.where))
    check, where = EstateCheck.CLONED_QUEUE_MANAGER, settings.where
    if server is None:
        words = "the server entry above settings of another name is not seen: renamed, or cloned"
        yield Unseen(check, where, words, SHOWING)
    elif not server:
        other = index.computer_named(settings.server)
        if other is not None and name_of(other.where) != owner.computer:
            doubt = f"if {owner.where} had the name {settings.server} before, they are its own"
            yield _cloned(settings, owner, other, f"look at these settings: {doubt}")
    elif server == owner.computer:
        return
    elif server not in index.accounts:
        words = "the computer of a server with another's queue manager is not seen"
        yield Unseen(check, where, words, SHOWING)
    else:
        deletion = DeleteEntry(where)
        last = "then delete these settings"
        yield _cloned(settings, owner, index.accounts[server], last, deletion)


def _cloned(
    settings: SettingsFact, owner: MachineFact, other: AccountFact, last: str, *repair: DeleteEntry
) -> Finding:
    return finding(
        EstateCheck.CLONED_QUEUE_MANAGER,
        settings.where,
        f"{other.where} announces the queue manager of {owner.where}",
        f"{_NEW_IDENTITY}; {last}",
        repair,
    )


def _doubled(
    index: EstateIndex, key: Callable[[MachineFact], bytes], words: str
) -> Iterator[Finding]:
    known: dict[bytes, MachineFact] = {}
    for machine in sorted(index.facts.machines, key=lambda machine: machine.where):
        if not key(machine):
            continue
        first = known.setdefault(key(machine), machine)
        if first.computer != machine.computer:
            detail = f"{words} {first.where}"
            check = EstateCheck.CLONED_QUEUE_MANAGER
            yield finding(check, machine.where, detail, _NEW_IDENTITY)


def _computer_name(machine: MachineFact) -> str:
    """The first part of the name of the entry above, without its attribute."""
    return machine.computer.partition(",")[0].partition("=")[2]


def machines_without_computer(index: EstateIndex) -> Iterator[Finding | Unseen]:
    for machine in index.facts.machines:
        if index.computer_of(machine) is not None or machine.foreign:
            continue
        if not index.facts.sight.is_seen(machine.computer):
            yield Unseen(
                EstateCheck.NO_COMPUTER,
                machine.where,
                "the entry above a queue manager is not seen",
                SHOWING,
            )
        else:
            queues = index.queues_of.get(name_of(machine.where), [])
            yield finding(
                EstateCheck.NO_COMPUTER,
                machine.where,
                f"with {counted(len(queues), 'queue')}",
                "delete it and its queues",
                (*(DeleteEntry(queue.where) for queue in queues), DeleteEntry(machine.where)),
            )


def machines_of_disabled_computers(index: EstateIndex) -> Iterator[Finding]:
    for machine in index.facts.machines:
        computer = index.computer_of(machine)
        if computer is not None and computer.disabled:
            yield finding(
                EstateCheck.DISABLED_COMPUTER,
                machine.where,
                f"{computer.where} is disabled",
                f"if the computer is gone: ldapdelete -r '{machine.where}'; if it is not: "
                f"Enable-ADAccount -Identity '{computer.where}'",
            )


def doubled_computer_names(index: EstateIndex) -> Iterator[Finding]:
    """Finds computers of one domain with one name, and those anywhere with one DNS name.

    A short name is that of the entry or that of the account. An entry that lost its name to
    another, because two domain controllers made them at once, has it before a line feed.
    """
    queuing = {machine.computer for machine in index.facts.machines}
    holders: dict[tuple[str, str], list[AccountFact]] = defaultdict(list)
    for account in index.facts.accounts:
        if account.is_computer:
            for held in _names_of(account):
                holders[held].append(account)
    told: set[tuple[str, str]] = set()
    for (_, name), computers in sorted(holders.items()):
        ordered = sorted(computers, key=lambda computer: computer.where)
        if queuing.isdisjoint(name_of(computer.where) for computer in ordered):
            continue
        first = ordered[0]
        for other in ordered[1:]:
            if (first.where, other.where) not in told:
                told.add((first.where, other.where))
                yield finding(
                    EstateCheck.COMPUTER_NAME_DOUBLED,
                    other.where,
                    f"it is called {name}, as {first.where} is",
                    "find out which of them is in use, and delete or rename the other",
                )


def _names_of(computer: AccountFact) -> set[tuple[str, str]]:
    leaf = DistinguishedName.parse(computer.where).leaf.partition("\n")[0]
    short = {name.casefold() for name in (leaf, computer.account) if name}
    domain = domain_of(computer.where)
    hosts = {("", computer.host.casefold())} if computer.host else set()
    return hosts | {(domain, name) for name in short}


def conflicting_entries(index: EstateIndex) -> Iterator[Finding]:
    """Finds entries that lost their name to another (MS-ADTS 3.1.1.5.1.2): ``NAME\\0ACNF:GUID``.

    Computers are left to ``doubled_computer_names``.
    """
    facts = index.facts
    kinds = facts.machines, facts.queues, facts.sites, facts.links, facts.settings, facts.aliases
    for where in map(attrgetter("where"), chain.from_iterable(kinds)):
        if _ESCAPED_MARK not in where.upper():
            continue
        name, mark, _ = DistinguishedName.parse(where).leaf.partition(CONFLICT_MARK)
        if mark:
            yield finding(
                EstateCheck.CONFLICTING_ENTRY,
                where,
                f"its name was {name}, which another entry has",
                "find out which of the two the queue manager uses, by its identifier; delete the "
                "other one, then rename this one if it is the one in use",
            )


def missing_service_names(index: EstateIndex) -> Iterator[Finding]:
    for computer in _queuing_computers(index):
        present = {name.casefold() for name in computer.service_names}
        missing = [name for name in computer.needed_names if name.casefold() not in present]
        if missing:
            values = tuple(name.encode() for name in missing)
            change = AttributeChange(ModifyKind.ADD, "servicePrincipalName", values)
            yield finding(
                EstateCheck.SERVICE_NAME_MISSING,
                computer.where,
                ", ".join(missing),
                f"setspn -S {missing[0]} {computer.account}",
                (ModifyEntry(computer.where, (change,)),),
            )


def doubled_service_names(index: EstateIndex) -> Iterator[Finding]:
    """Finds names of queuing computers that another account has too."""
    holders: dict[str, list[tuple[AccountFact, str]]] = defaultdict(list)
    for account in index.facts.accounts:
        for name in account.service_names:
            holders[name.casefold()].append((account, name))
    for computer in _queuing_computers(index):
        for needed in computer.needed_names:
            for account, name in holders[needed.casefold()]:
                if account is not computer:
                    yield _doubled_name(account, name, computer)


def _doubled_name(account: AccountFact, name: str, owner: AccountFact) -> Finding:
    change = AttributeChange(ModifyKind.DELETE, "servicePrincipalName", (name.encode(),))
    return finding(
        EstateCheck.SERVICE_NAME_DOUBLED,
        account.where,
        f"{name} belongs to {owner.where}",
        f"setspn -D {name} {account.account}",
        (ModifyEntry(account.where, (change,)),),
    )


def _queuing_computers(index: EstateIndex) -> Iterable[AccountFact]:
    found = (index.computer_of(machine) for machine in index.facts.machines)
    return dict.fromkeys(computer for computer in found if computer is not None)
