"""``mqis init``."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from mqis.config.errors import ConfigError
from mqis.config.file import default_toml, load
from mqis.config.stores import open_store
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.errors import StorageError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.cli.commands import process, run


def test_it_writes_a_file_that_loads(tmp_path: Path) -> None:
    done = process("init", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "mqis.toml").store.url == f"sqlite:{tmp_path}/mqis.db"


def test_it_replaces_a_file_when_forced(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("mine", encoding="utf-8")
    error = run("init", "--path", path).exception
    assert isinstance(error, ConfigError)
    assert "exists already; --force replaces it" in str(error)
    assert path.read_text(encoding="utf-8") == "mine"
    assert run("init", "--path", path, "--force").exit_code == 0
    assert path.read_text(encoding="utf-8") == default_toml()


def test_a_directory_that_is_not_there_is_made(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "below" / "mqis.toml"
    done = run("init", "--path", path)
    assert done.exit_code == 0, done.output
    assert load(path).store.url == f"sqlite:{path.parent}/mqis.db"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = run("init", "--path", tmp_path / "file" / "mqis.toml").exception
    assert isinstance(error, ConfigError)
    assert "cannot be made: Not a directory" in str(error) or "File exists" in str(error)


def test_a_directory_that_others_may_look_into_is_told(tmp_path: Path) -> None:
    """It is the operator's own, so it stays as it is."""
    tmp_path.chmod(0o755)
    assert "other users may read this directory" in run("init", "--path", tmp_path / "a").output
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    tmp_path.chmod(0o700)
    assert "other users may" not in run("init", "--path", tmp_path / "b").output


def test_a_new_enterprise(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    founding = ("--enterprise", "Acme", "--site", "Delft", "--name", "d1", "--json")
    done = run("init", "--path", path, *founding)
    assert done.exit_code == 0, done.output
    config = load(path)
    assert json.loads(done.stdout)["store"] == config.store.url
    assert (config.server.role, config.server.name, config.server.site) == ("pec", "d1", "Delft")
    assert config.enterprise.name == "Acme"
    assert config.security.machine_policy is MachinePolicy.OWNER
    with closing(open_store(config.store.url)) as store, store.read() as view:
        root = enterprise(view)
        site = view.find(ObjectType.SITE, "Delft")
        machine = view.find(ObjectType.MACHINE, "d1")
        assert root is not None
        assert site is not None
        assert machine is not None
        assert (root.path, root.value(PropId.E_PECNAME)) == ("Acme", "d1")
        assert site.value(PropId.S_PSC) == "d1"
        assert ServiceAttributes.of(machine).role is ServiceBits.PEC
        assert machine.partition == site.id
        assert [state.owner for state in view.partitions()] == ["d1", "d1"]
        assert store.check() == []


def test_a_store_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    for path in (first, second):
        names = ("--enterprise", path.stem, "--site", "Delft", "--name", "d1")
        done = run("init", "--path", path, *names)
    assert isinstance(done.exception, StorageError)
    assert "holds a directory already" in str(done.exception)
    assert not second.exists()
    with closing(open_store(str(tmp_path / "mqis.db"))) as store, store.read() as view:
        root = enterprise(view)
        assert root is not None
        assert root.path == "a"


def test_an_enterprise_needs_a_site(tmp_path: Path) -> None:
    done = run("init", "--path", tmp_path / "mqis.toml", "--enterprise", "Acme")
    assert done.exit_code == 2
    assert "--enterprise and --site belong together" in done.output
    assert not (tmp_path / "mqis.toml").exists()
