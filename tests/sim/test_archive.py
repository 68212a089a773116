"""The world of a journal and its archive: rules hold, a seed is one run, and each bug is found."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from mqis.sim.archive.archive_scenario import (
    ArchiveScenario,
    Committed,
    Do,
    Fail,
    ServerTask,
    draw_archive,
)
from mqis.sim.archive.disk import DiskFault, Ended, SimDisk
from mqis.sim.mutations import MUTATIONS
from mqis.sim.runner import Options, run, run_seed
from mqis.sim.worlds import WorldName
from tools.simulation_doc import DOCUMENT, known


def test_rules_hold_and_faults_occur() -> None:
    kinds: set[str] = set()
    for seed in range(6):
        result = run_seed(seed, Options(world=WorldName.ARCHIVE))
        assert result.violation is None, seed
        kinds |= result.counts.keys()
    assert {f"fault {fault}" for fault in DiskFault} <= kinds
    assert {"ended", "refused", "archive", "fault journal moved away"} <= kinds


def test_a_seed_is_one_run() -> None:
    options = Options(world=WorldName.ARCHIVE, keep_lines=True)
    assert run_seed(3, options) == run_seed(3, options)
    assert run_seed(3, options).digest != run_seed(4, options).digest
    assert draw_archive(3) == draw_archive(3)


@pytest.mark.parametrize("name", sorted(name for name in MUTATIONS if name.startswith("A")))
def test_a_bug_is_found(name: str) -> None:
    """The seed that the document names finds it, and breaks the rule that it names."""
    count = known(DOCUMENT.read_text("utf-8"))[name]
    assert count.seeds is not None
    assert run_seed(count.seeds - 1, Options(world=WorldName.ARCHIVE)).violation is None
    found = run_seed(count.seeds - 1, Options(mutation=name)).violation
    assert found is not None
    assert found.rule == count.rule


def test_a_flush_that_fails_while_a_segment_ends() -> None:
    """The records of the open segment were copied, then cut off: they are copied again."""
    steps = (
        Do(0.0, ServerTask.FLUSH),
        Committed(1.0, 2),
        Do(2.0, ServerTask.COPY),
        Committed(3.0, 20),
        Fail(4.0, DiskFault.BROKEN, 1, 1),
        Do(5.0, ServerTask.FLUSH),
        Do(6.0, ServerTask.FLUSH),
    )
    scenario = ArchiveScenario(1, every=100, segment_bytes=600, steps=steps)
    assert run(scenario).violation is None
    found = run(scenario, Options(mutation="A07")).violation
    assert found is not None
    assert found.rule == "nothing is lost"


# --- the disk -------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> SimDisk:
    for name in ("root", "aside"):
        (tmp_path / name).mkdir()
    return SimDisk(tmp_path / "root", tmp_path / "aside", Random(1))


def write(path: Path, data: bytes, *, flushed: bool) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.pwrite(number, data, 0)
    if flushed:
        os.fsync(number)
    os.close(number)


def end(disk: SimDisk, fault: DiskFault) -> None:
    disk.arm(fault, 0)
    with pytest.raises(Ended), disk:
        Path("anything").unlink()
    with pytest.raises(Ended), disk:
        Path("by a handler after the end").unlink()
    disk.restart()


def test_what_is_flushed_survives_the_power(disk: SimDisk, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with disk:
        write(root / "flushed", b"x" * 100, flushed=True)
        write(root / "not", b"y" * 100, flushed=False)
    end(disk, DiskFault.POWER)
    assert (root / "flushed").read_bytes() == b"x" * 100
    assert (root / "not").read_bytes() != b"y" * 100


@pytest.mark.parametrize("fault", [DiskFault.KILL, DiskFault.POWER])
def test_names_survive_a_kill_and_not_always_the_power(
    fault: DiskFault, disk: SimDisk, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    seen = set()
    for number in range(20):
        old, new = root / f"old{number}", root / f"new{number}"
        with disk:
            write(old, b"x", flushed=True)
            old.rename(new)
        end(disk, fault)
        seen.add(new.exists())
        assert old.exists() != new.exists()
    assert seen == ({True} if fault is DiskFault.KILL else {True, False})


def test_names_in_a_flushed_directory_survive_the_power(disk: SimDisk, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number in range(20):
        new = root / f"new{number}"
        with disk:
            write(root / "old", b"x", flushed=True)
            (root / "old").rename(new)
            descriptor = os.open(root, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        end(disk, DiskFault.POWER)
        assert new.read_bytes() == b"x"
