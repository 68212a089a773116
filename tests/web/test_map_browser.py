"""The map in Chromium: one canvas that fits, zooms, pans, searches and switches links off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.enterprise import BOB, BOBS_PASSWORD
from tests.web.estates import HOSTILE, console_of, make_estate
from tests.web.network import EstatePlan
from tests.web.test_browser import (
    CHROMIUM,
    SCREENSHOTS,
    Watched,
    chromium,  # noqa: F401 -- a fixture
    context_of,
    log_in,
    sync_api,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
ROUTE = "map?from=ams-desk1&to=chi-app1"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 800}


class MapPage:
    """The page of the map, and the graph behind its canvas."""

    def __init__(self, watched: Watched) -> None:
        self.page = watched.page
        self.canvas = watched.page.locator("[data-map-canvas]")
        self.title = watched.page.locator("[data-map-title]")

    def open(self, address: str = "map") -> None:
        self.page.goto(address)
        self.wait()

    def wait(self) -> None:
        self.page.wait_for_selector("[data-map-canvas][data-ready]")

    def graph(self, expression: str) -> Any:
        """Evaluates an expression about the graph ``cy``."""
        return self.canvas.evaluate(f"e => {{ const cy = e._cyreg.cy; return {expression}; }}")

    def click(self, expression: str) -> None:
        """Clicks the middle of an element of the graph, with the mouse."""
        position = f"{expression}.isEdge() ? {expression}.renderedMidpoint() : "
        place = self.graph(f"{position}{expression}.renderedPosition()")
        self.canvas.click(position=place)

    def level(self, expected: str) -> None:
        sync_api.expect(self.canvas).to_have_attribute("data-level", expected)


@pytest.fixture
def demo_map(chromium: Any, console: str) -> Iterator[MapPage]:  # noqa: F811
    """The demonstration, read by Bob, who may see all sites."""
    context = context_of(chromium, console)
    watched = Watched(context)
    log_in(watched.page, BOB, BOBS_PASSWORD)
    yield MapPage(watched)
    assert watched.complaints == []
    context.close()


def test_the_switch_in_the_table_reroutes(demo_map: MapPage) -> None:
    page = demo_map.page
    demo_map.open()
    page.get_by_label("From machine").fill("ams-desk1")
    page.get_by_label("To machine").fill("chi-app1")
    page.get_by_role("button", name="Show").click()
    sync_api.expect(demo_map.title).to_have_text("ams-desk1 to chi-app1: 4 hops, cost 30")
    assert demo_map.graph("cy.edges('.on').length") == 2
    assert demo_map.graph("cy.edges('.on').style('line-color')") != demo_map.graph(
        "cy.edges().not('.on').style('line-color')"
    ), "the route is seen"
    page.get_by_label("Berlin - Chicago").check()
    sync_api.expect(demo_map.title).to_have_text("ams-desk1 to chi-app1: 3 hops, cost 50")
    sync_api.expect(page.get_by_text("cost 50 instead of 30 (+20)")).to_be_visible()
    sync_api.expect(page.locator("[data-map-said]")).to_have_text(
        "ams-desk1 to chi-app1: 3 hops, cost 50"
    )
    assert page.evaluate("document.activeElement.name") == "off", "the focus stays on the switch"
    assert "off=" in page.url, "the address can be sent to somebody"
    page.screenshot(path=str(SCREENSHOTS / "what-if.png"), full_page=True)
    page.reload()
    sync_api.expect(demo_map.title).to_have_text("ams-desk1 to chi-app1: 3 hops, cost 50")


def test_a_click_on_a_link_switches_it_off_and_on(demo_map: MapPage) -> None:
    demo_map.open(ROUTE)
    link = "cy.edges('.link').filter(e => e.data('cost') === 20)[0]"
    demo_map.click(link)
    sync_api.expect(demo_map.title).to_have_text("ams-desk1 to chi-app1: 3 hops, cost 50")
    assert demo_map.graph("cy.edges('.off').length") == 1
    demo_map.page.get_by_role("link", name="Switch on Berlin - Chicago").click()
    sync_api.expect(demo_map.title).to_have_text("ams-desk1 to chi-app1: 4 hops, cost 30")
    assert demo_map.graph("cy.edges('.off').length") == 0


def test_a_route_begins_and_ends_at_sites_that_are_clicked(demo_map: MapPage) -> None:
    demo_map.open()
    for name, button in (("Amsterdam", "Route from here"), ("Chicago", "Route to here")):
        demo_map.click(f"cy.nodes('.site').filter(n => n.data('site').name === '{name}')[0]")
        demo_map.page.get_by_role("button", name=button).click()
    sync_api.expect(demo_map.title).to_contain_text("cost 30")


def test_a_route_is_asked_for_without_javascript(chromium: Any, console: str) -> None:  # noqa: F811
    context = context_of(chromium, console, java_script_enabled=False)
    page = context.new_page()
    log_in(page, BOB, BOBS_PASSWORD)
    page.goto("replication")
    assert page.get_by_role("rowheader", name="Amsterdam").is_visible()
    page.goto("map")
    page.get_by_label("From machine").fill("ams-desk1")
    page.get_by_label("To machine").fill("chi-app1")
    page.get_by_label("Berlin - Chicago").check()
    page.get_by_role("button", name="Show").click()
    assert "cost 50" in page.locator("[data-map-title]").inner_text()
    image = page.locator(".picture img")
    image.wait_for(state="visible")  # an image has no size before it has come
    assert image.evaluate("e => e.decode().then(() => e.naturalWidth)") > 100
    context.close()


# --- 1,000 sites ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console with 1,000 sites and 2,000 links; the first site has a hostile name."""
    path = make_estate(tmp_path_factory.mktemp("estate") / "e.db", EstatePlan(), hostile=True)
    with console_of(path) as url:
        yield url


def open_estate(chromium: Any, url: str, **options: Any) -> tuple[Any, Watched, MapPage]:  # noqa: F811
    base = url.partition("?")[0]
    context = chromium.new_context(base_url=base, **options)
    watched = Watched(context)
    watched.page.goto(url)
    shown = MapPage(watched)
    shown.open()
    return context, watched, shown


def inside(shown: MapPage, selector: str) -> bool:
    """True if all these elements are in the part of the map that is seen."""
    code = f"""(() => {{ const box = cy.elements({selector!r}).renderedBoundingBox({{
        includeLabels: false }}); return box.x1 >= 0 && box.y1 >= 0
        && box.x2 <= cy.width() && box.y2 <= cy.height(); }})()"""
    return bool(shown.graph(code))


def test_a_thousand_sites_on_one_canvas(chromium: Any, estate: str) -> None:  # noqa: F811
    context, watched, shown = open_estate(chromium, estate, viewport=WIDE)
    page = shown.page
    assert shown.graph("[cy.nodes('.site').length, cy.edges('.link').length]") == [1000, 2000]
    shown.level("regions")
    assert inside(shown, "node.region"), "the whole map fits"
    assert shown.graph("cy.nodes('.site').map(n => n.data('site').name)").count(HOSTILE) == 1
    assert page.title() == "Map · mqis", "a name is never run"
    page.screenshot(path=str(SCREENSHOTS / "map-1000.png"))

    region = "cy.nodes('.region')[3]"
    shown.click(region)
    shown.level("sites")
    shown.canvas.press("0")
    shown.level("regions")
    for _ in range(6):
        page.get_by_role("button", name="Zoom in").click()
    shown.level("sites")
    before = shown.graph("({...cy.pan()})")
    box = shown.canvas.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 105, box["y"] + 45, steps=4)
    page.mouse.up()
    after = shown.graph("({...cy.pan()})")
    assert after["x"] - before["x"] == pytest.approx(100, abs=3), "it pans"
    assert after["y"] - before["y"] == pytest.approx(40, abs=3)

    for _ in range(2):
        page.get_by_role("button", name="Zoom in").click()
    sized = shown.graph("cy.elements().filter(e => e.data('step') === 2).length")
    assert 0 < sized < 1000, "only what is in view gets the sizes of this zoom"

    page.get_by_label("Find a site").fill("york-07")
    sync_api.expect(page.locator("[data-map-info]")).to_contain_text("1 site")
    assert inside(shown, "node.found")
    shown.level("sites")
    page.get_by_label("Find a site").fill("")
    page.get_by_label("From machine").fill("Berlin-07")
    page.get_by_label("To machine").fill("Essen-15")
    page.get_by_role("button", name="Show", exact=True).click()
    sync_api.expect(shown.title).to_contain_text("berlin-07-gw to essen-15-gw")
    assert shown.graph("cy.edges('.on').length") >= 2
    assert inside(shown, "node.on"), "the route is in view"
    assert page.evaluate(
        "() => { const b = document.querySelector('[data-map-canvas]').getBoundingClientRect();"
        " return b.top < innerHeight && b.bottom > 0; }"
    ), "and so is the canvas"
    page.screenshot(path=str(SCREENSHOTS / "map-1000-route.png"))
    assert page.locator("img[src=x]").count() == 0
    assert watched.complaints == []
    context.close()


def test_a_thousand_sites_on_a_telephone(chromium: Any, estate: str) -> None:  # noqa: F811
    context, watched, shown = open_estate(
        chromium, estate, viewport=NARROW, color_scheme="dark", has_touch=True
    )
    page = shown.page
    shown.level("regions")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert inside(shown, "node.region")
    small = shown.graph(
        "cy.nodes('.region').map(n => parseFloat(n.renderedStyle('font-size'))).sort()[0]"
    )
    assert small >= 11, "names can be read"
    page.locator("[data-map-card]").scroll_into_view_if_needed()
    page.screenshot(path=str(SCREENSHOTS / "map-1000-small.png"))
    place = shown.graph("cy.nodes('.region')[0].renderedPosition()")
    shown.canvas.tap(position=place)
    shown.level("sites")
    assert watched.complaints == []
    context.close()
