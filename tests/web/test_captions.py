"""Captions of the map never collide: in the picture and on the canvas, at any size and zoom."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
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
#: Each link in view: its cost, the box of the caption in its middle or where it is, and its line;
#: and the marks of sites. Texts are smaller than their boxes by the outline and a spare.
LINKS = """
e => {
  const cy = e._cyreg.cy, zoom = cy.zoom(), pen = document.createElement('canvas').getContext('2d');
  pen.font = '11px system-ui, sans-serif';
  const grow = (b, by) => [b[0] - by, b[1] - by, b[2] + by, b[3] + by];
  const links = cy.edges('.link').filter(x => x.visible()).map(x => {
    const step = x.data('step'), [a, b] = [x.renderedSourceEndpoint(), x.renderedTargetEndpoint()];
    const c = x.controlPoints() ? x.renderedControlPoints()[0]
      : { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    const on = (t, k) => (1 - t) ** 2 * a[k] + 2 * t * (1 - t) * c[k] + t * t * b[k];
    const at = t => [on(t, 'x'), on(t, 'y')];
    const label = x.data('label'), [mx, my] = at(.5);
    const w = pen.measureText(String(x.data('cost'))).width * zoom / step / 2;
    const h = 5.5 * zoom / step;
    const shift = label ? x.data('shift') : { x: 0, y: 0 };
    const [cx, cy_] = [mx + shift.x * zoom, my + shift.y * zoom];
    const text = [cx - w, cy_ - h, cx + w, cy_ + h];
    const line = [0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1].map(at);
    return { label, text, box: grow(text, 2.5 * zoom / step + 2 * zoom), line };
  });
  const dots = cy.nodes('.site').filter(x => x.visible()).map(x => {
    const { x: px, y: py } = x.renderedPosition(), half = x.renderedOuterHeight() / 2;
    return [px - half, py - half, px + half, py + half];
  });
  const step = 2 ** (Math.floor(2 * Math.log2(zoom) + .01) / 2);
  const settled = cy.elements().some(x => x.data('step') === step);
  return { links, dots, settled, width: e.clientWidth, height: e.clientHeight };
}
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


def touch(box: Box, other: Box, spare: float = 0) -> bool:
    """True if two boxes overlap, or come closer than ``spare``."""
    return all(box[n] < other[n + 2] + spare and other[n] < box[n + 2] + spare for n in (0, 1))


def runs_through(line: list[tuple[float, float]], box: Box, spare: float = 0) -> bool:
    """True if one of many points on the line is in the box."""
    for (x1, y1), (x2, y2) in pairwise(line):
        for part in range(101):
            x, y = x1 + (x2 - x1) * part / 100, y1 + (y2 - y1) * part / 100
            if touch((x, y, x, y), box, spare):
                return True
    return False


def blocked(number: int, seen: dict[str, Any], names: list[Box], spare: float = 0) -> bool:
    """True if the cost of a link touches another caption, a mark, or another line."""
    links, link = seen["links"], seen["links"][number]
    others = [other for n, other in enumerate(links) if n != number]
    captions = [*names, *(other["box"] for other in others if other["label"])]
    return (
        any(touch(link["box"], box, spare) for box in captions)
        or any(touch(link["text"], dot, spare) for dot in seen["dots"])
        or any(runs_through(other["line"], link["text"], spare) for other in others)
    )


def test_costs_are_left_out_only_where_there_is_no_room(chromium: Any, url: str) -> None:  # noqa: F811
    """At 13 sites no link had its cost, because the zoom was below a fixed one."""
    base = url.partition("?")[0]
    context = chromium.new_context(base_url=base, viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.goto(url)
    page.goto("map")
    page.wait_for_selector("[data-map-canvas][data-ready]")
    canvas = page.locator("[data-map-canvas]")
    shown = sites = 0
    for _ in range(2):
        seen = wait_until(lambda: (got := canvas.evaluate(LINKS))["settled"] and got, "the zoom")
        costs = {link["label"] for link in seen["links"]}
        names = [box for name, box in canvas.evaluate(ON_CANVAS) if name not in costs]
        for number, link in enumerate(seen["links"]):
            if not touch(link["box"], (0, 0, seen["width"], seen["height"])):
                continue  # nobody sees it
            if not link["label"]:
                cut = link["box"][0] < 2 or link["box"][2] > seen["width"] - 2
                assert cut or blocked(number, seen, names, spare=3)
            else:
                assert not blocked(number, seen, names, spare=-1)
                shown += 1
        sites = max(sites, len(seen["dots"]))
        page.locator('[data-map-do="in"]').click()
    assert shown > 30 or not sites
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
