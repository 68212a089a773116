"""Queue aliases and distribution lists whose queues are odd, gone or not seen."""

from __future__ import annotations

import pytest

from mqis.protocol.activedirectory.recipients import (
    RecipientKind,
    alias_target,
    list_guid,
    recipient_kind,
)
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from tests.estate.planted import (
    OU,
    ROOT,
    alias,
    cross_reference,
    distribution_list,
    guid,
    sound,
    standing,
)
from tests.protocol.activedirectory.estate.test_checks import examined

ORDERS = f"CN=orders,CN=msmq,CN=WS1,{OU}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is missing"),
        ("DIRECT=OS:" + "q" * 250, "has more than 255 characters"),
        ("DL=00000000-0000-0000-0000-000000000001", "is no direct, public or private"),
    ],
)
def test_an_alias_without_a_format_name_stands_for_nothing(text: str, why: str) -> None:
    (finding,) = examined([*sound(), alias("odd", text)]).findings
    assert finding.check == "alias_to_nowhere"
    assert why in finding.detail
    entry = LdapEntry(f"CN=odd,{OU}", (("msMQ-Recipient-FormatName", (text.encode(),)),))
    with pytest.raises(BadAttribute, match=why):
        alias_target(entry)


def test_what_a_domain_has_that_was_not_read_is_unknown() -> None:
    other = "DC=paris,DC=corp,DC=example"
    listed = distribution_list("all", 60, ORDERS, f"CN=q,CN=msmq,CN=SRV,{other}")
    aliases = alias("far", f"PUBLIC={guid(98)}"), alias("far2", f"PRIVATE={guid(99)}\\1")
    forest = [*standing(), cross_reference("PARIS", other)]
    report = examined([*sound()[:-1], listed, *aliases], forest)
    assert report.findings == ()
    told = {(each.check, each.reason) for each in report.limits}
    assert {
        ("alias_to_nowhere", f"the queue of an alias is not seen, such as CN=far,{OU}"),
        ("alias_to_nowhere", f"the queue manager of an alias is not seen, such as CN=far2,{OU}"),
        ("bad_list_member", f"a member of a list is not seen, such as CN=all,{OU}"),
    } <= told


def test_a_member_that_was_deleted_is_named() -> None:
    gone = f"CN=old\\0ADEL:{guid(77)},CN=Deleted Objects,{ROOT}"
    (finding,) = examined([*sound()[:-1], distribution_list("all", 60, ORDERS, gone)]).findings
    assert finding.check == "bad_list_member"
    assert f"{gone} does not exist" in finding.detail


@pytest.mark.parametrize(
    ("format_name", "found"),
    [
        (f"DL={guid(60)}", guid(60)),
        (f"dl={{{guid(60)}}}@corp.example", guid(60)),
        (f"PUBLIC={guid(60)}", None),
        ("DL=", None),
    ],
)
def test_a_list_by_its_format_name(format_name: str, found: object) -> None:
    assert list_guid(format_name) == found


def test_the_kind_of_a_recipient_is_its_own_class() -> None:
    for kind, classes in (
        (RecipientKind.LIST, (b"top", b"group")),
        (RecipientKind.LIST, (b"top", b"msMQ-Group")),
        (RecipientKind.ALIAS, (b"top", b"msMQ-Custom-Recipient")),
        (RecipientKind.QUEUE, (b"top", b"mSMQQueue")),
        (None, (b"top", b"person", b"user")),
        (None, ()),
    ):
        assert recipient_kind(LdapEntry("CN=x", (("objectClass", classes),))) is kind
