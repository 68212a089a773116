"""The example that docs/replication.md starts with runs as it stands, addresses aside."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from mqis.config.replication import ReplicationSection
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("replication.md")


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_the_example_runs(tmp_path: Path) -> None:
    script = blocks(TEXT, "sh")[0]
    net = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
    script = script.replace("127.0.0.", f"{net}.")
    done = run(script, tmp_path)
    text = done.stdout
    assert "lei-dir1 is a psc of Acme in site Leiden" in text
    assert "psc of Leiden, queue manager TCP 1801" in text
    assert "created queue del-dir1\\orders (" in text
    assert done.stderr.count("stopped") == 2


def test_every_key_is_explained() -> None:
    for key in fields(ReplicationSection):
        assert f"`{key.name}`" in TEXT, key.name
