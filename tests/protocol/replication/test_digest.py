"""The digest of a partition: what it counts, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from mqis.protocol.directory.objects import (
    NAME_PROPERTY,
    DirectoryObject,
    PartitionDigest,
    Scope,
)
from mqis.protocol.replication.convergence import Contents, compare_digests
from mqis.protocol.replication.digest import with_object, without_object
from mqis.protocol.replication.keeping import stored
from mqis.protocol.replication.replicated import content, whole_object
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag, encode_properties
from mqis.wire.seqnum import SequenceNumber
from tests.builders import one_of_each, queue
from tests.strategies.directory import directory_objects

NOTHING = PartitionDigest()


def digest(*objects: DirectoryObject) -> PartitionDigest:
    total = NOTHING
    for obj in objects:
        total = with_object(total, obj)
    return total


def site_queue(number: int, label: str = "") -> DirectoryObject:
    return queue(number, label=label, others={PropId.Q_SCOPE: Scope.SITE})


def as_replica(obj: DirectoryObject) -> DirectoryObject:
    """The object as a replica stores it that got it by synchronisation."""
    properties = dict(stored(whole_object(obj)))
    name = NAME_PROPERTY.get(obj.type)
    if name is not None and name in obj.properties:
        properties[name] = obj.properties[name]
    return replace(obj, properties=properties)


@pytest.mark.parametrize("obj", one_of_each(), ids=lambda obj: obj.type.label)
def test_a_replica_has_the_digest_of_its_authority(obj: DirectoryObject) -> None:
    """Although it stores defaults, and no property that stays with the authority."""
    assert digest(as_replica(obj)) == digest(obj)


@given(directory_objects(), directory_objects())
def test_digests_are_equal_exactly_where_the_contents_are(
    one: DirectoryObject, other: DirectoryObject
) -> None:
    """``replicated.content`` is the rule of every other comparison."""
    other = replace(other, id=one.id)
    same = one.type is other.type and content(one) == content(other)
    assert (digest(one).shared + digest(one).site == digest(other).shared + digest(other).site) is (
        same
    )


@given(directory_objects())
def test_it_depends_on_neither_order_nor_form(obj: DirectoryObject) -> None:
    packed = replace(obj, properties=PropertyBag(encode_properties(obj.properties)))
    moved = replace(obj, seq=SequenceNumber(99))
    assert digest(packed) == digest(moved) == digest(obj)
    two = digest(obj, *one_of_each())
    assert two == digest(*reversed(one_of_each()), obj)
    assert without_object(two, packed) == digest(*one_of_each())


def test_each_replicated_property_counts() -> None:
    whole = queue(1, label="x")
    for propid in content(whole):
        less = {p: v for p, v in whole.properties.items() if p != propid}
        other = replace(whole, properties=less)
        assert (digest(other) == digest(whole)) is (content(other) == content(whole))
    private = whole.with_properties(props({PropId.Q_NAME_SUFFIX: "mine"}), whole.seq)
    assert digest(private) == digest(whole), "the authority keeps it for itself"
    assert digest(replace(whole, id=queue(2).id)) != digest(whole)


def test_a_digest_survives_its_bytes() -> None:
    found = digest(*one_of_each(), site_queue(5))
    assert found.site_only == 1
    assert PartitionDigest.from_bytes(found.to_bytes()) == found
    with pytest.raises(ValueError, match="72 bytes"):
        PartitionDigest.from_bytes(b"x")


def test_a_damaged_body_still_has_a_digest() -> None:
    """Whoever verifies a store goes on past it."""
    body = encode_properties(queue(1).properties)
    for place in range(2, 2 + 15 * 10, 10):
        wrong = body[: place + 4] + b"\x77\x77" + body[place + 6 :]
        damaged = replace(queue(1), properties=PropertyBag(wrong))
        assert digest(damaged) != digest(queue(1))


PUBLIC, PRIVATE = queue(1), site_queue(2)


@pytest.mark.parametrize(
    ("replica", "within", "expected"),
    [
        ((PUBLIC, PRIVATE), True, Contents.EQUAL),
        ((PUBLIC, PRIVATE), False, Contents.EQUAL),
        # Servers of other sites need not have it.
        ((PUBLIC,), False, Contents.EQUAL),
        ((PUBLIC,), True, Contents.DIFFERENT),
        ((PUBLIC, site_queue(2, "x")), True, Contents.DIFFERENT),
        # Or have it from before it became its site's own.
        ((PUBLIC, queue(2)), False, Contents.UNPROVED),
        ((), False, Contents.UNPROVED),
    ],
)
def test_queues_that_only_their_site_knows(
    replica: tuple[DirectoryObject, ...], within: bool, expected: Contents
) -> None:
    """E58: they are propagated to all servers, and synchronised within their site alone."""
    true = digest(PUBLIC, PRIVATE)
    assert compare_digests(digest(*replica), true, within_site=within, authority=true) is expected


def test_without_such_queues_every_difference_is_proved() -> None:
    true, other = digest(PUBLIC), digest(PUBLIC, queue(3))
    assert compare_digests(other, true, within_site=False, authority=true) is Contents.DIFFERENT
    assert compare_digests(other, true, within_site=False, authority=None) is Contents.UNPROVED


def test_a_sum_that_is_negative_for_a_moment_can_be_stored() -> None:
    """An object that is replaced may be taken out before the other is put in."""
    digest = PartitionDigest().plus(-1, -1, -1)
    assert PartitionDigest.from_bytes(digest.to_bytes()) == digest
    assert digest.plus(1, 1, 1) == PartitionDigest()
