"""A user who fills the directory or its journal: by giving objects away, by changing for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from mqis.protocol.directory.guard import Allowance
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.sid import EVERYONE, Sid
from tests.hostile.attacker import MACHINE, OK, QUEUE, TOO_MUCH, USER, Attacker
from tests.hostile.test_authority import (
    ALPHA,
    OWNER,
    PLAIN,
    certificate,
    make_world,
    registration,
    secured,
)
from tests.interop.mqds_impacket import CLSID, LPWSTR_, UI4, disconnect_all, variant
from tests.interop.rpc_threads import in_thread
from tests.protocol.directory.world import C14, INHABITANTS, World, blob
from tests.runtime.directory.serving import ALICE, BOB, NOW, Served, serving

#: WRITE_OWNER and DELETE beside what a user of a queue needs.
_ALL = "(A;;0xF003F;;;WD)"
DACL = 4


@pytest.fixture
def served() -> Iterator[Served]:
    with in_thread(serving(make_world())) as found:
        yield found
        disconnect_all()


@pytest.fixture
def bob(served: Served) -> Attacker:
    return Attacker(served.port, "bob")


def created(served: Served, account: Sid = BOB.sid) -> int:
    with served.world.store.read() as view:
        return view.count_created(account.to_bytes())


# --- security.max_owned ---------------------------------------------------------------------------


@pytest.mark.req("SEC-20-01")
def test_objects_created_for_everyone_count(
    served: Served, bob: Attacker, caplog: pytest.LogCaptureFixture
) -> None:
    before = created(served)
    served.configure(allowance=Allowance(max_owned=before + 3))
    gift = secured(f"O:WDD:{_ALL}")
    results = [bob.create(QUEUE, f"C14\\q{n}", PLAIN, gift) for n in range(5)]
    assert results == [OK, OK, OK, TOO_MUCH, TOO_MUCH]
    assert bob.create(MACHINE, "another", {201: variant(CLSID, ALPHA)}) == TOO_MUCH
    assert (created(served), created(served, EVERYONE)) == (before + 3, 0)
    limit = f"{before + 3} of the {before + 3} that security.max_owned of this server allows"
    told = [line for line in caplog.messages if limit in line]
    assert [line.rpartition(": ")[2] for line in told] == [
        "queue C14\\q3",
        "queue C14\\q4",
        "machine another",
    ]


@pytest.mark.req("SEC-20-01")
@pytest.mark.parametrize(
    "give",
    [
        pytest.param(
            lambda bob, _alice, path: bob.secure(QUEUE, path, OWNER, secured("O:WD")),
            id="to everyone",
        ),
        pytest.param(
            lambda bob, _alice, path: bob.secure(QUEUE, path, OWNER, secured("D:")), id="to nobody"
        ),
        pytest.param(
            lambda _bob, alice, path: alice.secure(QUEUE, path, OWNER, secured(f"O:{ALICE.sid}")),
            id="to another account",
        ),
    ],
)
def test_objects_given_away_count(
    served: Served, bob: Attacker, give: Callable[[Attacker, Attacker, str], int]
) -> None:
    before = created(served)
    served.configure(allowance=Allowance(max_owned=before + 3))
    alice = Attacker(served.port, "alice")
    results = []
    for number in range(5):
        path = f"C14\\q{number}"
        results.append(bob.create(QUEUE, path, PLAIN, secured(f"D:{_ALL}")))
        if results[-1] == OK:
            assert give(bob, alice, path) == OK
    assert results == [OK, OK, OK, TOO_MUCH, TOO_MUCH]
    assert created(served, ALICE.sid) == 0
    assert alice.create(QUEUE, "C14\\hers", PLAIN) == OK


@pytest.mark.req("SEC-20-02")
def test_a_deleted_object_counts_no_more(served: Served, bob: Attacker) -> None:
    """Whoever deletes it, and whoever owned it then."""
    before = created(served)
    served.configure(allowance=Allowance(max_owned=before + 1))
    gift = secured(f"O:WDD:{_ALL}")
    alice = Attacker(served.port, "alice")
    for number in range(3):
        path = f"C14\\q{number}"
        assert bob.create(QUEUE, path, PLAIN, gift) == OK
        assert created(served) == before + 1
        assert bob.create(QUEUE, "C14\\more", PLAIN) == TOO_MUCH
        assert alice.delete(QUEUE, path) == OK
        assert created(served) == before


@pytest.mark.req("SEC-20-01")
def test_creators_survive_a_restart(tmp_path: Path) -> None:
    gift = secured(f"O:WDD:{_ALL}")
    with closing(SqliteStore(tmp_path / "d.db")) as store:
        world = World(empty=True)
        world.store = store  # type: ignore[assignment]
        for kind, properties in INHABITANTS:
            world.create_event(kind, properties)
        everybody = {1201: blob(secured("O:BAD:(A;;0xF00F7;;;WD)"))}
        world.update_event(world.get(ObjectType.MACHINE, C14), everybody)
        with in_thread(serving(world)) as served:
            bob = Attacker(served.port, "bob")
            assert [bob.create(QUEUE, f"C14\\q{n}", PLAIN, gift) for n in range(3)] == [OK] * 3
            disconnect_all()
    with closing(SqliteStore(tmp_path / "d.db")) as store:
        world.store = store  # type: ignore[assignment]
        with in_thread(serving(world)) as served:
            served.configure(allowance=Allowance(max_owned=4))
            bob = Attacker(served.port, "bob")
            results = [bob.create(QUEUE, f"C14\\r{n}", PLAIN) for n in range(2)]
            assert results == [OK, TOO_MUCH]
            disconnect_all()
        assert store.check() == []


# --- budgets of changes ---------------------------------------------------------------------------


def limit(served: Served, *, changes: int = 1000, written: int = 1 << 30) -> None:
    served.configure(allowance=Allowance(max_changes=changes, max_written_bytes=written))


WAYS: dict[str, Callable[[Attacker, int], int]] = {
    "create": lambda bob, n: bob.create(QUEUE, f"C14\\q{n}", PLAIN),
    "set": lambda bob, n: bob.change(QUEUE, "C14\\orders", {108: variant(LPWSTR_, f"{n}")}),
    "set by GUID": lambda bob, n: bob.change(MACHINE, UUID(int=0x14), {214: variant(UI4, n)}),
    "set security": lambda bob, _n: bob.secure(QUEUE, "C14\\orders", DACL, secured(f"D:{_ALL}")),
    "certificate": lambda bob, n: bob.create(USER, None, registration(BOB.sid, certificate(n))),
    "delete": lambda bob, n: bob.delete(QUEUE, f"C14\\d{n}"),
}


@pytest.mark.req("SEC-19-01")
@pytest.mark.parametrize("way", WAYS)
def test_every_change_counts(served: Served, bob: Attacker, way: str) -> None:
    for number in range(4):
        admin = Attacker(served.port, "admin")
        assert admin.create(QUEUE, f"C14\\d{number}", PLAIN, secured(f"D:{_ALL}")) == OK
    limit(served, changes=3)
    results = [WAYS[way](bob, number) for number in range(4)]
    assert results == [OK, OK, OK, TOO_MUCH]
    other = WAYS["set" if way != "set" else "create"]
    assert other(bob, 9) == TOO_MUCH  # all ways share the budget
    assert WAYS["set"](Attacker(served.port, "alice"), 1) == OK
    assert [WAYS["set"](Attacker(served.port, "admin"), n) for n in range(5)] == [OK] * 5


@pytest.mark.req("SEC-19-01")
def test_bytes_count(served: Served, bob: Attacker) -> None:
    """As long certificates do, of which few changes are enough to fill a disk."""
    limit(served, written=100_000)
    results = [
        bob.create(USER, None, registration(BOB.sid, certificate(n, 30_000))) for n in range(4)
    ]
    # Each change writes the whole list: 30, 60 and 90 kB.
    assert results == [OK, OK, TOO_MUCH, TOO_MUCH]
    assert bob.create(QUEUE, "C14\\small", PLAIN) == OK
    assert served.context.budgets.written.refusals == 2


@pytest.mark.req("SEC-19-01")
def test_anonymous_callers_share_a_budget(served: Served) -> None:
    limit(served, changes=3)
    results = [
        Attacker(served.port).change(QUEUE, "C14\\orders", {108: variant(LPWSTR_, f"{n}")})
        for n in range(5)
    ]
    assert results == [OK, OK, OK, TOO_MUCH, TOO_MUCH]
    assert WAYS["set"](Attacker(served.port, "bob"), 1) == OK


@pytest.mark.req("SEC-19-01")
def test_an_hour_ends_and_what_fails_costs_nothing(served: Served, bob: Attacker) -> None:
    limit(served, changes=2)
    assert WAYS["create"](bob, 1) == OK
    assert [WAYS["create"](bob, 1) for _ in range(3)] != [OK] * 3  # its name is taken
    assert WAYS["create"](bob, 2) == OK
    assert WAYS["create"](bob, 3) == TOO_MUCH
    served.configure(clock=lambda: NOW + 3599)
    assert WAYS["create"](bob, 3) == TOO_MUCH
    served.configure(clock=lambda: NOW + 3600)
    assert [WAYS["create"](bob, n) for n in (3, 4, 5)] == [OK, OK, TOO_MUCH]


@pytest.mark.req("SEC-19-02")
def test_refusals_say_which_budget_and_until_when(
    served: Served, bob: Attacker, caplog: pytest.LogCaptureFixture
) -> None:
    limit(served, changes=2, written=100_000)
    with caplog.at_level(logging.WARNING, "mqis.audit"):
        assert [WAYS["set"](bob, n) for n in range(5)] == [OK, OK, *[TOO_MUCH] * 3]
    [line] = [record for record in caplog.records if "over budget" in record.message]
    assert line.message == (
        f"over budget: {BOB.sid} has used 2 of the 2 changes that an hour allows "
        "(security.max_changes_per_hour); the next hour begins at 1970-01-01 01:33:20 UTC; "
        "more refusals of this hour are only counted"
    )
    assert line.__dict__["details"]["user"] == "LAB\\bob"
    assert served.context.budgets.changes.refusals == 3
    served.configure(clock=lambda: NOW + 3600)
    caplog.clear()
    limit(served, written=10_000)
    with caplog.at_level(logging.WARNING, "mqis.audit"):
        large = {108: variant(LPWSTR_, "x" * 100)}
        while bob.change(QUEUE, "C14\\orders", large) == OK:
            pass
    [line] = [record for record in caplog.records if "over budget" in record.message]
    assert "of the 10,000 bytes" in line.message
    assert "(security.max_written_mb_per_hour); the next hour begins" in line.message
