"""A standalone Spark cluster on this machine, from the package that pip installed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from mqis.pipeline.java import java_home
from mqis.pipeline.session import worker_python
from mqis.runtime.freeports import free_port
from tests.waiting import DEADLINE_S, wait_until

_DEPLOY = "org.apache.spark.deploy"
_HERE = ("--host", "127.0.0.1")


def environment() -> dict[str, str]:
    """The environment of a process that runs Spark."""
    return os.environ | {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": worker_python(),
    }


@contextmanager
def standalone(directory: Path, within: Sequence[str] = ()) -> Iterator[str]:
    """Runs a master and a worker with two cores; gives the master's URL.

    ``within`` is a command that starts the worker, in surroundings of its own.
    """
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    master = ("--port", str(port), "--webui-port", str(free_port()))
    worker = (*_HERE, "--cores", "2", "--memory", "1g", "--webui-port", str(free_port()), url)
    leading, registered = "I have been elected leader", "Successfully registered with master"
    with (
        _daemon(directory, "master", leading, f"{_DEPLOY}.master.Master", *_HERE, *master),
        _daemon(
            directory, "worker", registered, f"{_DEPLOY}.worker.Worker", *worker, within=within
        ),
    ):
        yield url


@contextmanager
def _daemon(
    directory: Path, name: str, ready: str, *arguments: str, within: Sequence[str] = ()
) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    spawned = environment() | {"SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(directory / name)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*within, home / "bin" / "spark-class", *arguments],
            env=spawned,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def looked() -> bool:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        return ready in log.read_text("utf-8", "replace")

    try:
        wait_until(looked, f"{ready} in {log}")
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(DEADLINE_S)
