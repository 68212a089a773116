"""Queue names and their hash, places of objects, targets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqis.protocol.activedirectory.forest import (
    LDAP_CLASSES,
    Forest,
    change_number,
    machine_name,
    queue_name,
    settings_name,
)
from mqis.protocol.activedirectory.queuename import join_name, queue_name_hash, split_name
from mqis.protocol.activedirectory.targets import (
    computer_filter,
    computer_of,
    target_of,
)
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.activedirectory.helpers import COMPUTER, FOREST, ID, SITE1, SITE2

LONG = "OrdersFromTheNorthernRegionWarehouseNumberSeventeen-Incoming-0001"


def bitwise_hash(name: str) -> str:
    """The same CRC without a table."""
    register = 0
    for octet in name.lower().encode("utf-16-be"):
        for bit in range(8):
            feedback = (register ^ octet >> bit) & 1
            register = register >> 1 ^ (0x9B619023 if feedback else 0)
    return f"{register:08x}"


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("a", "3f590a6e"), ("A", "3f590a6e"), ("q", "918ccc41"), ("orders", "2fa7868f"),
        ("Orders", "2fa7868f"), ("queue", "71185bce"), ("x" * 64, "c2f8c3d4"),
        ("y" * 124, "7bcdde40"), ("", "00000000"), ("oRDERS", "2fa7868f"),
    ],
)  # fmt: skip
@pytest.mark.req(
    "MQDSSM-2.2.5-01", "MQDSSM-2.2.5-02", "MQDSSM-2.2.5-03", "MQDSSM-2.2.5-05", "MQDSSM-2.2.5-06"
)
def test_hash(name: str, digits: str) -> None:
    assert queue_name_hash(name) == digits


@given(st.text(st.characters(max_codepoint=0x24F, exclude_characters="\u0130"), max_size=124))
@example("\u0100")
@pytest.mark.req("MQDSSM-2.2.5-04")
def test_the_hash_is_a_crc(name: str) -> None:
    assert queue_name_hash(name) == bitwise_hash(name)


def test_a_character_that_two_replace_stays() -> None:
    assert queue_name_hash("\u0130") == queue_name_hash("\u0130")
    assert queue_name_hash("\u0130") != queue_name_hash("i\u0307")


@pytest.mark.req(
    "MQDSSM-2.2.5-01", "MQDSSM-2.2.5-07", "MQDSSM-3.1.6.1.2.5-03", "MQDSSM-3.1.6.7.2.5-01"
)
def test_a_long_name_is_cut() -> None:
    cn = "OrdersFromTheNorthernRegionWarehouseNumberSeventeen-Inc-a0fa68bf"
    assert split_name(LONG) == (cn, "oming-0001")
    assert split_name(LONG[:-1] + "2")[0].endswith("-11184a37")
    assert len(cn) == 64


@pytest.mark.req("MQDSSM-3.1.6.1.2.5-02")
def test_63_characters_are_not_cut() -> None:
    assert split_name("x" * 63) == ("x" * 63, "")
    assert split_name("x" * 64)[1] == "x" * 9


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=124))
@example("a=b" * 30)
@example("=" * 63)
@example("x" * 124)
@pytest.mark.req("MQDSSM-3.1.6.11.2.1-02", "MQDSSM-3.1.6.1.2.5-04", "MQDSSM-3.1.6.1.2.5-05")
def test_split_and_joined_is_the_same(name: str) -> None:
    cn, rest = split_name(name)
    assert len(cn) <= 64
    assert len(rest) <= 92
    assert join_name(cn, rest) == name
    assert bool(rest) == (len(name) > 63)
    dn = DistinguishedName.parse(str(queue_name(COMPUTER, name)))
    assert join_name(dn.leaf, rest) == name


def test_a_name_of_64_characters_that_nobody_cut() -> None:
    assert join_name("x" * 64, "") == "x" * 64
    assert join_name("x" * 55 + "-00000000", "rest") == "x" * 55 + "-00000000"


@pytest.mark.parametrize("name", ["x,CN=other", "a\\,b", "*)(cn=*", "#1", " a ", "a\0b", "a=b+c"])
@pytest.mark.req("MQDSSM-2.2.1-09")
@pytest.mark.departs("MQDSSM-3.1.6.1.2.5-01", "MQDSSM-3.1.6.11.2.1-03")
def test_a_queue_name_cannot_leave_its_machine(name: str) -> None:
    made = DistinguishedName.parse(str(queue_name(COMPUTER, name)))
    assert made.parent == machine_name(COMPUTER)
    assert made.leaf == name


@pytest.mark.req("MQDSSM-2.2.1-01", "MQDSSM-2.2.1-06")
def test_places_of_machines_and_queues() -> None:
    computer = DistinguishedName.parse("CN=SRV1,CN=Computers,DC=corp,DC=example")
    assert str(machine_name(computer)) == "CN=msmq,CN=SRV1,CN=Computers,DC=corp,DC=example"
    queue = queue_name(computer, "Orders")
    assert str(queue) == "CN=Orders,CN=msmq,CN=SRV1,CN=Computers,DC=corp,DC=example"
    assert LDAP_CLASSES[ObjectType.MACHINE] == "mSMQConfiguration"
    assert LDAP_CLASSES[ObjectType.QUEUE] == "mSMQQueue"


@pytest.mark.req("MQDSSM-2.2.1-02", "MQDSSM-2.2.1-03", "MQDSSM-2.2.1-05", "MQDSSM-2.2.1-06")
def test_places_in_the_configuration() -> None:
    configuration = "CN=Configuration,DC=corp,DC=example"
    assert str(FOREST.site("Berlin")) == f"CN=Berlin,CN=Sites,{configuration}"
    assert str(FOREST.enterprise) == f"CN=MsmqServices,CN=Services,{configuration}"
    assert LDAP_CLASSES[ObjectType.ENTERPRISE] == "mSMQEnterpriseSettings"
    assert FOREST.link(SITE1, SITE2).parent == FOREST.enterprise
    assert LDAP_CLASSES[ObjectType.ROUTINGLINK] == "mSMQSiteLink"
    assert str(settings_name(FOREST.site("Berlin"), "SRV1")) == (
        f"CN=MSMQ Settings,CN=SRV1,CN=Servers,CN=Berlin,CN=Sites,{configuration}"
    )


@pytest.mark.req("MQDSSM-3.1.6.1.4.2-02")
def test_a_link_is_called_by_its_sites() -> None:
    digits = "11111111222233334444555555555555" + "666666667777888899" + "99aaaaaaaaaaaa"
    assert FOREST.link(SITE1, SITE2) == FOREST.enterprise.child("CN", digits)


@pytest.mark.req("MQDSSM-3.1.6.15-01", "MQDSSM-3.1.6.15-02")
def test_search_bases() -> None:
    child = replace(FOREST, domain=FOREST.root.child("DC", "north"))
    for object_type in (ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.USER):
        assert str(child.search_base(object_type)) == "DC=north,DC=corp,DC=example"
    assert FOREST.search_base(ObjectType.SITE) == FOREST.search_base(ObjectType.CN) == FOREST.sites
    assert str(FOREST.sites) == "CN=Sites,CN=Configuration,DC=corp,DC=example"
    assert FOREST.search_base(ObjectType.ENTERPRISE).leaf == "Services"
    assert FOREST.search_base(ObjectType.ROUTINGLINK) == FOREST.enterprise


@pytest.mark.req("MQDSSM-2.2.1-07")
def test_naming_contexts_of_the_root_entry() -> None:
    rows = (
        ("configurationNamingContext", (b"CN=Configuration,DC=corp,DC=example",)),
        ("rootDomainNamingContext", (b"DC=corp,DC=example",)),
        ("defaultNamingContext", (b"DC=eu,DC=corp,DC=example",)),
    )
    assert Forest.of(LdapEntry("", rows)) == replace(FOREST, domain=FOREST.root.child("DC", "eu"))
    with pytest.raises(ProtocolError, match="names no defaultNamingContext"):
        Forest.of(LdapEntry("", rows[:2]))
    with pytest.raises(BadAttribute, match="root entry: rootDomainNamingContext: is not UTF-8"):
        Forest.of(LdapEntry("", (rows[0], ("rootDomainNamingContext", (b"\xff",)))))


@pytest.mark.req("MQDSSM-2.2.1-08")
def test_a_computer_is_searched() -> None:
    names = "(|(sAMAccountName=SRV1$)(dNSHostName=SRV1)(cn=SRV1))"
    assert str(computer_filter("SRV1")) == f"(&(objectClass=computer){names})"
    assert "(dNSHostName=a.b)" in str(computer_filter("a.b"))
    assert str(computer_filter("*)(cn=*")).count("(") == 6
    assert computer_of(ObjectType.QUEUE, "SRV1\\q") == computer_of(ObjectType.MACHINE, "SRV1")
    assert computer_of(ObjectType.SITE, "x") == ""


@pytest.mark.req(
    "MQDSSM-3.1.6.2.2.2-02", "MQDSSM-3.1.6.3.3.2-01", "MQDSSM-1.4-03", "MQDSSM-3.1.6.7.2.2-03"
)
def test_targets_by_name() -> None:
    queue = target_of(ObjectType.QUEUE, f"SRV1\\{LONG}", FOREST, COMPUTER)
    assert queue == str(queue_name(COMPUTER, LONG))
    assert "a0fa68bf" in queue
    assert target_of(ObjectType.MACHINE, "SRV1", FOREST, COMPUTER) == (str(machine_name(COMPUTER)))
    assert target_of(ObjectType.SITE, "Berlin", FOREST) == str(FOREST.site("Berlin"))
    assert target_of(ObjectType.ENTERPRISE, "", FOREST) == str(FOREST.enterprise)
    assert target_of(ObjectType.QUEUE, "SRV1\\q", FOREST) is None
    assert target_of(ObjectType.MACHINE, "SRV1", FOREST) is None
    assert target_of(ObjectType.USER, "", FOREST) is None


def test_entries() -> None:
    found = LdapEntry(f"<GUID={ID}>;CN=a,DC=b", (("A", (b"1",)), ("a", (b"2",))))
    assert found.values("a") == (b"1", b"2")
    assert str(found.distinguished_name) == "CN=a,DC=b"
    assert found.guid is None
    assert LdapEntry("", (("objectGUID", (ID.raw,)),)).guid == ID
    assert LdapEntry("", (("objectGUID", (b"x",)),)).guid is None
    assert not found.is_of("top")
    assert Guid.NULL is not None


@pytest.mark.parametrize("number", [0, 7, 2**64 - 1])
def test_numbers_of_changes_are_read(number: int) -> None:
    assert change_number(str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "seven", "\u0661", "9" * 5_000])
def test_what_is_no_number_of_a_change_is_told_in_one_line(text: str) -> None:
    with pytest.raises(ProtocolError, match="not a number") as caught:
        change_number(text)
    assert len(str(caught.value)) < 200
