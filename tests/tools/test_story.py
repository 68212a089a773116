"""The enterprise, page and checks of ``make story``; ``tests/slices`` tells it on three sites."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from mqis.enterprise.plan import parse_plan
from tests.docs.documents import ROOT, text_of
from tools.story.commands import StoryJob, jobs
from tools.story.estate import StoryEstate, enterprise_file
from tools.story.page import shortened, shown_commands, write_page
from tools.story.shell import StoryError, StoryShell
from tools.story.telling import Story

FULL = StoryEstate()


# --- the enterprise -------------------------------------------------------------------------------


def test_the_enterprise_has_the_size_that_the_page_says() -> None:
    plan = parse_plan(tomllib.loads(enterprise_file(FULL)))
    assert (len(plan.sites), len(plan.queues)) == (20, 3000)
    assert len(plan.servers) + len(plan.machines) == 200
    assert [server.name for server in plan.servers if server.role == "bsc"] == [
        "ber-dir2",
        "ber-dir3",
    ]
    assert {link.sites[0] for link in plan.links} == {site.name for site in plan.sites[1:]}


@pytest.mark.parametrize("size", [(2, 200, 10), (21, 200, 10), (20, 79, 10)])
def test_a_size_that_the_story_cannot_have(size: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="the story needs"):
        StoryEstate(*size)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_shows_the_commands_of_the_script() -> None:
    commands = [command for job in jobs(FULL) for command in job.commands]
    assert shown_commands(text_of("story.md")) == commands


def test_the_page_has_an_output_for_each_command() -> None:
    outputs = re.findall(r"^```text\n(.*?)^```", text_of("story.md"), re.S | re.M)
    assert len(outputs) == len(shown_commands(text_of("story.md")))
    assert all(output.strip() for output in outputs)


@pytest.mark.parametrize("job", jobs(FULL), ids=lambda job: job.name)
def test_a_job_takes_two_commands_at_most_and_each_is_documented_elsewhere(job: StoryJob) -> None:
    others = [p.read_text("utf-8") for p in (ROOT / "docs").glob("*.md") if p.stem != "story"]
    assert 1 <= len(job.commands) <= 2
    for command in job.commands:
        start = " ".join(command.split()[:2])
        options = re.findall(r" (--[a-z-]+)", command)
        assert any(start in text and all(o in text for o in options) for text in others), command


def test_outputs_are_written_behind_their_commands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n\n```sh\nmqis x\n```\n\n```text\nold\n```\n\nb\n", "utf-8")
    write_page(page, {"mqis x": "one\ntwo  \n"})
    assert page.read_text("utf-8") == "a\n\n```sh\nmqis x\n```\n\n```text\none\ntwo\n```\n\nb\n"
    assert shortened("\n".join("abcdef"), 4, 1) == "a\nb\n... 3 more lines\nf"


# --- the script's own checks ----------------------------------------------------------------------


def test_a_status_that_is_not_wanted_ends_the_story(tmp_path: Path) -> None:
    shell = StoryShell(tmp_path, alone=False)
    with pytest.raises(StoryError, match="exit status 1 instead of 0"):
        shell.run("mqis stop nobody")
    assert "no such file" in shell.run("mqis stop nobody", wanted=1)


def test_something_that_does_not_hold_ends_the_story(tmp_path: Path) -> None:
    story = Story(FULL, StoryShell(tmp_path), Console(quiet=True))
    with pytest.raises(StoryError, match="this does not hold: two is one"):
        story._holds("two is one", [])
