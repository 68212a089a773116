"""The pages whose commands take Spark, for ``make engines``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Scenario, run_session
from tests.docs.scenarios import SCENARIOS
from tests.interop.pages_domain import served_domain

SLOW = [each for each in SCENARIOS if each.slow]


@pytest.fixture
def samba(tmp_path: Path) -> Iterator[dict[str, str]]:
    with served_domain(tmp_path / "samba") as environment:
        yield environment


@pytest.mark.parametrize("scenario", SLOW, ids=lambda scenario: scenario.name)
def test_a_page_runs(scenario: Scenario, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = request.getfixturevalue(scenario.real) if scenario.real else {}
    directory = tmp_path / "reader"
    directory.mkdir()
    assert run_session(scenario, directory, environment)
