"""The rules of hygiene: what each finds, and what a copy cannot show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.findings import CheckReport, Subject
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
    PurgeState,
)
from mqis.protocol.hygiene.checks import Check, finding, finding_row
from mqis.protocol.hygiene.claims import anonymous_may_send, claims_of
from mqis.protocol.hygiene.examining import examine
from mqis.protocol.hygiene.judging import judge
from mqis.protocol.replication.keeping import stored
from mqis.protocol.replication.replicated import whole_object
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.seqnum import SequenceNumber

OPEN, SHUT = (parse_sddl(f"O:BAG:BAD:(A;;GA;;;{who})").to_bytes() for who in ("WD", "BA"))
ROUTES = 1


def guid(number: int) -> Guid:
    return Guid(number.to_bytes(16, "big"))


def made(kind: ObjectType, number: int, partition: Guid, **values: Value) -> DirectoryObject:
    properties: dict[int, PropVariant] = props(
        {PropId[name]: value for name, value in values.items()}
    )
    return DirectoryObject(kind, guid(number), partition, SequenceNumber(number), properties)


def site(number: int, *gates: int, psc: str = "psc") -> DirectoryObject:
    named = tuple(map(guid, gates))
    values: dict[str, Value] = {"S_PATHNAME": f"site{number}", "S_GATES": named, "S_PSC": psc}
    return made(ObjectType.SITE, number, ENTERPRISE_PARTITION, **values, S_FOREIGN=0)


def machine(number: int, *sites: int, bits: int = 0, **more: Value) -> DirectoryObject:
    homes = tuple(map(guid, sites))
    values: dict[str, Value] = {"QM_PATHNAME": f"m{number}", "QM_SITE_IDS": homes}
    values |= {"QM_SERVICE": bits, "QM_SERVICE_DEPCLIENTS": 0, **more}
    return made(ObjectType.MACHINE, number, homes[0] if homes else guid(1), **values)


def queue(
    number: int, owner: int | None, *, path: str = "", security: bytes = SHUT
) -> DirectoryObject:
    values: dict[str, Value] = {"Q_PATHNAME": path or f"m\\q{number}", "Q_SECURITY": security}
    if owner is not None:
        values["Q_QMID"] = guid(owner)
    return made(ObjectType.QUEUE, number, guid(1), **values)


def link(number: int, first: int, second: int, *gates: int, cost: int = 1) -> DirectoryObject:
    ends: dict[str, Value] = {"L_NEIGHBOR1": guid(first), "L_NEIGHBOR2": guid(second)}
    named = tuple(map(guid, gates))
    values = {**ends, "L_ACTUAL_COST": cost, "L_GATES": named}
    return made(ObjectType.ROUTINGLINK, number, ENTERPRISE_PARTITION, **values)


#: Two sites, each with a router that is its gate, and a link.
SOUND = (
    site(1, 11),
    site(2, 12),
    link(31, 1, 2),
    machine(11, 1, bits=ROUTES),
    machine(12, 2, bits=ROUTES),
    machine(13, 1),
    queue(41, 13),
)
PARTITIONS = tuple(
    Partition(id_, "psc", SequenceNumber(99)) for id_ in (ENTERPRISE_PARTITION, guid(1), guid(2))
)


def found(*objects: DirectoryObject, sound: bool = True) -> set[tuple[str, str, str]]:
    known = {obj.id: obj for obj in SOUND if sound} | {obj.id: obj for obj in objects}
    report = examine(known.values(), PARTITIONS)
    return {(each.check, each.names[0], each.detail) for each in report.findings}


def as_replica(obj: DirectoryObject) -> DirectoryObject:
    return replace(obj, properties=stored(whole_object(obj)))


def test_a_sound_directory_has_no_findings() -> None:
    assert found() == set()


@pytest.mark.parametrize(
    ("obj", "check", "detail"),
    [
        (queue(50, 99), Check.ORPHANED_QUEUE, str(guid(99))),
        (queue(50, None), Check.ORPHANED_QUEUE, ""),
        (machine(50, 99), Check.ORPHANED_MACHINE, str(guid(99))),
        (machine(50), Check.ORPHANED_MACHINE, ""),
        (machine(50, 1, QM_INFRS=(guid(99),)), Check.UNKNOWN_ROUTER, str(guid(99))),
        (machine(50, 1, QM_OUTFRS=(guid(99),)), Check.UNKNOWN_ROUTER, str(guid(99))),
        (machine(50, 1, QM_CNS=(guid(99),)), Check.UNKNOWN_NETWORK, str(guid(99))),
        (link(50, 1, 99), Check.UNKNOWN_SITE, str(guid(99))),
        (link(31, 1, 2, 99), Check.UNKNOWN_GATE, str(guid(99))),
        (
            link(50, 2, 1, cost=7),
            Check.DOUBLED_LINK,
            f"site2 - site1 at cost 7, as {guid(31)} at cost 1",
        ),
        (site(1, 11, 99), Check.UNKNOWN_GATE, str(guid(99))),
        (link(50, 1, 1), Check.BAD_LINK, "site1 - site1 joins a site to itself"),
        (
            link(50, 1, 2, cost=0),
            Check.BAD_LINK,
            "site1 - site2 costs something other than 1 to 999999",
        ),
        (
            site(1, 11, 13),
            Check.BAD_GATE,
            "m13 is named as a gate but is not a routing server",
        ),
        (
            link(31, 1, 2, 13),
            Check.BAD_GATE,
            "m13 is named as a gate but is not a routing server",
        ),
        (
            site(1, 11, 12),
            Check.BAD_GATE,
            "m12 is named as a gate but belongs to another site",
        ),
        (site(1), Check.NO_GATE, ""),
        (site(3, psc=""), Check.NO_GATE, ""),
        (queue(50, 13, security=OPEN), Check.WRITABLE, ""),
    ],
)
def test_each_fault_is_found_alone(obj: DirectoryObject, check: Check, detail: str) -> None:
    assert found(obj) == {(check.label, obj.path or str(obj.id), detail)}


def test_a_site_that_no_link_joins_is_cut_off() -> None:
    lonely = site(3, 14, psc=""), machine(14, 3, bits=ROUTES)

    assert found(*lonely) == {(Check.CUT_OFF.label, "site3", "")}


def test_a_single_site_needs_no_gate() -> None:
    alone = site(1), machine(13, 1)

    assert found(*alone, sound=False) == set()


def test_duplicates_of_different_authorities() -> None:
    """One store never holds both, so they are judged as the pipeline brings them together."""
    first, second = queue(50, 13, path="m\\Orders"), queue(51, 13, path="M\\orders")
    twin = replace(queue(60, 13), partition=guid(2))
    objects = [*SOUND, first, second, queue(60, 13), twin]
    findings = list(judge(claim for obj in objects for claim in claims_of(obj)))

    rows = map(finding_row, findings)
    assert {(row["check"], row["id"], row["detail"]) for row in rows} == {
        ("duplicate_name", str(guid(50)), str(guid(51))),
        ("duplicate_name", str(guid(51)), str(guid(50))),
        ("duplicate_id", str(guid(60)), str(guid(1))),
        ("duplicate_id", str(guid(60)), str(guid(2))),
    }


def test_every_check_has_advice_with_the_name_of_the_object() -> None:
    (orphan,) = examine([*SOUND, queue(50, 99, path="m\\no body")], PARTITIONS).findings

    assert "mqis delete queue 'm\\no body'" in orphan.todo
    for check in Check:
        advice = finding(check, orphan.objects[0]).todo
        assert advice
        assert "{" not in advice


# --- what a copy cannot show ----------------------------------------------------------------------


def limits(report: CheckReport) -> list[tuple[str, int]]:
    return [(limit.check, limit.left_out) for limit in report.limits]


def test_the_authority_of_everything_knows_everything() -> None:
    assert limits(examine(SOUND, PARTITIONS)) == []


def test_a_gate_that_only_a_link_names_is_unknown_to_replicas() -> None:
    """Links' gates are not replicated: the PEC knows that there is a gate, others cannot tell."""
    objects = [site(1), *SOUND[1:2], link(31, 1, 2, 11), *SOUND[3:]]
    replica = examine(map(as_replica, objects), PARTITIONS)

    assert examine(objects, PARTITIONS).findings == ()
    assert replica.findings == ()
    assert ("no_gate", 1) in limits(replica)


def test_a_gate_whose_further_site_is_not_replicated() -> None:
    shared = [site(1, 11), site(2, 11), link(31, 1, 2), machine(11, 1, 2, bits=ROUTES)]
    replica = examine(map(as_replica, shared), PARTITIONS)

    assert examine(shared, PARTITIONS).findings == ()
    assert replica.findings == ()
    assert ("no_gate", 1) in limits(replica)


def test_a_replica_finds_a_site_that_cannot_have_a_gate() -> None:
    objects = [*SOUND, site(3, psc=""), link(32, 1, 3)]
    replica = examine(map(as_replica, objects), PARTITIONS)

    assert [(each.check, each.objects[0].name) for each in replica.findings] == [
        ("no_gate", "site3")
    ]


@pytest.mark.parametrize(
    "partitions",
    [
        PARTITIONS[:2],  # nothing of site 2 has arrived
        (*PARTITIONS[:2], replace(PARTITIONS[2], last_seq=SequenceNumber.MIN)),
        (*PARTITIONS[:2], replace(PARTITIONS[2], purge_state=PurgeState.IN_SYNC0)),
    ],
)
def test_an_incomplete_copy_proves_no_orphan(partitions: tuple[Partition, ...]) -> None:
    """The queue's machine may be in the part that has not arrived; the link's site cannot."""
    report = examine([*SOUND, queue(50, 99), link(51, 1, 99)], partitions)

    assert [each.check for each in report.findings] == ["unknown_site"]
    (limit,) = (limit for limit in report.limits if "not complete" in limit.reason)
    assert limit.left_out == 1


@pytest.mark.parametrize("check", Check)
def test_a_finding_is_explained_and_a_doubled_identifier_shown(check: Check) -> None:
    found = finding(check, Subject("queue", None, str(guid(7))), "somewhere")
    assert found.what == check.value
    assert "{" not in found.todo
    doubled = check is Check.DUPLICATE_ID
    shown = f"{guid(7)} in partition somewhere" if doubled else "somewhere"
    assert found.detail == shown
    assert finding_row(found)["detail"] == "somewhere"


def test_a_descriptor_that_cannot_be_read_lets_nobody_send() -> None:
    assert not anonymous_may_send(b"no descriptor")
