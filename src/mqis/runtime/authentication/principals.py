"""The mapping of Kerberos principals to accounts.

A realm decides only the names of its own users. Where realms trust each other, users
of the others can get tickets for this server, so the realm is part of a principal's identity:

- A principal of a realm that this server has keys of is one of the own users: the account of that
  domain, or of the realm's first label, which is its short name by custom. Where that is the domain
  or the name of this server, accounts without a domain are considered too.
- A principal of any other realm is the account whose domain is that realm in full. It is never one
  of the own users, whatever the name of its realm.

Realms are compared exactly: to Kerberos, LAB and lab are two.
"""

from __future__ import annotations

from collections.abc import Collection

from mqis.protocol.authentication import Identity
from mqis.runtime.authentication.account import Account, Accounts, resolve


def identity_of(
    accounts: Accounts, own_names: tuple[str, ...], own_realms: Collection[str], principal: str
) -> Identity:
    """The identity of an authenticated principal; without an account it has no SID."""
    name, _, realm = principal.rpartition("@")
    if realm in own_realms:
        account = _own_user(accounts, own_names, realm, name)
    else:
        account = _user_of_another(accounts, (*own_names, *own_realms), realm, name)
    return Identity(realm, name) if account is None else account.identity


def _own_user(
    accounts: Accounts, own_names: tuple[str, ...], realm: str, name: str
) -> Account | None:
    return resolve(accounts, own_names, realm, name) or accounts.find(realm.partition(".")[0], name)


def _user_of_another(
    accounts: Accounts, own: tuple[str, ...], realm: str, name: str
) -> Account | None:
    if not realm or realm.upper() in (known.upper() for known in own):
        return None
    return accounts.find(realm, name)
