"""The comparison of two directories: nothing for equal ones, exactly the edits otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.directory_difference import (
    ObjectDifference,
    ObjectFate,
    PropertyDifference,
    compare,
    paired,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.read_mapping import default_of
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tests.strategies.export import directories, variants


@given(directories)
def test_a_directory_does_not_differ_from_itself(objects: list[DirectoryObject]) -> None:
    assert list(compare(objects, objects)) == []
    moved = [replace(obj, seq=SequenceNumber(99), partition=Guid.NULL) for obj in objects]
    assert list(compare(objects, moved)) == []


class Edits:
    """Edits objects at random, and keeps what the comparison has to find."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.before: list[DirectoryObject] = []
        self.after: list[DirectoryObject] = []
        self.expected: list[ObjectDifference] = []

    def edit(self, obj: DirectoryObject) -> None:
        kind = self._data.draw(st.sampled_from(["keep", "delete", "create", "change"]))
        values = sorted(obj.properties.items())
        if kind != "create":
            self.before.append(obj)
        if kind in ("keep", "create"):
            self.after.append(obj)
        if kind == "create":
            new = tuple(PropertyDifference(p, None, value) for p, value in values)
            self.expected.append(ObjectDifference(None, obj, new))
        elif kind == "delete":
            old = tuple(PropertyDifference(p, value, None) for p, value in values)
            self.expected.append(ObjectDifference(obj, None, old))
        elif kind == "change":
            self._change(obj)

    def _change(self, obj: DirectoryObject) -> None:
        """Sets, adds and removes properties."""
        chosen = self._data.draw(st.sets(st.sampled_from([*obj.properties, 1, 2**32 - 1])))
        properties = dict(obj.properties)
        found: list[PropertyDifference] = []
        for propid in sorted(chosen):
            old = properties.pop(propid, None)
            new = self._data.draw(st.none() | variants())
            if new is not None:
                properties[propid] = new
            if (old or default_of(propid)) != (new or default_of(propid)):
                found.append(PropertyDifference(propid, old, new))
        edited = replace(obj, properties=properties)
        self.after.append(edited)
        if found:
            self.expected.append(ObjectDifference(obj, edited, tuple(found)))


@given(st.data())
def test_random_edits_are_found_exactly(data: st.DataObject) -> None:
    edits = Edits(data)
    for obj in data.draw(directories):
        edits.edit(obj)
    assert list(compare(edits.before, edits.after)) == edits.expected


def queue(number: int, path: str, label: str = "") -> DirectoryObject:
    return DirectoryObject(
        ObjectType.QUEUE,
        Guid(bytes([number]) * 16),
        Guid.NULL,
        SequenceNumber(1),
        props({PropId.Q_PATHNAME: path, PropId.Q_LABEL: label}),
    )


def test_an_object_that_was_made_again_is_one_difference() -> None:
    old, new, other = queue(1, "m\\q", "Orders"), queue(2, "M\\Q", "orders"), queue(3, "m\\r")
    (one,) = paired(compare([old, other], [new, other]))
    assert one.fate is ObjectFate.REPLACED
    assert (one.before, one.after) == (old, new)
    assert [each.propid for each in one.properties] == [PropId.Q_PATHNAME, PropId.Q_LABEL]


def test_other_names_are_not_paired() -> None:
    found = paired(compare([queue(1, "m\\q")], [queue(2, "m\\r")]))
    assert [one.fate for one in found] == [ObjectFate.DELETED, ObjectFate.CREATED]


def test_only_chosen_properties_are_compared() -> None:
    pair = [queue(1, "m\\q", "a")], [queue(1, "m\\q", "b")]
    assert len(list(compare(*pair))) == 1
    assert list(compare(*pair, lambda propid: propid != PropId.Q_LABEL)) == []


@pytest.mark.parametrize(("numbers", "text"), [([2, 1], "out of order"), ([1, 1], "twice")])
def test_a_side_has_to_be_in_order(numbers: list[int], text: str) -> None:
    side = [queue(number, f"m\\{place}") for place, number in enumerate(numbers)]
    with pytest.raises(MqisError, match=text):
        list(compare(side, []))


def test_a_missing_value_is_equal_to_the_one_that_is_shown_instead() -> None:
    bare = DirectoryObject(ObjectType.QUEUE, Guid(b"q" * 16), Guid.NULL, SequenceNumber(1), {})
    shown = replace(bare, properties=props({PropId.Q_SCOPE: 1}))
    other = replace(bare, properties=props({PropId.Q_SCOPE: 0}))
    assert list(compare([bare], [shown])) == []
    assert len(list(compare([bare], [other]))) == 1


def test_the_sides_are_read_as_streams() -> None:
    """At most one object of each side is ahead of the result."""
    taken: list[str | None] = []

    def side(label: str) -> Iterator[DirectoryObject]:
        for number in range(1, 50):
            taken.append(label)
            yield queue(number, f"m\\{number}", label)

    next(compare(side("a"), side("b")))
    assert len(taken) <= 4
