"""The benchmarks run and tell what they promise. How fast anything is, is not asserted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from bench.measure import Sample, contest, timed_alone, timed_tasks, timed_together
from bench.results import Aim, Row
from tests.bench.running import ENTRIES, RUN, bench


def rows_of(report: dict[str, Any], entry: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = report["entries"][entry]["rows"]
    named = {(row["table"], row["name"]): row for row in rows}
    assert len(named) == len(rows), "two rows have one name"
    return named


@pytest.mark.slow
def test_every_entry_runs_and_measures_something(report: dict[str, Any]) -> None:
    assert list(report["entries"]) == RUN
    assert report["quick"] is True
    for entry in RUN:
        for row in rows_of(report, entry).values():
            assert row["per_second"] > 0
            assert (row["ratio"] is None) == (row["peer"] is None)
            if row["p50_ms"] is not None:
                assert 0 < row["p50_ms"] <= row["p99_ms"]


@pytest.mark.slow
def test_the_environment_is_told(report: dict[str, Any]) -> None:
    told = report["environment"]

    assert told["cores"] >= 1
    assert told["flush_ms"] > 0
    assert min(told["load"], report["load_at_end"]) >= 0
    assert told["python"] == sys.version.split()[0]


@pytest.mark.slow
def test_every_store_is_measured_or_said_to_be_missing(report: dict[str, Any]) -> None:
    for entry in ("stores", "lookup100k"):
        tables = {table.partition(",")[0] for table, _ in rows_of(report, entry)}
        assert {"memory", "SQLite"} <= tables
        skipped = any(
            note.startswith("PostgreSQL: skipped: ") for note in report["entries"][entry]["notes"]
        )
        assert ("PostgreSQL" in tables) != skipped


@pytest.mark.slow
def test_peers_stand_beside_what_they_are_compared_with(report: dict[str, Any]) -> None:
    stores = rows_of(report, "stores")
    grouped = stores["SQLite", "create, 16 writers"]
    assert grouped["peer"] == "commit each"
    peer = stores["SQLite", "16 writers, commit each"]
    assert grouped["ratio"] == pytest.approx(grouped["per_second"] / peer["per_second"])

    codecs = rows_of(report, "codecs")
    ours = codecs["identifiers and numbers", "GUID decode"]
    theirs = codecs["identifiers and numbers", "GUID decode: uuid.UUID"]
    assert ours["ratio"] == pytest.approx(ours["per_second"] / theirs["per_second"])


@pytest.mark.slow
def test_aims_are_told_with_what_was_measured(report: dict[str, Any]) -> None:
    goals = {entry: [aim["goal"] for aim in report["entries"][entry]["aims"]] for entry in RUN}

    assert ">= 3x one commit per write, 16 writers, SQLite" in goals["stores"]
    assert "<= 1/8 flush per write, 16 writers, SQLite" in goals["stores"]
    assert "indexed lookup among 1,000 queues < 1 ms (p50), SQLite" in goals["lookup100k"]
    assert goals["import"] == ["import 1,000 queues < 30 s", "restore 1,000 queues < 30 s"]
    for entry in RUN:
        for aim in report["entries"][entry]["aims"]:
            assert aim["measured"]
            assert isinstance(aim["met"], bool)


@pytest.mark.slow
def test_flushes_are_counted_and_shared(report: dict[str, Any]) -> None:
    """Not a timing: sixteen writers that wait for each other cannot but share flushes."""
    (note,) = (n for n in report["entries"]["stores"]["notes"] if n.startswith("SQLite: "))
    flushes, writes = [int(word) for word in note.split() if word.isdigit()][:2]

    assert writes == 320
    assert 320 / 16 <= flushes < 320


@pytest.mark.slow
def test_one_entry_for_people() -> None:
    done = bench("--quick", "codecs")

    assert done.returncode == 0, done.stderr
    first, quick, *rest = done.stdout.replace("\n/", " /").splitlines()
    assert "cores" in first
    assert "ms to flush 4 KiB" in first
    assert quick.startswith("quick: ")
    text = "\n".join(rest)
    assert "codecs: " in text
    assert "GUID decode" in text
    assert "stores: " not in text


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


@pytest.mark.slow
def test_a_read_beside_a_lookup_is_compared_with_one_alone(report: dict[str, Any]) -> None:
    names = {name for _, name in rows_of(report, "beside")}
    for lookup in ("lookup", "sorted lookup"):
        assert {f"read alone ({lookup})", f"read beside a {lookup}", lookup} <= names
    assert len(report["entries"]["beside"]["aims"]) == 2
