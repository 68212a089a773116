"""Lookups of a pass-through server: the directory compares what it can, with the same answers."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.lookup_query import Query
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from tests.runtime.activedirectory.comparisons import (
    HOSTILE,
    check_equal,
    queries,
    restrictions_of,
)
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.activedirectory.test_store import stored


def equal(propid: P, value: Value) -> Restriction:
    return Restriction(Relation.EQ, propid, prop(propid, value))


def searched(estate: Estate) -> SearchRequest:
    """The last search, but for the one for the names of the computer of queues."""
    searches = [s for s in estate.server.operations(SearchRequest) if isinstance(s, SearchRequest)]
    return [search for search in searches if search.base != estate.computer][-1]


@pytest.mark.req("MQDSSM-3.1.6.4-01")
def test_the_directory_and_the_lookup_find_the_same() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        estate.add_queue("first", mSMQLabelEx="Größe".encode(), mSMQJournal=b"TRUE")
        estate.add_queue("second", mSMQLabelEx=b"*", mSMQBasePriority=b"-3", mSMQJournal=b"FALSE")
        estate.add_queue("third", mSMQQueueQuota=b"-1", mSMQPrivacyLevel=b"2")
        estate.server.add_site("Rome", mSMQSiteForeign=(b"FALSE", b"TRUE"), mSMQInterval1=b"70000")
        host = estate.server.add_computer("SRV2")
        estate.server.put(
            f"CN=msmq,{host}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=(estate.paris.raw, estate.berlin.raw),
            mSMQOSType=b"999",
            mSMQForeign=b"TRUE",
        )
        with store.read() as view:
            assert check_equal(view, queries(restrictions_of(view), pairs=100)) > 1000

    stored(test)


def test_a_lookup_brings_only_what_the_directory_finds() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        with store.read() as view:
            for restriction, condition in (
                (equal(P.Q_QUOTA, 7), "(mSMQQueueQuota=7)"),
                (equal(P.Q_LABEL, "Bills"), "(mSMQLabelEx=Bills)"),
                (equal(P.Q_TYPE, Guid(b"t" * 16)), "(mSMQQueueType=tttttttttttttttt)"),
            ):
                found = list(Query.make((P.Q_INSTANCE,), (restriction,)).matching(view))
                assert len(found) == 1  # of 602; one that is not wanted would be a None
                assert condition in str(searched(estate).filter)
            below = equal(P.Q_QMID, estate.machine)
            both = Query.make((P.Q_INSTANCE,), (below, equal(P.Q_QUOTA, 7)))
            assert [obj and obj.id for obj in both.matching(view)] == [estate.queues[0]]
            assert searched(estate).scope is SearchScope.ONE_LEVEL
            assert "(mSMQQueueQuota=7)" in str(searched(estate).filter)

    stored(test, more=600)


@pytest.mark.req("MQDSSM-3.1.6.3-01", "MQDSSM-3.1.6.3.3.2-01")
def test_an_identifier_or_a_path_is_read_and_everything_else_is_searched() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        orders, bills = estate.queues
        place = f"CN=bills,CN=msmq,{estate.computer}"
        other = Restriction(Relation.NE, P.Q_INSTANCE, prop(P.Q_INSTANCE, orders))
        for restriction, found, base, scope in (
            (equal(P.Q_INSTANCE, orders), orders, f"<GUID={orders}>", SearchScope.BASE),
            (equal(P.Q_PATHNAME, "SRV1\\bills"), bills, place, SearchScope.BASE),
            (other, bills, estate.server.root, SearchScope.SUBTREE),
            (equal(P.Q_LABEL, "bills"), bills, estate.server.root, SearchScope.SUBTREE),
        ):
            with store.read() as view:
                query = Query.make((P.Q_INSTANCE,), (restriction,))
                assert [obj.id for obj in query.matching(view) if obj is not None] == [found]
            asked = searched(estate)
            assert (asked.base.lower(), asked.scope) == (base.lower(), scope), restriction

    stored(test)


@pytest.mark.req("MQDSSM-3.1.6.3-02")
def test_without_restrictions_all_is_searched_but_the_enterprise_is_read_at_its_place() -> None:
    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        services = f"CN=MsmqServices,CN=Services,{estate.server.configuration}"
        for column, base, scope, count in (
            (P.E_VERSION, services, SearchScope.BASE, 1),
            (P.Q_LABEL, estate.server.root, SearchScope.SUBTREE, 2),
        ):
            with store.read() as view:
                assert len(list(Query.make((column,)).matching(view))) == count
            assert (searched(estate).base, searched(estate).scope) == (base, scope)

    stored(test)


@pytest.mark.req("MQDSSM-3.1.6.15-09")
def test_values_of_callers_stay_values() -> None:
    """None of them finds anything, however its octets would read in the text of a filter."""

    def test(store: ActiveDirectoryStore, estate: Estate) -> None:
        with store.read() as view:
            for propid in (P.Q_LABEL, P.Q_PATHNAME):
                for text in HOSTILE:
                    query = Query.make((P.Q_INSTANCE,), (equal(propid, text),))
                    assert not [obj for obj in query.matching(view) if obj is not None], text

    stored(test)
