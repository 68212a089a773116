"""``mqis backup``, ``restore``, ``promote`` and ``doctor`` for programs, and their statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqis.config.errors import NodesError
from mqis.config.file import load
from mqis.wire.errors import MqisError
from tests.cli.commands import run
from tests.server.enterprises import Site


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Site(tmp_path).found("pec1")


def test_a_backup_and_its_way_back_as_json(home: Path, tmp_path: Path) -> None:
    file = home / "mqis.toml"
    made = json.loads(run("backup", tmp_path / "b", "--config", file, "--json").stdout)
    assert (made["server"], made["role"], made["enterprise"]) == ("pec1", "pec", "Acme")
    assert [f["name"] for f in made["files"]] == ["store.db", "mqis.toml", "signing.key"]
    new = tmp_path / "new" / "mqis.toml"
    looked = json.loads(
        run("restore", tmp_path / "b", "--config", new, "--dry-run", "--json").stdout
    )
    assert not looked["done"]
    assert not new.parent.exists()
    done = json.loads(run("restore", tmp_path / "b", "--config", new, "--json").stdout)
    assert done["done"]
    assert done["next"].startswith(f"mqis serve --config {new}; it asks the other servers first")
    assert load(new).server.name == "pec1"
    again = run("restore", tmp_path / "b", "--config", new)
    assert isinstance(again.exception, MqisError)


def test_a_server_without_its_key_is_told_what_to_do(home: Path, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--config", home / "mqis.toml", "--without-keys")
    new = tmp_path / "new" / "mqis.toml"
    told = run("restore", tmp_path / "b", "--config", new).stdout
    assert "it holds secrets" not in told
    assert "'A server with a new key'" in told.replace("\n", " ")


def test_the_doctor_has_a_status(home: Path) -> None:
    well = run("doctor", "--config", home / "mqis.toml", "--json")
    assert (well.exit_code, json.loads(well.stdout)["ok"]) == (0, True)
    assert "in order" in run("doctor", "--config", home / "mqis.toml", "--all").stdout
    (home / "signing.key").chmod(0o644)
    ill = run("doctor", "--config", home / "mqis.toml", "--json")
    assert (ill.exit_code, json.loads(ill.stdout)["ok"]) == (1, False)
    (server,) = json.loads(ill.stdout)["servers"]
    (error,) = [f for f in server["findings"] if f["severity"] == "error"]
    assert error["area"] == "configuration"
    assert error["todo"]


def test_promote_says_what_goes_together(home: Path, tmp_path: Path) -> None:
    file = home / "mqis.toml"
    assert run("promote", "--rebuild", "x", "--config", file).exit_code == 2
    refused = run("promote", "--rebuild", "x", "--to", tmp_path / "new", "--config", file)
    assert isinstance(refused.exception, MqisError)
    assert run("promote", "--config", file).exit_code == 2  # which PEC?
    both = run("promote", "pec1", "--follow", "psc1", "--run", tmp_path)
    assert (both.exit_code, "SERVER excludes" in both.output) == (2, True)
    nowhere = run("promote", "pec1", "--run", tmp_path)
    assert isinstance(nowhere.exception, NodesError)
