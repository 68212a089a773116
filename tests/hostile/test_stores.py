"""Stores that hang, are shared or are damaged, under a real server."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from mqis.services import demo
from mqis.services.stores import open_store
from tests.cli.commands import process
from tests.cli.running import Running, serving
from tests.hostile.databases import (
    PATIENCE_S,
    Stalls,
    health,
    stopped,
    until_healthy,
    url_of,
    write_home,
)
from tests.hostile.databases import database as database
from tests.plugins.stores import PostgresSchema, PostgresServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

QUEUE = ("create", "queue", "ams-app1\\attack")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An SQLite store with the demonstration enterprise in it."""
    path = tmp_path / "directory.db"
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
    return path


def read(server: Running) -> subprocess.CompletedProcess[bytes]:
    return process("lookup", "site", "--server", server.address, "--anonymous")


def refused(home: Path) -> str:
    """Start a server that must not start; what it says."""
    command = [sys.executable, "-m", "mqis.cli.main", "serve"]
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "ready" not in done.stdout
    return done.stderr


# --- a database that hangs ------------------------------------------------------------------------


@pytest.mark.req("SEC-8-01")
def test_a_database_that_hangs_does_not_freeze_the_server(
    tmp_path: Path, database: PostgresSchema, postgres_server: PostgresServer
) -> None:
    """Calls fail, the event loop goes on, and the server recovers without a restart."""
    with serving(write_home(tmp_path / "home", url_of(database)), "--json") as server:
        assert read(server).returncode == 0
        with Stalls(server) as stalls, stopped(postgres_server):
            for _ in range(3):
                began = time.monotonic()
                done = read(server)
                assert done.returncode == 1
                assert b"MQ_ERROR_DS_ERROR" in done.stderr
                assert time.monotonic() - began < PATIENCE_S
        assert stalls.longest_s < PATIENCE_S / 2, "the event loop stood still"
        until_healthy(server, healthy=True)
        assert read(server).returncode == 0
        assert server.log.count("the store does not answer, calls fail until it does") == 1
        assert "Traceback" not in server.log
        print(f"longest stall of the loop: {stalls.longest_s:.2f} s")


@pytest.mark.req("SEC-8-02")
def test_health_says_why_while_the_database_hangs(
    tmp_path: Path, database: PostgresSchema, postgres_server: PostgresServer
) -> None:
    with serving(write_home(tmp_path / "home", url_of(database)), "--json") as server:
        assert health(server) == (200, [])
        with stopped(postgres_server):
            (problem,) = until_healthy(server, healthy=False)
            assert problem.startswith("the store does not answer since ")
            assert problem.endswith(": no answer within 2 s")
            began = time.monotonic()
            assert health(server)[0] == 503
            assert time.monotonic() - began < 1.0, "known, and yet waited for"
        assert until_healthy(server, healthy=True) == []
        assert "127.0.0.1" not in problem, "names of computers are for the log"


@pytest.mark.req("SEC-8-03")
@pytest.mark.parametrize("known", [True, False], ids=["known", "just now"])
def test_sigterm_ends_a_server_whose_database_hangs(
    tmp_path: Path, database: PostgresSchema, postgres_server: PostgresServer, known: bool
) -> None:
    with serving(write_home(tmp_path / "home", url_of(database)), "--json") as server:
        with stopped(postgres_server):
            if known:
                until_healthy(server, healthy=False)
            caller = subprocess.Popen(
                [sys.executable, "-m", "mqis.cli.main", "lookup", "site", "--anonymous"]
                + ["--server", server.address],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(PATIENCE_S)
            seconds = time.monotonic() - began
            caller.wait(PATIENCE_S)
        assert seconds < 5.0
        print(f"ended after {seconds:.2f} s")


@pytest.mark.req("SEC-8-03")
def test_a_server_that_starts_while_its_database_hangs_says_so(
    tmp_path: Path, database: PostgresSchema, postgres_server: PostgresServer
) -> None:
    home = write_home(tmp_path / "home", url_of(database))
    with stopped(postgres_server):
        assert "cannot connect: connection timeout expired" in refused(home)


# --- two servers on one store ---------------------------------------------------------------------


@pytest.mark.req("SEC-8-04")
@pytest.mark.parametrize("path", ["same", "link", "relative"])
def test_two_servers_on_one_file_are_refused(tmp_path: Path, file: Path, path: str) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "link.db").symlink_to(file)
    urls = {"same": str(file), "link": "link.db", "relative": f"../{file.name}"}
    first = write_home(tmp_path / "first", str(file))
    write_home(second, urls[path])
    with serving(first, "--json") as server:
        text = refused(second)
        assert f"process {server.process.pid} uses this store; stop that one first" in text
        assert process("get", "site", "Amsterdam", "-s", str(file)).returncode == 0
        assert process("export", "-s", str(file)).returncode == 0
        changed = process("import", "/dev/null", "-s", str(file))
        assert b"uses this store; stop that one first" in changed.stderr
        server.process.kill()  # the kernel lets go of the claim
        server.process.wait()
        with serving(second, "--json"):
            pass


@pytest.mark.req("SEC-8-04")
def test_a_second_name_of_a_file_does_not_get_around_the_claim(tmp_path: Path, file: Path) -> None:
    home = write_home(tmp_path / "home", "other.db")
    os.link(file, home / "other.db")
    assert "has 2 names (hard links)" in refused(home)


@pytest.mark.req("SEC-8-04")
def test_two_servers_on_one_database_are_refused(
    tmp_path: Path, database: PostgresSchema
) -> None:
    first, second = (write_home(tmp_path / name, url_of(database)) for name in ("a", "b"))
    with serving(first, "--json") as server:
        text = refused(second)
        assert "another server or command uses this store" in text
        assert f"process {server.process.pid} at" in text
        server.process.kill()
        server.process.wait()
        with serving(second, "--json"):
            pass


@pytest.mark.req("SEC-8-04")
def test_a_server_that_lost_its_database_to_another_does_not_write(
    tmp_path: Path, database: PostgresSchema
) -> None:
    """Its session was ended, and somebody else was quicker."""
    home = write_home(tmp_path / "home", url_of(database))
    with serving(home, "--json") as server:
        with closing(database.claim_by_force()):
            (problem,) = until_healthy(server, healthy=False)
            assert problem.endswith("another server or command uses it")
            done = process(*QUEUE, "--server", server.address, "--anonymous")
            assert done.returncode == 1
            assert b"MQ_ERROR_DS_ERROR" in done.stderr
        until_healthy(server, healthy=True)


# --- damage ---------------------------------------------------------------------------------------


def overwrite(file: Path) -> None:
    """Half of the pages become noise, the first ones, with header and schema, stay."""
    size = file.stat().st_size
    with file.open("r+b") as out:
        out.seek(size // 2 // 4096 * 4096)
        out.write(b"\xa5" * (size - out.tell()))


@pytest.mark.req("SEC-8-05")
def test_a_damaged_file_is_not_served(tmp_path: Path, file: Path) -> None:
    overwrite(file)
    before = file.read_bytes()
    text = refused(write_home(tmp_path / "home", str(file)))
    assert "is damaged" in text
    assert "'mqis store check' lists what is damaged, 'mqis restore' puts a backup back" in text
    assert "Traceback" not in text
    assert file.read_bytes() == before


@pytest.mark.req("SEC-8-05")
def test_a_file_that_is_damaged_under_a_server_is_not_written_to(
    tmp_path: Path, file: Path
) -> None:
    with serving(write_home(tmp_path / "home", str(file)), "--json") as server:
        overwrite(file)
        with closing(sqlite3.connect(file)) as other:  # so that nobody answers from memory
            other.execute("UPDATE outbox_last SET lsn = lsn")
            other.commit()
        for _ in range(3):
            process("lookup", "queue", "--server", server.address, "--anonymous")
        log_file = Path(f"{file}-wal")
        before = file.read_bytes(), log_file.read_bytes()
        for _ in range(2):
            done = process(*QUEUE, "--server", server.address, "--anonymous")
            assert b"MQ_ERROR_DS_ERROR" in done.stderr
        assert (file.read_bytes(), log_file.read_bytes()) == before
        assert server.log.count("the store is damaged") == 1
        assert server.log.count("'mqis restore' puts a backup back") == 1
        assert "Traceback" not in server.log
        status, problems = health(server)
        assert status == 503
        assert problems[0].startswith("the store is damaged, as was found at ")


@pytest.mark.req("SEC-8-05")
def test_a_row_that_was_altered_ends_all_writing(tmp_path: Path, file: Path) -> None:
    """SQLite finds nothing wrong: what is in the row is not what mqis wrote."""
    with closing(sqlite3.connect(file)) as other:
        other.execute("UPDATE partitions SET last_seq = x'0102'")
        other.commit()
    copy = tmp_path / "copy.db"
    shutil.copyfile(file, copy)
    text = refused(write_home(tmp_path / "home", str(file)))
    assert "is damaged" in text
    assert "Traceback" not in text
