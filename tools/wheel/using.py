"""Uses an installed mqis: every command that needs more of the package than its code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from time import monotonic
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

from tools.wheel.building import install_light

SAY = Callable[[str], None]

_ENTERPRISE = """
[enterprise]
name = "Fresh"
[[site]]
name = "Delft"
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
[[machine]]
name = "app1"
site = "Delft"
[[queue]]
path = 'app1\\orders'
"""
_STATIC = re.compile(r"""(?:href|src)="(/static/[^"]+)\"""")


#: Counts the rows of a table without Spark and without mqis.
_ROWS = "import sys, pyarrow.parquet as pq; print(pq.read_table(sys.argv[1]).num_rows)"

#: A program that knows Spark and nothing of mqis but the names of its sources.
_PLAIN_SPARK = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
loaded = spark.read.format("mqis.journal").load("made/journals").count()
spark.read.format("mqis.directory").load("made/exports").createTempView("exports")
spark.sql("CREATE TEMPORARY VIEW journal USING mqis.journal OPTIONS (path 'made/journals')")
asked = spark.sql("SELECT count(*) FROM journal").first()[0]
print(json.dumps([loaded, asked, spark.table("exports").count()]))
spark.stop()
"""


class WheelError(Exception):
    """The installed package lacks something."""


class Installed:
    """The commands of an environment, run in a directory outside the project."""

    def __init__(self, commands: Path, directory: Path, say: SAY) -> None:
        self._commands = commands
        self.directory = directory
        self._say = say
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MQIS_", "PYTHON"))}
        self.environment = kept | {"PATH": f"{commands}:{os.environ['PATH']}"}

    def run(self, *arguments: str, status: int = 0) -> str:
        return self.execute("mqis", *arguments, status=status)

    def execute(
        self,
        program: str,
        *arguments: str,
        status: int = 0,
        within: str = ".",
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Runs a program of the environment in a directory of the work; returns its output."""
        done = subprocess.run(
            [str(self._commands / program), *arguments],
            cwd=self.directory / within,
            env=self.environment | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        shown = " ".join((program, *arguments))
        if done.returncode != status:
            raise WheelError(f"{shown}: status {done.returncode}: {done.stderr or done.stdout}")
        self._say(shown)
        return done.stdout

    def expect(self, what: str, holds: object) -> None:
        if not holds:
            raise WheelError(f"this does not hold: {what}")
        self._say(f"  {what}")

    @contextmanager
    def started(self, *arguments: str) -> Iterator[str]:
        """A command that stays; yields the first line that it prints."""
        process = subprocess.Popen(
            [str(self._commands / "mqis"), *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process.stdout.readline()
        finally:
            process.terminate()
            process.wait()


def fresh_start(wheel: Path, directory: Path, say: SAY) -> None:
    """Times the way of a newcomer: an environment, the wheel without extras, the tour."""
    began = monotonic()
    commands = install_light(wheel, directory / "light")
    installed = monotonic()
    work = directory / "newcomer"
    work.mkdir()
    mqis = Installed(commands, work, say)
    shown = mqis.run("tour", "--once")
    took = monotonic() - began
    mqis.expect("the tour ends with all of its statements checked", "The tour took" in shown)
    size = sum(path.stat().st_size for path in (directory / "light").rglob("*") if path.is_file())
    say(
        f"  from nothing to the end of the tour: {took:.0f} s, of which {installed - began:.0f} s "
        f"for the installation ({size / 1e6:.0f} MB)"
    )
    for module in ("numpy", "scipy", "networkx", "psycopg", "pyspark"):
        mqis.execute("python", "-c", f"import {module}", status=1)


def use_commands(mqis: Installed) -> None:
    """Help, completion and manual pages."""
    mqis.expect("the help lists the commands", "undelete" in mqis.run("--help"))
    for shell in ("bash", "zsh", "fish"):
        mqis.expect(f"completion for {shell}", "mqis" in mqis.run("completion", shell))
    mqis.run("man", "man1")
    pages = list((mqis.directory / "man1").glob("mqis*.1"))
    mqis.expect(f"{len(pages)} manual pages", len(pages) > 40)


def use_directory(mqis: Installed) -> None:
    """A directory in a file: map, check, routes, export and diff."""
    mqis.run("tour", "--store", "demo.db")
    mqis.run("map", "--store", "demo.db", "--svg", "map.svg")
    drawn = (mqis.directory / "map.svg").read_text("utf-8")
    mqis.expect("the map is drawn", "<svg" in drawn and "Berlin" in drawn)
    mqis.run("check", "demo.db")
    mqis.run("routes", "--stuck", "--store", "demo.db")
    mqis.run("export", "demo.jsonl", "--store", "demo.db")
    mqis.run("diff", "demo.jsonl", "demo.db", "--html", "diff.html")
    mqis.expect("a page of the differences", (mqis.directory / "diff.html").exists())


def use_enterprise(mqis: Installed) -> None:
    """A running server: delete, undelete, check, diff, and the console with its files."""
    (mqis.directory / "enterprise.toml").write_text(_ENTERPRISE, "utf-8")
    mqis.run("up", "--detach")
    try:
        password = mqis.directory / "mqis-run" / "passwords" / "admin"
        mqis.environment |= {"MQIS_USER": "FRESH\\admin", "MQIS_PASSWORD_FILE": str(password)}
        server = mqis.run("where", "del-dir1").strip()
        mqis.run("export", "before.jsonl", "--server", server)
        mqis.run("delete", "machine", "app1", "--yes", "--server", server)
        text = mqis.run("undelete", "machine", "app1", "--yes", "--server", server)
        mqis.expect("two objects came back", "brought back 2 objects" in text)
        mqis.run("diff", "before.jsonl", f"server:{server}")
        mqis.run("check", "--run", "mqis-run")
        _console(mqis)
    finally:
        mqis.run("down")


def _console(mqis: Installed) -> None:
    with mqis.started("console", "--port", "0", "--json") as line:
        address = json.loads(line)["url"]
        opener = build_opener(HTTPCookieProcessor(CookieJar()))
        base = re.match(r"https?://[^/]+", address)
        assert base is not None
        _fetch(opener, address)
        files: set[str] = set()
        for page in ("/", "/map", "/replication", "/directory", "/journal"):
            files |= set(_STATIC.findall(_fetch(opener, base[0] + page)))
        for file in sorted(files):
            mqis.expect(f"the console serves {file}", _fetch(opener, base[0] + file))
        mqis.expect("cytoscape is among them", any("cytoscape" in file for file in files))


def _fetch(opener: OpenerDirector, address: str) -> str:
    with opener.open(address, timeout=60) as reply:  # raises an error unless the status is 200
        content: bytes = reply.read()
    return content.decode()


def use_pipeline(mqis: Installed) -> None:
    """The pipeline on generated journals: tables, the report with its pictures, SQL."""
    if shutil.which("java") is None and "JAVA_HOME" not in mqis.environment:
        raise WheelError("the pipeline needs Java 17 or newer; --no-pipeline leaves it out")
    size = ("--sites", "2", "--machines", "4", "--queues", "10", "--changes", "50")
    mqis.run("generate", "made", *size, "--faults", "0")
    places = ("--journals", "made/journals", "--exports", "made/exports", "--tables", "tables")
    mqis.run("pipeline", "run", *places)
    mqis.run("pipeline", "report", "report.html", "--tables", "tables")
    page = (mqis.directory / "report.html").read_text("utf-8")
    mqis.expect("the report has its styles and pictures", "<style" in page and "<svg" in page)
    mqis.expect("and loads nothing", not re.findall(r'(?:src|href)="https?:', page))
    rows = mqis.run("pipeline", "sql", "SELECT count(*) AS n FROM changes", "--tables", "tables")
    mqis.expect("a question in SQL has an answer", re.search(r"\d", rows))


def use_sources(mqis: Installed) -> None:
    """The sources in a plain session of Spark, which finds them by itself."""
    (mqis.directory / "plain.py").write_text(_PLAIN_SPARK, "utf-8")
    loaded, asked, exported = json.loads(mqis.execute("python", "plain.py").splitlines()[-1])
    stored = mqis.run(
        *("pipeline", "sql", "SELECT count(*) AS n FROM records", "--tables", "tables", "--json")
    )
    mqis.expect(
        f"Spark alone reads {loaded} records, as the pipeline does",
        loaded == asked == json.loads(stored)[0]["n"] > 0,
    )
    mqis.expect(f"and {exported} objects of exports", exported > 0)


def use_declarative(mqis: Installed) -> None:
    """The same tables by Spark's own ``spark-pipelines``, from the directory of a project."""
    mqis.run("pipeline", "init", "estate", "--journals", "made/journals")
    settings = {"SPARK_CONF_DIR": "conf"}
    mqis.execute("spark-pipelines", "run", within="estate", variables=settings)
    stored = mqis.run(
        *("pipeline", "sql", "SELECT count(*) AS n FROM changes", "--tables", "tables", "--json")
    )
    rows = int(mqis.execute("python", "-c", _ROWS, "estate/spark-warehouse/changes"))
    mqis.expect(
        f"spark-pipelines builds {rows} changes, as the pipeline does",
        rows == json.loads(stored)[0]["n"] > 0,
    )
