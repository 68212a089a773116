"""The example that docs/server.md starts with runs as it stands, ports aside."""

from __future__ import annotations

from pathlib import Path

from mqis.config.file import load
from mqis.testing.ports import free_ports
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("server.md")


def test_the_example_runs(tmp_path: Path) -> None:
    script = blocks(TEXT, "sh")[0]
    for fixed, port in zip(("2879", "1135"), free_ports(2), strict=True):
        script = script.replace(fixed, str(port))
    done = run(script, tmp_path)
    text = done.stdout
    assert "created queue ams-app1\\hello (" in text
    assert "full control" in text
    assert "deleted queue ams-app1\\hello" in text
    assert "stopped" in done.stderr


def test_the_configuration_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_text(blocks(TEXT, "toml")[0], encoding="utf-8")
    assert load(path).server.name == "ams-dir1"
