"""The rule by which a replica counts as equal to its authority."""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.replication.convergence import DifferenceKind, copy_of, differences
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.builders import guid, machine, queue

LABEL = PropVariant(VarType.LPWSTR, "a")
HIDDEN = {PropId.Q_SCOPE: 0}


def found(true: list, held: list, *, same_site: bool = True) -> list[tuple[DifferenceKind, int]]:  # type: ignore[type-arg]
    listed = differences(copy_of(true), copy_of(held), same_site=same_site)
    return [(difference.kind, int.from_bytes(difference.id.raw, "big")) for difference in listed]


def test_equal_copies_differ_in_nothing() -> None:
    both = [queue(1), queue(2), machine(3)]
    assert found(both, list(reversed(both))) == []


def test_numbers_do_not_matter_but_values_do() -> None:
    assert found([queue(1, seq=5)], [queue(1, seq=0)]) == []
    true, held = copy_of([queue(1, label="a")]), copy_of([queue(1, label="b")])
    (difference,) = differences(true, held, same_site=True)
    assert difference.kind is DifferenceKind.DIFFERENT
    assert difference.properties == (PropId.Q_LABEL,)
    assert str(difference) == f"queue {guid(1)} is different in {int(PropId.Q_LABEL)}"


def test_a_property_of_one_side_only_is_a_difference() -> None:
    less = copy_of([queue(1)])
    more = {id_: replace(held, content={**held.content, 199: LABEL}) for id_, held in less.items()}
    for true, held in ((more, less), (less, more)):
        (difference,) = differences(true, held, same_site=True)
        assert difference.properties == (199,)


def test_missing_and_extra_in_the_order_of_identifiers() -> None:
    true, held = [queue(1), queue(3)], [queue(2), queue(3)]
    assert found(true, held) == [(DifferenceKind.MISSING, 1), (DifferenceKind.EXTRA, 2)]


def test_other_sites_need_not_have_queues_of_one_site() -> None:
    """E58: they may have them, old or new, but not when the authority has them no more."""
    hidden, old = queue(1, others=HIDDEN), queue(1, label="old", others=HIDDEN)
    assert found([hidden], []) == [(DifferenceKind.MISSING, 1)]
    assert found([hidden], [], same_site=False) == []
    assert found([hidden], [old], same_site=False) == []
    assert found([hidden], [old]) == [(DifferenceKind.DIFFERENT, 1)]
    assert found([], [old], same_site=False) == [(DifferenceKind.EXTRA, 1)]
