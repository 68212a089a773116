"""The programs of examples/client, each against a real server, as its docstring shows it."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from io import StringIO
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from mqis.config.stores import open_store
from mqis.lab import demo
from tests.cli.commands import process
from tests.cli.running import ALICE, PASSWORDS, Running, prepare, serving
from tests.docs.documents import ROOT
from tests.waiting import DEADLINE_S

EXAMPLES = ROOT / "examples" / "client"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("server")
    with closing(open_store(str(directory / "demo.db"), create=True)) as store:
        demo.build(store)
    prepare(directory, directory / "demo.db")
    secret = directory / "secret"
    secret.touch(0o600)
    secret.write_bytes(PASSWORDS[ALICE])
    with serving(directory, "--json") as running:
        yield running


def environment(server: Running) -> Mapping[str, str]:
    account = {"MQIS_USER": ALICE, "MQIS_PASSWORD_FILE": str(server.directory / "secret")}
    return os.environ | account | {"MQIS_SERVER": server.address}


def program(server: Running, name: str, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"examples.client.{name}", "--server", server.address]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env=environment(server),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def example(server: Running, name: str, *arguments: str | Path) -> str:
    with program(server, name, *arguments) as running:
        out, error = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 0, error
    return out


def asked(server: Running, *arguments: str) -> str:
    done = process(*arguments, "--server", server.address, env=dict(environment(server)))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_every_program_is_here_and_says_how_it_is_used() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__", "connecting"}
    assert programs == {"create_queues", "find_site", "inventory", "permissions", "watch"}
    for name in programs:
        text = (EXAMPLES / f"{name}.py").read_text("utf-8")
        assert f"Usage: python -m examples.client.{name} --server HOST" in text
        imported = set(re.findall(r"^from (mqis[\w.]*) import", text, re.M))
        assert imported == {"mqis.client"}, "a program needs nothing else of mqis"


def test_the_inventory_has_every_queue(server: Running) -> None:
    rows = list(csv.DictReader(StringIO(example(server, "inventory"))))
    assert len(rows) == 60
    (row,) = [row for row in rows if row["path"].lower() == "ber-app1\\orders"]
    assert row["label"] == "Incoming orders"
    assert row["site"] == "Berlin"
    assert row["transactional"] == "True"


def test_queues_of_a_list_are_created_once(server: Running, tmp_path: Path) -> None:
    listed = tmp_path / "queues.txt"
    listed.write_text("# ours\nams-app1\\first A first one\n\nams-app1\\second\n", "utf-8")
    assert example(server, "create_queues", listed).splitlines() == [
        "ams-app1\\first: created",
        "ams-app1\\second: created",
        "2 created",
    ]
    assert "A first one" in asked(server, "get", "queue", "ams-app1\\first")
    assert "is there already" in example(server, "create_queues", listed)
    for name in ("first", "second"):
        asked(server, "delete", "queue", f"ams-app1\\{name}", "--yes")


def test_a_queue_that_is_refused_stops_no_other(server: Running, tmp_path: Path) -> None:
    """The program ended at the first refusal, and nobody knew how far it had come."""
    listed = tmp_path / "queues.txt"
    listed.write_text("nowhere\\q\nams-app1\\third\nams-app1\\a\\b\n", "utf-8")
    with program(server, "create_queues", listed) as running:
        out, error = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 1
    assert out.splitlines() == [
        "nowhere\\q: refused",
        "ams-app1\\third: created",
        "ams-app1\\a\\b: refused",
        "1 created, 2 refused",
    ]
    first, second = error.splitlines()
    assert first.startswith("create_queues: nowhere\\q: cannot create queue")
    assert second.startswith("create_queues: ams-app1\\a\\b: cannot create queue")
    asked(server, "delete", "queue", "ams-app1\\third", "--yes")


def test_a_password_that_others_can_read_is_refused(server: Running) -> None:
    secret = server.directory / "secret"
    secret.chmod(0o644)
    try:
        with program(server, "inventory") as running:
            _, error = running.communicate(timeout=DEADLINE_S)
    finally:
        secret.chmod(0o600)
    assert running.returncode == 1
    assert f"{secret}: others may read this password; chmod 600 {secret}" in error


def test_changes_are_seen(server: Running) -> None:
    with program(server, "watch", "--every", "0.2") as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "watching 60 queues\n"
            asked(server, "create", "queue", "ams-app1\\seen", "label=Seen")
            assert running.stdout.readline() == "created ams-app1\\seen\n"
            asked(server, "set", "queue", "ams-app1\\seen", "label=Changed")
            assert running.stdout.readline() == "changed ams-app1\\seen\n"
            asked(server, "delete", "queue", "ams-app1\\seen", "--yes")
            assert running.stdout.readline() == "deleted ams-app1\\seen\n"
        finally:
            running.kill()


def test_the_site_of_a_machine_is_found(server: Running) -> None:
    assert example(server, "find_site", "ber-app1", "chi-app2").splitlines() == [
        "ber-app1: Berlin, served by ber-dir1, ber-dir2",
        "chi-app2: Chicago, served by chi-dir1",
    ]


def test_permissions_are_added_once_and_to_one_machine(server: Running) -> None:
    sid = "S-1-5-21-1-2-3-1234"
    planned = example(server, "permissions", "ams-app1", sid, "--dry-run")
    assert "S-1-5-21-1-2-3-1234" not in asked(server, "security", "queue", "ams-app1\\orders")
    done = example(server, "permissions", "ams-app1", sid)
    assert done == planned
    assert f"{sid} may send to ams-app1\\orders\n" in done
    assert "ams-app2" not in done
    text = asked(server, "security", "queue", "ams-app1\\orders")
    assert sid in text
    assert "(A;;0x20020;;;WD)" in text, "the other entries stay"
    assert sid not in asked(server, "security", "queue", "ams-app2\\orders")
    assert example(server, "permissions", "ams-app1", sid) == ""


# --- faults ---------------------------------------------------------------------------------------


def failed(
    server: Running, name: str, *arguments: str | Path, status: int = 1, **changed: str
) -> tuple[str, str]:
    """Runs a program that fails; returns its output and the one line that it says."""
    at = changed.pop("address", server.address)
    done = subprocess.run(
        [sys.executable, "-m", f"examples.client.{name}", "--server", at, *map(str, arguments)],
        cwd=ROOT,
        env={**environment(server), **changed},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"{name}: ")
    return done.stdout, done.stderr.removeprefix(f"{name}: ").rstrip()


def test_faults_of_the_connection_are_one_line(server: Running, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.touch(0o600)
    wrong.write_text("wrong\n")
    _, text = failed(server, "inventory", MQIS_PASSWORD_FILE=str(wrong))
    assert "refused the logon: check the name and the password" in text
    _, text = failed(server, "watch", MQIS_USER="LAB\\nobody")
    assert "refused the logon" in text
    _, text = failed(server, "inventory", address="127.0.0.1:1")
    assert text.startswith("no directory server answers; 127.0.0.1:1: ")
    _, text = failed(server, "inventory", address="localhost:many")
    assert text == "'many' is not a port (1 to 65535)"
    _, text = failed(server, "inventory", MQIS_PASSWORD_FILE=str(tmp_path / "none"))
    assert "No such file or directory" in text
    _, text = failed(server, "inventory", MQIS_PASSWORD_FILE="")
    assert text.startswith("MQIS_PASSWORD_FILE is not set")


def test_faults_of_what_is_asked_are_one_line(server: Running, tmp_path: Path) -> None:
    _, text = failed(server, "create_queues", tmp_path / "none.txt")
    assert "No such file or directory" in text
    out, text = failed(server, "find_site", "ber-app1", "nosuch")
    assert out.startswith("ber-app1: Berlin, ")
    assert text.startswith("nosuch: ")
    assert failed(server, "permissions", "nosuch", "S-1-5-21-1-2-3-9") == (
        "",
        "nosuch has no queue in the directory",
    )
    _, text = failed(server, "permissions", "ams-app1", "alice")
    assert text == "'alice' is not a SID (S-1-authority-number-number-...)"


def test_a_reader_that_has_enough_sees_no_traceback(server: Running) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "examples.client.find_site", "--server", server.address]
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [*command, "ber-app1"],
            cwd=ROOT,
            env=environment(server),
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_notebook_runs(server: Running, tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / "directory.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=int(DEADLINE_S), kernel_name="python3")
    client.execute(env=dict(environment(server)), cwd=str(tmp_path))
    shown = [str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    assert "('Made in a notebook', True)" in shown[2]
    assert "'text/plain': '[]'" in shown[3]
