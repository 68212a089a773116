"""``mqis generate`` and ``mqis pipeline`` from end to end, in the session of the tests."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.pipeline import audit
from mqis.config.nodes import Nodes, save_nodes
from mqis.config.stores import open_store
from mqis.lab import demo as demo_directory
from mqis.wire.errors import MqisError
from tests.bench.running import bench
from tests.cli.commands import run
from tests.enterprise.test_gather import node
from tests.waiting import DEADLINE_S, wait_until

DOC = Path(__file__).resolve().parents[3] / "docs" / "pipeline.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cli") / "demo"
    sizes = ["--machines", "6", "--queues", "20", "--changes", "100"]
    result = run("generate", str(directory), *sizes)
    assert result.exit_code == 0, result.output
    assert "5 servers" in result.stdout
    return directory


def test_everything_in_one_run(spark: SparkSession, demo: Path) -> None:
    arguments = ["--journals", f"{demo}/journals", "--exports", f"{demo}/exports"]
    result = run("pipeline", "run", *arguments, "--tables", f"{demo}/tables", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    manifest = json.loads((demo / "manifest.json").read_text(encoding="ascii"))
    found = {(row["server"], row["id"], row["cause"]) for row in told["divergence"]}
    assert found == {(f["server"], f["id"], f["cause"]) for f in manifest["faults"]}
    assert told["ingest"]["errors"] == len(manifest["damage"]) == 4
    assert told["ingest"]["evidence"] == len(manifest["evidence"])
    assert told["history"]["changes"] == manifest["changes"]
    assert told["routes"] == {"sites": 3, "pairs": 6, "unreachable": 0}

    shown = run("pipeline", "show", "gaps", "--tables", f"{demo}/tables")
    assert shown.exit_code == 0, shown.output
    assert "duplicate" in shown.stdout

    out = demo / "report.html"
    written = run("pipeline", "report", str(out), "--tables", f"{demo}/tables")
    assert written.exit_code == 0, written.output
    page = out.read_text("utf-8")
    for fault in manifest["faults"]:
        assert fault["id"] in page
    assert page.count("<svg") >= 4
    assert "://" not in page  # it opens offline
    assert "Action needed" in page
    check_in_a_browser(out)


def check_in_a_browser(page: Path) -> None:
    """Offline: nothing is fetched, nothing fails, the charts are there and have a size."""
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no browser is installed")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=quiet)
        try:
            shown = browser.new_context(offline=True).new_page()
            told: list[str] = []
            fetched: list[str] = []
            shown.on("console", lambda message: told.append(message.text))
            shown.on("pageerror", lambda error: told.append(str(error)))
            shown.on("request", lambda request: fetched.append(request.url))
            shown.goto(page.as_uri())
            sizes = [box.bounding_box() for box in shown.locator("svg").all()]
            assert shown.locator("table.matrix td.hit").count() > 0
        finally:
            browser.close()
    assert told == []
    assert fetched == [page.as_uri()]
    assert len(sizes) >= 4
    assert all(size["width"] > 300 and size["height"] > 20 for size in sizes)


def test_what_is_wrong_is_said(
    spark: SparkSession, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ["--tables", str(tmp_path / "tables")]
    nothing = run("pipeline", "ingest", *tables)
    assert nothing.exit_code == 2
    assert "nothing to read: give --run" in nothing.stderr
    missing = run("pipeline", "ingest", "--journals", str(tmp_path / "none"), *tables).exception
    assert isinstance(missing, MqisError)
    assert "no such file" in str(missing)
    empty = run("pipeline", "ingest", "--exports", str(tmp_path), *tables).exception
    assert "there are no exports" in str(empty)
    unread = run("pipeline", "audit", *tables).exception
    assert "mqis pipeline ingest" in str(unread)
    assert not (tmp_path / "tables").exists()
    number = run("pipeline", "rebuild", "out.jsonl", "--at", "12", *tables)
    assert number.exit_code == 2
    monkeypatch.setitem(sys.modules, "pyspark", None)
    without = run("pipeline", "audit", *tables).exception
    assert isinstance(without, MqisError)
    assert "pip install 'mqis[pipeline]'" in str(without)


def test_a_run_directory_needs_no_exports_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    """One stopped server without a journal; the report is where the console looks for it."""
    directory = tmp_path / "run"
    home = directory / "servers" / "ams-dir1"
    home.mkdir(parents=True)
    directory.chmod(0o700)
    with closing(open_store(f"sqlite:{home / 'directory.db'}", create=True)) as store:
        demo_directory.build(store)
    save_nodes(directory, Nodes("Meridian", (node(directory, "ams-dir1"),)))
    result = run("pipeline", "--run", directory)
    assert result.exit_code == 0, result.output
    assert f"wrote {directory}/tables/report.html" in result.stdout
    page = (directory / "tables" / "report.html").read_text("utf-8")
    assert "Meridian: state of the directory" in page
    rows = run("pipeline", "--run", directory, "sql", "SELECT path FROM directory", "--json")
    assert {"path": "Berlin"} in json.loads(rows.stdout)
    both = run("pipeline", "run", "--run", directory, "--exports", tmp_path)
    assert both.exit_code == 2


@pytest.mark.parametrize("seconds", [0, 10])
def test_ctrl_c_ends_it_with_one_line(tmp_path: Path, seconds: int) -> None:
    """A real SIGINT to a real process whose Spark starts, or is at work.

    ``communicate`` ends only after Java has ended too, which has the same stderr.
    """
    endless = "SELECT count(*) FROM range(1000000) a, range(100000000) b WHERE a.id = b.id % 7"
    process = subprocess.Popen(
        [sys.executable, "-m", "mqis.cli.main", "pipeline", "sql", endless],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: any(_children(process.pid)), "Java")
        time.sleep(seconds)  # then it may be starting or computing: both have to end
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"")
    lines = [line for line in errors.decode().splitlines() if line and not _is_of_java(line)]
    assert lines == ["mqis: interrupted; each table is either as it was or new"]


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()


def _is_of_java(line: str) -> bool:
    """Java and Spark warn when they start."""
    return line.startswith(("WARNING: Using incubator", "Setting default log", "To adjust logging"))


def test_the_example_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit.main(tmp_path)
    assert "5 servers" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()


def test_the_documents_program_runs(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    program = re.findall(r"^```python\n(.*?)^```", DOC.read_text("utf-8"), re.M | re.S)[0]
    assert "import" in program  # a whole program, not one of the fragments that follow
    exec(compile(program, str(DOC), "exec"), {})
    assert "queue different" in capsys.readouterr().out


def test_the_benchmark_measures_something() -> None:
    done = bench("--quick", "--json", "pipeline")
    assert done.returncode == 0, done.stderr
    entry = json.loads(done.stdout)["entries"]["pipeline"]
    assert all(row["per_second"] > 0 for row in entry["rows"])
    assert all(aim["measured"] for aim in entry["aims"])
