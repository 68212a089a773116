"""A quick run of the benchmarks: all run and tell what they promise, however fast they are."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from bench.routing import SCIPY
from tests.bench.running import RUN, bench


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    done = bench("--quick", "--json", *RUN)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(report: dict[str, Any], entry: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = report["entries"][entry]["rows"]
    named = {(row["table"], row["name"]): row for row in rows}
    assert len(named) == len(rows), "two rows have one name"
    return named


def test_every_entry_runs_and_measures_something(report: dict[str, Any]) -> None:
    assert list(report["entries"]) == RUN
    assert report["quick"] is True
    for entry in RUN:
        for row in rows_of(report, entry).values():
            assert row["per_second"] > 0
            assert (row["ratio"] is None) == (row["peer"] is None)
            if row["p50_ms"] is not None:
                assert 0 < row["p50_ms"] <= row["p99_ms"]


def test_the_environment_is_told(report: dict[str, Any]) -> None:
    told = report["environment"]

    assert told["cores"] >= 1
    assert told["flush_ms"] > 0
    assert min(told["load"], report["load_at_end"]) >= 0
    assert told["python"] == sys.version.split()[0]


def test_every_store_is_measured_or_said_to_be_missing(report: dict[str, Any]) -> None:
    for entry in ("stores", "lookup100k"):
        tables = {table.partition(",")[0] for table, _ in rows_of(report, entry)}
        assert {"memory", "SQLite"} <= tables
        skipped = any(
            note.startswith("PostgreSQL: skipped: ") for note in report["entries"][entry]["notes"]
        )
        assert ("PostgreSQL" in tables) != skipped


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


def test_flushes_are_counted_and_shared(report: dict[str, Any]) -> None:
    """Not a timing: sixteen writers that wait for each other cannot but share flushes."""
    (note,) = (n for n in report["entries"]["stores"]["notes"] if n.startswith("SQLite: "))
    flushes, writes = [int(word) for word in note.split() if word.isdigit()][:2]

    assert writes == 320
    assert 320 / 16 <= flushes < 320


def test_one_entry_for_people() -> None:
    done = bench("--quick", "codecs")

    assert done.returncode == 0, done.stderr
    machine, found, text = done.stdout.partition("\nquick: ")
    assert found
    told = " ".join(machine.split())
    assert "cores" in told
    assert "Python 3." in told
    assert "ms to flush 4 KiB" in told
    assert "codecs: " in text
    assert "GUID decode" in text
    assert "stores: " not in text


def test_a_read_beside_a_lookup_is_compared_with_one_alone(report: dict[str, Any]) -> None:
    names = {name for _, name in rows_of(report, "beside")}
    for lookup in ("lookup", "sorted lookup"):
        assert {f"read alone ({lookup})", f"read beside a {lookup}", lookup} <= names
    assert len(report["entries"]["beside"]["aims"]) == 2


def test_both_servers_stand_side_by_side(report: dict[str, Any]) -> None:
    found = report["entries"]["directory"]
    names = [
        *("first read", "read", "first lookup of 1", "lookup of 1"),
        *("lookup of 100", "lookup of 1,000", "create"),
    ]
    for clients in ("1 client", "16 clients"):
        rows = {
            row["name"]: row for row in found["rows"] if row["table"] == f"1,000 queues, {clients}"
        }
        ours = [name for name in rows if not name.startswith(("slapd ", "PostgreSQL "))]
        assert ours == ["bare call", *names]
        stored = [name for name in rows if name.startswith("PostgreSQL ")]
        both = {f"PostgreSQL {away}{name}" for away in ("", "1 ms away ") for name in names}
        assert set(stored) == (both if stored else set())
        assert bool(stored) != any("PostgreSQL: skipped" in note for note in found["notes"])
        assert all(row["per_second"] > 0 and row["cpu_us"] >= 0 for row in rows.values())
        skipped = any("slapd: skipped: " in note for note in found["notes"])
        assert skipped == (f"slapd {names[0]}" not in rows)
        for name in names if not skipped else ():
            assert rows[name]["peer"] == "slapd"
            ratio = rows[name]["per_second"] / rows[f"slapd {name}"]["per_second"]
            assert rows[name]["ratio"] == pytest.approx(ratio)
    goals = [aim["goal"] for aim in found["aims"]]
    assert ">= 40 % of the bare calls per second, read, 16 clients" in goals


def test_growth_tells_start_and_memory_of_every_size(report: dict[str, Any]) -> None:
    found = report["entries"]["growth"]
    names = ["first read", "read again", "first lookup", "lookup again"]
    sizes = ("100 queues", "1,000 queues", "10,000 queues")
    assert [(row["table"], row["name"]) for row in found["rows"]] == [
        (size, name) for size in sizes for name in names
    ]
    for size, note in zip(sizes, found["notes"], strict=True):
        assert note.startswith(f"growth: {size}: started in ")
        assert note.endswith(" MB resident")
    assert len(found["aims"]) == len(names) + 1


def test_both_enterprises_stand_side_by_side(report: dict[str, Any]) -> None:
    found = report["entries"]["replication"]
    skipped = any("slapd: skipped: " in note for note in found["notes"])
    sides = ["mqis"] if skipped else ["mqis", "slapd"]
    tables = {row["table"] for row in found["rows"]}
    assert tables == {
        "20 creates to two replicas",
        "50 creates to two replicas",
        "one change, idle: shown by all",
        "one change, back to back: shown by all",
        "full synchronisation of 200 to a new server",
    }
    for table in tables:
        rows = {row["name"]: row for row in found["rows"] if row["table"] == table}
        assert list(rows) == sides
        assert all(row["per_second"] > 0 for row in rows.values())
        if not skipped and "one change" not in table:
            ratio = rows["mqis"]["per_second"] / rows["slapd"]["per_second"]
            assert rows["mqis"]["ratio"] == pytest.approx(ratio)
    for side in sides:
        assert any(n.startswith(side) and "equal on both replicas" in n for n in found["notes"])
        assert any(n.startswith(side) and "equal on the new server" in n for n in found["notes"])
    goals = [aim["goal"] for aim in found["aims"]]
    assert "one change on every replica within 100 ms at p99, idle" in goals
    assert (">= 2.5x slapd, 50 creates" in goals) is not skipped


@pytest.mark.skipif(
    sys.platform != "linux", reason="choosing the source of each datagram is Linux's"
)
def test_discovery_is_measured_beside_an_echo(report: dict[str, Any]) -> None:
    entry = report["entries"]["discovery"]
    rows = {row["name"]: row for row in entry["rows"]}
    echo = rows.pop("bare uvloop echo")
    assert echo["per_second"] > 0
    assert list(rows) == ["reply of the own site", "reply with eight servers"]
    for row in rows.values():
        assert row["peer"] == "bare uvloop echo"
        assert row["ratio"] == pytest.approx(row["per_second"] / echo["per_second"])
        assert 0 < row["p50_ms"] <= row["p99_ms"]
    assert [aim["goal"].partition(",")[0] for aim in entry["aims"]] == [">= 25"] * 2


def test_routing_is_measured_beside_its_peers(report: dict[str, Any]) -> None:
    found = report["entries"]["routing"]
    names: dict[str, list[str]] = {}
    for row in found["rows"]:
        names.setdefault(row["table"], []).append(row["name"])

    for count in (100, 300):
        listed = names[f"one routing table, {count} sites"]
        assert listed[:4] == ["mqis", "mqis, arrays", SCIPY, "networkx"]
    for count in (60, 120):
        assert names[f"all pairs, {count} sites (pairs a second)"][:2] == ["mqis", SCIPY]
    assert "every single link of 60 sites removed (links a second)" in names
    assert [aim["goal"].partition(" sites")[0] for aim in found["aims"]] == [
        "all pairs of 60",
        "all pairs of 120",
        "sweep >= 20x all pairs again, 60",
    ]
