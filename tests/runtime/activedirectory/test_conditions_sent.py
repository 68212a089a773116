"""Lookups by each property: the directory compares its attribute, and the one object is found."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mqis.wire.guid import Guid
from mqis.wire.ldap.filters import And, Equality, Filter, Or
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from tests import distinct
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.directory.serving import scenario
from tests.runtime.directory.test_lookups import everything, wanted

EQ = 4
MADE, CHANGED = b"20250607080910.0Z", b"20250607080911.0Z"
MADE_S, CHANGED_S = 1_749_283_750, 1_749_283_751


def compared(node: Filter) -> set[tuple[str, bytes]]:
    """The attributes and values that a filter compares for equality, outside of negations."""
    match node:
        case Equality(attribute, value):
            return {(attribute, value)}
        case And(items) | Or(items):
            return set().union(*map(compared, items))
    return set()


async def check(
    passing: Through, found: Guid, column: P, cases: Iterable[tuple[P, Value, str, bytes]]
) -> None:
    """Looks up by each property; the request has the attribute, the answer the object alone."""
    for propid, value, attribute, octets in cases:
        where = ((propid, EQ, prop(propid, value)),)
        assert await everything(passing.caller, wanted(column, where=where)) == [(found,)], propid
        sent = [
            compared(request.filter)
            for request in passing.server.operations(SearchRequest)
            if isinstance(request, SearchRequest)
        ]
        assert any((attribute, octets) in items for items in sent), propid


@pytest.mark.req("MQDSSM-3.1.6.4.2.2-01")
@scenario
async def test_queues() -> None:
    async with through() as passing:
        queue = passing.estate.add_queue(
            "told", mSMQLabelEx=b"label", whenCreated=MADE, whenChanged=CHANGED,
            mSMQQueueType=b"k" * 16, mSMQJournal=b"TRUE", mSMQQueueQuota=b"31",
            mSMQQueueJournalQuota=b"32", mSMQAuthenticate=b"TRUE", mSMQPrivacyLevel=b"2",
            mSMQTransactional=b"TRUE", mSMQBasePriority=b"-3",
        )  # fmt: skip
        await check(passing, queue, P.Q_INSTANCE, (
            (P.Q_LABEL, "label", "mSMQLabelEx", b"label"),
            (P.Q_CREATE_TIME, MADE_S, "whenCreated", MADE),
            (P.Q_MODIFY_TIME, CHANGED_S, "whenChanged", CHANGED),
            (P.Q_TYPE, Guid(b"k" * 16), "mSMQQueueType", b"k" * 16),
            (P.Q_JOURNAL, 1, "mSMQJournal", b"TRUE"),
            (P.Q_QUOTA, 31, "mSMQQueueQuota", b"31"),
            (P.Q_JOURNAL_QUOTA, 32, "mSMQQueueJournalQuota", b"32"),
            (P.Q_AUTHENTICATE, 1, "mSMQAuthenticate", b"TRUE"),
            (P.Q_PRIV_LEVEL, 2, "mSMQPrivacyLevel", b"2"),
            (P.Q_TRANSACTION, 1, "mSMQTransactional", b"TRUE"),
            (P.Q_BASEPRIORITY, -3, "mSMQBasePriority", b"-3"),
        ))  # fmt: skip


@pytest.mark.req("MQDSSM-3.1.6.4.1.2-02")
@scenario
async def test_machines() -> None:
    async with through() as passing:
        server, paris, keys = passing.server, passing.estate.paris, distinct.encryption_keys(1)
        machine = server.put(
            f"CN=msmq,{server.add_computer('SRV2')}", objectClass=b"mSMQConfiguration",
            mSMQSites=paris.raw, whenCreated=MADE, whenChanged=CHANGED, mSMQOSType=b"1024",
            mSMQComputerTypeEx=b"5.1", mSMQQuota=b"41", mSMQJournalQuota=b"42", mSMQForeign=b"TRUE",
            mSMQDsServices=b"TRUE", mSMQDependentClientServices=b"TRUE", mSMQEncryptKey=keys,
        )  # fmt: skip
        await check(passing, machine, P.QM_MACHINE_ID, (
            (P.QM_SITE_ID, paris, "mSMQSites", paris.raw),
            (P.QM_SITE_IDS, (paris,), "mSMQSites", paris.raw),
            (P.QM_CREATE_TIME, MADE_S, "whenCreated", MADE),
            (P.QM_MODIFY_TIME, CHANGED_S, "whenChanged", CHANGED),
            (P.QM_OS, 0x400, "mSMQOSType", b"1024"),
            (P.QM_MACHINE_TYPE, "5.1", "mSMQComputerTypeEx", b"5.1"),
            (P.QM_QUOTA, 41, "mSMQQuota", b"41"),
            (P.QM_JOURNAL_QUOTA, 42, "mSMQJournalQuota", b"42"),
            (P.QM_FOREIGN, 1, "mSMQForeign", b"TRUE"),
            (P.QM_SERVICE_ROUTING, 0, "mSMQRoutingServices", b"FALSE"),
            (P.QM_SERVICE_DSSERVER, 1, "mSMQDsServices", b"TRUE"),
            (P.QM_SERVICE_DEPCLIENTS, 1, "mSMQDependentClientServices", b"TRUE"),
            (P.QM_ENCRYPT_PKS, keys, "mSMQEncryptKey", keys),
        ))  # fmt: skip


@pytest.mark.req("MQDSSM-3.1.6.4.4.2-01")
@scenario
async def test_sites() -> None:
    async with through() as passing:
        # Paris is foreign, and its defaults are those of Berlin.
        rom = passing.server.add_site(
            "Rom", mSMQInterval1=b"51", mSMQInterval2=b"52", mSMQNt4Stub=b"1"
        )
        await check(passing, rom, P.S_SITEID, (
            (P.S_INTERVAL1, 51, "mSMQInterval1", b"51"),
            (P.S_INTERVAL2, 52, "mSMQInterval2", b"52"),
        ))  # fmt: skip
        paris = ((P.S_FOREIGN, 1, "mSMQSiteForeign", b"TRUE"),)
        await check(passing, passing.estate.paris, P.S_SITEID, paris)
        # Several numbers are a stub's, so the directory compares nothing here.
        stubs = wanted(P.S_SITEID, where=((P.S_NT4_STUB, EQ, prop(P.S_NT4_STUB, 1)),))
        assert await everything(passing.caller, stubs) == [(rom,)]


@pytest.mark.req("MQDSSM-3.1.6.4.6.2-01")
@scenario
async def test_users_and_links() -> None:
    async with through() as passing:
        server, estate = passing.server, passing.estate
        sid, listed = distinct.owner(7).to_bytes(), distinct.certificates(8, 9)
        digests = [digest_of(entry.certificate) for entry in listed.certificates]
        user = server.add_user(
            "carla", sid, mSMQSignCertificates=listed.to_bytes(), mSMQDigests=digests
        )
        await check(passing, user, P.U_ID, (
            (P.U_SID, sid, "objectSid", sid),
            (P.U_SIGN_CERT, listed.to_bytes(), "mSMQSignCertificates", listed.to_bytes()),
            (P.U_DIGEST, tuple(map(Guid, digests)), "mSMQDigests", digests[1]),
        ))  # fmt: skip
        rom, oslo = (server.add_site(name) for name in ("Rom", "Oslo"))
        names = [f"CN={n},CN=Sites,{server.configuration}".encode() for n in ("Rom", "Oslo")]
        link = server.put(
            f"CN=second,CN=MsmqServices,CN=Services,{server.configuration}",
            objectClass=b"mSMQSiteLink", mSMQSite1=names[0], mSMQSite2=names[1], mSMQCost=b"61",
            description=b"to the north",
        )  # fmt: skip
        assert estate.link != link
        await check(passing, link, P.L_ID, (
            (P.L_NEIGHBOR1, rom, "mSMQSite1", names[0]),
            (P.L_NEIGHBOR2, oslo, "mSMQSite2", names[1]),
            (P.L_ACTUAL_COST, 61, "mSMQCost", b"61"),
            (P.L_DESCRIPTION, "to the north", "description", b"to the north"),
        ))  # fmt: skip
