"""The enterprise file: the example is one, and each mistake is told with its key."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from mqis.config.errors import ConfigError
from mqis.enterprise.example import EXAMPLE
from mqis.enterprise.plan import (
    AccountPlan,
    EnterprisePlan,
    LinkPlan,
    MachinePlan,
    QueuePlan,
    ServerPlan,
    ServerRole,
    SitePlan,
    load_plan,
    parse_plan,
)

SMALL = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[site]]
name = "Leiden"
[[link]]
sites = ["Delft", "Leiden"]
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
[[server]]
name = "lei-dir1"
site = "leiden"
role = "psc"
"""


def test_the_example_is_the_demonstration() -> None:
    plan = parse_plan(tomllib.loads(EXAMPLE))
    listed = [(s.name, s.site, s.role.value) for s in plan.servers]
    assert listed == [
        ("ams-dir1", "Amsterdam", "pec"),
        ("ams-dir2", "Amsterdam", "bsc"),
        ("ber-dir1", "Berlin", "psc"),
        ("ber-dir2", "Berlin", "bsc"),
        ("chi-dir1", "Chicago", "psc"),
    ]
    assert {link.sites: link.cost for link in plan.links} == {
        ("Amsterdam", "Berlin"): 10,
        ("Berlin", "Chicago"): 20,
        ("Amsterdam", "Chicago"): 50,
    }
    assert "C14" in {machine.name for machine in plan.machines}
    assert plan.options["replication"]["signing"] == "require"


@pytest.mark.parametrize(
    "kind", [EnterprisePlan, SitePlan, LinkPlan, ServerPlan, MachinePlan, QueuePlan, AccountPlan]
)
def test_the_example_shows_every_key(kind: type[Any]) -> None:
    for key in fields(kind):
        assert f"\n{key.name} = " in EXAMPLE, key.name


def test_what_is_left_out_has_a_default() -> None:
    plan = parse_plan(tomllib.loads(SMALL))
    assert plan.pec.name == "del-dir1"
    roles = {(server.site, server.role) for server in plan.servers}
    assert ("leiden", ServerRole.PSC) in roles
    assert plan.links[0].cost == 1
    assert plan.administrator == AccountPlan("admin", administrator=True)
    assert plan.domain_of(plan.administrator) == "ACME"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "Acme"', "nam = 1", "enterprise.nam: no such key; did you mean enterprise.name?"),
        ('name = "Acme"', "", "enterprise.name: this key is missing"),
        ("[enterprise]", "[enterprize]", "enterprize: no such key; did you mean enterprise?"),
        ('"Delft", "Leiden"', '"Delft"', "link[1].sites: must be two sites"),
        ('"Delft", "Leiden"', '"Delft", "Gouda"', "link[1].sites: there is no site 'Gouda'"),
        (
            '"Delft", "Leiden"',
            '"Delft", "DELFT"',
            "link[1].sites: a link must connect two different",
        ),
        ('role = "psc"', 'role = "bdc"', "server[2].role: 'bdc' is not one of pec, psc, bsc"),
        (
            'role = "psc"',
            'role = "pec"',
            'server: exactly one server must have the role "pec", here: del-dir1,',
        ),
        ('role = "psc"', 'role = "bsc"', "site[2]: Leiden needs exactly one server with the role"),
        ('"lei-dir1"', '"DEL-DIR1"', "server[2].name: 'DEL-DIR1' is there already"),
        ('"lei-dir1"', '"lei dir1"', "server[2].name: 'lei dir1' is not a machine name"),
        ('site = "leiden"', 'site = "Gouda"', "site[2]: Leiden needs exactly one server"),
        ("[[link]]", "[link]", "link: this is a list of tables; write [[link]]"),
    ],
)
def test_a_mistake_is_told_with_its_key(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(ConfigError) as caught:
        parse_plan(tomllib.loads(SMALL.replace(old, new)), "acme.toml")
    assert str(caught.value).startswith(f"acme.toml: {message}")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("[[queue]]\npath = 'nobody\\q'", "queue[1].path: there is no server or machine 'nobody'"),
        ("[[queue]]\npath = 'q'", "queue[1].path: 'q' is not a path"),
        ("[[machine]]\nname='DEL-dir1'\nsite='Delft'", "machine[1].name: 'DEL-dir1' is there"),
        ("[[account]]\nname = 'bob'", "account: one account has to be an administrator"),
        ("[options.replication]\nheartbeat_s = 0", "options.replication.heartbeat_s: must be a"),
        ("[options.replication]\nheartbeats = 1", "options.replication.heartbeats: no such key"),
        ("[options.rpc]\nport = 1", "options.rpc.port: 'mqis up' sets this key"),
        ("[options.hosts]\na = '1.2.3.4'", "options.hosts: no such key"),
        (
            "[[link]]\nsites = ['Leiden', 'Delft']",
            "link[2].sites: these two sites are linked already",
        ),
    ],
)
def test_what_is_added_has_to_fit(more: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_plan(tomllib.loads(f"{SMALL}\n{more}\n"), "acme.toml")
    assert str(caught.value).startswith(f"acme.toml: {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'mqis up --example > .*none\.toml' writes one"):
        load_plan(tmp_path / "none.toml")


def test_objects_that_are_wrong_are_left_out_and_servers_are_not(tmp_path: Path) -> None:
    """One illegal name stopped everything that the file had changed."""
    path = tmp_path / "enterprise.toml"
    more = """
[[machine]]
name = "a b"
site = "Delft"
[[machine]]
name = "fine"
site = "Delft"
[[machine]]
name = "FINE"
site = "Delft"
[[machine]]
name = "far"
site = "Gouda"
[[queue]]
path = 'far\\q'
[[queue]]
path = 'fine\\q'
jornal = true
[[queue]]
path = 'fine\\good'
[[link]]
sites = ["Leiden", "Delft"]
"""
    path.write_text(f"{SMALL}\n{more}", "utf-8")
    plan = load_plan(path)
    assert [entry.partition(": ")[0] for entry in plan.left_out] == [
        "machine[1].name",
        "queue[2].jornal",
        "machine[3].name",
        "machine[4].site",
        "link[2].sites",
        "queue[1].path",
    ]
    assert [machine.name for machine in plan.machines] == ["fine"]
    assert [queue.path for queue in plan.queues] == ["fine\\good"]
    path.write_text(SMALL.replace('"lei-dir1"', '"lei dir1"'), "utf-8")
    with pytest.raises(ConfigError, match="is not a machine name"):
        load_plan(path)
    path.write_text(f"machine = 5\n{SMALL}", "utf-8")
    with pytest.raises(ConfigError, match=r"machine: this is a list of tables"):
        load_plan(path)
