"""Stores that misbehave under a real server: a PostgreSQL that hangs, files that are damaged."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.cli.running import Running
from tests.interop import mqds_impacket as mqds
from tests.plugins.stores import PostgresSchema, PostgresServer
from tests.waiting import DEADLINE_S, wait_until

#: A server that hangs is caught by this; a slow machine is not.

CONFIG = """
[server]
name = "ams-dir1"
[store]
url = "{url}"
[rpc]
mapper_port = 0
[security]
domain = "LAB"
[monitoring]
enabled = true
port = 0
"""


def url_of(place: PostgresSchema) -> str:
    """As a configuration names it."""
    given = conninfo_to_dict(place.conninfo)
    options = quote(str(given["options"]), safe="")
    where = f"{given['user']}@{given['host']}:{given['port']}/{given['dbname']}"
    return f"postgresql://{where}?options={options}"


def write_home(home: Path, url: str) -> Path:
    """A directory with a configuration for the store at ``url``."""
    home.mkdir(exist_ok=True)
    (home / "mqis.toml").write_text(CONFIG.format(url=url), encoding="utf-8")
    return home


class Client:
    """A client that is not ours, without an account."""

    def __init__(self, server: Running) -> None:
        self._dce = mqds.connect(server.ready["port"])
        self._dce.get_rpc_transport().get_socket().settimeout(DEADLINE_S)
        call = mqds.S_DSValidateServer()
        call["pguidEnterpriseId"] = bytes(16)
        call["dwContext"] = 7
        for number in ("fSetupMode", "dwClientBuffMaxSize", "dwClientBuffSize"):
            call[number] = 0
        self._auth = mqds.ask(self._dce, call)["pphServerAuth"]["octets"]

    def read(self, machine: str = "ams-app1") -> str:
        """Ask for a property of a machine; the name of the result."""
        call = mqds.S_DSGetProps()
        call["dwObjectType"] = int(ObjectType.MACHINE)
        call["pwcsPathName"] = machine + "\0"
        mqds.put_properties(call, {PropId.QM_MACHINE_ID: mqds.variant(mqds.VT_NULL)})
        call["phServerAuth"] = mqds.handle(self._auth)
        call["pdwServerSignatureSize"] = mqds.SIGNATURE_SIZE
        return _named(mqds.ask(self._dce, call)["ErrorCode"])

    def create(self, queue: str = "ams-app1\\attack") -> str:
        """Create a queue; the name of the result."""
        call = mqds.S_DSCreateObject()
        call["dwObjectType"] = int(ObjectType.QUEUE)
        call["pwcsPathName"] = queue + "\0"
        call["dwSDLength"] = 0
        call["SecurityDescriptor"] = mqds.NULL
        mqds.put_properties(call, {PropId.Q_JOURNAL: mqds.variant(mqds.UI1, 0)})
        call["pObjGuid"] = bytes(16)
        return _named(mqds.ask(self._dce, call)["ErrorCode"])


def _named(code: int) -> str:
    return HResult(code & 0xFFFFFFFF).name


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Every process of a PostgreSQL server gets SIGSTOP: it takes connections and answers none."""
    lines = (server.directory / "data" / "postmaster.pid").read_text().splitlines()
    first = int(lines[0])
    family = [first]
    try:
        os.kill(first, signal.SIGSTOP)  # so that it starts no more of them
        listed = Path(f"/proc/{first}/task/{first}/children").read_text()
        for child in map(int, listed.split()):
            os.kill(child, signal.SIGSTOP)
            family.append(child)
        yield
    finally:
        for process in family:
            with suppress(ProcessLookupError):  # one that was about to end
                os.kill(process, signal.SIGCONT)


def asked(server: Running, path: str) -> tuple[int, str]:
    """Status and text of a document of the monitoring endpoint."""
    port = server.ready["monitoring_port"]
    with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def health(server: Running) -> tuple[int, list[str]]:
    status, text = asked(server, "/health")
    content: dict[str, Any] = json.loads(text)
    return status, content["problems"]


def until_healthy(server: Running, *, healthy: bool) -> list[str]:
    """Asks /health until it is, or is not, healthy; returns the problems of the last answer."""

    def look() -> tuple[list[str]] | None:
        status, problems = health(server)
        return (problems,) if (status == 200) is healthy else None

    return wait_until(look, f"/health says {healthy=}")[0]


def until_problem(server: Running, end: str) -> None:
    """Asks /health until its one problem ends with ``end``; another may be reported before."""

    def look() -> bool:
        _, problems = health(server)
        return len(problems) == 1 and problems[0].endswith(end)

    wait_until(look, f"/health says ...{end}")


class Stalls:
    """Asks the event loop of a server again and again whether it goes on.

    A path that does not exist is answered by the loop alone, without the store.
    """

    def __init__(self, server: Running) -> None:
        self._port = server.ready["monitoring_port"]
        self._end = Event()
        self._thread = Thread(target=self._work)
        self.longest_s = 0.0
        self.answers = 0

    def expect_answers(self) -> None:
        """Waits for an answer to a question that is asked from now on."""
        wanted = self.answers + 2  # the next one may have been asked before
        wait_until(lambda: self.answers >= wanted, "the event loop goes on")

    def __enter__(self) -> Stalls:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._end.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._end.wait(0.02):
            began = time.monotonic()
            with socket.create_connection(("127.0.0.1", self._port), DEADLINE_S) as connection:
                connection.settimeout(DEADLINE_S)
                connection.sendall(b"GET /nothing HTTP/1.0\r\n\r\n")
                if connection.recv(64):
                    self.answers += 1
                self.longest_s = max(self.longest_s, time.monotonic() - began)
