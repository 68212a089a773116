"""The example that docs/server.md starts with runs as it stands, ports aside."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mqis.services.config import load

DOCUMENT = Path(__file__).parents[2] / "docs" / "server.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.S | re.M)


def test_the_example_runs(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("mqis")
    if not command.exists():
        pytest.skip("mqis is not installed beside this Python")
    script = blocks("sh")[0]
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        for fixed, probe in (("2879", a), ("1135", b)):
            script = script.replace(fixed, str(probe.getsockname()[1]))
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env=kept | {"PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "created queue ams-app1\\hello (" in text
    assert "full control" in text
    assert "deleted queue ams-app1\\hello" in text
    assert b"stopped" in done.stderr


def test_the_configuration_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_text(blocks("toml")[0], encoding="utf-8")
    assert load(path).server.name == "ams-dir1"
