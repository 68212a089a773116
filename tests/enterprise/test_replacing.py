"""A lost PSC is replaced under the supervisor; a refusal leaves the backup running."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from mqis.admin.promote.takeover import ChangingDirectory
from mqis.config.errors import ConfigError, NodesError
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.enterprise import replacing
from mqis.enterprise.replacing import Replacing

NOBODY = cast("ChangingDirectory", None)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    files = (str(tmp_path), str(tmp_path / "mqis.toml"), str(tmp_path / "d.db"), "", "")
    backup = NodePlace("ber-dir2", "bsc", "Berlin", "127.0.0.1", 1, 2, 3, 4, 5, *files, pid=7)
    save_nodes(tmp_path, Nodes("Acme", (backup,)))
    return tmp_path


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the supervisor is asked for."""
    made: list[tuple[str, str]] = []

    def ask(_run: Path, what: str, server: str) -> dict[str, Any]:
        made.append((what, server))
        return {}

    monkeypatch.setattr(replacing, "ask", ask)
    return made


def test_a_plan_is_refused_before_the_backup_is_stopped(
    run: Path, requests: list[tuple[str, str]]
) -> None:
    with pytest.raises(ConfigError):  # there is no mqis.toml
        Replacing(run, "BER-DIR2").carry_out(NOBODY, lambda _plan: None)
    assert requests == []


def test_a_plan_that_is_refused_later_leaves_the_backup_running(
    run: Path, requests: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_takeover(_file: Path, _directory: object, *, force: bool, stopped: bool) -> None:
        if stopped:
            raise ConfigError("changed meanwhile")

    monkeypatch.setattr(replacing, "plan_takeover", plan_takeover)
    with pytest.raises(ConfigError, match="changed meanwhile"):
        Replacing(run, "BER-DIR2").carry_out(NOBODY, lambda _plan: None)
    assert requests == [("stop", "ber-dir2"), ("start", "ber-dir2")]


def test_a_plan_alone_stops_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(replacing, "ask")
    with pytest.raises(ConfigError):
        Replacing(run, "ber-dir2").planned(NOBODY)


def test_a_server_or_a_pec_that_is_not_there(run: Path) -> None:
    with pytest.raises(NodesError, match="no such server"):
        Replacing(run, "ber-dir9")
    with pytest.raises(NodesError, match="no server has the role pec"):
        _ = Replacing(run, "ber-dir2").pec
