"""``mqis sim``: a seed, a range, and what a violation prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mqis.protocol.replication import propagation, synchronization
from mqis.protocol.replication.work import Work
from mqis.sim.large_enterprise import (
    Size,
    predicted_change,
    predicted_join,
    predicted_rest,
    predicted_start,
)
from mqis.sim.mutations import MUTATIONS
from mqis.sim.runner import run_seed
from mqis.wire.mqdsrp.change import DirectoryChange
from tests.cli.commands import process, run


def test_a_seed_is_the_same_every_time() -> None:
    first, second = (process("sim", "--seed", "4", "--trace") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert run_seed(4).digest.encode() in first.stdout


def test_a_range_shows_what_it_met() -> None:
    result = run("sim", "--seeds", "2", "--start", "15", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "message lost" in result.output
    assert re.search(r"2 seeds in .* 0 violations", result.output)


def test_json() -> None:
    result = run("sim", "--seeds", "2", "--start", "15", "--jobs", "2", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["seeds"], told["start"], told["failed"]) == (2, 15, [])
    assert told["counts"]["heal"] == 2


def test_a_violation_ends_a_range_and_tells_how_to_see_it_again() -> None:
    result = run("sim", "--seeds", "5", "--start", "1", "--jobs", "1", "--mutate", "E12")
    assert result.exit_code == 1
    assert "1 seed in" in result.output
    again = re.search(r"less: +mqis (sim --seed 1 --mutate E12 --steps \S+) --trace", result.output)
    assert again is not None
    told = run(*again[1].split(), "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["rule"] == "a copy is complete at its number"


def test_all_mutations_are_counted() -> None:
    """Seed 2 restores one backup twice, which finds one mutation among others."""
    result = run("sim", "--mutate", "all", "--seeds", "1", "--start", "2", "--jobs", "1", "--json")
    assert result.exit_code == 1, "one seed cannot find all"
    told = json.loads(result.stdout)
    counts = {one["name"]: (one["seeds"], one["rule"]) for one in told["mutations"]}
    assert list(counts) == list(MUTATIONS)
    assert counts["B34"] == (1, "one change for a number")
    assert told["missed"] == [name for name, (seeds, _) in counts.items() if seeds is None]
    assert told["median"] == (2 if 2 * len(told["missed"]) > len(counts) else 1)
    refused = run("sim", "--mutate", "all", "--seed", "1")
    assert refused.exit_code == 2


def test_keep_going() -> None:
    arguments = ("--seeds", "2", "--start", "3", "--jobs", "1", "--mutate", "E12", "--json")
    result = run("sim", *arguments, "--keep-going")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["seeds"] == 2
    assert [failure["seed"] for failure in told["failed"]] == [3, 4]


def test_journals_of_a_seed(tmp_path: Path) -> None:
    assert run("sim", "--seed", "15", "--journal", tmp_path).exit_code == 0
    assert list(tmp_path.glob("PEC*/segment-*"))


def test_wrong_options() -> None:
    elsewhere = run("sim", "--world", "queues", "--mutate", "E12")
    assert elsewhere.exit_code == 2
    assert "E12 is a mutation of the world replication" in elsewhere.output
    refused = run("sim", "--mutate", "E99")
    assert refused.exit_code == 2
    said = " ".join(refused.output.replace("│", " ").split())
    assert "E12: deletions leave no tombstone" in said
    assert run("sim", "--seed", "1", "--steps", "one").exit_code == 2


# --- a large enterprise ---------------------------------------------------------------------------

_PHASES = ["all servers start", "a period of heartbeats", *["a change"] * 5]


def test_a_large_enterprise_sends_what_is_predicted() -> None:
    result = run("sim", "--servers", "12", "--sites", "4", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["servers"], told["sites"], told["violation"]) == (12, 4, None)
    assert [phase["name"] for phase in told["phases"]] == [*_PHASES, "a backup controller joins"]
    assert all(phase["sent"] == phase["predicted"] for phase in told["phases"])
    start, rest, change, *_, join = [phase["sent"] for phase in told["phases"]]
    # 15 copies of other authorities at the four PSCs, five at each of the eight BSCs.
    assert (start["sync_request"], start["sync_reply"], start["psc_ack"]) == (55, 55, 15)
    assert (start["bsc_ack"], start["change_propagation"]) == (8, 4 * 3 + 2 * 8)
    assert (rest, change) == ({"change_propagation": 4 * 3 + 8}, {"change_propagation": 11})
    assert (join["change_propagation"], join["sync_request"], join["bsc_ack"]) == (12, 5, 1)
    assert all(0 < phase["spread_s"] < 1 for phase in told["phases"][2:])
    shown = run("sim", "--servers", "12", "--sites", "4")
    assert "12 servers in 4 sites, all equal after each of these phases" in shown.output


def test_more_messages_than_predicted_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def tell_each_time(work: Work) -> None:
        for neighbor in work.memory.neighbors.values():
            neighbor.heartbeat_at = work.now

    monkeypatch.setattr(synchronization, "tell_backups", tell_each_time)
    result = run("sim", "--servers", "6")
    assert result.exit_code == 1
    assert "all servers start: " in result.stderr
    assert re.search(r"\d+ change_propagation, .* were sent, and 10 change_prop", result.stderr)


def test_servers_that_hear_nothing_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def offer_pscs_alone(work: Work, change: DirectoryChange, *, to_pscs: bool) -> None:
        for neighbor in work.memory.neighbors.values():
            if neighbor.intersite and to_pscs:
                neighbor.available.append(change)

    monkeypatch.setattr(propagation, "offer", offer_pscs_alone)
    result = run("sim", "--servers", "6")
    assert result.exit_code == 1
    assert "liveness: BSC0a lacks changes of" in result.stderr


def test_sites_go_with_servers_and_are_no_more_than_those() -> None:
    assert "with --servers only" in process("sim", "--sites", "3").stderr.decode()
    assert "each with a server" in process("sim", "--servers", "3", "--sites", "4").stderr.decode()


def test_the_documented_numbers_are_those_of_the_formulas() -> None:
    text = Path("docs/replication.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d,]+), (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert [int(servers.replace(",", "")) for servers, *_ in rows] == [10, 30, 100, 300, 1000]
    for servers, sites, numbers in rows:
        size = Size(int(servers.replace(",", "")), int(sites))
        found = (predicted_start, predicted_rest, predicted_change, predicted_join)
        assert numbers == " | ".join(f"{formula(size).total():,}" for formula in found)
