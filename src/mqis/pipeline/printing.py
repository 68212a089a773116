"""Prints a page as PDF with a browser of the Chromium family, if one is installed.

The browser gets a profile of its own and no network. Scripts are forbidden by the page's policy.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mqis.files import system_reason
from mqis.pipeline.locations import write_output
from mqis.texts import duration, some
from mqis.wire.errors import MqisError

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
#: Names another browser than those on the search path.
VARIABLE = "MQIS_BROWSER"
_LIMIT_S = 180
_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
)


def find_browser(which: Callable[[str], str | None] = shutil.which) -> str:
    """The path of a browser; ``MqisError`` if there is none."""
    named = os.environ.get(VARIABLE, "")
    found = next(filter(None, map(which, (named,) if named else BROWSERS)), None)
    if found is None:
        looked_for = f"{VARIABLE}={named}" if named else some(BROWSERS)
        raise MqisError(
            f"--pdf needs Chromium or a browser like it, and there is none ({looked_for}); install "
            f"one, name one with {VARIABLE}, or print the HTML file in your browser"
        )
    return found


def print_pdf(page: bytes, out: Path, *, limit_s: float = _LIMIT_S) -> None:
    """Prints the page to ``out``: all of it, or nothing."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="mqis-report-", ignore_cleanup_errors=True) as made:
        source, target = Path(made) / "report.html", Path(made) / "report.pdf"
        source.write_bytes(page)
        _run([*_command(browser, Path(made)), f"--print-to-pdf={target}", source.as_uri()], limit_s)
        _take(target, out)


def _command(browser: str, made: Path) -> list[str]:
    # Chromium refuses to run as root in its sandbox.
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    return [browser, *_OPTIONS, *root, f"--user-data-dir={made / 'profile'}"]


def _run(command: list[str], limit_s: float) -> None:
    """Runs the browser; ends it and all its processes after the time limit."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise MqisError(f"{command[0]}: cannot be started: {system_reason(error)}") from error
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise MqisError(f"{command[0]} did not print within {duration(limit_s)}") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status:
        raise MqisError(f"{command[0]} ended with status {status} and printed nothing")


def _take(printed: Path, out: Path) -> None:
    try:
        data = printed.read_bytes()
    except FileNotFoundError:
        raise MqisError("the browser printed nothing") from None
    if not data.startswith(b"%PDF-"):
        raise MqisError("the browser did not print a PDF")
    write_output(out, data)
