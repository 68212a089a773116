"""``--ui``: the pages of Spark, for people at this computer."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from subprocess import run as start

import pytest

from tests.cli.commands import process, run
from tests.waiting import DEADLINE_S

_SCRIPT = """
import json, socket
from urllib.parse import urlsplit
from mqis.cli.pipeline.options import TableOptions
from mqis.pipeline.session import Engine, session
with session(Engine(settings=TableOptions(ui=True).settings)) as spark:
    place = urlsplit(spark.sparkContext.uiWebUrl)
    told = {"host": place.hostname, "kill": spark.conf.get("spark.ui.killEnabled")}
    for name, address in (("here", "127.0.0.1"), ("elsewhere", OTHER)):
        try:
            socket.create_connection((address, place.port), 5).close()
            told[name] = True
        except OSError:
            told[name] = False
    print(json.dumps(told))
"""


def _other_address() -> str:
    """An address of this computer that others may reach; no packet is sent to learn it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
    return "" if address.startswith("127.") else address


def test_the_pages_are_for_this_computer_alone() -> None:
    other = _other_address()
    if not other:
        pytest.skip("this computer has no address but its loopback")
    done = start(
        [sys.executable, "-c", f"OTHER = {other!r}\n{_SCRIPT}"],
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )
    told = json.loads(done.stdout)
    assert told == {"host": "127.0.0.1", "kill": "false", "here": True, "elsewhere": False}


def test_the_address_is_told(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    done = process("pipeline", "sql", "SELECT 1 AS one", "--ui", "-t", tmp_path / "tables")
    assert done.returncode == 0, done.stderr
    assert b"note: Spark shows its jobs at http://127.0.0.1:" in done.stderr


def test_a_cluster_has_its_own(tmp_path: Path) -> None:
    for more in (("--master", "spark://c:7077"), ("--remote", "sc://c")):
        refused = run("pipeline", "sql", "SELECT 1", "--ui", *more, "-t", tmp_path)
        assert refused.exit_code == 2
        assert "a cluster has pages of its own" in refused.output
