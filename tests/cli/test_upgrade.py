"""A server of version 0.1.0, taken over by this version: store, journal, configuration, accounts.

``tests/data/version-0.1.0.tar.gz`` is the directory of a PEC that 0.1.0 made (commit e2e61031):
``mqis init``, an account, then over RPC a machine, two queues of which one was deleted, and a
site. ``directory.jsonl`` is its export of the same store.
"""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from mqis.testing.ports import free_ports
from tests.cli.commands import process
from tests.cli.running import serving
from tests.docs.documents import ROOT

ARCHIVE = ROOT / "tests" / "data" / "version-0.1.0.tar.gz"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """The server's directory as 0.1.0 left it; ports are those that are free here."""
    directory = tmp_path / "del-dir1"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory)
    config = (directory / "mqis.toml").read_text("utf-8")
    (port,) = free_ports(1)
    config = re.sub(r"^mapper_port = 135$", "mapper_port = 0", config, flags=re.M)
    config = re.sub(r"^port = 1801$", f"port = {port}", config, flags=re.M)
    (directory / "mqis.toml").write_text(config, "utf-8")
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text("correct horse\n", "utf-8")
    return directory


def objects(export: Path) -> list[str]:
    """The lines of an export without its head and the digest at its end."""
    _, *lines = export.read_text("utf-8").splitlines()
    return [line for line in lines if '"type":"end"' not in line]


def mqis(directory: Path, *arguments: str, status: int = 0) -> str:
    done = process(*arguments, directory=directory)
    assert done.returncode == status, done.stderr.decode()
    return (done.stdout + done.stderr).decode()


def test_a_command_that_reads_leaves_the_old_store_alone(server: Path) -> None:
    before = (server / "mqis.db").read_bytes()
    said = mqis(server, "lookup", "queue", "--store", "mqis.db", status=1)
    assert "schema version 4, this mqis reads 8" in said
    assert "mqis store upgrade" in said
    assert (server / "mqis.db").read_bytes() == before


def test_the_upgraded_store_has_the_same_objects(server: Path) -> None:
    mqis(server, "store", "upgrade", "--store", "mqis.db")
    mqis(server, "store", "check", "--store", "mqis.db")
    mqis(server, "export", "now.jsonl", "--store", "mqis.db")
    assert objects(server / "now.jsonl") == objects(server / "directory.jsonl")
    assert len(objects(server / "now.jsonl")) == 7


def test_an_export_of_the_old_version_is_read(server: Path) -> None:
    mqis(server, "import", "directory.jsonl", "--store", "again.db", "--restore")
    mqis(server, "export", "again.jsonl", "--store", "again.db")
    assert objects(server / "again.jsonl") == objects(server / "directory.jsonl")


def test_the_server_goes_on_where_it_was(server: Path) -> None:
    """With its configuration and accounts; what the old version deleted comes back."""
    environment = {
        "MQIS_USER": "LAB\\alice",
        "MQIS_PASSWORD_FILE": str(server.parent / "secret"),
    }
    with serving(server, "--json") as running:

        def ask(*arguments: str) -> str:
            where = ("--server", running.address)
            done = process(*arguments, *where, directory=server, env=environment)
            assert done.returncode == 0, done.stderr.decode()
            return done.stdout.decode()

        assert "Orders" in ask("get", "queue", "app1\\orders")
        ask("create", "queue", "app1\\new", "label=New")
        ask("undelete", "queue", "app1\\old", "--yes")
        assert "Old" in ask("get", "queue", "app1\\old")
        assert running.stop() == 0
    said = mqis(server, "journal", "check", "journal")
    assert "segment-0000000001.mqj: not signed (format version 1)" in said
    assert "in 2 segments" in said, "the old segment, and one of the new format"
