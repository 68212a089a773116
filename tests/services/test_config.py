"""The configuration: what a file may say, and what is said of one that is wrong."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.services.config import ConfigError, changed_keys, default_toml, load, override
from mqis.services.sections import (
    Config,
    EnterpriseSection,
    Gss,
    LogFormat,
    LogLevel,
    LogSection,
    Role,
    RpcSection,
    SecuritySection,
    ServerSection,
    StoreSection,
)
from mqis.wire.security.sid import ADMINISTRATORS, Sid


def written(directory: Path, text: str) -> Path:
    path = directory / "mqis.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[server]\nname = "ams-dir1"\nrole = "pec"\nsite = "Amsterdam"\n'
        '[store]\nurl = "postgresql://mqis@db/mqis"\n[enterprise]\nname = "Meridian"\n',
    )
    assert load(path) == Config(
        ServerSection("ams-dir1", Role.PEC, "Amsterdam"),
        StoreSection("postgresql://mqis@db/mqis"),
        EnterpriseSection("Meridian"),
    )


def test_an_empty_file_has_the_defaults(tmp_path: Path) -> None:
    config = load(written(tmp_path, ""))
    assert config.server.role is Role.NONE
    assert config.store.url == f"sqlite:{tmp_path / 'mqis.db'}"


def test_the_store_lies_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    written(tmp_path / "etc", '[store]\nurl = "sqlite:data/d.db"\n')
    monkeypatch.chdir(tmp_path)
    assert load(Path("etc/mqis.toml")).store.url == f"sqlite:{tmp_path}/etc/data/d.db"
    written(tmp_path / "etc", '[store]\nurl = "sqlite:/srv/d.db"\n')
    assert load(Path("etc/mqis.toml")).store.url == "sqlite:/srv/d.db"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[server]\nrole = "boss"\n', "server.role: 'boss' is none of pec, psc, bsc, none"),
        ("[server]\nrole = 5\n", "server.role: 5 is none of pec, psc, bsc, none"),
        ("[server]\nname = 5\n", "server.name: wants text in quotes, got 5"),
        ("[server]\nnmae = 'x'\n", "server.nmae: no such key; did you mean server.name?"),
        ("[server]\nxyzzy = 1\n", "server.xyzzy: no such key; known: name, role, site"),
        ("[sorte]\n", "sorte: no such key; did you mean store?"),
        ("store = 'x'\n", "store: is a section, write [store]"),
        ("[store]\nurl = 'mysql://x'\n", "store.url: 'mysql://x' is no store"),
        ("[store]\nurl = ''\n", "store.url: '' is no store"),
        ("[server\n", "not TOML: Expected ']' at the end of a table declaration (at line 1"),
    ],
)
def test_an_error_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read: No such file"):
        load(tmp_path / "absent.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"mqis\.toml: not TOML"):
        load(path)


def test_the_file_that_init_writes_says_the_defaults(tmp_path: Path) -> None:
    text = default_toml()
    config = load(written(tmp_path, text))
    assert config.server == Config().server
    assert config.enterprise == Config().enterprise
    assert config.store.url == f"sqlite:{tmp_path / 'mqis.db'}"


def test_the_file_explains_every_key() -> None:
    lines = default_toml().splitlines()
    for section in fields(Config):
        for key in fields(type(section.default)):  # type: ignore[arg-type]
            at = next(i for i, line in enumerate(lines) if line.startswith(f"{key.name} = "))
            assert lines[at - 1].startswith("# "), key.name
    assert all(len(line) <= 100 for line in lines)


def test_the_file_can_be_written_with_other_values(tmp_path: Path) -> None:
    config = Config(
        ServerSection('a"b\\c\td', Role.BSC, "Zürich"),
        StoreSection("memory:"),
        EnterpriseSection("E"),
    )
    assert load(written(tmp_path, default_toml(config))) == config
