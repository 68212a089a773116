"""The configuration and the files that it names: whether they can be used, and by whom."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from mqis.config.privatefiles import is_open_to_others
from mqis.config.sections import Config, Role
from mqis.config.stores import file_of
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.runtime.node.signer import MachineKey, SigningKeyError
from mqis.server.accounts import AccountsError, AccountsFile
from mqis.views.doctor.findings import Area, Finding, Patient
from mqis.wire.security.sid import EVERYONE

_ANY = Area("configuration")


def look(patient: Patient) -> Iterator[Finding]:
    config = patient.config
    yield _ANY.ok(f"{patient.file} can be read, and every key of it is known")
    yield from _accounts(config)
    yield from _key(config)
    yield from _modes(patient)
    yield from _exposure(config)


def _accounts(config: Config) -> Iterator[Finding]:
    path = Path(config.security.accounts)
    if not path.exists():
        todo = "'mqis account add' makes it"
        yield _ANY.warning(f"{path}: there is none, so nobody can log on", todo)
        return
    try:
        accounts = AccountsFile(path).accounts()
    except AccountsError as error:
        yield _ANY.error(str(error), "repair it; until then nobody can log on")
        return
    administrators = set(config.security.administrators)
    if any(
        account.sid in administrators or account.groups & administrators for account in accounts
    ):
        yield _ANY.ok(f"{path}: {len(accounts)} accounts, nobody else can read it")
    else:
        todo = "'mqis account add NAME --group S-1-5-32-544', or security.administrators"
        yield _ANY.warning(f"{path}: none of its accounts is an administrator", todo)


def _key(config: Config) -> Iterator[Finding]:
    path = Path(config.replication.key)
    if config.server.role is Role.NONE or config.replication.signing is SigningPolicy.NONE:
        return
    if not path.exists():
        todo = "bring it back from a backup; a new one is made otherwise, which others do not know"
        yield _ANY.warning(f"{path}: there is no signing key", todo)
        return
    try:
        MachineKey.open(path, create=False)
    except SigningKeyError as error:
        yield _ANY.error(str(error), "the server does not start without it")
    else:
        yield _ANY.ok(f"{path}: a signing key that nobody else can read")


def _modes(patient: Patient) -> Iterator[Finding]:
    store = file_of(patient.config.store.url)
    if store is not None and store.exists() and store.stat().st_mode & 0o022:
        yield _ANY.error(f"{store}: others can write the directory", f"chmod 600 {store}")
    elif store is not None and store.exists() and is_open_to_others(store):
        yield _ANY.warning(f"{store}: others can read the directory", f"chmod 600 {store}*")
    home = patient.file.absolute().parent
    if home.stat().st_mode & 0o022 and not home.stat().st_mode & stat.S_ISVTX:
        todo = f"chmod 700 {home}"
        yield _ANY.warning(f"{home}: others can put files in the place of this server's", todo)


def _exposure(config: Config) -> Iterator[Finding]:
    """What whoever reaches this computer may do."""
    security = config.security
    queue = config.replication.listen or config.rpc.listen
    if not _is_loopback(config.rpc.listen):
        if EVERYONE in security.administrators:
            todo = "take S-1-1-0 out of security.administrators"
            yield _ANY.error(f"everybody who reaches {config.rpc.listen} may do everything", todo)
        elif security.machine_policy is MachinePolicy.EVERYONE:
            todo = 'security.machine_policy = "owner"'
            yield _ANY.warning("everybody may change a new machine, and give it another key", todo)
    if config.server.role is Role.NONE or _is_loopback(queue):
        return
    if config.replication.signing is not SigningPolicy.REQUIRE:
        todo = 'replication.signing = "require" on every server, or a network that you trust'
        yield _ANY.warning(f"who reaches {queue} can speak as any server of the enterprise", todo)


def _is_loopback(address: str) -> bool:
    return ip_address(address).is_loopback
