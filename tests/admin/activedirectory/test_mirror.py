"""A mirror follows an Active Directory: everything first, then each change, nothing twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from mqis.admin.activedirectory.mirror.feed import read_identity
from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.admin.activedirectory.mirror.writing import mirror_identity
from mqis.protocol.activedirectory.mirror.cursor import read_cursor
from mqis.protocol.errors import ProtocolError, StorageError
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import RenameEntry
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored

EVERYTHING = {
    "enterprise": ["DC=corp,DC=example"],
    "site": ["Berlin", "Paris"],
    "network": ["Berlin", "Paris"],
    "machine": ["SRV1"],
    "queue": ["srv1\\bills", "srv1\\orders"],
}
Test = Callable[[MirroredEstate], Awaitable[None]]
#: The ways to ask for changes, by what the account may.
WAYS = [
    pytest.param({"may_dirsync": True}, id="dirsync"),
    pytest.param({}, id="usn"),
    pytest.param({"shows_deleted": False}, id="plain account"),
]


async def both(estate: MirroredEstate) -> int:
    """Makes a round, compares with a fresh mirror, and returns the number of changes written."""
    done = await estate.mirror.round()
    again = MemoryStore()
    await EstateMirror(estate.client, again, "corp.example").round()
    fresh = MirroredEstate.held(_View(again))  # type: ignore[arg-type]
    assert estate.held() == fresh
    with estate.store.read() as here, again.read() as there:
        for kind in ObjectType:
            if kind is not ObjectType.DELETEDOBJECT:
                for obj in there.objects(kind):
                    held = here.get(kind, obj.id)
                    assert held is not None
                    assert dict(held.properties) == dict(obj.properties)
    return done.counts.written


class _View:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store


@pytest.mark.parametrize("way", WAYS)
def test_first_everything_then_what_changes(way: dict[str, Any]) -> None:
    async def test(estate: MirroredEstate) -> None:
        first = await estate.mirror.round()
        assert first.fresh == "the store is new"
        assert first.cursor.mode == ("dirsync" if way.get("may_dirsync") else "usn")
        held = estate.held()
        assert {kind: held[kind] for kind in EVERYTHING} == EVERYTHING
        assert first.counts.created == sum(map(len, held.values()))
        assert (first.counts.left_out, first.left_out) == ({}, {})
        assert await both(estate) == 0

        estate.label(estate.orders, b"Orders")
        assert await both(estate) == 1
        assert estate.value(ObjectType.QUEUE, estate.orders, PropId.Q_LABEL) == "Orders"
        estate.set(estate.orders, "mSMQLabelEx")
        assert await both(estate) == 1
        assert estate.value(ObjectType.QUEUE, estate.orders, PropId.Q_LABEL) == ""
        new = estate.add_queue("new")
        assert await both(estate) == 1
        estate.delete(new)
        assert await both(estate) == 1
        assert estate.held()["queue"] == EVERYTHING["queue"]
        assert await both(estate) == 0

    mirrored(test, **way)


@pytest.mark.parametrize("way", WAYS)
def test_what_changes_without_a_number_of_its_own_changes_too(way: dict[str, Any]) -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        gates = estate.value(ObjectType.SITE, estate.berlin, PropId.S_GATES)
        assert gates == (estate.machine,)
        # A renamed computer renames its machine and queues, whose entries are not touched.
        estate.server.change(RenameEntry(estate.computer, "CN=SRV9"))
        estate.computer = estate.computer.replace("SRV1", "SRV9")
        await both(estate)
        # They are called by its account, which is not renamed together with the entry.
        assert estate.held()["machine"] == ["SRV1"]
        estate.set(estate.computer_id, "sAMAccountName", b"SRV9$")
        await both(estate)
        assert estate.held()["machine"] == ["SRV9"]
        assert estate.held()["queue"] == ["srv9\\bills", "srv9\\orders"]
        # A deleted machine takes its queues along, and is no gate any more.
        estate.delete(estate.machine, tree=True)
        await both(estate)
        assert estate.held()["machine"] == estate.held()["queue"] == []
        assert estate.value(ObjectType.SITE, estate.berlin, PropId.S_GATES) == ()
        assert estate.value(ObjectType.ROUTINGLINK, estate.link, PropId.L_GATES) == ()
        # A user who gives up certificates, and a site that is deleted.
        estate.set(estate.user, "mSMQDigests")
        await both(estate)
        assert estate.held()["user"] == []

    mirrored(test, **way)


def test_numbers_of_64_bits() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.server.usn = 2**63 - 2
        estate.label(estate.orders, b"far")
        assert await both(estate) == 1
        with estate.store.read() as view:
            cursor = read_cursor(view)
        assert cursor is not None
        assert cursor.server.usn == 2**63 - 1
        assert await both(estate) == 0

    mirrored(test)


@pytest.mark.req("MQDSSM-3.1.6.15-12")
def test_a_restored_domain_controller_is_compared_afresh() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        lost = estate.add_queue("lost")
        await estate.mirror.round()
        backup = [e for e in estate.server.entries if e.values("objectGUID") != (lost.raw,)]
        estate.server.entries = backup
        estate.server.restore(500)
        estate.label(estate.bills, b"after the restore")
        done = await estate.mirror.round()
        assert done.fresh == "dc1.corp.example was restored from a backup"
        assert (done.counts.updated, done.counts.deleted) == (1, 1)
        assert estate.held()["queue"] == EVERYTHING["queue"]
        assert (await estate.mirror.round()).fresh == ""

    mirrored(test)


@pytest.mark.req("MQDSSM-3.1.6.15-12")
def test_another_domain_controller_and_one_that_went_back() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.server.usn = 7
        assert "an older copy of itself" in (await estate.mirror.round()).fresh
        estate.server.invocation = Guid(b"J" * 16)
        estate.server._replace("", dnsHostName=b"dc2.corp.example")
        fresh = (await estate.mirror.round()).fresh
        assert fresh == "dc2.corp.example answers instead of dc1.corp.example"

    mirrored(test)


@pytest.mark.parametrize("way", WAYS)
def test_an_object_that_vanishes_between_two_reads(way: dict[str, Any]) -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        new = estate.add_queue("short")
        vanished = False

        def vanish(request: Any) -> None:
            nonlocal vanished
            if not vanished and str(new) in request.base:
                vanished = True
                estate.delete(new)
            estate.server.before_search.append(vanish)

        estate.server.before_search.append(vanish)
        await estate.mirror.round()
        assert vanished
        estate.server.before_search.clear()
        await both(estate)
        assert estate.held()["queue"] == EVERYTHING["queue"]

    mirrored(test, **way)


def test_what_cannot_be_read_stays_and_is_told() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.set(estate.orders, "nTSecurityDescriptor", b"garbled")
        done = await estate.mirror.round()
        assert "nTSecurityDescriptor" in done.left_out[estate.orders].detail
        estate.server.restore(500)
        done = await estate.mirror.round()
        assert "nTSecurityDescriptor" in done.left_out[estate.orders].detail
        assert done.counts.deleted == 0
        assert estate.held()["queue"] == EVERYTHING["queue"]
        stray = f"CN=stray,{estate.server.root}"
        estate.server.put(stray, objectClass=b"mSMQQueue")
        assert (await estate.mirror.round()).counts.left_out

    mirrored(test)


def test_names_that_change_hands() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        at = f"CN=msmq,{estate.computer}"
        estate.server.change(RenameEntry(f"CN=orders,{at}", "CN=old"))
        estate.server.change(RenameEntry(f"CN=bills,{at}", "CN=orders"))
        await both(estate)
        assert estate.held()["queue"] == ["srv1\\old", "srv1\\orders"]
        assert estate.value(ObjectType.QUEUE, estate.bills, PropId.Q_PATHNAME) == "srv1\\orders"

    mirrored(test)


def test_a_machine_in_no_site_and_a_bare_certificate() -> None:
    async def test(estate: MirroredEstate) -> None:
        lone = estate.server.add_computer("LONE")
        estate.server.put(f"CN=msmq,{lone}", objectClass=b"mSMQConfiguration")
        bare = bytes.fromhex("3005300302012a")
        estate.set(estate.user, "mSMQSignCertificates", bare)
        await both(estate)
        assert estate.held()["machine"] == ["LONE", "SRV1"]
        assert await both(estate) == 0

    mirrored(test)


def test_a_store_that_is_no_mirror_of_this_domain_is_refused() -> None:
    async def test(estate: MirroredEstate) -> None:
        server = await read_identity(estate.client)
        with estate.store.write() as tx:
            first = mirror_identity(tx, [server.domain])
            assert mirror_identity(tx, [server.domain]) == first
            with pytest.raises(StorageError, match="mirrors another domain"):
                mirror_identity(tx, [Guid(b"X" * 16)])
        await EstateMirror(estate.client, other := MemoryStore(), "corp.example").round()
        with other.write() as tx, pytest.raises(StorageError, match="is no mirror"):
            mirror_identity(tx, [server.domain])

    mirrored(test)


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("highestCommittedUSN", b"1e9", "not a number"),
        ("highestCommittedUSN", b"9" * 21, "not a number"),
        ("dsServiceName", b"CN=none,DC=corp,DC=example", "does not show its invocationId"),
    ],
)
def test_hostile_answers_of_a_server(attribute: str, value: bytes, reason: str) -> None:
    async def test(estate: MirroredEstate) -> None:
        original = type(estate.server)._replace

        def forged(name: str, **given: bytes) -> None:
            given = {key: value if key == attribute else v for key, v in given.items()}
            original(estate.server, name, **given)

        estate.server._replace("", **{attribute: value})
        estate.server._replace = forged  # type: ignore[method-assign]
        with pytest.raises(ProtocolError, match=reason):
            await read_identity(estate.client)

    mirrored(test)


def test_a_damaged_position_is_told() -> None:
    async def test(estate: MirroredEstate) -> None:
        done = await estate.mirror.round()
        data = done.cursor.to_bytes()
        assert type(done.cursor).from_bytes(data) == done.cursor
        with_cookies = replace(done.cursor, cookies=(b"\0\xff", b""))
        assert type(done.cursor).from_bytes(with_cookies.to_bytes()) == with_cookies
        for bad in (b"", b"{}", b"[1]", data.replace(b'"version": 1', b'"version": 2'), data[:-9]):
            with pytest.raises(StorageError, match="damaged"):
                type(done.cursor).from_bytes(bad)

    mirrored(test)
