"""The example that docs/server.md starts with runs as it stands, ports aside."""

from __future__ import annotations

import socket
from pathlib import Path

from mqis.config.file import load
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("server.md")


def test_the_example_runs(tmp_path: Path) -> None:
    script = blocks(TEXT, "sh")[0]
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        for fixed, probe in (("2879", a), ("1135", b)):
            script = script.replace(fixed, str(probe.getsockname()[1]))
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
