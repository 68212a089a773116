"""Lookups as filters: a filter finds every object that meets the restrictions."""

from __future__ import annotations

import pytest

from mqis.protocol.activedirectory.conditions import (
    LONGEST_VALUE,
    conditions_of,
    referred,
    search_filter,
)
from mqis.protocol.activedirectory.results import DirectoryStatus, hresult_of, status_of
from mqis.protocol.activedirectory.rows import rows_of
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.ldap import Use
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.filters import Filter, parse_filter
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from tests.protocol.activedirectory.helpers import (
    MACHINE,
    NAMES,
    REFERENCES,
    SITE1,
    entry,
)
from tests.protocol.activedirectory.ldap_judge import matches

EQ, NE, LT, LE, GT, GE = (
    Relation.EQ, Relation.NE, Relation.LT, Relation.LE, Relation.GT, Relation.GE
)  # fmt: skip


def restriction(propid: P, relation: Relation, value: Value) -> Restriction:
    return Restriction(relation, propid, prop(propid, value))


def text(object_type: ObjectType, *restrictions: Restriction) -> str:
    return str(made(object_type, *restrictions))


def made(object_type: ObjectType, *restrictions: Restriction) -> Filter:
    return search_filter(object_type, *conditions_of(restrictions, REFERENCES))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param((P.Q_LABEL, EQ, "orders"), "(mSMQLabelEx=orders)",
                     marks=pytest.mark.req("MQDSSM-3.1.6.4.2.2-01")),
        ((P.Q_LABEL, EQ, ""), "(|(!(mSMQLabelEx=*))(!(mSMQLabelEx=*)))"),
        pytest.param((P.Q_JOURNAL, EQ, 0), "(|(mSMQJournal=FALSE)(!(mSMQJournal=*)))",
                     marks=pytest.mark.req("MQDSSM-3.1.6.15-07")),
        ((P.Q_JOURNAL, EQ, 1), "(mSMQJournal=TRUE)"),
        pytest.param((P.Q_JOURNAL, NE, 0), "(&(!(mSMQJournal=FALSE))(mSMQJournal=*))",
                     marks=pytest.mark.req("MQDSSM-3.1.6.15-06")),
        pytest.param((P.Q_JOURNAL, NE, 1), "(!(mSMQJournal=TRUE))",
                     marks=pytest.mark.req("MQDSSM-3.1.6.15-06")),
        pytest.param((P.Q_BASEPRIORITY, GT, 3),
                     "(&(mSMQBasePriority>=3)(!(mSMQBasePriority=3)))",
                     marks=pytest.mark.req("MQDSSM-3.1.6.15-06")),
        ((P.Q_PRIV_LEVEL, GE, 2), "(mSMQPrivacyLevel>=2)"),
        ((P.Q_BASEPRIORITY, LT, 3),
         "(|(&(mSMQBasePriority<=3)(!(mSMQBasePriority=3)))(!(mSMQBasePriority=*)))"),
        pytest.param((P.Q_CREATE_TIME, GE, 86_400), "(whenCreated>=19700102000000.0Z)",
                     marks=pytest.mark.req("MQDSSM-3.1.6.4.1.2-04")),
        ((P.Q_QUOTA, EQ, 0xFFFFFFFF), "(|(mSMQQueueQuota=-1)(!(mSMQQueueQuota=*)))"),
    ],
)  # fmt: skip
def test_filters(wanted: tuple[P, Relation, Value], expected: str) -> None:
    assert text(ObjectType.QUEUE, restriction(*wanted)) == f"(&(objectClass=mSMQQueue){expected})"


@pytest.mark.req("MQDSSM-3.1.6.15-04")
def test_the_class_is_always_compared() -> None:
    assert text(ObjectType.SITE) == "(&(objectClass=site))"
    assert text(ObjectType.MACHINE) == "(&(objectClass=mSMQConfiguration))"


@pytest.mark.req("MQDSSM-3.1.6.4.6.2-02", "MQDSSM-3.1.6.4.6.2-01")
def test_users_are_no_computers_and_are_found_by_a_digest() -> None:
    digest = Guid(bytes(range(0x41, 0x51)))
    found = text(ObjectType.USER, restriction(P.U_DIGEST, EQ, (digest,)))
    assert found == (
        "(&(objectClass=user)(objectCategory=person)(&(mSMQDigests=ABCDEFGHIJKLMNOP)))"
    )


@pytest.mark.req("MQDSSM-3.1.6.4.1.2-02")
def test_a_machine_is_found_by_a_site() -> None:
    found = text(ObjectType.MACHINE, restriction(P.QM_SITE_ID, EQ, SITE1))
    octets = "".join(f"\\{octet:02x}" if octet in b"*()\\" or not 32 <= octet < 127 else chr(octet)
                     for octet in SITE1.raw)  # fmt: skip
    assert found == f"(&(objectClass=mSMQConfiguration)(mSMQSites={octets}))"


@pytest.mark.departs("MQDSSM-3.1.6.4.5.4-01")
def test_links_are_found_by_the_name_of_a_site() -> None:
    wanted = restriction(P.L_NEIGHBOR1, EQ, SITE1)
    assert f"(mSMQSite1={NAMES[SITE1]})" in text(ObjectType.ROUTINGLINK, wanted)
    assert referred([wanted, restriction(P.L_ACTUAL_COST, EQ, 5)]) == {SITE1}
    assert not list(conditions_of([wanted], References()))  # no entry has this identifier


@pytest.mark.parametrize(
    "wanted",
    [
        (P.Q_PATHNAME, EQ, "a\\b"), (P.Q_SCOPE, EQ, 1), (P.Q_LABEL, GT, "m"), (P.Q_QUOTA, LT, 5),
        (P.Q_TYPE, GE, SITE1), (P.Q_LABEL, EQ, "\ud800"), (P.Q_JOURNAL, LE, 1),
        (P.Q_JOURNAL, NE, 7), (P.Q_LABEL, EQ, "größe"), (P.Q_LABEL, NE, "a"),
        (P.Q_BASEPRIORITY, EQ, 0x7FFF), (P.Q_CREATE_TIME, NE, -1),
        (P.Q_LABEL, EQ, "x" * (LONGEST_VALUE + 1)),
    ],
)  # fmt: skip
@pytest.mark.req("MQDSSM-3.1.6.15-08")
@pytest.mark.departs("MQDSSM-3.1.6.4.1.2-03")
def test_what_ldap_cannot_compare_is_no_condition(wanted: tuple[P, Relation, Value]) -> None:
    assert text(ObjectType.QUEUE, restriction(*wanted)) == "(&(objectClass=mSMQQueue))"


def test_conditions_that_only_narrow_the_search() -> None:
    assert text(ObjectType.QUEUE, restriction(P.Q_LABEL, NE, "")) == (
        "(&(objectClass=mSMQQueue)(mSMQLabelEx=*))"
    )
    assert text(ObjectType.MACHINE, restriction(P.QM_SITE_ID, NE, SITE1)) == (
        "(&(objectClass=mSMQConfiguration)(mSMQSites=*))"
    )
    assert "(mSMQRoutingServices=TRUE)" in text(
        ObjectType.MACHINE, restriction(P.QM_SERVICE, GT, 0)
    )
    assert "mSMQRoutingServices" not in text(ObjectType.MACHINE, restriction(P.QM_SERVICE, LT, 8))


def test_lists_that_differ_are_no_condition() -> None:
    for relation, value in ((NE, (SITE1,)), (EQ, ()), (GE, (SITE1,))):
        wanted = restriction(P.QM_SITE_IDS, relation, value)
        assert text(ObjectType.MACHINE, wanted) == "(&(objectClass=mSMQConfiguration))"


@pytest.mark.parametrize("label", ["*", ")(cn=*", "a\\b", "(", "x)(|(objectClass=*", "\x01"])
@pytest.mark.req("MQDSSM-3.1.6.15-09")
def test_a_label_cannot_change_the_filter(label: str) -> None:
    found = made(ObjectType.QUEUE, restriction(P.Q_LABEL, EQ, label))
    assert parse_filter(str(found)) == found
    hit = entry(MACHINE.child("CN", "q"), "mSMQQueue", mSMQLabelEx=label)
    miss = entry(MACHINE.child("CN", "q"), "mSMQQueue", mSMQLabelEx="other")
    assert matches(found, hit)
    assert not matches(found, miss)


@pytest.mark.req("MQDSSM-3.1.6.4.4.2-01")
def test_properties_that_a_filter_can_use() -> None:
    usable = {row.id for row in rows_of(ObjectType.SITE) if row.uses & Use.FILTER}
    assert usable == {
        P.S_PATHNAME, P.S_SITEID, P.S_INTERVAL1, P.S_INTERVAL2, P.S_FOREIGN, P.S_NT4_STUB
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param(0, DirectoryStatus.SUCCESS, marks=pytest.mark.req("MQDSSM-2.2.6-01")),
        pytest.param(
            32, DirectoryStatus.OBJECT_NOT_FOUND, marks=pytest.mark.req("MQDSSM-2.2.6-01")
        ),
        pytest.param(
            16, DirectoryStatus.ATTRIBUTE_NOT_FOUND, marks=pytest.mark.req("MQDSSM-2.2.6-01")
        ),
        pytest.param(
            68, DirectoryStatus.OBJECT_ALREADY_EXISTS, marks=pytest.mark.req("MQDSSM-2.2.6-01")
        ),
        *(
            pytest.param(
                code, DirectoryStatus.GENERIC_ERROR, marks=pytest.mark.req("MQDSSM-2.2.6-02")
            )
            for code in (4, 19, 50, 66, 999)
        ),
        pytest.param(51, DirectoryStatus.NOT_CONNECTED, marks=pytest.mark.req("MQDSSM-2.2.6-03")),
        pytest.param(52, DirectoryStatus.NOT_CONNECTED, marks=pytest.mark.req("MQDSSM-2.2.6-03")),
    ],
)
def test_results(code: int, status: DirectoryStatus) -> None:
    assert status_of(code) is status


def test_hresults() -> None:
    assert hresult_of(0, ObjectType.QUEUE) is HResult.MQ_OK
    assert hresult_of(50, ObjectType.QUEUE) is HResult.MQ_ERROR_DS_ERROR
    assert hresult_of(68, ObjectType.QUEUE) is HResult.MQ_ERROR_QUEUE_EXISTS
    assert hresult_of(68, ObjectType.MACHINE) is HResult.MQ_ERROR_MACHINE_EXISTS
    assert hresult_of(68, ObjectType.SITE) is HResult.MQ_ERROR_DS_ERROR
    assert hresult_of(32, ObjectType.SITE) is HResult.MQDS_OBJECT_NOT_FOUND
    assert hresult_of(52, ObjectType.SITE) is HResult.MQ_ERROR_NO_DS
    assert hresult_of(99, ObjectType.SITE) is HResult.MQ_ERROR_DS_ERROR
