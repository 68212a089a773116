"""``mqis backup --run`` where a server has lost its files: the others are backed up."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from mqis.admin.backup.collection import backups_in
from mqis.config.nodes import Nodes, save_nodes
from tests.cli.commands import process, run
from tests.cli.test_restore_places import place
from tests.server.enterprises import Site

NAMES = ("pec1", "psc2", "bsc3")


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A run directory with three servers that are stopped."""
    made = tmp_path / "run"
    (made / "servers").mkdir(parents=True)
    site = Site(made / "servers")
    for name in NAMES:
        site.found(name)
    save_nodes(made, Nodes("Acme", tuple(place(made, name) for name in NAMES)))
    return made


def backed_up(directory: Path) -> Counter[str]:
    manifests = [backup.manifest for backup in backups_in(directory, verify=True)]
    return Counter(manifest.server for manifest in manifests if manifest is not None)


def test_the_first_server_that_is_lost_stops_no_other(acme: Path, tmp_path: Path) -> None:
    """Nothing was backed up, and the error was about one file."""
    config = acme / "servers" / "pec1" / "mqis.toml"
    config.unlink()
    done = process("backup", f"{tmp_path / 'kept'}/", "--run", acme)
    assert done.returncode == 1
    (told,) = done.stderr.decode().splitlines()
    assert told.startswith(f"mqis: pec1 is not backed up: {config}: cannot be read: No such file")
    assert f"'mqis doctor --run {acme}' names the ways back" in told
    assert done.stdout.decode().count("wrote ") == 2
    assert backed_up(tmp_path / "kept") == Counter({"psc2": 1, "bsc3": 1})


def test_lost_and_damaged_stores_are_left_out_and_keep_their_earlier_backups(
    acme: Path, tmp_path: Path
) -> None:
    kept, servers = tmp_path / "kept", acme / "servers"
    assert run("backup", f"{kept}/", "--run", acme).exit_code == 0
    (store,) = (servers / "psc2").glob("*.db")
    store.write_bytes(b"these are my notes\n" * 100)
    (gone,) = (servers / "bsc3").glob("*.db")
    gone.unlink()
    for _ in range(2):
        done = process("backup", f"{kept}/", "--run", acme, "--keep", "1", "--json")
        assert done.returncode == 1
        content = json.loads(done.stdout)
        assert [backup["server"] for backup in content["backups"]] == ["pec1"]
        assert list(content["left_out"]) == ["psc2", "bsc3"]
        assert str(store) in content["left_out"]["psc2"]
        assert str(gone) in content["left_out"]["bsc3"]
    assert len(content["deleted"]) == 1
    assert backed_up(kept) == Counter({"pec1": 1, "psc2": 1, "bsc3": 1})


def test_if_all_are_lost_each_is_named(acme: Path, tmp_path: Path) -> None:
    for name in NAMES:
        (acme / "servers" / name / "mqis.toml").unlink()
    done = process("backup", f"{tmp_path / 'kept'}/", "--run", acme, "--keep", "1")
    assert done.returncode == 1
    assert done.stdout == b""
    told = done.stderr.decode().splitlines()
    assert [line.split()[1] for line in told] == list(NAMES)


def test_the_last_backup_with_a_key_stays(acme: Path, tmp_path: Path) -> None:
    """It was deleted by the very run that asked to bring the key back."""
    kept, key = tmp_path / "kept", acme / "servers" / "pec1" / "signing.key"
    assert run("backup", f"{kept}/", "--run", acme).exit_code == 0
    (keyed,) = (each.path for each in backups_in(kept) if each.path.name.startswith("pec1"))
    key.unlink()
    for _ in range(2):
        done = process("backup", f"{kept}/", "--run", acme, "--keep", "1", "--json")
        assert done.returncode == 1
        assert str(keyed) not in json.loads(done.stdout)["deleted"]
    assert backed_up(kept) == Counter({"pec1": 2, "psc2": 1, "bsc3": 1})
    for option in ("--list", "--check"):
        told = process("backup", kept, option).stderr.decode()
        assert f"lacks the signing key, which {keyed.name} has" in told
