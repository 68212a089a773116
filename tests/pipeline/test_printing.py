"""Printing the report as PDF, with browsers that behave and browsers that do not."""

from __future__ import annotations

import os
import re
from pathlib import Path
from shutil import which

import pytest

from mqis.pipeline.printing import BROWSERS, VARIABLE, find_browser, print_pdf
from mqis.pipeline.report.page import html_page
from mqis.wire.errors import MqisError
from tests.pipeline.test_report import difference, with_rows
from tests.waiting import wait_until

CHROMIUM = next(filter(None, map(which, BROWSERS)), None)
PRINTS = """for a; do case "$a" in
--print-to-pdf=*) printf "%s" "%PDF-1.4 x" > "${a#*=}";;
esac; done"""


def browser(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / "browser"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o700)
    monkeypatch.setenv(VARIABLE, str(path))


def test_a_pdf_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser(tmp_path, PRINTS, monkeypatch)
    out = tmp_path / "new" / "report.pdf"
    print_pdf(b"<p>x", out)
    assert out.read_bytes() == b"%PDF-1.4 x"
    assert [path.name for path in out.parent.iterdir()] == ["report.pdf"]


@pytest.mark.req("SEC-12-14")
def test_the_browser_gets_no_network_and_a_profile_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that became markup after all would find nothing to read and nobody to tell."""
    arguments = tmp_path / "arguments"
    browser(tmp_path, f'printf "%s\\n" "$@" > {arguments}\n{PRINTS}', monkeypatch)
    print_pdf(b"<p>x", tmp_path / "report.pdf")
    given = dict(line.partition("=")[::2] for line in arguments.read_text().splitlines())
    assert given["--host-resolver-rules"] == "MAP * ~NOTFOUND"
    assert {"--headless", "--disable-extensions", "--disable-background-networking"} <= set(given)
    profile = Path(given["--user-data-dir"])
    assert profile.parent.name.startswith("mqis-report-"), "which is made for this alone"
    assert not profile.parent.exists(), "and is gone"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)', html_page(with_rows()))
    assert policy is not None
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy[1].split(";"))
    assert rules.pop("default-src") == "'none'"
    assert not {"script-src", "frame-src", "object-src", "connect-src"} & set(rules)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "ended with status 3"),
        ("exit 0", "printed nothing"),
        (PRINTS.replace("%PDF-1.4 x", "<html>"), "did not print a PDF"),
    ],
)
def test_a_failure_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    browser(tmp_path, script, monkeypatch)
    out = tmp_path / "report.pdf"
    out.write_bytes(b"old")
    with pytest.raises(MqisError, match=reason):
        print_pdf(b"<p>x", out)
    assert out.read_bytes() == b"old"


@pytest.mark.req("SEC-12-14")
def test_a_browser_that_hangs_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/child; wait", monkeypatch)
    with pytest.raises(MqisError, match="did not print within"):
        print_pdf(b"<p>x", tmp_path / "report.pdf", limit_s=1)
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: _has_ended(child))  # it dies when it runs next


def _has_ended(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return re.search(r"^State:\s+Z", status, re.M) is not None


def test_no_browser_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MqisError, match="print the HTML file in your browser"):
        find_browser(lambda _: None)
    monkeypatch.setenv(VARIABLE, os.devnull)
    with pytest.raises(MqisError, match=f"{VARIABLE}={os.devnull}"):
        find_browser()


@pytest.mark.interop
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_chromium_prints_it(tmp_path: Path) -> None:
    out = tmp_path / "report.pdf"
    content = with_rows(divergence=[difference()] * 60)
    print_pdf(html_page(content, unfolded=True).encode(), out)
    pages = len(re.findall(rb"/Type\s*/Page\b", out.read_bytes()))
    assert 2 <= pages <= 12
