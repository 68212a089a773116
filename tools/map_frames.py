"""Measures how smoothly the console's map moves in Chromium: frames while panning and zooming.

    python tools/map_frames.py --sites 1000 --links 2000

A console shows a made-up network (``tests.web.network``). A script in the page moves the map before
every frame and records the time between frames. Chromium draws without a graphics card here, so a
desktop is faster. On a busy computer only the processor time is worth something: that of all
processes of the browser, for each frame. It needs Playwright, Chromium and Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

from mqis.config.stores import open_store
from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.network import EstatePlan, fill_estate

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 300_000
_SLOW_MS = 50
#: The time in which a map that has been moved is drawn.
_REST_MS = 1000

#: Drags the map with events of a mouse, or turns its wheel, once before each frame; resolves to the
#: milliseconds between frames. The wheel zooms in to the eightfold and out again.
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
      clientX: box.left + 6 + 200 * (1 - Math.cos(turn)),
      clientY: box.top + 6 + 120 * Math.sin(turn) ** 2 }));
  }
  function wheel(turn) {
    const wanted = Math.min(zoom * 8 ** (Math.sin(turn) ** 2), 4);
    canvas.querySelector("canvas").dispatchEvent(new WheelEvent("wheel", { bubbles: true,
      cancelable: true, deltaY: -250 * Math.log10(wanted / cy.zoom()) + 1e-3,
      clientX: box.left + middle.x, clientY: box.top + middle.y }));
  }
  function frame(now) {
    if (now > last) found.push(now - last);
    last = now;
    const turn = (now - start) / 700;
    if (kind === "pan") mouse(window, "mousemove", turn);
    else wheel(turn);
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
    "near": "cy.zoom({ level: 1.2, renderedPosition: middle })",
}


@dataclass(frozen=True, slots=True)
class FrameTimes:
    view: str
    motion: str
    frames_per_s: float
    median_ms: float
    p95_ms: float
    longest_ms: float
    #: The share of the time that frames of more than 50 ms take: a movement that stutters.
    slow_percent: float
    #: Processor time of the browser for one frame.
    cpu_ms: float

    @classmethod
    def of(cls, view: str, motion: str, times: list[float], cpu_s: float) -> FrameTimes:
        if not times:
            raise SystemExit("there was no frame at all: the computer is too busy to measure")
        ordered = sorted(times)
        p95 = ordered[int(len(ordered) * 0.95)]
        rate = 1000 * len(times) / sum(times)
        slow = 100 * sum(time for time in times if time > _SLOW_MS) / sum(times)
        numbers = (rate, median(times), p95, ordered[-1], slow, 1000 * cpu_s / len(times))
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
            page.wait_for_timeout(_REST_MS)
            before = _browser_cpu_s()
            times = page.evaluate(_MOVE, [motion, 1000 * seconds])
            found.append(FrameTimes.of(view, motion, times, _browser_cpu_s() - before))
            page.wait_for_timeout(_REST_MS)
    return found


def _browser_cpu_s() -> float:
    """The processor time of all processes that this one has started, directly or not."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            ticks[process] = int(fields[11]) + int(fields[12])
    own = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in own} - own:
        own |= more
    own.discard(os.getpid())
    return sum(ticks[process] for process in own) / os.sysconf("SC_CLK_TCK")


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
    columns = f"{'median':>8} {'p95':>8} {'longest':>8} {'slow':>7} {'CPU':>8}"
    print(f"{'view':10} {'motion':7} {'frames/s':>9} {columns}")
    for each in found:
        print(
            f"{each.view:10} {each.motion:7} {each.frames_per_s:9.1f} {each.median_ms:5.1f} ms "
            f"{each.p95_ms:5.1f} ms {each.longest_ms:5.1f} ms {each.slow_percent:5.1f} % "
            f"{each.cpu_ms:5.1f} ms"
        )


if __name__ == "__main__":
    main()
