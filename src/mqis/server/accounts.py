"""The accounts file: the users that may log on, with their SIDs and groups.

It is TOML, has mode 0600 and is replaced as a whole. An NT hash is as good as the password, so a
file that others may read is refused, and no output or message shows a hash.

    domain_sid = "S-1-5-21-…"   # new accounts get this and the next number
    next_rid = 1001             # never decreases: a SID that was in use is not used again

    [[account]]
    domain = "LAB"
    name = "alice"
    sid = "S-1-5-21-…-1000"
    groups = ["S-1-5-32-544"]
    nt_hash = "…"
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mqis.config.errors import ConfigError
from mqis.config.file import as_toml
from mqis.files import OTHERS, system_reason, write_whole
from mqis.runtime.authentication.account import Account, MemoryAccounts, account_key, nt_hash
from mqis.wire.security.sid import Sid

#: The accounts file that commands use by default.
DEFAULT_NAME = "accounts.toml"
FIRST_RID = 1000

_HEADER = "# The accounts of mqis, kept by 'mqis account'. A hash is as good as a password.\n"
_KEYS = {"domain", "name", "sid", "groups", "nt_hash"}
_FORBIDDEN = frozenset('"/\\[]:;|=,+*?<>@')


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of the file."""

    domain_sid: Sid
    next_rid: int = FIRST_RID
    accounts: tuple[Account, ...] = ()

    @classmethod
    def empty(cls) -> _Content:
        """Empty content with a random domain SID, so that two files never share a SID."""
        return cls(Sid(5, (21, *(secrets.randbits(32) for _ in range(3)))))


class AccountsFile:
    """Accounts in a file; implements ``runtime.authentication.account.Accounts``.

    A changed file is read again before the next use, so a server needs no restart.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # a link stays a link when the file behind it is replaced
        self._seen: tuple[int, ...] = ()
        self._content = _Content(Sid(5))
        self._index = MemoryAccounts()
        #: The number of times that the file was read.
        self.edition = 0

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, in the order of the file."""
        self._refresh()
        return self._content.accounts

    def find(self, domain: str, name: str) -> Account | None:
        self._refresh()
        return self._index.find(domain, name)

    def known(self, domain: str, name: str) -> Account | None:
        return self._index.find(domain, name)

    def look(self) -> None:
        """Reads the file if it has changed; raises ``ConfigError`` if it cannot be used."""
        self._refresh()

    def add(
        self,
        name: str,
        password: str,
        *,
        domain: str = "",
        sid: Sid | None = None,
        groups: Iterable[Sid] = (),
    ) -> Account:
        """Adds an account; makes the file if there is none."""
        _check_name("name", name, _FORBIDDEN)
        _check_name("domain", domain, frozenset("\\/@"))
        if not name or not password:
            raise ConfigError(f"an account needs a {'password' if name else 'name'}")
        with self._exclusive():
            content = self._read() if self.path.exists() else _Content.empty()
            own = content.domain_sid.sub_authorities
            if sid is None:
                sid = Sid(5, (*own, content.next_rid))
            if sid.authority == 5 and sid.sub_authorities[:-1] == own:
                rid = max(content.next_rid, sid.sub_authorities[-1] + 1)
                content = replace(content, next_rid=rid)
            account = Account(domain, name, sid, nt_hash(password), frozenset(groups))
            problem = _conflict(content.accounts, account)
            if problem:
                raise ConfigError(f"{self.path}: {problem}")
            self._write(replace(content, accounts=(*content.accounts, account)))
        return account

    def change(
        self,
        name: str,
        domain: str = "",
        *,
        password: str | None = None,
        groups: Iterable[Sid] | None = None,
    ) -> Account:
        """Changes the password or the groups of an account, which keeps its SID."""
        if password == "":
            raise ConfigError("an account needs a password")
        with self._exclusive():
            content = self._read()
            old = self._known(content, name, domain)
            new = old if groups is None else replace(old, groups=frozenset(groups))
            if password is not None:
                new = replace(new, nt_hash=nt_hash(password))
            changed = tuple(new if account is old else account for account in content.accounts)
            self._write(replace(content, accounts=changed))
        return new

    def remove(self, name: str, domain: str = "") -> Account:
        with self._exclusive():
            content = self._read()
            account = self._known(content, name, domain)
            rest = tuple(a for a in content.accounts if a is not account)
            self._write(replace(content, accounts=rest))
        return account

    def _known(self, content: _Content, name: str, domain: str) -> Account:
        key = account_key(domain, name)
        for account in content.accounts:
            if account_key(account.domain, account.name) == key:
                return account
        wanted = f"{domain}\\{name}" if domain else name
        raise ConfigError(f"{self.path}: there is no account {wanted}")

    # --- reading ----------------------------------------------------------------------------------

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
        except OSError as error:
            raise self._unreadable(error) from error
        seen = (
            *(status.st_ino, status.st_mtime_ns, status.st_ctime_ns),
            *(status.st_size, status.st_mode, status.st_uid),
        )
        if seen != self._seen:
            content = self._read()
            self._content, self._index = content, MemoryAccounts(content.accounts)
            self._seen = seen
            self.edition += 1

    def _read(self) -> _Content:
        try:
            with self.path.open("rb") as file:
                self._check_private(os.fstat(file.fileno()))
                content = tomllib.loads(file.read().decode("utf-8-sig"))
        except OSError as error:
            raise self._unreadable(error) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path}: this file is not valid TOML: {error}") from None
        try:
            return _parse(content)
        except ValueError as error:
            raise ConfigError(f"{self.path}: {error}") from None

    def _unreadable(self, error: OSError) -> ConfigError:
        hint = "; 'mqis account add' makes it" if isinstance(error, FileNotFoundError) else ""
        return ConfigError(f"{self.path}: cannot be read: {system_reason(error)}{hint}")

    def _check_private(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{self.path}: this is not a regular file")
        mode = stat.S_IMODE(status.st_mode)
        if mode & OTHERS:
            raise ConfigError(
                f"{self.path}: this file holds password hashes and has mode {mode:04o}, so others "
                f"may use them; run: chmod 600 {self.path}"
            )
        if os.geteuid() not in (0, status.st_uid) and status.st_uid != 0:
            raise ConfigError(
                f"{self.path}: this file belongs to another user (uid {status.st_uid})"
            )

    # --- writing ----------------------------------------------------------------------------------

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Locks out other commands: the second of two sees what the first wrote.

        The lock is on the directory, because every change replaces the file.
        """
        try:
            directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ConfigError(f"{self.path.parent}: {system_reason(error)}") from error
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)

    def _write(self, content: _Content) -> None:
        """Writes the file atomically and durably."""
        try:
            write_whole(self.path, _format(content))
        except OSError as error:
            reason = system_reason(error)
            raise ConfigError(f"{self.path}: cannot be written: {reason}") from error


def _check_name(what: str, text: str, forbidden: frozenset[str]) -> None:
    bad = sorted({c for c in text if c in forbidden or not c.isprintable()})
    if bad or text != text.strip():
        wrong = f"cannot hold {' '.join(map(repr, bad))}" if bad else "has blanks around it"
        raise ConfigError(f"the {what} {text!r} {wrong}")


def _conflict(accounts: Iterable[Account], new: Account) -> str | None:
    for account in accounts:
        if account_key(account.domain, account.name) == account_key(new.domain, new.name):
            return f"the account {account} exists already"
        if account.sid == new.sid:
            return f"{new.sid} is the SID of {account}"
    return None


# --- the format -----------------------------------------------------------------------------------


def _parse(content: dict[str, Any]) -> _Content:
    _only(content, {"domain_sid", "next_rid", "account"}, "")
    entries = content.get("account", [])
    if not isinstance(entries, list):
        raise ValueError("account: this is a list; write [[account]]")
    accounts: list[Account] = []
    for number, entry in enumerate(entries, start=1):
        account = _parse_account(entry, f"account {number}: ")
        problem = _conflict(accounts, account)
        if problem:
            raise ValueError(f"account {number}: {problem}")
        accounts.append(account)
    next_rid = content.get("next_rid", FIRST_RID)
    if isinstance(next_rid, bool) or not isinstance(next_rid, int) or not 0 <= next_rid < 1 << 32:
        raise ValueError("next_rid: must be a number of 32 bits")
    domain_sid = _sid(content.get("domain_sid"), "domain_sid")
    return _Content(domain_sid, next_rid, tuple(accounts))


def _parse_account(entry: object, where: str) -> Account:
    if not isinstance(entry, dict):
        raise ValueError(f"{where}must be a table; write [[account]]")
    _only(entry, _KEYS, where)
    groups = entry.get("groups", [])
    if not isinstance(groups, list):
        raise ValueError(f"{where}groups: must be a list of SIDs")
    # The value of nt_hash stays out of messages, which end up in logs.
    try:
        secret = bytes.fromhex(_text(entry, "nt_hash", where))
    except ValueError:
        raise ValueError(f"{where}nt_hash: must be 32 hexadecimal digits") from None
    domain = _text(entry, "domain", where) if "domain" in entry else ""
    name = _text(entry, "name", where)
    sid = _sid(entry.get("sid"), f"{where}sid")
    members = frozenset(_sid(group, f"{where}groups") for group in groups)
    try:
        return Account(domain, name, sid, secret, members)
    except ValueError as error:
        raise ValueError(f"{where}{error}") from None


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{where}{key}: no such key; known: {', '.join(sorted(known))}")


def _text(table: dict[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{where}{key}: must be text in quotes")
    return value


def _sid(value: object, where: str) -> Sid:
    if not isinstance(value, str):
        raise ValueError(f"{where}: must be a SID in quotes")
    try:
        return Sid.parse(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _format(content: _Content) -> str:
    lines = [f'domain_sid = "{content.domain_sid}"', f"next_rid = {content.next_rid}"]
    for account in content.accounts:
        groups = ", ".join(f'"{group}"' for group in sorted(account.groups))
        lines += [
            "",
            "[[account]]",
            f"domain = {as_toml(account.domain)}",
            f"name = {as_toml(account.name)}",
            f'sid = "{account.sid}"',
            f"groups = [{groups}]",
            f'nt_hash = "{account.nt_hash.hex()}"',
        ]
    return _HEADER + "\n".join(lines) + "\n"
