"""The example that docs/replication.md starts with runs as it stands, addresses aside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from mqis.services.replication_section import ReplicationSection

DOCUMENT = Path(__file__).parents[2] / "docs" / "replication.md"
TEXT = DOCUMENT.read_text("utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_the_example_runs(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("mqis")
    if not command.exists():
        pytest.skip("mqis is not installed beside this Python")
    script = re.findall(r"^```sh\n(.*?)^```", TEXT, re.S | re.M)[0]
    net = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
    script = script.replace("127.0.0.", f"{net}.")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env=kept | {"PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "lei-dir1 is a psc of Acme in site Leiden" in text
    assert "psc of Leiden, queue manager TCP 1801" in text
    assert "created queue del-dir1\\orders (" in text
    assert done.stderr.count(b"stopped") == 2


def test_every_key_is_explained() -> None:
    for key in fields(ReplicationSection):
        assert f"`{key.name}`" in TEXT, key.name
