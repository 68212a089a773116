"""``mqis serve`` as a process of its own, on ports that are free."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any

from mqis.server.accounts import AccountsFile
from mqis.wire.security.sid import ADMINISTRATORS
from tests.waiting import DEADLINE_S, wait_until

#: An administrator and a user without rights, by their passwords.
ALICE, BOB = "LAB\\alice", "LAB\\bob"
PASSWORDS = {ALICE: b"rabbit hole\n", BOB: b"builder\n"}

CONFIG = """
[server]
name = "ams-dir1"
[store]
url = "sqlite:directory.db"
[rpc]
mapper_port = 0
[security]
domain = "LAB"
"""


class Running:
    """A server that said it is ready."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path, line: bytes) -> None:
        self.process = process
        self.directory = directory
        self.line = line.decode()

    @property
    def ready(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.line)
        return content

    @property
    def through_mapper(self) -> tuple[str, ...]:
        """The options that lead to it."""
        return "--server", "127.0.0.1", "--mapper-port", str(self.ready["mapper_port"])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ready['port']}"

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(encoding="utf-8")

    def wait_for(self, text: str) -> None:
        """Until the log says ``text``; it is written at once, so polling is short."""
        try:
            wait_until(lambda: text in self.log)
        except AssertionError:
            raise AssertionError(f"no {text!r} in {self.log}") from None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


def prepare(directory: Path, store: Path, config: str = CONFIG) -> None:
    """A store of its own, two accounts and a configuration."""
    directory.mkdir(exist_ok=True)
    copyfile(store, directory / "directory.db")
    (directory / "mqis.toml").write_text(config, encoding="utf-8")
    accounts = AccountsFile(directory / "accounts.toml")
    accounts.add("alice", _password(ALICE), domain="LAB", groups=[ADMINISTRATORS])
    accounts.add("bob", _password(BOB), domain="LAB")


def _password(user: str) -> str:
    return PASSWORDS[user].decode().strip()


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[Running]:
    """Killed at the end, if it still runs."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("MQIS_CONFIG", "MQIS_USER")}
    command = [sys.executable, "-m", "mqis.cli.main", "serve", *options]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=directory, stdout=subprocess.PIPE, stderr=log, env=inherited
        )
    try:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], DEADLINE_S)
        line = process.stdout.readline() if readable else b""
        if not line:
            process.kill()
            raise AssertionError(f"no ready line: {(directory / 'log').read_text()}")
        yield Running(process, directory, line)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
