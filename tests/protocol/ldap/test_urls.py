"""LDAP URLs, as people write them and as servers refer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.ldap.ports import entry_name
from mqis.protocol.ldap.urls import MAXIMUM_URL, LdapUrl, holds_account
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import Equality


@pytest.mark.parametrize(
    ("text", "url", "shown"),
    [
        ("ldaps://dc1.corp.example", LdapUrl("dc1.corp.example", 636, True), None),
        ("LDAP://dc1", LdapUrl("dc1", 389, False), "ldap://dc1"),
        ("ldap://dc1:3268/", LdapUrl("dc1", 3268, False), "ldap://dc1:3268"),
        ("ldaps://[::1]:636", LdapUrl("::1", 636, True), "ldaps://[::1]"),
        (
            "ldaps:///DC=corp,DC=example",
            LdapUrl("", 636, True, "DC=corp,DC=example"),
            "ldaps:///DC=corp,DC=example",
        ),
        (
            "ldap://dc2/CN=a%20b,DC=x??one?(cn=%C3%BC)",
            LdapUrl(
                "dc2",
                389,
                False,
                "CN=a b,DC=x",
                SearchScope.ONE_LEVEL,
                Equality("cn", "ü".encode()),
            ),
            "ldap://dc2",
        ),
    ],
)
def test_urls(text: str, url: LdapUrl, shown: str | None) -> None:
    assert LdapUrl.parse(text) == url
    assert str(url) == (shown or text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dc1", "is not an LDAP URL, such as ldaps://dc1.corp.example"),
        ("http://dc1", "is not an LDAP URL"),
        ("ldap://user@dc1", "^ldap://dc1: leave the account out of the URL; give its name with"),
        ("ldap://dc1/" + "a" * (MAXIMUM_URL - 10), "is not an LDAP URL"),
        ("ldap://dc1:0", "0 is not a port"),
        ("ldap://dc1:70000", "70000 is not a port"),
        ("ldap://dc1/a%2", "a percent sign is not followed by two digits"),
        ("ldap://dc1/%ff", "a percent sign is not followed by two digits"),
        ("ldap://dc1/??all", "'all' is not a scope: base, one or sub"),
        ("ldap://dc1/??sub?(cn", "the filter is wrong"),
    ],
)
def test_what_is_no_url(text: str, reason: str) -> None:
    with pytest.raises(MqisError, match=reason):
        LdapUrl.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_url_or_one_error(text: str) -> None:
    for whole in (text, "ldap://" + text, "ldap://h/" + text):
        try:
            LdapUrl.parse(whole)
        except MqisError:
            continue


def test_domains() -> None:
    assert LdapUrl.parse("ldaps:///OU=x,DC=corp,dc=example").domain == "corp.example"
    assert LdapUrl.parse("ldaps:///nonsense").domain == ""
    assert LdapUrl.parse("ldap://dc1:3269").is_global_catalogue
    assert not LdapUrl.parse("ldap://dc1").is_global_catalogue


def test_an_entry_by_guid() -> None:
    guid = Guid.parse("b92cc7c8-0b1e-434b-b7ad-a1b791e457dd")
    assert entry_name(guid) == "<GUID=b92cc7c8-0b1e-434b-b7ad-a1b791e457dd>"
    assert entry_name("CN=a") == "CN=a"


def test_the_longest_url() -> None:
    base = "a" * (MAXIMUM_URL - len("ldap://dc1/"))
    assert LdapUrl.parse(f"ldap://dc1/{base}").base == base


@pytest.mark.parametrize(
    "text",
    [
        "ldaps://user:12345/x@dc",
        "ldaps://user:12345/x@dc/DC=corp",
        "ldap://dc1/DC=corp?mail@x",
        "ldap://dc1/DC=corp??s@b",
        "ldap://dc1/DC=corp??sub?x@y",
        "ldaps://user:secret@dc1.corp.example",
    ],
)
def test_an_account_in_a_url_is_refused_and_not_repeated(text: str) -> None:
    assert holds_account(text)
    with pytest.raises(MqisError) as refused:
        LdapUrl.parse(text)
    assert "12345" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "ldap://dc1/CN=a@b,DC=corp",
        "ldap://dc1/DC=corp??sub?(mail=a@b)",
        "ldap://dc1/DC=corp",
    ],
)
def test_an_at_sign_in_a_name_or_a_filter_is_no_account(text: str) -> None:
    assert not holds_account(text)
    assert LdapUrl.parse(text).host == "dc1"
