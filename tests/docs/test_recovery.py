"""docs/operations.md, from backup to doctor: its examples run one after the other as they stand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.documents import blocks, run, text_of
from tests.waiting import DEADLINE_S

SECTIONS = ("Backup and restore", "Replacing a lost server", "Doctor")


def scripts() -> str:
    parts = {part.partition("\n")[0]: part for part in text_of("operations.md").split("\n## ")}
    found = [blocks(parts[name], "sh") for name in SECTIONS]
    assert [len(each) for each in found] == [1, 1, 1]
    return "".join(block for each in found for block in each)


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_the_examples_run(tmp_path: Path) -> None:
    net = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
    script = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + scripts().replace(
        "127.0.0.", f"{net}."
    )
    done = run(f"export COLUMNS=200\n{script}", tmp_path, timeout_s=3 * DEADLINE_S)
    text, log = done.stdout, done.stderr
    for line in (
        "it holds secrets (accounts.toml, signing.key): anyone who can read it can act as this",
        "next: mqis serve --config mqis.toml; it asks the other servers first",
        "lei-dir2 becomes the PSC of Leiden in the place of lei-dir1",
        "checked: lei-dir1 does not answer",
        "nothing was changed (--dry-run)",
        "created queue lei-dir2\\new (",
        "lei-dir2 (psc) at ",
    ):
        assert line in text, line
    assert (tmp_path / "leiden" / "mqis.toml").exists()
    assert "this store was restored, asking the other servers first: backup of lei-dir1, " in log
    assert "lei-dir1 is a backup of this site now" in log
