"""``spark-pipelines run`` builds the tables in a directory outside the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from mqis.lab.generate import GeneratePlan, generate
from tests.cli.commands import run
from tests.pipeline.kept import KEPT_PLAN, kept_tables
from tests.pipeline.slow.cluster import QUICK_JAVA, environment

pytest.importorskip("yaml")
_SCRIPT = """
import sys
import time
from pathlib import Path
from pyspark.sql import SparkSession
from tests.pipeline.kept import lines_of
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.codegen.wholeStage", "false").getOrCreate()
for name in sys.argv[3:]:
    frame = spark.read.parquet(f"{sys.argv[1]}/{name}")
    print(*lines_of(name, frame, Path(sys.argv[2])), sep="\\n")
"""
_LITTLE = """\
  spark.sql.shuffle.partitions: "1"
  spark.sql.codegen.wholeStage: "false"
  spark.sql.codegen.factoryMode: "NO_CODEGEN"
  spark.sql.pipelines.execution.maxConcurrentFlows: "2"
"""
_CONNECT_PORT, _LISTENS = 15002, "0A"
_LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
#: Tables of every kind: streaming, from the source, judged in one task, in many steps, spread.
LOOKED_AT = (
    *("records", "evidence", "journals", "divergence", "hygiene", "routes", "lag", "versions"),
)


def spark_pipelines(project: Path) -> None:
    """Runs the project as ``docs/pipeline.md`` says, with settings for little data.

    No other computer may reach the Spark Connect server that runs it.
    """
    env = environment() | {
        "SPARK_CONF_DIR": "conf",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **QUICK_JAVA,
    }
    command = Path(sys.executable).with_name("spark-pipelines")
    log = project / "log"
    seen: set[str] = set()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(command), "run"], cwd=project, env=env, stdout=out, stderr=subprocess.STDOUT
        )
        while process.poll() is None:
            seen |= _addresses_of_connect()
            time.sleep(0.5)
    assert process.returncode == 0, log.read_text("utf-8", "replace")[-9000:]
    assert seen
    assert seen <= _LOOPBACK


def _addresses_of_connect() -> set[str]:
    """The addresses, as Linux writes them, on which a Spark Connect server listens."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text("ascii").splitlines()
    ]
    ends = (line[1].split(":") for line in lines if line[3] == _LISTENS)
    return {address for address, port in ends if int(port, 16) == _CONNECT_PORT}


def init(project: Path, *inputs: str) -> None:
    """Makes a project; what takes long with little data is planning and compiling queries."""
    assert run("pipeline", "init", str(project), *inputs).exit_code == 0
    spec = project / "spark-pipeline.yml"
    text = spec.read_text("ascii").replace('adaptive.enabled: "true"', 'adaptive.enabled: "false"')
    spec.write_text(text + _LITTLE, "ascii")


def tables_in(project: Path, root: Path, names: tuple[str, ...]) -> list[str]:
    warehouse = project / "spark-warehouse"
    command = [sys.executable, "-c", _SCRIPT, str(warehouse), str(root), *names]
    done = subprocess.run(
        command,
        env=environment() | QUICK_JAVA,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_spark_pipelines_builds_the_same_tables(tmp_path: Path) -> None:
    root, project = tmp_path / "made", tmp_path / "project"
    generate(KEPT_PLAN, root)
    inputs = ("--journals", str(root / "journals"), "--exports", str(root / "exports"))
    init(project, *inputs)
    spark_pipelines(project)
    kept = kept_tables()
    wanted = [line for name in LOOKED_AT for line in kept[name]]
    assert tables_in(project, root, LOOKED_AT) == wanted
    # The stream reads copies of segments as well.
    read = [line.partition(", ")[2] for line in tables_in(project, root, ("read_records",))]
    assert set(read) > {line.partition(", ")[2] for line in kept["records"]}


def test_a_second_run_reads_only_what_is_new(tmp_path: Path) -> None:
    root, project, all_of_it = tmp_path / "made", tmp_path / "project", tmp_path / "all"
    generate(GeneratePlan(sites=2, machines=2, queues=3, changes=5, faults=0, seed=3), all_of_it)
    first, second = sorted(path for path in (all_of_it / "journals").iterdir() if path.is_dir())[:2]
    shutil.copytree(first, root / "journals" / first.name)
    init(project, "--journals", str(root / "journals"))
    spark_pipelines(project)
    streamed = project / "spark-warehouse" / "read_records"
    one, files = tables_in(project, root, ("records",)), set(streamed.glob("*.parquet"))
    shutil.copytree(second, root / "journals" / second.name)
    spark_pipelines(project)
    both = tables_in(project, root, ("records",))
    assert len(both) > len(one) > 0
    assert set(one) < set(both)
    assert len(set(both)) == len(both)
    # The second run has added files, which have only the second server's records.
    added = [pq.read_table(path)["server"] for path in set(streamed.glob("*.parquet")) - files]
    assert files <= set(streamed.glob("*.parquet"))
    assert {name for column in added for name in column.to_pylist()} == {second.name}
