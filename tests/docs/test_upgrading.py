"""The versions of formats that docs/upgrading.md names are those that mqis writes."""

from __future__ import annotations

import re

import pytest

from mqis.admin.backup import manifest
from mqis.protocol.directory import export_format
from mqis.storage import schema
from mqis.wire.journal import segmentheader
from tests.docs.documents import ROOT

WRITTEN = {
    "store": schema.VERSION,
    "journal segment": segmentheader.INDEXED_VERSION,
    "export": export_format.VERSION,
    "backup": manifest.VERSION,
}


@pytest.mark.parametrize(("name", "version"), WRITTEN.items())
def test_the_page_names_the_version(name: str, version: int) -> None:
    text = (ROOT / "docs/upgrading.md").read_text("utf-8")
    found = re.search(rf"^\| {name} \| (\d+) \|", text, re.MULTILINE)
    assert found is not None
    assert int(found[1]) == version
