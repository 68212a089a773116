"""Connections that a queue manager closes when it has too many."""

from __future__ import annotations

from mqis.protocol.queueing.guests import Guests
from mqis.protocol.queueing.limits import QueueingLimits

LIMITS = QueueingLimits(
    max_sessions=3, max_connections=6, max_connections_per_address=4, max_waiting_per_address=2
)


def arrive(guests: Guests, number: int, source: str) -> int | None:
    """A connection that stays; whom it takes the place of."""
    stays, victim = guests.arrive(source)
    assert stays
    if victim is not None:
        guests.forget(victim)
    guests.add(number, source)
    return victim


def begin(guests: Guests, number: int, source: str) -> int | None:
    arrive(guests, number, source)
    begins, victim = guests.begin(number)
    assert begins
    if victim is not None:
        guests.forget(victim)
    return victim


def test_the_oldest_silent_connection_of_an_address_gives_way_to_its_next() -> None:
    guests = Guests(LIMITS)
    assert [arrive(guests, n, "a") for n in range(1, 6)] == [None, None, 1, 2, 3]
    assert len(guests) == 2


def test_one_address_has_so_many_connections_and_no_more() -> None:
    guests = Guests(QueueingLimits(max_connections_per_address=2, max_waiting_per_address=2))
    begin(guests, 1, "a")
    arrive(guests, 2, "a")
    assert guests.arrive("a") == (True, 2)
    assert guests.begin(2) == (True, None)
    assert guests.arrive("a") == (False, None)
    assert guests.arrive("b") == (True, None)


def test_a_newcomer_takes_the_place_of_who_waits_and_has_more() -> None:
    guests = Guests(LIMITS)
    for number, source in enumerate("aabbcc", start=1):
        arrive(guests, number, source)
    assert arrive(guests, 7, "d") == 1
    assert guests.arrive("a") == (True, 3)  # it has one, and two others have two
    guests.forget(3)
    guests.forget(5)
    arrive(guests, 8, "e")
    arrive(guests, 9, "f")
    assert guests.arrive("g") == (True, 2)
    assert guests.arrive("f") == (False, None)  # nobody has more than one


def test_a_session_is_taken_from_who_has_most_and_proved_nothing() -> None:
    guests = Guests(LIMITS)
    assert [begin(guests, n, "a") for n in (1, 2)] == [None, None]
    begin(guests, 3, "b")
    guests.prove(1)
    assert guests.sessions == 3
    arrive(guests, 4, "a")
    assert guests.begin(4) == (False, None)  # a has most itself
    guests.forget(4)
    assert begin(guests, 5, "c") == 2
    assert guests.sessions == 3
    for number in (3, 5):
        guests.prove(number)
    arrive(guests, 6, "d")
    assert guests.begin(6) == (False, None)  # all have proved who they are


def test_who_is_no_guest_is_left_alone() -> None:
    guests = Guests(LIMITS)
    guests.prove(9)
    guests.forget(9)
    assert (len(guests), guests.sessions) == (0, 0)
    arrive(guests, 1, "a")
    guests.prove(1)  # nothing was taken before there is a session
    assert guests.begin(1) == (True, None)


def test_the_greediest_of_the_unproved_gives_its_buffers_up() -> None:
    guests = Guests(LIMITS)
    for number, source in ((1, "a"), (2, "a"), (3, "b")):
        begin(guests, number, source)
    assert guests.hoarder(3, {1: 50, 2: 70, 3: 100}) == 2
    assert guests.hoarder(1, {1: 50, 2: 70, 3: 100}) == 1
    assert guests.hoarder(9, {9: 500}) == 9
    guests.prove(1)
    guests.prove(2)
    assert guests.hoarder(3, {1: 500, 2: 700, 3: 1}) == 3
    assert guests.hoarder(1, {1: 500, 2: 700, 3: 1}) == 3
