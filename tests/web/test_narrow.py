"""Pages on a screen of 400 pixels: no text is cut, and no box scrolls without a sign of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mqis.enterprise.collected_status import Collector
from mqis.views.console.alerts import FILE, AlertLog
from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.enterprise import PEC
from tests.web.large import Large, running
from tests.web.test_browser import SCREENSHOTS, chromium, context_of, pytestmark

__all__ = ["chromium", "pytestmark"]

LARGE = Large(13)
#: The regions whose content is wider, or for a box of its own height higher, than they are.
CUT = """selector => [...document.querySelectorAll(selector)]
    .filter(each => each.scrollWidth > each.clientWidth + 1
        || each.scrollHeight > each.clientHeight + 1)
    .map(each => each.getAttribute('aria-label') + ' ' + each.scrollWidth + ' ' + each.clientWidth
        + ' ' + each.scrollHeight + ' ' + each.clientHeight)"""

#: Gives the first record the longest texts that a large journal has.
LONG = """const [first, , state, what, about] =
        document.querySelector('.records tbody tr').children;
    first.firstChild.textContent = '12345678';
    state.firstChild.textContent = 'acknowledged';
    what.textContent = 'change propagation';
    about.textContent = 'ams-app1\\\\' + 'queue'.repeat(40);"""


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console of thirteen servers, two of which have been away for two hours."""
    with running(LARGE, tmp_path_factory.mktemp("estate")) as run:
        status = Collector.of_run(run).collect()
        log = AlertLog(run / FILE)
        for at in (status.taken - 7200.0, status.taken):
            log.observe(replace(status, taken=at))
        assert log.page().firing
        settings = ConsoleSettings(
            Places(run), port=0, sample_every_s=0.5, guest=Guest.parse("administrator")
        )
        with running_console(settings) as url:
            yield url


def cut(page: Any, address: str, name: str, width: int = 400) -> list[str]:
    """What is cut on a page; ``details`` are open."""
    page.set_viewport_size({"width": width, "height": 860})
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.screenshot(path=str(SCREENSHOTS / f"narrow-{name}.png"), full_page=True)
    found: list[str] = page.evaluate(CUT, ".wide")
    return found


def test_nothing_of_an_estate_in_trouble_is_cut(chromium: Any, estate: str) -> None:
    context = context_of(chromium, estate, heading="Estate")
    page = context.new_page()
    late, away = LARGE.server(10), LARGE.server(12)
    addresses = {"alerts": "alerts", "late": f"servers/{late}", "away": f"servers/{away}"}
    found = {name: cut(page, at, name) for name, at in addresses.items()}
    assert {name: told for name, told in found.items() if told} == {}
    assert page.goto("alerts").ok
    told = page.locator("#MqisServerDown")
    assert "see replacing a lost server (docs/operations.md)" in told.inner_text()
    assert told.locator("code").all_inner_texts()[-1] == "docs/alerts.md#mqisserverdown"
    assert "docs/operations.md" in told.locator("code").all_inner_texts()
    assert page.get_by_role("region", name="Firing").locator("tbody tr").count() >= 2
    context.close()


@pytest.mark.parametrize("width", [400, 1280])
def test_links_and_sites_beside_the_map_do_not_scroll_in_a_box(
    chromium: Any,
    estate: str,
    width: int,
) -> None:
    context = context_of(chromium, estate, heading="Estate")
    page = context.new_page()
    assert cut(page, "map", f"map-{width}", width) == []
    for region in ("Links", "Sites"):
        rows = page.get_by_role("region", name=region, exact=True).locator("tbody tr")
        assert rows.count() > 12, region
    context.close()


def test_the_records_of_a_journal_are_not_cut(chromium: Any, console: str) -> None:
    context = context_of(chromium, console)
    page = context.new_page()
    assert cut(page, f"journal?server={PEC}", "journal") == []
    assert cut(page, f"journal?server={PEC}&kind=change", "changes") == []
    page.evaluate(LONG)
    assert page.evaluate(CUT, ".wide") == []
    page.screenshot(path=str(SCREENSHOTS / "narrow-long.png"), full_page=True)
    context.close()
