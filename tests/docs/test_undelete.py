"""The example that docs/undelete.md starts with runs as it stands, ports aside."""

from __future__ import annotations

from pathlib import Path

from mqis.testing.ports import free_ports
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("undelete.md")


def test_the_example_runs(tmp_path: Path) -> None:
    script = blocks(TEXT, "sh")[0]
    for fixed, port in zip(("2879", "1135"), free_ports(2), strict=True):
        script = script.replace(fixed, str(port))
    script = script.replace("127.0.0.1", "127.0.0.37")  # whose queue port nobody else uses
    text = run(f"trap 'kill $(jobs -p) || true' EXIT\n{script}", tmp_path).stdout
    assert "1 queue would be orphaned and will be deleted first:\n  queue app1\\orders" in text
    assert "deleted machine app1" in text
    assert "to bring back: 1 machine, 1 queue" in text
    assert "brought back 2 objects" in text
