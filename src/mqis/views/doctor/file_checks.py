"""Checks the configuration and the files that it names, and their permissions."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from mqis.config.errors import ConfigError
from mqis.config.sections import ActingAs, Config, ConfiguredRole
from mqis.config.stores import file_of
from mqis.files import is_open_to_others
from mqis.findings import Area, Finding
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.runtime.node.signer import MachineKey
from mqis.server.accounts import AccountsFile
from mqis.texts import counted
from mqis.views.doctor.patient import Patient
from mqis.wire.errors import MqisError
from mqis.wire.security.sid import EVERYONE

_ANY = Area("configuration")


def check(patient: Patient) -> Iterator[Finding]:
    config = patient.config
    yield _ANY.ok(f"{patient.file} is a valid configuration")
    yield from _accounts(config)
    yield from _key(config)
    yield from _modes(patient)
    yield from _exposure(config)


def _accounts(config: Config) -> Iterator[Finding]:
    path = Path(config.security.accounts)
    if not path.exists():
        yield _without_accounts(config, path)
        return
    try:
        accounts = AccountsFile(path).accounts()
    except ConfigError as error:
        yield _ANY.error(str(error), "repair it; until then no user can log on")
        return
    administrators = set(config.security.administrators)
    if any(
        account.sid in administrators or account.groups & administrators for account in accounts
    ):
        yield _ANY.ok(f"{path}: {counted(len(accounts), 'account')}, not readable by other users")
    else:
        todo = "'mqis account add NAME --group S-1-5-32-544', or security.administrators"
        yield _ANY.warning(f"{path}: none of its accounts is an administrator", todo)


def _without_accounts(config: Config, path: Path) -> Finding:
    if not config.security.keytab:
        todo = "'mqis account add' makes it"
        return _ANY.warning(f"{path}: no such file, so no user can log on", todo)
    what = f"{path}: no such file: callers log on by Kerberos alone"
    if config.store.acting_as is ActingAs.CALLER:  # who may do what, Active Directory says
        return _ANY.ok(what)
    todo = "'mqis account add NAME --domain DOMAIN --sid SID' gives a principal its SID and groups"
    return _ANY.note(f"{what}, and have no SID", todo)


def _key(config: Config) -> Iterator[Finding]:
    path = Path(config.replication.key)
    if (
        config.server.role is ConfiguredRole.NONE
        or config.replication.signing is SigningPolicy.NONE
    ):
        return
    if not path.exists():
        todo = "restore it from a backup; otherwise a new one is made, which others do not know"
        yield _ANY.warning(f"{path}: there is no signing key", todo)
        return
    try:
        MachineKey.open(path, create=False)
    except MqisError as error:
        yield _ANY.error(str(error), "the server does not start without it")
    else:
        yield _ANY.ok(f"{path}: a signing key, not readable by other users")


def _modes(patient: Patient) -> Iterator[Finding]:
    store = file_of(patient.config.store.url)
    if store is not None and store.exists() and store.stat().st_mode & 0o022:
        yield _ANY.error(f"{store}: others can write the directory", f"chmod 600 {store}")
    elif store is not None and store.exists() and is_open_to_others(store):
        yield _ANY.warning(f"{store}: others can read the directory", f"chmod 600 {store}*")
    home = patient.file.absolute().parent
    if home.stat().st_mode & 0o022 and not home.stat().st_mode & stat.S_ISVTX:
        todo = f"chmod 700 {home}"
        yield _ANY.warning(f"{home}: other users can replace the files of this server", todo)


def _exposure(config: Config) -> Iterator[Finding]:
    """Checks the rights of anyone who can reach this computer."""
    security = config.security
    queue = config.replication.listen or config.rpc.listen
    if not _is_loopback(config.rpc.listen):
        if EVERYONE in security.administrators:
            todo = "remove S-1-1-0 from security.administrators"
            yield _ANY.error(f"anyone who can reach {config.rpc.listen} may do everything", todo)
        elif security.machine_policy is MachinePolicy.EVERYONE:
            todo = 'security.machine_policy = "owner"'
            yield _ANY.warning("everybody may change a new machine, and replace its key", todo)
    if config.server.role is ConfiguredRole.NONE or _is_loopback(queue):
        return
    if config.replication.signing is not SigningPolicy.REQUIRE:
        todo = 'replication.signing = "require" on every server, or a network that you trust'
        yield _ANY.warning(
            f"anyone who can reach {queue} can act as any server of the enterprise", todo
        )


def _is_loopback(address: str) -> bool:
    return ip_address(address).is_loopback
