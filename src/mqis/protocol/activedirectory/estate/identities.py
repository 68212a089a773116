"""Checks of computers and queue managers: clones, orphans, disabled accounts, service names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from mqis.findings import Finding
from mqis.protocol.activedirectory.estate.facts import AccountFact, MachineFact, name_of
from mqis.protocol.activedirectory.estate.findings import EstateCheck, finding
from mqis.protocol.activedirectory.estate.index import EstateIndex
from mqis.wire.ldap.changes import AttributeChange, DeleteEntry, ModifyEntry, ModifyKind

_NEW_IDENTITY = (
    "on the clone: stop Message Queuing, set the DWORD SysPrep to 1 below "
    "HKLM\\SOFTWARE\\Microsoft\\MSMQ\\Parameters, and start it: it takes a new identity"
)


def cloned_queue_managers(index: EstateIndex) -> Iterator[Finding]:
    """Finds one identity, or one encryption key, at two computers."""
    yield from _doubled(index, lambda machine: machine.id.raw, "the same objectGUID as")
    yield from _doubled(index, lambda machine: machine.keys, "the same encryption key as")
    for settings in index.facts.settings:
        owner = index.machine_ids.get(settings.machine) if settings.machine is not None else None
        if owner is None or _computer_name(owner) == settings.server.casefold():
            continue
        yield finding(
            EstateCheck.CLONED_QUEUE_MANAGER,
            settings.where,
            f"{settings.server} announces the queue manager of {owner.where}",
            f"{_NEW_IDENTITY}; then delete these settings",
            (DeleteEntry(settings.where),),
        )


def _doubled(
    index: EstateIndex, key: Callable[[MachineFact], bytes], words: str
) -> Iterator[Finding]:
    known: dict[bytes, MachineFact] = {}
    for machine in sorted(index.facts.machines, key=lambda machine: machine.where):
        if not key(machine):
            continue
        first = known.setdefault(key(machine), machine)
        if first is not machine:
            detail = f"{words} {first.where}"
            check = EstateCheck.CLONED_QUEUE_MANAGER
            yield finding(check, machine.where, detail, _NEW_IDENTITY)


def _computer_name(machine: MachineFact) -> str:
    """The first part of the name of the entry above, without its attribute."""
    return machine.computer.partition(",")[0].partition("=")[2]


def machines_without_computer(index: EstateIndex) -> Iterator[Finding]:
    for machine in index.facts.machines:
        if index.computer_of(machine) is None and not machine.foreign:
            queues = index.queues_of.get(name_of(machine.where), [])
            yield finding(
                EstateCheck.NO_COMPUTER,
                machine.where,
                f"with {len(queues)} queues",
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
