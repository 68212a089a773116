"""Attacks on the mirror and on the check of an estate: a directory that lies, or hides."""

from __future__ import annotations

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.estate.sources import check_directory
from mqis.cli.estate import repairs_of
from mqis.findings import CheckReport
from mqis.protocol.activedirectory.estate.findings import EstateCheck, finding
from mqis.protocol.activedirectory.mirror.cursor import read_cursor
from mqis.protocol.ldap.errors import LdapError
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import DeleteEntry
from mqis.wire.ldap.ldif import read_ldif
from mqis.wire.ldap.requests import Abandon, SearchRequest, SimpleBind, Unbind
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored
from tests.estate.planted import OU, faults, made, sound
from tests.protocol.activedirectory.estate.test_checks import examined

#: What an attacker would like to have in a file of repairs.
RECORD = "\n\ndn: CN=Administrator\nchangetype: delete"


@pytest.mark.req("SEC-15-01")
def test_the_directory_is_only_read() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.label(estate.orders, b"changed")
        estate.delete(estate.bills)
        await estate.mirror.round()
        options = ConnectingOptions((estate.server.url,), method=BindMethod.ANONYMOUS)
        await check_directory([options])
        kinds = {type(message.operation) for message in estate.server.received}
        assert kinds <= {SearchRequest, SimpleBind, Unbind, Abandon}
        assert SearchRequest in kinds

    mirrored(test)


@pytest.mark.req("SEC-15-02")
def test_an_account_that_sees_nothing_deletes_nothing() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        before = estate.held()
        # The containers stay visible, as they do for an account without rights on their contents.
        hidden = {b"site", b"mSMQQueue", b"mSMQConfiguration", b"mSMQSiteLink", b"user"}
        estate.server.entries = [
            e for e in estate.server.entries if not set(e.values("objectClass")) & hidden
        ]
        estate.server.restore(500)
        with pytest.raises(LdapError, match="sees no site, so nothing is deleted"):
            await estate.mirror.round()
        assert estate.held() == before

    mirrored(test)


@pytest.mark.req("SEC-15-02")
def test_an_account_that_sees_neither_deletions_nor_the_rest_deletes_nothing() -> None:
    """Such a round looks for what is missing, without any sign that the server has changed."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        before = estate.held()
        hidden = {b"site", b"mSMQQueue", b"mSMQConfiguration", b"mSMQSiteLink", b"user"}
        estate.server.entries = [
            e for e in estate.server.entries if not set(e.values("objectClass")) & hidden
        ]
        with pytest.raises(LdapError, match="sees no site, so nothing is deleted"):
            await estate.mirror.round()
        assert estate.held() == before

    mirrored(test, shows_deleted=False)


def test_an_account_that_sees_nothing_is_not_told_that_all_is_equal() -> None:
    """Nothing has changed and nothing is looked for, so only the sites tell it."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.server.entries = [
            e for e in estate.server.entries if b"site" not in e.values("objectClass")
        ]
        with pytest.raises(LdapError, match="sees no site"):
            await estate.mirror.round()

    mirrored(test)


@pytest.mark.req("SEC-15-03")
def test_an_object_that_cannot_be_read_is_not_deleted() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.set(estate.orders, "nTSecurityDescriptor", b"garbled")
        done = await estate.mirror.round()
        assert not done.fresh
        assert "nTSecurityDescriptor" in done.left_out[estate.orders].detail
        assert "srv1\\orders" in estate.held()["queue"]
        estate.server.restore(500)
        done = await estate.mirror.round()
        assert done.fresh
        assert "nTSecurityDescriptor" in done.left_out[estate.orders].detail
        assert "srv1\\orders" in estate.held()["queue"]

    mirrored(test)


@pytest.mark.req("SEC-15-04")
def test_two_servers_in_one_round_are_the_state_of_none() -> None:
    async def test(estate: MirroredEstate) -> None:
        def exchanged(_: object) -> None:
            estate.server.invocation = Guid(b"K" * 16)

        estate.server.before_search += [None] * 12 + [exchanged]
        with pytest.raises(LdapError, match="answers instead of"):
            await estate.mirror.round()
        with estate.store.read() as view:
            assert read_cursor(view) is None

    mirrored(test)


@pytest.mark.req("SEC-15-05")
@pytest.mark.parametrize("name", [f"CN=a,{OU}", f"CN=a{RECORD},{OU}"], ids=["text", "name"])
def test_a_name_adds_no_record_to_the_repairs(name: str) -> None:
    text = f"x{RECORD}\n\n# y"
    fault = finding(EstateCheck.NO_COMPUTER, name, text, "", (DeleteEntry(name),))
    written = repairs_of(CheckReport((fault,)))
    records = list(read_ldif(written.encode().splitlines(keepends=True), "repairs"))
    assert records == [DeleteEntry(name)]


@pytest.mark.req("SEC-15-06")
def test_a_damaged_entry_spoils_no_finding() -> None:
    bad = made(f"CN=msmq,CN=BAD,{OU}", "mSMQConfiguration", objectGUID=b"short")
    report = examined([bad, *sound(), *faults()["open_queue"]])
    assert [each.check for each in report.findings] == [EstateCheck.OPEN_QUEUE.label]
    assert bad.name in report.unreadable[0]
