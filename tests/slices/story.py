"""A slice of ``make story``: the same script on three sites, without the report.

The report needs Spark, which takes longer than all the rest: ``make story`` and the tests of the
pipeline have it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

from tools.story import clients
from tools.story.commands import jobs
from tools.story.estate import StoryEstate
from tools.story.shell import StoryShell
from tools.story.telling import Story


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_the_week_of_three_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_THINKING_S", 0.2)
    shell = StoryShell(tmp_path, alone=False)
    story = Story(StoryEstate(3, 12, 24), shell, Console(quiet=True), report=False)
    story.tell()
    assert story.outputs.keys() == {job.name for job in jobs(story.estate)} - {"report"}
