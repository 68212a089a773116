"""One backup of an authority is restored twice: no number stands for two changes."""

from __future__ import annotations

import pytest

from mqis.protocol.replication import survivors
from mqis.protocol.replication.convergence import Contents, comparable_digest, compare_digests
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.storage.memory_store import MemoryStore
from tests.protocol.replication.enterprise import Enterprise, Node, guid_of

SITE_B = guid_of("B")
WAIT_S = ReplicationSettings().recovery_wait_s


@pytest.fixture
def lost() -> tuple[Enterprise, MemoryStore]:
    """A PSC that nobody hears and that hears nobody, and its only backup."""
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.run(70)
    enterprise.create_queue(psc, "psc\\kept")
    enterprise.run(5)
    backup = enterprise.backup("psc")
    enterprise.lose(lambda parcel: "psc" in (parcel.machine, parcel.sender))
    return enterprise, backup


def life(enterprise: Enterprise, backup: MemoryStore, name: str, count: int = 3) -> list[int]:
    """Restores the PSC, which makes some queues; returns their numbers."""
    enterprise.restore("psc", backup, authority=True)
    enterprise.run(WAIT_S + 30)
    psc = enterprise.nodes["psc"]
    for index in range(count):
        enterprise.create_queue(psc, f"psc\\{name}{index}")
    return numbers_of(psc)


def numbers_of(node: Node) -> list[int]:
    with node.store.read() as view:
        changes = list(view.changes(SITE_B, node.partition(SITE_B).purged_seq))
    return [change.seq.value for change in changes]


def test_two_lives_of_one_backup_share_no_number(lost: tuple[Enterprise, MemoryStore]) -> None:
    """And the second goes on above the first: who has seen the first starts anew."""
    enterprise, backup = lost
    first = life(enterprise, backup, "first", 200)
    second = life(enterprise, backup, "second", 200)
    assert len(first) == len(second) == 200
    assert max(first) < min(second)


def test_two_lives_at_one_moment_share_no_number(lost: tuple[Enterprise, MemoryStore]) -> None:
    """At two places, or by a clock that was set back: chance tells them apart."""
    enterprise, backup = lost
    here, there = enterprise.clone(), enterprise.clone()
    for place in (here, there):
        place.lose(lambda parcel: "psc" in (parcel.machine, parcel.sender))
    there.nodes["psc"].lives += 1  # another computer has other random numbers
    first, second = life(here, backup, "first"), life(there, backup, "second")
    assert here.now == there.now
    assert set(first) & set(second) == set()


def test_a_life_that_begins_a_second_later_goes_on_above(
    lost: tuple[Enterprise, MemoryStore],
) -> None:
    """Chance does not undo what the clock tells, or the older life would count."""
    enterprise, backup = lost
    for chance in range(8):
        here, there = enterprise.clone(), enterprise.clone()
        for place in (here, there):
            place.lose(lambda parcel: "psc" in (parcel.machine, parcel.sender))
            place.nodes["psc"].lives += chance
        there.nodes["psc"].lives += 100
        there.now += 1.5
        assert max(life(here, backup, "first")) < min(life(there, backup, "second"))


def test_a_clock_without_sense_does_not_use_up_the_numbers(
    lost: tuple[Enterprise, MemoryStore],
) -> None:
    """In the year 9999 numbers stay within the jump that every server accepts."""
    enterprise, backup = lost
    before = enterprise.nodes["psc"].last(SITE_B)
    enterprise.now += 250_000_000_000
    numbers = life(enterprise, backup, "late")
    assert before + (1 << 50) < min(numbers) < before + ReplicationSettings().max_jump


def test_who_has_seen_the_first_life_gets_the_second(lost: tuple[Enterprise, MemoryStore]) -> None:
    """The PEC heard of the first life, and not of its end: at last it holds the second."""
    enterprise, backup = lost
    silence = enterprise._losses.pop()
    life(enterprise, backup, "first")
    enterprise.run(70)
    pec = enterprise.nodes["pec"]
    assert pec.last(SITE_B) == enterprise.nodes["psc"].last(SITE_B)
    enterprise.lose(silence)
    life(enterprise, backup, "second")
    enterprise._losses.clear()
    enterprise.run(1300)
    enterprise.check_converged()
    assert pec.last(SITE_B) == enterprise.nodes["psc"].last(SITE_B)


def contents(enterprise: Enterprise) -> Contents:
    """What ``mqis status`` tells of the PEC's copy, beside that of the authority."""
    digests = []
    for name in ("pec", "psc"):
        node = enterprise.nodes[name]
        with node.store.read() as view:
            digests.append(comparable_digest(view, node.partition(SITE_B)))
    here, there = digests
    assert here is not None
    assert there is not None
    return compare_digests(here, there, within_site=False, authority=there)


def test_shared_numbers_of_an_earlier_version_are_found_and_a_restore_mends_them(
    lost: tuple[Enterprise, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    enterprise, backup = lost
    silence = enterprise._losses.pop()
    with monkeypatch.context() as earlier:
        fixed = lambda work, own, others: own.last_seq + (1 << 20)  # noqa: E731
        earlier.setattr(survivors, "_behind_used_numbers", fixed)
        life(enterprise, backup, "first")
        enterprise.run(70)
        enterprise.lose(silence)
        life(enterprise, backup, "second")
    enterprise._losses.clear()
    enterprise.run(1300)
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    assert pec.last(SITE_B) == psc.last(SITE_B)
    assert contents(enterprise) is Contents.DIFFERENT
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    enterprise.run(1300)
    assert contents(enterprise) is Contents.EQUAL
    enterprise.check_converged()
