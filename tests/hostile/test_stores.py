"""Stores that hang, are shared or are damaged, under a real server."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo
from tests.cli.commands import run
from tests.cli.running import Running, serving
from tests.hostile.databases import (
    Client,
    Stalls,
    health,
    stopped,
    until_healthy,
    until_problem,
    url_of,
    write_home,
)
from tests.interop.mqds_impacket import disconnect_all
from tests.plugins.stores import PostgresSchema, PostgresServer
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

FAILED = "MQ_ERROR_DS_ERROR"


@pytest.fixture(autouse=True)
def hung_up() -> Iterator[None]:
    yield
    disconnect_all()


@pytest.fixture
def filled(postgres_schema: PostgresSchema) -> PostgresSchema:
    """A PostgreSQL store with the demonstration enterprise in it."""
    with closing(postgres_schema.open()) as store:
        demo.build(store)
    return postgres_schema


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An SQLite store with the demonstration enterprise in it."""
    path = tmp_path / "directory.db"
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
    return path


def call_in_vain(client: Client) -> None:
    """A change and a read that the server may fail, or not answer because it ends."""
    with suppress(Exception):
        client.read("ams-desk3")
        client.create()


def refused(home: Path) -> str:
    """Start a server that must not start; what it says."""
    command = [sys.executable, "-m", "mqis.cli.main", "serve"]
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "ready" not in done.stdout
    return done.stderr


def seconds_until_503(server: Running) -> float:
    began = time.monotonic()
    assert health(server)[0] == 503
    return time.monotonic() - began


# --- a database that hangs ------------------------------------------------------------------------


@pytest.mark.req("SEC-8-01")
def test_a_database_that_hangs_does_not_freeze_the_server(
    tmp_path: Path, filled: PostgresSchema, postgres_server: PostgresServer
) -> None:
    """Calls fail, the event loop goes on, and the server recovers without a restart."""
    with serving(write_home(tmp_path / "home", url_of(filled)), "--json") as server:
        client = Client(server)
        assert client.read() == "MQ_OK"
        with Stalls(server) as stalls, stopped(postgres_server):
            for name in ("ams-app2", "ams-desk1", "ams-desk2"):  # none of which was read before
                assert client.read(name) == FAILED
                stalls.expect_answers()
            assert client.create() == FAILED
            server.wait_for("the store does not answer, calls fail until it does")
            stalls.expect_answers()
        until_healthy(server, healthy=True)
        assert client.read() == "MQ_OK"
        assert server.log.count("the store does not answer, calls fail until it does") == 1
        assert "Traceback" not in server.log
        print(f"longest stall of the loop: {stalls.longest_s:.2f} s")


@pytest.mark.req("SEC-8-02")
def test_health_says_why_while_the_database_hangs(
    tmp_path: Path, filled: PostgresSchema, postgres_server: PostgresServer
) -> None:
    with serving(write_home(tmp_path / "home", url_of(filled)), "--json") as server:
        assert health(server) == (200, [])
        with stopped(postgres_server):
            (problem,) = until_healthy(server, healthy=False)
            assert problem.startswith("the store does not answer since ")
            assert problem.endswith(": no answer within 2 s")
            fastest = min(seconds_until_503(server) for _ in range(5))
            assert fastest < 1.0, "known, and yet waited for"
        assert until_healthy(server, healthy=True) == []
        assert "127.0.0.1" not in problem, "names of computers are for the log"


@pytest.mark.req("SEC-8-03")
@pytest.mark.parametrize("known", [True, False], ids=["known", "just now"])
def test_sigterm_ends_a_server_whose_database_hangs(
    tmp_path: Path, filled: PostgresSchema, postgres_server: PostgresServer, known: bool
) -> None:
    with serving(write_home(tmp_path / "home", url_of(filled)), "--json") as server:
        client = Client(server)
        with stopped(postgres_server):
            if known:
                until_healthy(server, healthy=False)
            caller = Thread(target=call_in_vain, args=(client,))
            caller.start()
            time.sleep(0.3)  # so that its calls wait for the database
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(DEADLINE_S)  # the database hangs for longer
            seconds = time.monotonic() - began
            caller.join(DEADLINE_S)
        print(f"ended after {seconds:.2f} s")


@pytest.mark.req("SEC-8-03")
def test_a_server_that_starts_while_its_database_hangs_says_so(
    tmp_path: Path, filled: PostgresSchema, postgres_server: PostgresServer
) -> None:
    home = write_home(tmp_path / "home", url_of(filled))
    with stopped(postgres_server):
        assert "cannot connect: connection timeout expired" in refused(home)


# --- two servers on one store ---------------------------------------------------------------------


@pytest.mark.req("SEC-8-04")
def test_two_servers_on_one_file_are_refused(tmp_path: Path, file: Path) -> None:
    """By another path; commands that only read go on working beside the first."""
    second = tmp_path / "second"
    second.mkdir()
    (second / "link.db").symlink_to(file)
    first = write_home(tmp_path / "first", str(file))
    write_home(second, "link.db")
    with serving(first, "--json") as server:
        text = refused(second)
        assert f"process {server.process.pid} uses this store; stop it first" in text
        assert run("get", "site", "Amsterdam", "-s", str(file)).exit_code == 0
        assert run("export", "-s", str(file)).exit_code == 0
        changed = run("import", "/dev/null", "-s", str(file)).exception
        assert "uses this store; stop it first" in str(changed)
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
def test_two_servers_on_one_database_are_refused(tmp_path: Path, filled: PostgresSchema) -> None:
    first, second = (write_home(tmp_path / name, url_of(filled)) for name in ("a", "b"))
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
    tmp_path: Path, filled: PostgresSchema
) -> None:
    """Its session was ended, and somebody else was quicker."""
    home = write_home(tmp_path / "home", url_of(filled))
    with serving(home, "--json") as server:
        client = Client(server)
        with closing(filled.claim_by_force()):
            until_problem(server, "another server or command uses it")
            assert client.create() == FAILED
        until_healthy(server, healthy=True)
        assert client.create() != FAILED


# --- damage ---------------------------------------------------------------------------------------


PAGE = 4096


def overwrite(file: Path, name: str = "ams-desk1") -> None:
    """The pages that hold an object become noise; header and schema stay."""
    data = file.read_bytes()
    words = name.encode("utf-16-le"), name.encode()
    pages = [
        at for at in range(PAGE, len(data), PAGE) if any(w in data[at : at + PAGE] for w in words)
    ]
    assert pages
    with file.open("r+b") as out:
        for at in pages:
            out.seek(at)
            out.write(b"\xa5" * PAGE)


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
            other.execute("UPDATE outbox_last SET lsn = lsn + 1")
            other.commit()
        client = Client(server)
        assert [client.read("ams-desk1") for _ in range(3)] == [FAILED] * 3
        log_file = Path(f"{file}-wal")
        before = file.read_bytes(), log_file.read_bytes()
        assert [client.create() for _ in range(3)] == [FAILED] * 3
        assert (file.read_bytes(), log_file.read_bytes()) == before
        assert server.log.count("the store is damaged") == 1
        assert server.log.count("'mqis restore' puts a backup back") == 1
        assert "Traceback" not in server.log
        status, problems = health(server)
        assert status == 503
        assert problems[0].startswith("the store is damaged (found at ")


@pytest.mark.req("SEC-8-05")
def test_one_damaged_object_ends_all_writing(tmp_path: Path, file: Path) -> None:
    """SQLite could write everything else."""
    with serving(write_home(tmp_path / "home", str(file)), "--json") as server:
        client = Client(server)
        assert client.create() != FAILED
        with closing(sqlite3.connect(file)) as other:
            named = "%" + "ams-desk1".encode("utf-16-le").hex() + "%"
            done = other.execute(
                "UPDATE objects SET body = x'ff' WHERE object_type = 2 AND lower(hex(body)) LIKE ?",
                (named,),
            )
            assert done.rowcount
            other.execute("UPDATE outbox_last SET lsn = lsn + 1")
            other.commit()
        assert client.read("ams-desk1") == FAILED
        assert client.create("ams-app1\\other") == FAILED
        assert server.log.count("the store is damaged") == 1


@pytest.mark.req("SEC-8-05")
def test_a_row_that_was_altered_is_damage_too(tmp_path: Path, file: Path) -> None:
    """SQLite finds nothing wrong: what is in the row is not what mqis wrote."""
    with closing(sqlite3.connect(file)) as other:
        other.execute("UPDATE partitions SET last_seq = x'0102'")
        other.commit()
    text = refused(write_home(tmp_path / "home", str(file)))
    assert "is damaged" in text
    assert "Traceback" not in text
