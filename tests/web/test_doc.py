"""The example that docs/console.md starts with runs as it stands, the port aside."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.docs.documents import commands, run, text_of
from tests.waiting import DEADLINE_S
from tests.web.asking import Visitor

TEXT = text_of("console.md")


def test_the_example_runs(tmp_path: Path) -> None:
    tour, console, *_ = commands(TEXT)
    run(tour, tmp_path)
    words = shlex.split(console, comments=True)
    assert words[:2] == ["mqis", "console"]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    with subprocess.Popen(
        [sys.executable, "-m", "mqis.cli.main", *words[1:], "--port", "0"],
        cwd=tmp_path,
        env=inherited,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("console at http://127.0.0.1:"), line
            visitor = Visitor(line.split()[-1])
            assert "cost 30" in visitor.get("/map?from=ams-desk1&to=chi-app1").text
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    assert process.returncode == 0, told
    assert "Traceback" not in told


def test_the_menu_is_explained() -> None:
    from mqis.web.console import MENU

    for _, name in MENU:
        assert f"| {name} |" in TEXT
