"""Measures how smoothly the console's map moves in Chromium: frames while panning and zooming.

    python tools/map_frames.py --sites 1000 --links 2000

A console shows a made-up network (``mqis.lab.estate``). A script in the page moves the map before
every frame and records the time between frames. Chromium draws without a graphics card here, so a
desktop is faster. It needs Playwright and Chromium.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

from mqis.config.stores import open_store
from mqis.lab.estate import EstatePlan, fill_estate
from mqis.views.console.places import Places
from mqis.views.console.rights import Guest
from mqis.web.serving import running_console
from mqis.web.settings import ConsoleSettings

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 120_000

#: Drags the map with events of a mouse, one before each frame, or zooms it; resolves to the
#: milliseconds between frames.
_MOVE = """
([kind, milliseconds]) => new Promise((resolve) => {
  const canvas = document.querySelector("[data-map-canvas]"), cy = canvas._cyreg.cy;
  const middle = { x: cy.width() / 2, y: cy.height() / 2 };
  const box = canvas.getBoundingClientRect();
  const start = performance.now(), zoom = cy.zoom();
  const found = [];
  let last = start;
  function mouse(target, name, turn) {
    target.dispatchEvent(new MouseEvent(name, { bubbles: true, button: 0, buttons: 1, which: 1,
      clientX: box.left + 6 + 90 * (1 - Math.cos(turn)),
      clientY: box.top + 6 + 60 * Math.sin(turn) ** 2 }));
  }
  function frame(now) {
    if (now > last) found.push(now - last);
    last = now;
    const turn = (now - start) / 700;
    if (kind === "pan") mouse(window, "mousemove", turn);
    else cy.zoom({ level: zoom * (1 + .2 * Math.sin(turn) ** 2), renderedPosition: middle });
    if (now - start < milliseconds) requestAnimationFrame(frame);
    else {
      if (kind === "pan") mouse(window, "mouseup", turn);
      resolve(found.slice(1));
    }
  }
  if (kind === "pan") mouse(canvas.querySelector("canvas"), "mousedown", 0);
  requestAnimationFrame(frame);
})
"""
#: The zooms that are measured: everything, the smallest with all sites, and near.
_VIEWS = {
    "regions": "cy.zoom({ level: .1, renderedPosition: middle }); cy.center()",
    "all sites": "cy.zoom({ level: .32, renderedPosition: middle })",
    "near": "cy.zoom({ level: 1.5, renderedPosition: middle })",
}


@dataclass(frozen=True, slots=True)
class FrameTimes:
    view: str
    motion: str
    frames_per_s: float
    median_ms: float
    p95_ms: float
    longest_ms: float

    @classmethod
    def of(cls, view: str, motion: str, times: list[float]) -> FrameTimes:
        ordered = sorted(times)
        p95 = ordered[int(len(ordered) * 0.95)]
        rate = 1000 * len(times) / sum(times)
        numbers = (rate, median(times), p95, ordered[-1])
        return cls(view, motion, *(round(number, 1) for number in numbers))


def measure(plan: EstatePlan, seconds: float, width: int, height: int) -> list[FrameTimes]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- a tool of tests

    chromium = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        path = Path(directory) / "estate.db"
        with closing(open_store(str(path), create=True)) as store:
            fill_estate(store, plan)
        places = Places(stores=(str(path),))
        settings = ConsoleSettings(places, None, port=0, guest=Guest.parse("administrator"))
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        with running_console(settings) as url:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(_PATIENCE_MS)
            page.goto(url)
            page.goto(f"{url.partition('?')[0]}map")
            page.wait_for_selector("[data-map-canvas][data-ready]")
            found = list(_measured(page, seconds))
        browser.close()
        return found


def _measured(page: Any, seconds: float) -> list[FrameTimes]:
    found = []
    for view, code in _VIEWS.items():
        for motion in ("pan", "zoom"):
            page.evaluate(
                '() => { const cy = document.querySelector("[data-map-canvas]")._cyreg.cy;'
                f"const middle = {{ x: cy.width() / 2, y: cy.height() / 2 }}; {code}; }}"
            )
            times = page.evaluate(_MOVE, [motion, 1000 * seconds])
            found.append(FrameTimes.of(view, motion, times))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--links", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each motion")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=860)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    plan = EstatePlan(given.sites, given.links)
    found = measure(plan, given.seconds, given.width, given.height)
    if given.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
        return
    print(f"{given.sites} sites, {given.links} links, {given.width} x {given.height} pixels")
    print(f"{'view':10} {'motion':7} {'frames/s':>9} {'median':>8} {'p95':>8} {'longest':>8}")
    for each in found:
        print(
            f"{each.view:10} {each.motion:7} {each.frames_per_s:9.1f} {each.median_ms:5.1f} ms "
            f"{each.p95_ms:5.1f} ms {each.longest_ms:5.1f} ms"
        )


if __name__ == "__main__":
    main()
