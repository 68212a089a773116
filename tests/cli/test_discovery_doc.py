"""The example that docs/discovery.md starts with runs as it stands, ports aside."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mqis.services.config import load

DOCUMENT = Path(__file__).parents[2] / "docs" / "discovery.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.S | re.M)


def free_port(kind: socket.SocketKind) -> str:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_the_example_runs(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("mqis")
    if sys.platform != "linux" or not command.exists():
        pytest.skip("wants the addresses of Linux, and mqis installed beside this Python")
    port = free_port(socket.SOCK_DGRAM)
    script = blocks("sh")[0].replace("1135", free_port(socket.SOCK_STREAM))
    script = re.sub(r"(--discovery [0-9.]+)", rf"\1:{port}", script)
    script = script.replace("discover --network", f"discover --port {port} --network")
    script = re.sub(r"'(127\S+) (127\S+)'", rf"'\1:{port} \2:{port}'", script)
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
    assert f"asking everybody on the network of 127.0.0.1 (127.255.255.255:{port})" in text
    assert re.search(r"^  127\.0\.0\.2 answers: site \S+ has ams-dir1, ams-dir2$", text, re.M)
    assert re.search(r"^  127\.0\.0\.3 answers: site \S+ has ber-dir1, ber-dir2$", text, re.M)
    assert re.search(r"^Berlin +ber-dir1, ber-dir2$", text, re.M)


def test_the_configuration_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_text(blocks("toml")[0], encoding="utf-8")
    assert load(path).discovery.enabled
