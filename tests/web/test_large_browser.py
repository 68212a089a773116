"""Pages of 13, 100 and 1,000 sites in Chromium: two widths, two themes; pictures go to .build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.large import Large, running
from tests.web.test_browser import (
    CHROMIUM,
    SCREENSHOTS,
    WIDTH,
    Watched,
    chromium,  # noqa: F401 -- a fixture
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

WIDTHS = (1280, 400)
#: The most pixels of a page's height: ten screens of a telephone. Replication had 62,682.
MOST_HEIGHT = {1280: 8000, 400: 11_000}


@pytest.fixture(scope="module", params=[13, 100, 1000])
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Large, str]]:
    large = Large(request.param)
    with ExitStack() as stack:
        home: Path = stack.enter_context(running(large, tmp_path_factory.mktemp("large")))
        settings = ConsoleSettings(
            Places(home),
            port=0,
            guest=Guest.parse("administrator"),
            sample_every_s=600,
            live_every_s=600,
        )
        yield large, stack.enter_context(running_console(settings))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_screen(
    chromium: Any,  # noqa: F811
    opened: tuple[Large, str],
    width: int,
    theme: str,
) -> None:
    large, url = opened
    context = chromium.new_context(
        base_url=url.partition("?")[0],
        viewport={"width": width, "height": 860},
        color_scheme=theme,
        reduced_motion="reduce",
    )
    watched = Watched(context)
    page = watched.page
    page.goto(url)
    late = large.server(large.sites - 3)
    pages = {
        "overview": "",
        "replication": "replication",
        "map": "map",
        "server": f"servers/{late}",
        "servers": "servers",
        "alerts": "alerts",
    }
    for name, path in pages.items():
        page.goto(path)
        if name == "map":
            page.wait_for_selector("[data-map-canvas][data-ready]")
        file = SCREENSHOTS / f"{name}-{large.sites}-{width}-{theme}.png"
        page.screenshot(path=str(file), full_page=True)
        assert page.evaluate(WIDTH) <= width, name
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height <= MOST_HEIGHT[width], name
    assert watched.complaints == []
    context.close()
