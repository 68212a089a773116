"""Connections in a room: who gets in, and who has to go for it."""

from __future__ import annotations

from mqis.runtime.crowd import Crowd


def crowd(most: int = 4, most_per_address: int = 2) -> tuple[Crowd[str], list[str]]:
    cut: list[str] = []
    return Crowd(most, most_per_address, cut.append), cut


def test_the_one_that_has_waited_longest_goes() -> None:
    made, cut = crowd()
    assert [made.enter(name, "a") for name in ("one", "two", "three")] == [True] * 3
    assert cut == ["one"]
    assert len(made) == 2


def test_an_address_makes_room_by_itself() -> None:
    made, cut = crowd()
    made.enter("other", "b")
    made.enter("one", "a")
    made.enter("two", "a")
    assert made.enter("three", "a")
    assert cut == ["one"], "not the other address's, which has waited longer"


def test_where_all_are_busy_nobody_gets_in() -> None:
    made, cut = crowd()
    for name in ("one", "two"):
        made.enter(name, "a")
        made.busy(name)
    assert not made.enter("three", "a")
    assert made.enter("four", "b")
    assert cut == []
    made.waits("two")
    assert made.enter("three", "a")
    assert cut == ["two"]


def test_all_addresses_together_are_bounded() -> None:
    made, cut = crowd(most=2)
    assert [made.enter(name, name) for name in ("one", "two", "three")] == [True] * 3
    assert cut == ["one"]
    made.busy("two")
    made.busy("three")
    assert not made.enter("four", "four")
    made.leave("two")
    made.leave("two")
    assert made.enter("four", "four")


def test_who_has_left_does_not_wait() -> None:
    made, cut = crowd()
    made.enter("one", "a")
    made.leave("one")
    made.waits("one")
    made.busy("one")
    assert len(made) == 0
    for name in ("two", "three", "four"):
        made.enter(name, "a")
    assert cut == ["two"]
