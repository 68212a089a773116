"""The configuration of docs/discovery.md is one."""

from __future__ import annotations

from pathlib import Path

from mqis.config.file import load
from tests.docs.documents import blocks, text_of

TEXT = text_of("discovery.md")


def test_the_configuration_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_text(blocks(TEXT, "toml")[0], encoding="utf-8")
    assert load(path).discovery.enabled
