"""A standalone Spark cluster on this machine, from the package that pip installed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from mqis.pipeline.session import java_home, worker_python
from mqis.testing.ports import free_port
from tests.waiting import DEADLINE_S, wait_until

#: Makes processes of Java start sooner; those that take no options from Spark's settings, too.
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_DEPLOY = "org.apache.spark.deploy"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HERE = ("--host", "127.0.0.1")


def environment() -> dict[str, str]:
    """The environment of a process that runs Spark."""
    return os.environ | {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": worker_python(),
    }


@contextmanager
def standalone(
    directory: Path, within: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Runs a master and a worker with two cores; gives the master's URL.

    ``within`` is a command that starts the worker, in surroundings of its own.
    """
    env = env or environment()
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    master = ("--port", str(port), "--webui-port", str(free_port()))
    worker = (*_HERE, "--cores", "2", "--memory", "1g", "--webui-port", str(free_port()), url)
    leading, registered = "I have been elected leader", "Successfully registered with master"
    with (
        _daemon(directory, "master", leading, f"{_DEPLOY}.master.Master", *_HERE, *master, env=env),
        _daemon(
            *(directory, "worker", registered, f"{_DEPLOY}.worker.Worker", *worker),
            env=env,
            within=within,
        ),
    ):
        yield url


@contextmanager
def connect_server(
    directory: Path, master: str, settings: Mapping[str, str], env: Mapping[str, str]
) -> Iterator[str]:
    """Runs a Spark Connect server whose tasks run on a cluster; gives its URL.

    The directory is its working directory, too.
    """
    port = free_port()
    given = {"spark.connect.grpc.binding.address": "127.0.0.1"} | dict(settings)
    given["spark.connect.grpc.binding.port"] = str(port)
    conf = [part for pair in given.items() for part in ("--conf", "=".join(pair))]
    command = (f"{_DEPLOY}.SparkSubmit", "--master", master, *conf, "--class", _CONNECT)
    ready = "Spark Connect server started"
    with _daemon(directory, "connect", ready, *command, "spark-internal", env=env):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _daemon(
    directory: Path,
    name: str,
    ready: str,
    *arguments: str,
    env: Mapping[str, str],
    within: Sequence[str] = (),
) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    spawned = {**env, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(directory / name)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*within, home / "bin" / "spark-class", *arguments],
            cwd=directory,
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
