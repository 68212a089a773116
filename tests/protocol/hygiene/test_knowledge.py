"""The limits of a copy: what it cannot show, and which input would."""

from __future__ import annotations

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.hygiene.checks import Check
from mqis.protocol.hygiene.knowledge import Knowledge, PartitionCopy
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

SITE = Guid(b"s" * 16)
OWN = (PartitionCopy(ENTERPRISE_PARTITION, "PEC", own=True), PartitionCopy(SITE, "PSC", own=True))


def limits(knowledge: Knowledge, *gates: str) -> list[tuple[str, int]]:
    found = knowledge.limits({"orphaned_queue": 3}, gates)
    return [(f"{limit.check}: {limit.reason}", limit.left_out) for limit in found]


def test_all_authorities_know_everything() -> None:
    assert limits(Knowledge(OWN)) == []
    assert Knowledge(OWN).uncertain() == frozenset()


def test_a_server_that_was_asked() -> None:
    asked = Knowledge(OWN, permissions=False, checked=True)
    assert asked.has_all(ObjectType.QUEUE)
    first, second = limits(asked)
    assert "a server shows what this user may read" in first[0]
    assert first[1] == 3
    assert second[0].startswith(f"{Check.WRITABLE.label}: ")


def test_a_copy_that_is_not_complete() -> None:
    replica = PartitionCopy(SITE, "PSC", whole=False)
    copy = Knowledge((OWN[0], replica), absent=("Delft",))
    assert not copy.has_all(ObjectType.QUEUE)
    assert not copy.knows_sites_of(SITE)
    assert copy.uncertain()
    texts = [text for text, _ in limits(copy, "Berlin", "Paris")]
    assert any("it lacks objects of PSC, site Delft" in text for text in texts)
    assert any("whether Berlin, Paris have a gate" in text for text in texts)
    assert any("1 of 2 partitions is a copy of a replica" in text for text in texts)
