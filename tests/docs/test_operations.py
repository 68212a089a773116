"""The example that docs/operations.md starts with runs as it stands."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mqis.enterprise.example import EXAMPLE
from tests.docs.documents import blocks, run, text_of

TEXT = text_of("operations.md")


def test_the_example_runs(tmp_path: Path) -> None:
    script = blocks(TEXT, "sh")[0]
    done = run(f"trap 'mqis down > down.txt' EXIT\n{script}", tmp_path, 240)
    for line in (
        "Meridian is up: 5 servers ready after ",
        "Meridian  5 of 5 servers up, process ",
        "created queue C14\\testq (",
        "killed ber-dir2, process ",
        "chi-dir1 is stopped; ",
        "chi-dir1 is ready, process ",
        "ber-dir2 ended (SIGKILL); starting it again",
        "Meridian is down",
    ):
        assert line in done.stdout, line


def test_every_part_of_the_file_is_explained() -> None:
    for key in tomllib.loads(EXAMPLE):
        assert f"[[{key}]]" in TEXT or f"`[{key}" in TEXT, key
