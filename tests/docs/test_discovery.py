"""The example that docs/discovery.md starts with runs as it stands, ports aside."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mqis.config.file import load
from mqis.testing.ports import free_ports
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("discovery.md")


def test_the_example_runs(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("wants the addresses of Linux")
    port, mapper = free_ports(2)  # of the system's own one might be taken meanwhile
    script = blocks(TEXT, "sh")[0].replace("1135", str(mapper))
    script = re.sub(r"(--discovery [0-9.]+)", rf"\1:{port}", script)
    script = script.replace("discover --network", f"discover --port {port} --network")
    script = re.sub(r"'(127\S+) (127\S+)'", rf"'\1:{port} \2:{port}'", script)
    done = run(script, tmp_path)
    text = done.stdout
    assert f"asking everybody on the network of 127.0.0.1 (127.255.255.255:{port})" in text
    assert re.search(r"^  127\.0\.0\.2 answers: site \S+ has ams-dir1, ams-dir2$", text, re.M)
    assert re.search(r"^  127\.0\.0\.3 answers: site \S+ has ber-dir1, ber-dir2$", text, re.M)
    assert re.search(r"^Berlin +ber-dir1, ber-dir2$", text, re.M)


def test_the_configuration_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_text(blocks(TEXT, "toml")[0], encoding="utf-8")
    assert load(path).discovery.enabled
