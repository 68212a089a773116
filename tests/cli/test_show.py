"""``mqis show server``: everything about one server of a run directory."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import run
from tests.web.large import Large, running

LARGE = Large(13)


def test_everything_about_one_server(tmp_path: Path) -> None:
    late, gone = LARGE.server(10), LARGE.server(12)
    with running(LARGE, tmp_path):
        text = run("show", "server", late.upper(), "--run", str(tmp_path), "--lines", "1")
        shown = run("show", "server", late, "--run", str(tmp_path), "--json")
        away = run("show", "server", gone, "--run", str(tmp_path))
        wrong = run("show", "server", "nobody", "--run", str(tmp_path))
    assert text.exit_code == 0, text.output
    for words in ("PSC", "Berlin-03", "1.0.0", "100 MiB", "800 MiB (journal), 12 GiB (store)"):
        assert words in text.stdout
    assert "36 changes behind" in text.stdout
    lines = [line.split() for line in text.stdout.splitlines()]
    partitions = [line for line in lines if line[:1] == ["Amsterdam"]]
    assert partitions[0][:4] == ["Amsterdam", "amsterdam-gw", "3", "behind"]
    neighbours = [line for line in lines if line[1:2] in (["none"], ["open"])]
    assert neighbours[0] == [LARGE.server(12), "none", "7"], "what waits comes first"
    assert text.stdout.splitlines()[-1].endswith("is not written"), "the last log line"
    content = json.loads(shown.stdout)
    assert (content["version"], content["memory_bytes"]) == ("1.0.0", 100 << 20)
    assert [line["level"] for line in content["log"]] == ["info", "warning", "error"]
    assert away.exit_code == 1
    assert "does not answer" in away.stdout
    assert wrong.exit_code == 1
    # Names that are not like it at all were called the nearest.
    assert str(wrong.exception).startswith("nobody: no such server; 'mqis status --all' lists the ")
