"""``mqis sim``: a seed, a range, and what a violation prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mqis.sim.mutations import MUTATIONS
from mqis.sim.runner import run_seed
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
