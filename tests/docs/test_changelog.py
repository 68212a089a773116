"""The changelog: versions with dates, the newest first, and the one of the package on top."""

from __future__ import annotations

import re
from datetime import date

from mqis import __version__
from tests.docs.documents import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_versions_have_dates_and_descend() -> None:
    headings = re.findall(r"^## (.+)$", TEXT, re.M)
    versions = [heading for heading in headings if heading != "Unreleased"]
    found = [re.fullmatch(r"(\d+\.\d+\.\d+), (\d{4}-\d\d-\d\d)", each) for each in versions]
    assert None not in found, versions
    numbers = [tuple(map(int, each[1].split("."))) for each in found if each]
    assert numbers == sorted(numbers, reverse=True)
    assert versions[0].startswith(f"{__version__}, ")
    days = [date.fromisoformat(each[2]) for each in found if each]
    assert days == sorted(days, reverse=True)


def test_the_versions_promise_names_what_it_covers() -> None:
    page = (ROOT / "docs/upgrading.md").read_text("utf-8")
    promised = page.partition("## Versions")[2].partition("## From")[0]
    for what in ("commands", "formats", "the client library", "configuration"):
        assert f"\n| {what} | " in promised
