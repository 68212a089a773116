"""A server of an enterprise as a process: ``python -m bench.member CONFIG``, which is 'mqis serve'.

With MQIS_BENCH_PROFILE=DIRECTORY the event loop's and the writer's thread of every member write
their profiles to DIRECTORY/NAME.loop and DIRECTORY/NAME.writer, in CPU time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from cProfile import Profile
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path
from time import thread_time

from bench.backends import ROOT
from bench.processes import end
from mqis.config.file import default_toml, load, override
from mqis.config.sections import Config
from mqis.runtime.writer import GroupCommitWriter
from mqis.server.directory_server import Ready
from mqis.server.serve import serve

PROFILE = "MQIS_BENCH_PROFILE"
_CONFIG, _STORE, _LOG = "mqis.toml", "mqis.db", "log"


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of one server's files, and the port of its queue manager."""

    directory: Path
    port: int

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def store(self) -> Path:
        return self.directory / _STORE

    def configure(
        self, others: Iterable[Home], *, role: str, site: str, **replication: object
    ) -> None:
        """Writes the configuration: signed messages, and defaults for all times and limits."""
        values: dict[str, dict[str, object]] = {
            "store": {"url": f"sqlite:{_STORE}"},
            "server": {"name": self.name, "site": site, "role": role},
            "rpc": {"mapper": False},
            "security": {
                "gss": "none",
                "max_owned": 100_000_000,
                "max_changes_per_hour": 1_000_000_000,
                "max_written_mb_per_hour": 1_000_000,
            },
            "replication": {
                "port": self.port,
                "signing": "require",
                "notify": False,  # there are no queue managers to notify
                **replication,
            },
            "hosts": {home.name: f"127.0.0.1:{home.port}" for home in others},
            "log": {"level": "warning"},
        }
        text = default_toml(override(Config(), values, "bench"))
        (self.directory / _CONFIG).write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Member:
    """A started server."""

    home: Home
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def ready(self) -> int:
        """Waits until the server has a directory to serve; returns its RPC port."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            log = (self.home.directory / _LOG).read_text("utf-8").strip()
            raise RuntimeError(f"{self.home.name} did not start: {log[-500:]}")
        port: int = loads(line)["port"]
        return port

    def stop(self) -> None:
        end(self.process)
        assert self.process.stdout is not None
        self.process.stdout.close()


def start(home: Home, resources: ExitStack) -> Member:
    with (home.directory / _LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.member", str(home.directory / _CONFIG)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        )
    member = Member(home, process)
    resources.callback(member.stop)
    return member


# --- in the process -------------------------------------------------------------------------------


def _announce(ready: Ready) -> None:
    print(dumps(asdict(ready)), flush=True)


def _profiled(config: Path) -> None:
    name = str(Path(os.environ[PROFILE]) / config.parent.name)

    work = GroupCommitWriter._work

    def profiled(writer: GroupCommitWriter) -> None:
        profile = Profile(thread_time)
        profile.runcall(work, writer)
        profile.dump_stats(f"{name}.writer")

    GroupCommitWriter._work = profiled  # type: ignore[assignment, method-assign]
    profile = Profile(thread_time)
    profile.runcall(serve, lambda: load(config), _announce)
    profile.dump_stats(f"{name}.loop")


def main() -> None:
    config = Path(sys.argv[1])
    if PROFILE in os.environ:
        _profiled(config)
    else:
        serve(lambda: load(config), _announce)


if __name__ == "__main__":
    main()
