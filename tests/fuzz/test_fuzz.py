"""The fuzz harness: its slice runs clean, and it notices what it is there to notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.__main__ import BATCH, Finding, fuzz
from fuzz.targets import CORPUS, TARGETS, Target
from mqis.wire.errors import WireError


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_slice_of_every_target_is_clean(target: Target) -> None:
    assert sum(fuzz(target, seed=7, seconds=None, inputs=500)) == 500


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_has_a_valid_input(target: Target) -> None:
    accepted = 0
    for data in target.corpus():
        try:
            target.run(data)
        except target.answers:
            continue
        accepted += 1
    assert accepted, f"nothing in {CORPUS / target.name} is valid"


def test_another_error_is_a_finding_and_its_input_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes) -> None:
        if len(data) < 16:
            raise IndexError("past the end")
        raise WireError("no", 0)

    monkeypatch.chdir(tmp_path)
    target = Target("guid", broken)
    with pytest.raises(Finding, match=r"IndexError: past the end"):
        list(fuzz(target, seed=1, seconds=None, inputs=5000))
    (kept,) = (tmp_path / ".build/fuzz").iterdir()
    with pytest.raises(IndexError):
        broken(kept.read_bytes())


def test_time_is_used_up() -> None:
    """And however little there is, every target gets a batch of inputs."""
    seen: list[bytes] = []
    target = Target("sid", seen.append)
    assert sum(fuzz(target, seed=1, seconds=0.0, inputs=None)) == BATCH
    assert sum(fuzz(target, seed=1, seconds=0.2, inputs=None)) > BATCH


def test_the_same_seed_gives_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        list(fuzz(Target("sid", seen.append), seed, seconds=None, inputs=200))
        return seen

    assert inputs(3) == inputs(3)
    assert inputs(3) != inputs(4)
