"""Every command of the pages runs in a scenario, or ``not_run.toml`` says why it does not."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.docs.pages import Block, NotRun, Scenario, command_blocks, not_run
from tests.docs.scenarios import SCENARIOS


def claims() -> Counter[Block]:
    return Counter(block for scenario in SCENARIOS for block in set(scenario.taken()))


def test_every_command_is_run_or_has_a_reason() -> None:
    claimed = claims()
    forgotten = [
        f"{block.page}: {command}"
        for block in command_blocks()
        if not claimed[block]
        for command in block.commands
        if not command.startswith("#")
        and not any(entry.is_about(block, command) for entry in not_run())
    ]
    assert forgotten == []


@pytest.mark.parametrize("entry", not_run(), ids=lambda entry: f"{entry.page}: {entry.command}")
def test_an_entry_is_about_a_command_and_has_a_reason(entry: NotRun) -> None:
    blocks = [b for b in command_blocks() if any(entry.is_about(b, c) for c in b.commands)]
    assert blocks, "there is no such command: remove the entry"
    assert len(entry.reason.split()) >= 4
    if entry.slow:
        slow = [scenario for scenario in SCENARIOS if scenario.slow]
        assert any(block in scenario.taken() for scenario in slow for block in blocks)


def test_reasons_stand_once() -> None:
    listed = Counter((entry.page, entry.command) for entry in not_run())
    assert [entry for entry, times in listed.items() if times > 1] == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_says_only_what_is_there(scenario: Scenario) -> None:
    """Replacements, endings and findings of commands that are gone are removed with them."""
    commands = [c for block in scenario.taken() for c in block.commands if scenario.runs(block, c)]
    assert commands
    for pattern, _ in scenario.replaced:
        assert any(re.search(pattern, command) for command in commands), pattern
    for begin in (*scenario.until, *scenario.finds):
        assert any(command.startswith(begin) for command in commands), begin


def test_blocks_are_found() -> None:
    """A pattern that matches too little would let the tests above pass without commands."""
    assert len(command_blocks()) > 70
    pages = {block.page for block in command_blocks()}
    assert {"README.md", "docs/active-directory.md", "docs/oletx.md", "docs/story.md"} <= pages
