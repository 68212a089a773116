"""Long reads: sliced, few at a time, fair, and without a trace when their client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import pytest

from mqis.protocol.authentication import Identity
from mqis.protocol.budget import Budget, Caller, Charge, Quota
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.runtime.directory.walks import SLICE_S, LookupWalks
from tests.protocol.directory.world import World
from tests.runtime.directory.serving import scenario
from tests.waiting import until

PLACES = Quota(connection=1, address=2, anonymous=2, process=3)


def caller(connection: str, *, anonymous: bool = True) -> Caller:
    return Caller(connection, "192.0.2.1", None if anonymous else Identity("LAB", "alice"))


class Bench:
    """Walks over a view that tells how often it is open."""

    def __init__(self) -> None:
        self.open = 0
        self.places = Budget(PLACES)
        self.memory = Budget(Quota(1000, 1000, 1000, 1000))
        self.walks = LookupWalks(self._view, self.places)
        self._world = World()

    @contextmanager
    def _view(self) -> Iterator[View]:
        with self._world.store.read() as view:
            self.open += 1
            try:
                yield view
            finally:
                self.open -= 1

    def charge(self, who: Caller) -> Charge:
        return Charge(self.memory, who)

    def begin(self, steps: int, trace: list[str] | None = None, name: str = "") -> Any:
        """A walk whose every step is a slice."""

        def walk(_view: View) -> Generator[int, None, str]:
            for _ in range(steps):
                if trace is not None:
                    trace.append(name)
                sleep(SLICE_S)
                yield 10
            return name

        return walk

    async def run(self, who: Caller, steps: int, trace: list[str]) -> str:
        charge = self.charge(who)
        begin = self.begin(steps, trace, str(who.connection))
        try:
            result: str = await self.walks.in_slices(begin, charge)
        finally:
            charge.end()
        return result


@pytest.mark.req("SEC-7-01")
@scenario
async def test_the_loop_turns_after_every_slice_and_walks_take_turns() -> None:
    bench, trace = Bench(), list[str]()
    turning = True

    async def others() -> None:
        while turning:
            trace.append(".")
            await asyncio.sleep(0)

    ticking = asyncio.create_task(others())
    walks = [bench.run(caller(name), 5, trace) for name in "ab"]
    assert await asyncio.gather(*walks) == ["a", "b"]
    turning = False
    await ticking
    steps = "".join(trace)
    assert "aa" not in steps.replace(".", "")[:9]
    assert all(f"{x}{y}" not in steps for x in "ab" for y in "ab")


@scenario
async def test_short_ones_are_done_at_once() -> None:
    bench = Bench()
    charge = bench.charge(caller("a"))
    done = bench.walks.at_once(lambda _view: iter_of(3), charge)
    assert done is not None
    assert (done.value, charge.amount, bench.open) == ("end", 3, 0)


def iter_of(steps: int) -> Generator[int, None, str]:
    for _ in range(steps):
        yield 1
    return "end"


@scenario
async def test_a_long_one_is_given_up_and_costs_nothing() -> None:
    bench = Bench()
    charge = bench.charge(caller("a"))
    assert bench.walks.at_once(bench.begin(3), charge) is None
    assert (charge.amount, bench.memory.used, bench.open) == (0, 0, 0)


@pytest.mark.req("SEC-7-01", "SEC-7-05")
@scenario
async def test_few_have_a_place_and_strangers_leave_one_for_others() -> None:
    bench, trace = Bench(), list[str]()
    strangers = [asyncio.create_task(bench.run(caller(n), 20, trace)) for n in "abcd"]
    await until(lambda: (bench.open, bench.walks.waiting) == (2, 2))
    known = asyncio.create_task(bench.run(caller("k", anonymous=False), 2, trace))
    assert await known == "k"
    assert not any(task.done() for task in strangers)
    # Of one connection one walks at a time, whoever it is.
    again = [asyncio.create_task(bench.run(caller("k", anonymous=False), 2, trace)) for _ in "12"]
    await asyncio.gather(*again, *strangers)
    assert (bench.open, bench.walks.waiting, bench.places.used) == (0, 0, 0)


@scenario
async def test_a_client_that_goes_leaves_its_place() -> None:
    bench, trace = Bench(), list[str]()
    tasks = [asyncio.create_task(bench.run(caller(n), 1000, trace)) for n in "abc"]
    await until(lambda: bench.walks.waiting == 1)
    tasks[2].cancel()  # waits
    tasks[0].cancel()  # walks
    await until(lambda: (bench.open, bench.walks.waiting, bench.places.used) == (1, 0, 1))
    last = [asyncio.create_task(bench.run(caller(n), 1000, trace)) for n in "de"]
    await asyncio.sleep(5 * SLICE_S)
    tasks[1].cancel()
    last[1].cancel()  # in the moment in which a place is granted to it
    last[0].cancel()
    await asyncio.gather(*tasks, *last, return_exceptions=True)
    assert (bench.open, bench.places.used, bench.memory.used) == (0, 0, 0)


@pytest.mark.req("SEC-7-02")
@scenario
async def test_a_walk_that_grows_too_large_ends() -> None:
    bench = Bench()
    with pytest.raises(DirectoryError, match=r"this connection: \d+ of 1000 held"):
        await bench.run(caller("a"), 1000, [])
    assert (bench.open, bench.places.used, bench.memory.used) == (0, 0, 0)
