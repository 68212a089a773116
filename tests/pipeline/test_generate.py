"""Generated enterprises: the same from the same seed, and faulty exactly where they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.services.generate import GenerateError, Plan, generate
from mqis.storage.journal.reader import journal_faults
from mqis.wire.journal import RecordState, Whole, segment_header, walk

SMALL = Plan(sites=3, machines=4, queues=10, changes=60, seed=5)


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes().replace(bytes(directory), b"")
        for path in files
    }


def test_same_seed_same_files(tmp_path: Path) -> None:
    generate(SMALL, tmp_path / "first")
    generate(SMALL, tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_journals_are_whole_but_for_the_damage(tmp_path: Path) -> None:
    made = generate(SMALL, tmp_path / "made")
    damaged = {damage.server for damage in made.damage}
    for member in made.members:
        faults = journal_faults(tmp_path / "made" / "journals" / member.name)
        assert bool(faults) is (member.name in damaged), faults


def test_every_change_is_made_once_and_applied_everywhere_else(tmp_path: Path) -> None:
    plan = Plan(sites=2, machines=2, queues=5, changes=40, seed=2, faults=0)
    made = generate(plan, tmp_path / "made")
    local: list[tuple[bytes, int]] = []
    applied: list[tuple[bytes, int]] = []
    for path in (tmp_path / "made").rglob("*.mqj"):
        data = path.read_bytes()
        _, start = segment_header(data)
        for entry in walk(data, start):
            assert isinstance(entry, Whole)
            key = entry.record.partition.raw, entry.record.seq.value
            if entry.record.state is RecordState.LOCAL:
                local.append(key)
            elif entry.record.state is RecordState.APPLIED:
                applied.append(key)
    assert len(local) == len(set(local)) == made.changes
    others = len(made.members) - 1
    assert sorted(applied) == sorted(local * others)


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GenerateError, match="not empty"):
        generate(SMALL, tmp_path)
    with pytest.raises(GenerateError, match="--faults 0"):
        Plan(sites=1, machines=1)
    with pytest.raises(GenerateError, match="a site has one or none"):
        Plan(sites=2, backups=5)
