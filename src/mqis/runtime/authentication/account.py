"""Accounts as an acceptor knows them: names, SIDs, and the NT hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from mqis.protocol.authentication import Identity
from mqis.wire.security.sid import Sid

NT_HASH_SIZE = 16


def nt_hash(password: str) -> bytes:
    """NTOWFv1 (MS-NLMP 3.3.1): MD4 of the UTF-16 password.

    OpenSSL 3 has no MD4, so pyspnego's is used. Its function for whole passwords is avoided,
    because it takes a password that looks like two hashes for these hashes.
    """
    from spnego._ntlm_raw.md4 import md4  # noqa: PLC0415 -- slow, and few who read accounts hash

    return md4(password.encode("utf-16-le", errors="surrogatepass"))


def account_key(domain: str, name: str) -> tuple[str, str]:
    """The key by which accounts are compared: upper case, as NTLM hashes names."""
    return domain.upper(), name.upper()


@dataclass(frozen=True, slots=True)
class Account:
    """A principal of the accounts file. The hash is equivalent to the password: never shown."""

    domain: str
    name: str
    sid: Sid
    nt_hash: bytes = field(repr=False)
    groups: frozenset[Sid] = frozenset()

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("an account needs a name")
        if len(self.nt_hash) != NT_HASH_SIZE:
            raise ValueError(f"an NT hash has {NT_HASH_SIZE} bytes, not {len(self.nt_hash)}")

    @property
    def identity(self) -> Identity:
        return Identity(self.domain, self.name, self.sid, self.groups)

    def __str__(self) -> str:
        return str(self.identity)


#: Called with the name that a caller sent and the account that it means; raises
#: ``AuthenticationError`` if no password may be checked now.
Claim = Callable[[str, Account | None], None]


def any_claim(_name: str, _account: Account | None) -> None:
    """Accepts every claim."""


class Accounts(Protocol):
    """The port by which an acceptor finds accounts."""

    def find(self, domain: str, name: str) -> Account | None:
        """The account of exactly this domain ('' for none) and name, in any case."""

    @property
    def edition(self) -> int:
        """A number that grows with each change of the accounts that was noticed."""

    def known(self, domain: str, name: str) -> Account | None:
        """The same as ``find``, as of the ``edition``: no change is looked for."""


class MemoryAccounts:
    """Accounts in memory only, which do not change."""

    edition = 0

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        self._accounts = {account_key(a.domain, a.name): a for a in accounts}

    def find(self, domain: str, name: str) -> Account | None:
        return self._accounts.get(account_key(domain, name))

    known = find


def resolve(
    accounts: Accounts, own_names: tuple[str, ...], domain: str, name: str
) -> Account | None:
    """The account that a caller means by the domain and name it sent.

    Some clients send no domain, or the name of this computer: both mean the accounts of
    ``own_names`` or of no domain. A user principal name (user@domain) is split.
    """
    found = accounts.find(domain, name)
    if found is not None:
        return found
    if not domain and "@" in name:
        name, _, domain = name.rpartition("@")
        found = accounts.find(domain, name)
    if found is None and domain.upper() in ("", *(own.upper() for own in own_names)):
        candidates = (accounts.find(own, name) for own in (*own_names, ""))
        found = next((account for account in candidates if account is not None), None)
    return found
