"""Captions of the map never collide: in the picture and on the canvas, at any size and zoom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.estates import console_of, make_estate
from tests.web.network import EstatePlan
from tests.web.test_browser import (
    CHROMIUM,
    Watched,
    chromium,  # noqa: F401 -- a fixture
    sync_api,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

Box = tuple[float, float, float, float]
#: The boxes of the captions that the canvas shows.
ON_CANVAS = """
e => e._cyreg.cy.elements().filter(x => x.visible() && x.data('label')).map(x => {
  const b = x.renderedBoundingBox({ includeNodes: false, includeEdges: false,
    includeOverlays: false, includeUnderlays: false, includeLabels: true });
  return [x.data('label'), [b.x1, b.y1, b.x2, b.y2]];
}).filter(([_, b]) => b[0] < e.clientWidth && b[2] > 0 && b[1] < e.clientHeight && b[3] > 0)
"""
IN_PICTURE = """
() => [...document.querySelectorAll('text:not(.note)')].map(t => {
  const b = t.getBoundingClientRect();
  return [t.textContent, [b.left, b.top, b.right, b.bottom]];
})
"""


@pytest.fixture(scope="module", params=[13, 100, 1000])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    plan = EstatePlan(request.param, 2 * request.param)
    path: Path = make_estate(tmp_path_factory.mktemp("captions") / "e.db", plan)
    with console_of(path) as made:
        yield made


def collisions(found: list[tuple[str, Box]]) -> list[tuple[str, str]]:
    """Pairs of captions that overlap by more than a pixel."""
    pairs = []
    for number, (name, box) in enumerate(found):
        for other, its in found[number + 1 :]:
            across = min(box[2], its[2]) - max(box[0], its[0])
            down = min(box[3], its[3]) - max(box[1], its[1])
            if across > 1 and down > 1:
                pairs.append((name, other))
    return pairs


def test_captions_that_overlap_are_found() -> None:
    boxes = [("a", (0.0, 0.0, 10.0, 10.0)), ("b", (8.0, 8.0, 20.0, 20.0))]
    assert collisions(boxes) == [("a", "b")]
    assert collisions([boxes[0], ("c", (10.0, 0.0, 20.0, 10.0))]) == []


@pytest.mark.parametrize("width", [1280, 400])
def test_captions_of_the_canvas_do_not_collide(chromium: Any, url: str, width: int) -> None:  # noqa: F811
    base = url.partition("?")[0]
    context = chromium.new_context(base_url=base, viewport={"width": width, "height": 860})
    watched = Watched(context)
    page = watched.page
    page.goto(url)
    page.goto("map")
    page.wait_for_selector("[data-map-canvas][data-ready]")
    canvas = page.locator("[data-map-canvas]")
    seen = 0
    for _ in range(7):
        found = canvas.evaluate(ON_CANVAS)
        assert collisions(found) == []
        seen += len(found)
        page.locator('[data-map-do="in"]').click()
    assert seen > 7
    page.get_by_label("Find a site, machine or link").fill("ber")
    sync_api.expect(page.locator("[data-map-info]")).to_contain_text("found")
    found = canvas.evaluate(ON_CANVAS)
    assert collisions(found) == [], "with sites that were found"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.complaints == []
    context.close()


def test_captions_of_the_picture_do_not_collide(chromium: Any, url: str) -> None:  # noqa: F811
    base = url.partition("?")[0]
    context = chromium.new_context(base_url=base)
    page = context.new_page()
    page.goto(url)
    page.goto("map.svg")
    found = page.evaluate(IN_PICTURE)
    assert len(found) > 10
    assert collisions(found) == []
    context.close()
