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


# --- callers with a name --------------------------------------------------------------------------


def logons(most: int = 8, kept: int = 2) -> tuple[Crowd[str], list[str]]:
    cut: list[str] = []
    return Crowd(most, most, cut.append, kept_for_named=kept, spares_busy=False), cut


def test_a_share_is_kept_for_those_with_a_name() -> None:
    made, cut = logons()
    assert all(made.enter(f"silent{n}", f"a{n}") for n in range(6))
    assert made.enter("alice", "b")
    assert cut == ["silent0"]
    made.name("alice")
    assert made.enter("more", "c")
    assert cut == ["silent0"], "alice is none of the six any more"
    assert len(made) == 7


def test_who_has_a_name_is_never_closed_for_others() -> None:
    made, cut = logons(most=4, kept=1)
    for name in ("alice", "bob", "carol"):
        assert made.enter(name, "a")
        made.name(name)
        made.waits(name)
    assert made.enter("one", "a")
    assert made.enter("two", "a")
    assert cut == ["one"]
    made.name("two")
    assert not made.enter("three", "a"), "all places have names"
    made.leave("bob")
    made.name("bob")
    assert made.enter("three", "a")
    assert len(made) == 4


def test_the_address_that_has_most_makes_room() -> None:
    made, cut = logons()
    assert all(made.enter(name, "few") for name in ("old", "older"))
    assert all(made.enter(f"greedy{n}", "many") for n in range(4))
    assert made.enter("new", "other")
    assert cut == ["greedy0"]


def test_who_is_busy_goes_only_if_nobody_waits() -> None:
    made, cut = logons()
    for n in range(6):
        made.enter(f"c{n}", "a")
        made.busy(f"c{n}")
    made.waits("c3")
    assert made.enter("new", "b")
    assert cut == ["c3"]
    made.busy("new")
    assert made.enter("newer", "b")
    assert cut == ["c3", "c0"]


def test_who_was_served_begins_to_wait_anew() -> None:
    made, cut = logons()
    for n in range(6):
        made.enter(f"c{n}", "a")
    made.busy("c0")
    made.waits("c0")
    made.enter("new", "a")
    assert cut == ["c1"]


def test_exempt_peers_have_no_limit_of_their_address() -> None:
    cut: list[str] = []
    made = Crowd(9, 1, cut.append, exempt=lambda peer: peer == "here")
    assert all(made.enter(f"c{n}", "here") for n in range(3))
    assert made.enter("one", "there")
    assert made.enter("two", "there")
    assert cut == ["one"]
