"""The store over an Active Directory: what a lookup leaves behind, and what is never kept here."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

from mqis.protocol.authentication import Identity
from mqis.protocol.budget import Budget, Caller, Charge, Quota
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.directory.readers import StoreReaders, ThreadedWalks
from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.controls import PagedResults
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.seqnum import SequenceNumber
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.activedirectory.passing import settings_for
from tests.waiting import in_time

WIDE = Quota(1_000_000, 1_000_000, 1_000_000, 1_000_000)


def stored(test: Callable[[ActiveDirectoryStore, Estate], None], more: int = 0) -> None:
    """Runs a plain function in a thread, while the loop serves the directory."""

    async def run() -> None:
        async with ScriptedDomain.of() as server:
            estate = Estate(server)
            for number in range(more):
                estate.add_queue(f"q{number}")
            store = ActiveDirectoryStore(settings_for(server))
            try:
                await asyncio.to_thread(test, store, estate)
            finally:
                await asyncio.to_thread(store.close)

    asyncio.run(in_time(run()))


@pytest.mark.req("MQDS-3.1.6.9-02", "MQDSSM-3.1.6.15-05")
def test_a_search_that_is_left_asks_for_no_more_pages() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        with store.read() as view:
            found = view.objects(ObjectType.QUEUE)
            next(found)
            searches = estate.server.operations(SearchRequest)
            found.close()  # type: ignore[attr-defined]
            assert estate.server.operations(SearchRequest) == searches
            assert sum(1 for _ in view.objects(ObjectType.QUEUE)) == 602
            assert len(estate.server.operations(SearchRequest)) == len(searches) + 2
        pages = [
            PagedResults.from_bytes(control.value or b"").size
            for message in estate.server.received
            for control in message.controls
            if control.oid == "1.2.840.113556.1.4.319"
        ]
        assert len(pages) >= 3
        assert set(pages) <= set(range(1, 1001))

    stored(test, more=600)


@pytest.mark.req("MQDS-3.1.6.9-02", "MQDSSM-3.1.1.3-01")
def test_a_lookup_that_is_broken_off_ends_its_query() -> None:
    ended: list[bool] = []

    def begin(view: View) -> Generator[int, None, str]:
        try:
            for _ in view.objects(ObjectType.QUEUE):
                yield 10
        finally:
            ended.append(True)
        return "done"

    async def run() -> None:
        async with ScriptedDomain.of() as server:
            Estate(server)
            store = ActiveDirectoryStore(settings_for(server))
            readers = StoreReaders(store, 2)
            walks = ThreadedWalks(store, readers, Budget(WIDE))
            caller = Caller("connection", "192.0.2.1", Identity("LAB", "alice"))
            assert await walks.in_slices(begin, Charge(Budget(WIDE), caller)) == "done"
            with pytest.raises(DirectoryError, match="more memory than there is"):
                await walks.in_slices(begin, Charge(Budget(Quota(5, 5, 5, 5)), caller))
            assert ended == [True, True]
            readers.close()
            await asyncio.to_thread(store.close)

    asyncio.run(in_time(run()))


@pytest.mark.filterwarnings("error")
def test_closing_twice_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that fails to start closes its store, and so does the command that ends."""
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def test(store: ActiveDirectoryStore, _estate: Estate) -> None:
        store.close()
        store.close()
        gc.collect()

    stored(test)
    assert not unraisable


def test_objects_by_what_their_calls_ask_for() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        with store.read() as view:
            queue, machine, link = ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.ROUTINGLINK
            owned = {obj.id for obj in view.owned_by(queue, estate.machine)}
            assert owned == set(estate.queues)
            assert not list(view.owned_by(queue, Guid(b"x" * 16)))
            assert [obj.id for obj in view.owned_by(machine, estate.berlin)] == [estate.machine]
            assert not list(view.owned_by(machine, estate.paris))
            assert not list(view.owned_by(ObjectType.SITE, estate.paris))
            labelled = view.having(queue, P.Q_LABEL, b"bills")
            assert [obj.id for obj in labelled] == [estate.queues[1]]
            assert not list(view.having(queue, P.Q_LABEL, "größe".encode()))
            linked = view.having(link, P.L_NEIGHBOR2, estate.paris.raw)
            assert [obj.id for obj in linked] == [estate.link]
            assert not list(view.having(link, P.L_NEIGHBOR2, b"x" * 16))
            assert view.count(queue) == 2
            assert view.count(ObjectType.ENTERPRISE) == 1
            assert view.count(ObjectType.USER) == 1
            assert view.find(ObjectType.ENTERPRISE, estate.server.root.lower()) is not None
            assert view.find(ObjectType.ENTERPRISE, "other") is None
            assert view.find(ObjectType.SITE, "\ud800") is None
            network = view.find(ObjectType.CN, "Berlin")  # a site by its old name
            assert network is not None
            assert network.id == estate.berlin

    stored(test)


def test_what_only_a_store_of_our_own_has() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        assert store.check() == []
        with store.write() as tx:
            tx.put_partition(Partition(ENTERPRISE_PARTITION, "SRV1"))
            assert tx.partition(ENTERPRISE_PARTITION) is None
            assert (tx.partitions(), tx.tombstones(estate.machine), tx.states("x")) == ([], [], [])
            assert list(tx.changes(ENTERPRISE_PARTITION, SequenceNumber.MIN)) == []
            assert list(tx.objects(ObjectType.DELETEDOBJECT)) == []
            with pytest.raises(DirectoryError) as refused:
                tx.put_state("family", b"key", b"value")
            assert refused.value.hresult == HResult.MQ_ERROR_UNSUPPORTED_OPERATION

    stored(test)


def test_a_user_loses_certificates_and_keeps_the_account() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        with store.write() as tx:
            user = tx.get(ObjectType.USER, estate.user)
            assert user is not None
            tx.delete(user)
        entry = estate.server.by_guid(estate.user)
        assert entry is not None
        assert entry.values("mSMQDigests") == ()

    stored(test)


@pytest.mark.req("MQDSSM-3.1.6.1.3.2-03", "MQDSSM-3.1.6.1.4.2-03")
def test_changes_of_machines_links_and_sites() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        server = estate.server
        settings = f"CN=MSMQ Settings,CN=SRV1,CN=Servers,CN=Berlin,CN=Sites,{server.configuration}"

        def there(name: str) -> bool:
            return any(entry.name == name for entry in server.entries)

        with store.write() as tx:
            machine = tx.get(ObjectType.MACHINE, estate.machine)
            assert machine is not None
            change: Any = {P.QM_SERVICE: prop(P.QM_SERVICE, 9), P.QM_QUOTA: prop(P.QM_QUOTA, 5)}
            tx.update(machine, machine.with_properties(change, machine.seq))
            assert there(settings)
            link = tx.get(ObjectType.ROUTINGLINK, estate.link)
            assert link is not None
            reverse: Any = {
                **link.properties,
                P.L_NEIGHBOR1: prop(P.L_NEIGHBOR1, estate.paris),
                P.L_NEIGHBOR2: prop(P.L_NEIGHBOR2, estate.berlin),
            }
            made = tx.insert(link.with_properties(reverse, link.seq))
            assert made is not None
            with pytest.raises(DirectoryError, match="links these sites already"):
                tx.insert(link)  # the other direction of the one that was made just now
            tx.delete(machine)
            assert not there(settings)
            assert server.by_guid(estate.queues[0]) is None
            site = tx.get(ObjectType.SITE, estate.berlin)
            assert site is not None
            for change_site in (tx.insert, tx.delete):
                with pytest.raises(DirectoryError) as refused:
                    change_site(site)
                assert refused.value.hresult == HResult.MQ_ERROR_ACCESS_DENIED
            assert server.by_guid(estate.berlin) is not None

    stored(test)
