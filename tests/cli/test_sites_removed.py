"""``mqis up --remove`` takes out a whole site, whose PSC nobody can replace.

The tests share one enterprise, and each goes on where the one before has left it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqis.config.file import read
from mqis.config.nodes import load_nodes
from tests.cli.commands import run
from tests.cli.test_apply import processes, reading
from tests.cli.test_up import PLAN, Acme, running_acme

#: A third site, with one server, a gate, which is its PSC.
UTRECHT = """
[[site]]
name = "Utrecht"
[[link]]
sites = ["Delft", "Utrecht"]
cost = 3
[[server]]
name = "utr-dir1"
site = "Utrecht"
role = "psc"
routing = true
[[machine]]
name = "utr-app1"
site = "Utrecht"
[[queue]]
path = 'utr-app1\\in'
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with (
        pytest.MonkeyPatch.context() as patch,
        running_acme(tmp_path_factory.mktemp("sites")) as made,
    ):
        patch.setenv("MQIS_USER", "ACME\\admin")
        patch.setenv("MQIS_PASSWORD_FILE", str(made.run / "passwords" / "admin"))
        yield made


def converged(acme: Acme, names: list[str]) -> None:
    sites = len({name.partition("-")[0] for name in names})

    def all_are(status: dict[str, Any]) -> bool:
        held = {server["name"]: len(server["partitions"]) for server in status["servers"]}
        return bool(status["converged"]) and held == dict.fromkeys(names, sites + 1)

    acme.until(all_are)


WITH = ["del-dir1", "lei-dir1", "lei-dir2", "utr-dir1"]


def with_utrecht(acme: Acme) -> None:
    acme.file.write_text(PLAN + UTRECHT, "utf-8")
    acme.mqis("up", "--yes")
    converged(acme, WITH)


def test_a_site_goes_with_its_only_server_while_everybody_works(acme: Acme) -> None:
    """It was "only a backup can be removed; let a backup take its role first"."""
    with_utrecht(acme)
    for queue in ("utr-app1\\strange", "utr-app1\\stranger"):
        made = run("create", "queue", queue, "--server", acme.address("utr-dir1"))
        assert made.exit_code == 0, made.output
    converged(acme, WITH)
    acme.file.write_text(PLAN, "utf-8")
    shown = acme.mqis("up", "--remove", "--dry-run")
    assert "with Utrecht goes what the file never had: queue utr-app1\\strange; queue " in shown
    assert "machine utr-dir1" not in shown
    assert "there is no terminal to ask on" in acme.mqis("up", "--remove", status=1)
    before, home = processes(acme), acme.home("utr-dir1")
    with reading(acme, "del-dir1") as failures:
        told = acme.mqis("up", "--remove", "--yes")
        converged(acme, WITH[:3])
    assert failures == []
    assert "Acme is up: 5 steps carried out" in told
    assert processes(acme) == {name: before[name] for name in WITH[:3]}
    assert not home.exists()
    assert list(home.parent.glob("utr-dir1.removed-*/directory.db"))
    for kind, name in (("site", "Utrecht"), ("machine", "utr-app1"), ("machine", "utr-dir1")):
        assert run("get", kind, name, "--server", acme.address("lei-dir1")).exit_code == 1
    (link,) = json.loads(
        run("lookup", "link", "--server", acme.address("del-dir1"), "--json").stdout
    )
    assert link["cost"] == 7
    peers = [read(Path(node.config)).monitoring.peers for node in load_nodes(acme.run)]
    assert [len(urls) for urls in peers] == [2, 2, 2]
    assert "Acme is up: no change" in acme.mqis("up", "--remove")


def test_a_site_goes_although_its_only_server_was_lost(acme: Acme) -> None:
    with_utrecht(acme)
    acme.mqis("kill", "utr-dir1", "--stay-down")
    shutil.rmtree(acme.home("utr-dir1"))
    acme.file.write_text(PLAN, "utf-8")
    acme.mqis("up", "--remove", "--yes")
    converged(acme, WITH[:3])
    assert "Acme is up: no change" in acme.mqis("up", "--remove")


def test_a_site_that_a_command_has_deleted_can_be_cleared_away(acme: Acme) -> None:
    """'mqis up' started its server again, and waited for it for ever."""
    with_utrecht(acme)
    deleted = run(
        "delete", "site", "Utrecht", "--force", "Utrecht", "--server", acme.address("del-dir1")
    )
    assert deleted.exit_code == 0, deleted.output
    assert "'mqis up --remove' takes them out" in deleted.output
    told = acme.mqis("up", "--yes", status=1)
    assert "site Utrecht: a command has deleted it, and its servers (utr-dir1) are still" in told
    # It stops nobody from coming up.
    acme.mqis("down")
    acme.file.write_text(PLAN, "utf-8")
    told = acme.mqis("up", "--detach", status=1)
    assert "utr-dir1 cannot start: its site Utrecht was deleted" in told
    assert "Acme is up: 3 of 4 servers ready" in told
    acme.file.write_text(PLAN + UTRECHT, "utf-8")
    adopted = acme.mqis("up", "--adopt")
    assert "site Utrecht: taken out" in adopted
    assert "server utr-dir1: taken out" in adopted
    assert acme.file.read_text("utf-8").strip() == PLAN.strip()
    told = acme.mqis("up", "--remove", "--yes")
    converged(acme, WITH[:3])
    with_utrecht(acme)
