"""The measuring itself: entries, percentiles, ratios. ``tests/slices`` runs the entries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.environment import python_build
from bench.measure import Sample, contest, timed_alone, timed_tasks, timed_together
from bench.results import Aim, Row
from tests.bench.running import ENTRIES, bench


def test_entries_are_listed_and_unknown_ones_refused() -> None:
    listed = bench("--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ENTRIES

    refused = bench("nonsense")
    assert refused.returncode == 2
    assert "there is no entry nonsense; there are stores, " in refused.stderr


def sample(per_second: int) -> Sample:
    return Sample(per_second, 1_000_000_000)


def test_percentiles_are_by_rank() -> None:
    hundred = Sample(100, 1, [n * 1_000_000 for n in range(1, 101)])
    assert (hundred.percentile_ms(50), hundred.percentile_ms(99)) == (50, 99)
    one = Sample(1, 1, [3_000_000])
    assert (one.percentile_ms(50), one.percentile_ms(99)) == (3, 3)


def test_a_ratio_compares_within_rounds() -> None:
    """In the second round the machine was ten times slower, for both."""
    ours, theirs = [sample(300), sample(30), sample(330)], [sample(100), sample(10), sample(110)]

    row = Row.of("table", "name", ours, peer=("peer", theirs), size=1_000_000)

    assert row == Row("table", "name", per_second=300, mb_per_second=300, ratio=3, peer="peer")


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def contender(name: str) -> Callable[[], Sample]:
        def run() -> Sample:
            order.append(name)
            return sample(len(order))

        return run

    samples = contest(3, {name: contender(name) for name in "ab"})

    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [s.operations for s in samples["a"]] == [1, 4, 5]


def test_timers_count_what_was_done() -> None:
    done = []

    async def operation() -> None:
        done.append(1)

    alone = timed_alone(lambda: done.append(1), 0.01)
    assert alone.operations == len(alone.latencies_ns) == len(done)
    assert sum(alone.latencies_ns) == alone.elapsed_ns >= 10_000_000

    done.clear()
    tasks = timed_tasks(operation, 3, 0.01)
    assert tasks.operations == len(tasks.latencies_ns) == len(done) >= 3

    together = timed_together(lambda: 7, 0.001)
    assert together.operations % 7 == 0
    assert together.latencies_ns == ()


def test_an_aim_reads_as_a_sentence() -> None:
    assert str(Aim(">= 3x this", "5.2x", True)) == "aim: >= 3x this: 5.2x  met"
    assert str(Aim(">= 3x this", "2.9x", False)) == "aim: >= 3x this: 2.9x  missed"


@pytest.mark.parametrize(
    ("options", "build"),
    [
        ("'--enable-optimizations' '--with-lto=full'", "built with PGO and LTO"),
        ("'--enable-shared' '--enable-optimizations'", "built with PGO"),
        ("'--with-lto'", "built with LTO"),
        ("'--prefix=/usr'", "no PGO or LTO in its build options"),
        ("", "no PGO or LTO in its build options"),
    ],
)
def test_the_build_of_a_python(options: str, build: str) -> None:
    assert python_build(options) == build
