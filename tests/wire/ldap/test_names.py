"""Distinguished names: RFC 4514, what Active Directory writes, and names that attack."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import (
    MAXIMUM_NAME,
    DistinguishedName,
    ExtendedName,
    NamePart,
    escape_value,
    guid_name,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.builds(
    DistinguishedName,
    st.lists(st.builds(NamePart, st.sampled_from(["CN", "OU", "DC"]), TEXT), max_size=6).map(tuple),
)


@given(NAMES)
def test_written_and_read_back_is_the_same(name: DistinguishedName) -> None:
    assert DistinguishedName.parse(str(name)) == name


@given(st.text(st.sampled_from('CN=,\\+"<>;# a0\x00'), max_size=30))
def test_garbage_is_one_error_or_a_name(text: str) -> None:
    try:
        found = DistinguishedName.parse(text)
    except WireError:
        return
    assert DistinguishedName.parse(str(found)) == found


@pytest.mark.parametrize(
    "value",
    [
        "x,CN=Administrators",
        "x\\,CN=a",
        'q"+OU=x',
        " x ",
        "#04",
        "a=b;c<d>",
        "*)(cn=*",
        "a\0b",
        "\\",
    ],
)
@pytest.mark.req("MQDSSM-2.2.1-09")
def test_a_value_stays_one_part(value: str) -> None:
    base = DistinguishedName.parse("CN=msmq,DC=corp,DC=example")
    read = DistinguishedName.parse(str(base.child("CN", value)))
    assert read.leaf == value
    assert read.parent == base


@pytest.mark.parametrize(
    ("text", "leaf"),
    [
        (r"CN=a\3Db,DC=x", "a=b"),
        (r"CN=a\3Bb,DC=x", "a;b"),
        (r"CN=a\0Ab,DC=x", "a\nb"),
        ("CN=a/b,DC=x", "a/b"),
        (
            r"CN=orders\0ADEL:b92cc7c8-0b1e-434b-b7ad-a1b791e457dd,CN=Deleted Objects,DC=x",
            "orders\nDEL:b92cc7c8-0b1e-434b-b7ad-a1b791e457dd",
        ),
        (r"CN=m\C3\BCnchen,DC=x", "münchen"),
        (r"CN=m\c3\bcnchen,DC=x", "münchen"),
        (r"CN=a\ ,DC=x", "a "),
        ("1.2.840=x,DC=x", "x"),
    ],
)
@pytest.mark.req("MQDSSM-2.2.1-09")
def test_escapes_of_active_directory(text: str, leaf: str) -> None:
    assert DistinguishedName.parse(text).leaf == leaf


@pytest.mark.parametrize(
    "text", ["CN", "CN=a+b=c", "CN=#04", "=x", "CN=a\\", r"CN=a\ff", "CN=a,", 'CN="a"', "CN=\ud800"]
)
def test_malformed_names(text: str) -> None:
    with pytest.raises(WireError):
        DistinguishedName.parse(text)


def test_limits() -> None:
    with pytest.raises(WireError, match="more than"):
        DistinguishedName.parse("CN=" + "a" * MAXIMUM_NAME)
    with pytest.raises(WireError, match="surrogate"):
        escape_value("\ud800")


@pytest.mark.req("MQDSSM-2.2.1-10")
def test_names_compare_without_case_blanks_and_form_of_escapes() -> None:
    one = DistinguishedName.parse(r" CN=a\3Db , CN=MSMQ ,DC = corp")
    other = DistinguishedName.parse(r"cn=A\=B,cn=msmq,dc=CORP")
    assert one.key == other.key
    assert one.is_below(other.parent)
    assert one.is_below(DistinguishedName())
    assert not other.parent.is_below(one)


def test_the_root() -> None:
    root = DistinguishedName.parse("")
    assert not root
    assert (root.leaf, str(root), root.parent) == ("", "", root)
    assert root.child("DC", "x")


@pytest.mark.parametrize(
    "guid", ["b92cc7c8-0b1e-434b-b7ad-a1b791e457dd", "c8c72cb91e0b4b43b7ada1b791e457dd"]
)
def test_extended_names(guid: str) -> None:
    found = ExtendedName.parse(f"<GUID={guid}>;<SID=S-1-5-21-1>;CN=a,DC=b")
    assert found.guid == Guid.parse("b92cc7c8-0b1e-434b-b7ad-a1b791e457dd")
    assert (found.sid, str(found.name)) == ("S-1-5-21-1", "CN=a,DC=b")
    assert ExtendedName.parse(guid_name(found.guid)) == ExtendedName(
        DistinguishedName(), found.guid
    )


@pytest.mark.parametrize("text", ["<GUID=x>;CN=a", "<GUID=" + "z" * 32 + ">", "<WKGUID=1>"])
def test_malformed_extended_names(text: str) -> None:
    with pytest.raises(WireError):
        ExtendedName.parse(text)
