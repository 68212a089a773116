"""docs/operations.md, from backup to doctor: its examples run one after the other as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"
SECTIONS = ("Backup and restore", "Replacing a lost server", "Doctor")


def scripts() -> str:
    text = DOCUMENT.read_text("utf-8")
    parts = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    found = [re.findall(r"^```sh\n(.*?)^```", parts[name], re.S | re.M) for name in SECTIONS]
    assert [len(each) for each in found] == [1, 1, 1]
    return "".join(block for each in found for block in each)


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_the_examples_run(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("mqis")
    if not command.exists():
        pytest.skip("mqis is not installed beside this Python")
    net = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
    script = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + scripts().replace(
        "127.0.0.", f"{net}."
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env=kept | {"PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "200"},
        capture_output=True,
        check=False,
        timeout=240,
    )
    text = done.stdout.decode()
    assert done.returncode == 0, text + done.stderr.decode()
    for line in (
        "it holds secrets (accounts.toml, signing.key): who can read it can act as this server",
        "next: mqis serve --config mqis.toml; it asks the other servers first",
        "lei-dir2 becomes the PSC of Leiden in the place of lei-dir1",
        "checked: lei-dir1 does not answer",
        "nothing was changed (--dry-run)",
        "created queue lei-dir2\\new (",
        "lei-dir2 (psc) at ",
    ):
        assert line in text, line
    assert (tmp_path / "leiden" / "mqis.toml").exists()
    log = done.stderr.decode()
    assert "this store was put back, the others are asked first: backup of lei-dir1, " in log
    assert "lei-dir1 is a backup of this site now" in log
