"""A slice of ``make secondweek``: the same script on four sites, with seven servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

from tools.story import clients
from tools.story.estate import StoryEstate
from tools.story.second_week import SecondWeek
from tools.story.shell import StoryShell


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_the_second_week_of_four_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_THINKING_S", 0.2)
    shell = StoryShell(tmp_path, alone=False)
    story = SecondWeek(StoryEstate(4, 16, 32), shell, Console(quiet=True))
    story.tell()
    assert story.outputs.keys() == {job.name for job in story.jobs}
