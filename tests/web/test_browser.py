"""The console in a real browser: Chromium, driven by Playwright. Screenshots go to .build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from mqis.config.nodes import Nodes, save_nodes
from mqis.enterprise.states import ProcessState, Supervised, Supervision, save_states
from mqis.views.console.server_places import Places
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.enterprise.monitors import closing_monitors, node, told
from tests.waiting import DEADLINE_S
from tests.web.enterprise import ALICE, ALICES_PASSWORD, BOB, BOBS_PASSWORD, PEC, Enterprise

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / ".build" / "screenshots"
AXE = ROOT / "tests" / "data" / "axe" / "axe.min.js"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Busy machines take their time; nothing here is about speed.
PATIENCE_MS = 1000 * DEADLINE_S
sync_api.expect.set_options(timeout=PATIENCE_MS)
COLOUR = "element => getComputedStyle(element).color"
ROUTE = "map?from=ams-desk1&to=chi-app1"
#: The screens that every page is looked at on; a phone shows the bar with the menu.
SCREENS = {"wide": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}
SMALLEST = {"width": 360, "height": 740}
WIDTH = "document.documentElement.scrollWidth"
#: The rules of axe whose result depends on the width; all others are tried on the wide screen.
LAYOUT_RULES = (
    *("aria-hidden-focus", "color-contrast", "link-name", "nested-interactive", "region"),
    *("scrollable-region-focusable", "skip-link"),
)
#: Every page, by the name of its screenshot; PAYMENTS and RECORD are found on the way.
PAGES = {
    "overview": "",
    "map": ROUTE,
    "replication": "replication",
    "servers": "servers",
    "server": f"servers/{PEC}",
    "alerts": "alerts",
    "directory": "directory?q=orders",
    "object": "PAYMENTS",
    "create": "directory/create",
    "users": "directory?type=user",
    "journal": f"journal?server={PEC}&state=queued",
    "record": "RECORD",
    "undelete": "undelete",
    "pipeline": "pipeline",
    "table": "pipeline/table/lag",
    "statistics": "statistics",
    "sessions": "sessions",
    "login": "login",
    "error": "directory/queue/none",
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page, and everything that the browser complained about."""

    def __init__(self, context: Any) -> None:
        context.set_default_timeout(PATIENCE_MS)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._said)

    def _said(self, message: Any) -> None:
        # A page that is asked for and is not there is no error of the console's pages.
        if message.type in ("error", "warning") and "the server responded" not in message.text:
            self.complaints.append(message.text)


def context_of(chromium: Any, console: str, *, heading: str = "Meridian", **options: Any) -> Any:
    """A browser that has opened the address that the console printed."""
    base = console.partition("?")[0]
    context = chromium.new_context(**{"base_url": base, "viewport": SCREENS["wide"], **options})
    page = context.new_page()
    page.goto(console)
    assert page.url == base, "the token is not in the address any more"
    assert page.locator("h1").inner_text() == heading
    page.close()
    return context


@pytest.fixture
def watched(chromium: Any, console: str) -> Iterator[Watched]:
    context = context_of(chromium, console)
    made = Watched(context)
    yield made
    assert made.complaints == []
    context.close()


@pytest.fixture
def as_bob(watched: Watched) -> Watched:
    """Logs in as Bob, who may read all sites, unlike an anonymous user."""
    log_in(watched.page, BOB, BOBS_PASSWORD)
    return watched


def find(page: Any, what: str) -> str:
    """The address of a page that only the directory and the journal know."""
    if what == "PAYMENTS":
        page.goto("directory?q=ams-app1%5Cpayments")
        return str(page.locator("tbody a").first.get_attribute("href"))
    if what == "RECORD":
        page.goto(f"journal?server={PEC}&kind=change&state=local")
        return str(page.locator("tbody a").first.get_attribute("href"))
    return what


def test_every_page_looks_right_and_is_accessible(chromium: Any, console: str) -> None:
    """On both screens, in both themes: axe-core finds nothing serious, the browser complains of
    nothing, and nothing has to be scrolled sideways.
    """
    context = context_of(chromium, console)
    # The policy of the pages lets no other script in, so it comes as the browser's own.
    context.add_init_script(path=str(AXE))
    watched = Watched(context)
    page = watched.page
    log_in(page, ALICE, ALICES_PASSWORD)
    found: dict[str, list[str]] = {}
    for name, address in PAGES.items():
        page.goto(find(page, address))
        assert page.locator("h1").count() == 1
        for screen, size in SCREENS.items():
            page.set_viewport_size(size)
            photograph(page, f"{name}-{screen}", found)
            assert page.evaluate(WIDTH) <= size["width"], name
        page.set_viewport_size(SMALLEST)
        assert page.evaluate(WIDTH) <= SMALLEST["width"], name
        page.set_viewport_size(SCREENS["wide"])
    assert {name: told for name, told in found.items() if told} == {}
    page.evaluate("document.body.append(document.createElement('input'))")
    assert any(told.startswith("label:") for told in findings(page)), "it would have been found"
    assert watched.complaints == []
    context.close()


def photograph(page: Any, name: str, found: dict[str, list[str]]) -> None:
    """Takes a picture in each theme and notes what axe finds."""
    light = LAYOUT_RULES if name.endswith("-phone") else ()
    for theme, rules in (("light", light), ("dark", ("color-contrast",))):
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=str(SCREENSHOTS / f"{name}-{theme}.png"), full_page=True)
        found[f"{name}-{theme}"] = findings(page, *rules)


def findings(page: Any, *rules: str) -> list[str]:
    """Serious and critical ones, of all rules or some. Nothing is fetched again (preload)."""
    options: dict[str, object] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = rules
    result = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


def test_a_change_over_rpc_is_seen_without_reloading(
    watched: Watched, enterprise: Enterprise
) -> None:
    page = watched.page
    page.goto("replication")
    sync_api.expect(page.get_by_text("live", exact=True)).to_be_visible()
    # Amsterdam, whose authority is the PEC: both servers show the new number.
    row = page.locator("tr", has=page.get_by_role("rowheader", name="Amsterdam"))
    before = row.locator("td .mono").all_inner_texts()
    assert len(before) == 2
    enterprise.run(enterprise.create_queue("ams-app1\\live", "seen at once"))
    after = f"{int(before[0], 16) + 1:x}"
    sync_api.expect(row.locator("td .mono")).to_have_text([after, after])
    sync_api.expect(row.locator("td").nth(1)).to_contain_text("equal")


def test_bob_is_let_in_and_denied(watched: Watched) -> None:
    page = watched.page
    log_in(page, BOB, BOBS_PASSWORD)
    page.get_by_role("link", name="New queue").click()
    page.get_by_label("Path").fill("ams-dir1\\bobs")
    page.get_by_role("button", name="Create").click()
    alert = page.get_by_role("alert")
    sync_api.expect(alert).to_contain_text("MQ_ERROR_ACCESS_DENIED")
    page.screenshot(path=str(SCREENSHOTS / "denied.png"))


def test_alice_creates_changes_and_deletes(watched: Watched, enterprise: Enterprise) -> None:
    page = watched.page
    log_in(page, ALICE, ALICES_PASSWORD)
    page.get_by_role("link", name="New queue").click()
    page.get_by_label("Path").fill("ams-app2\\browser")
    page.get_by_label("Label", exact=True).fill("made in a browser")
    page.get_by_role("button", name="Create").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("The queue was created.")
    page.get_by_label("Property").select_option("label")
    page.get_by_label("New value").fill("changed in a browser")
    page.get_by_role("button", name="Set").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("changed")
    path = "ams-app2\\browser"
    assert enterprise.run(enterprise.label(path)) == "changed in a browser"
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("deleted")
    assert enterprise.run(enterprise.label(path)) is None
    page.get_by_role("button", name="Log out").click()
    sync_api.expect(page.get_by_text("Reading only, as anonymous.")).to_be_visible()


def test_the_keyboard_will_do(as_bob: Watched) -> None:
    """Skip link, menu, form, result: with Tab and Enter alone, and the focus is always seen."""
    page = as_bob.page
    page.goto("directory")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    seen = []
    for _ in range(4):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
    assert seen[:3] == ["type", "q", "server"]
    page.get_by_label("Name, label or identifier").focus()
    page.keyboard.type("payments")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("caption")).to_contain_text("6 queues")
    page.locator("tbody a").first.focus()
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("h1")).to_contain_text("payments")


def test_the_menu_fits_a_phone(chromium: Any, console: str) -> None:
    """A bar with a menu that opens without JavaScript, and closes."""
    context = context_of(chromium, console, viewport=SCREENS["phone"], java_script_enabled=False)
    page = context.new_page()
    page.goto("replication")
    journal = page.get_by_role("link", name="Journal", exact=True)
    sync_api.expect(journal).to_be_hidden()
    assert page.locator("header").bounding_box()["height"] <= 64
    page.get_by_role("link", name="Menu").click()
    sync_api.expect(journal).to_be_visible()
    assert journal.bounding_box()["height"] >= 44, "a finger can hit it"
    page.screenshot(path=str(SCREENSHOTS / "menu.png"))
    page.get_by_role("link", name="Close").click()
    sync_api.expect(journal).to_be_hidden()
    page.get_by_role("link", name="Menu").click()
    journal.click()
    sync_api.expect(page.locator("h1")).to_have_text("Journal")
    context.close()


def test_charts_move_and_an_open_table_stays_open(watched: Watched) -> None:
    page = watched.page
    page.goto("")
    table = page.get_by_text("The same as a table")
    table.click()
    sync_api.expect(page.get_by_text("live", exact=True)).to_be_visible()
    first = page.locator("#chart-numbers tbody th").first
    before = first.inner_text()
    sync_api.expect(first).not_to_have_text(before)
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_trouble_is_amber_and_red(chromium: Any, tmp_path: Path) -> None:
    with troubled(tmp_path) as url:
        context = context_of(chromium, url, heading="Acme")
        context.add_init_script(path=str(AXE))
        page = context.new_page()
        found: dict[str, list[str]] = {}
        page.goto("")
        note = page.locator("[data-live=sentence]")
        sync_api.expect(note).to_have_class("note bad")
        colours = {
            word: page.locator("tbody .tag", has_text=word).first.evaluate(COLOUR)
            for word in ("up", "stopped", "does not answer")
        }
        assert len(set(colours.values())) == 3, colours
        for name in ("", "replication"):
            page.goto(name)
            photograph(page, f"trouble-{name or 'overview'}", found)
        assert {name: told for name, told in found.items() if told} == {}
        context.close()


@contextmanager
def troubled(run: Path) -> Iterator[str]:
    """A console of five servers: one is up, one behind, one resynchronises, two are away."""
    with closing_monitors() as monitors:
        answers = {
            "a": told("a", 0x1014, authority=True),
            "c": told("c", 0x1011),
            "d": told("d", 0x1014, state="sync0"),
        }
        nodes = [node(name, monitors.add(answer)) for name, answer in answers.items()]
        save_nodes(run, Nodes("Acme", (*nodes, node("e", 1), node("f", 1))))
        states = {"e": Supervised(ProcessState.STOPPED, 1000.0)}
        save_states(run, Supervision("", True, states))
        with running_console(ConsoleSettings(Places(run), port=0, sample_every_s=0.2)) as url:
            yield url


def log_in(page: Any, user: str, password: str) -> None:
    page.goto("login")
    page.get_by_label("Server").select_option(PEC)
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    # On a phone it is in the menu, which is closed.
    sync_api.expect(page.get_by_text("Logged in as")).to_be_attached()
