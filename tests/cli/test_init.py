"""``mqis init``."""

from __future__ import annotations

from pathlib import Path

from mqis.services.config import ConfigError, default_toml, load
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
    assert "is there already; --force replaces it" in str(error)
    assert path.read_text(encoding="utf-8") == "mine"
    assert run("init", "--path", path, "--force").exit_code == 0
    assert path.read_text(encoding="utf-8") == default_toml()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    error = run("init", "--path", tmp_path / "absent" / "mqis.toml").exception
    assert isinstance(error, ConfigError)
    assert "cannot be written: No such file" in str(error)
