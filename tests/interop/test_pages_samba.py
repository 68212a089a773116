"""The pages about Active Directory, run against a Samba domain controller.

They are here and not beside the other pages: one controller at a time can serve port 389.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Scenario, run_session
from tests.docs.scenarios import SCENARIOS
from tests.interop.pages_domain import served_domain

pytestmark = pytest.mark.interop

PAGES = [each for each in SCENARIOS if each.real == "samba" and not each.slow]


@pytest.fixture(scope="module")
def samba(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with served_domain(tmp_path_factory.mktemp("samba") / "one") as environment:
        yield environment


@pytest.mark.parametrize("scenario", PAGES, ids=lambda scenario: scenario.name)
def test_a_page_runs(scenario: Scenario, samba: dict[str, str], tmp_path: Path) -> None:
    assert run_session(scenario, tmp_path, samba)
