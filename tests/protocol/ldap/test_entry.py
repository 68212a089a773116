"""Entries of a directory as their readers see them."""

from __future__ import annotations

from mqis.protocol.ldap.entry import LdapEntry


def test_a_name_that_is_none_is_shown_as_it_came() -> None:
    assert LdapEntry("<GUID=12>;CN=a,DC=b", ()).plain_name == "CN=a,DC=b"
    assert LdapEntry("no name", ()).plain_name == "no name"
