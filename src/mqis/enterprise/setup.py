"""Sets up the servers of a plan as members of one enterprise.

The PEC's store is founded here; everything else uses directory services with an administrator's
account: sites, links, machines, queues, and the joining of each server. Every step leaves existing
objects alone, so repeating the set-up continues after an interruption, and adds new entries of the
plan.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mqis.admin.join import Directory, Wanted, join
from mqis.config.errors import ConfigError
from mqis.config.nodes import ACCOUNTS, NodePlace, Nodes
from mqis.config.passwords import read_password_file
from mqis.config.stores import open_store
from mqis.enterprise.configs import is_member, write_config
from mqis.enterprise.difference import Action, Step
from mqis.enterprise.plan import AccountPlan, EntryKind, RunPlan, ServerPlan
from mqis.files import make_private_directory, write_whole
from mqis.protocol.directory.object_sources import Source
from mqis.protocol.replication.server_identity import Role
from mqis.runtime.node.signer import MachineKey
from mqis.server.accounts import AccountsFile
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ADMINISTRATORS

PASSWORDS = "passwords"


class Changing(Source, Directory, Protocol):
    """The calls of a directory server that setting up needs."""

    def set(
        self, object_type: ObjectType, name: str, properties: dict[int, PropVariant]
    ) -> None: ...

    def delete(self, object_type: ObjectType, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Administrator:
    domain: str
    name: str
    password: str = field(repr=False)


#: Connects to a directory server as an administrator.
Connect = Callable[[NodePlace, Administrator], AbstractContextManager[Changing]]


# --- files ----------------------------------------------------------------------------------------


def make_accounts(run: Path, plan: RunPlan, base: Path) -> None:
    """Adds missing accounts; generates and stores a password for those that name no file."""
    file = AccountsFile(run / ACCOUNTS)
    for account in plan.accounts:
        domain = plan.domain_of(account)
        if file.path.exists() and file.find(domain, account.name) is not None:
            continue
        groups = [ADMINISTRATORS] if account.administrator else []
        secret = _given_password(account, base) or _new_password(run, account)
        file.add(account.name, secret, domain=domain, groups=groups)


def change_accounts(run: Path, steps: Sequence[Step]) -> None:
    """Carries out the steps that change or remove accounts; an account keeps its identifier."""
    file = AccountsFile(run / ACCOUNTS)
    for step in steps:
        if step.kind is not EntryKind.ACCOUNT or step.action is Action.ADD:
            continue
        domain, _, name = step.name.partition("\\")
        if step.action is Action.REMOVE:
            file.remove(name, domain)
            continue
        known = file.find(domain, name)
        groups = frozenset() if known is None else known.groups - {ADMINISTRATORS}
        if step.entry.attributes["administrator"]:
            groups |= {ADMINISTRATORS}
        file.change(name, domain, groups=groups)


def administrator(run: Path, plan: RunPlan, base: Path) -> Administrator:
    """The administrator with whose account the enterprise is set up."""
    first = plan.administrator
    known = _given_password(first, base) or _password_in(password_of(run, first))
    return Administrator(plan.domain_of(first), first.name, known)


def password_of(run: Path, account: AccountPlan) -> Path:
    """The file with the generated password of an account."""
    return run / PASSWORDS / account.name


def _given_password(account: AccountPlan, base: Path) -> str | None:
    if not account.password_file:
        return None
    return _password_in(base / account.password_file)


def _password_in(path: Path) -> str:
    try:
        return read_password_file(path)
    except ConfigError as error:
        raise ConfigError(str(error)) from error


def _new_password(run: Path, account: AccountPlan) -> str:
    path = password_of(run, account)
    make_private_directory(path.parent)
    if not path.exists():
        write_whole(path, secrets.token_urlsafe() + "\n")
    return _password_in(path)


# --- members --------------------------------------------------------------------------------------


def join_server(plan: RunPlan, nodes: Nodes, server: ServerPlan, pec: Changing) -> None:
    """Makes a PSC or BSC a member unless it is one; raises ``MqisError`` if that fails."""
    place = nodes.named(server.name)
    home = Path(place.home)
    make_private_directory(home)
    if is_member(place):
        write_config(plan, nodes, place)
        return
    key = MachineKey.open(home / "signing.key")
    role = Role(place.role)
    wanted = Wanted(server.name, role, server.site, plan.pec.name, key.public, place.address)
    member = join(pec, wanted)
    open_store(str(place.store), create=True).close()
    write_config(plan, nodes, place, member)
