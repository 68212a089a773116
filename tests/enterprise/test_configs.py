"""A key that the enterprise file has no more gets the value that a new server has."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from mqis.config.file import override, read
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.sections import Config
from mqis.enterprise.configs import write_config
from mqis.enterprise.plan import DEFAULT_OPTIONS, parse_plan

PLAN = parse_plan(
    {
        "enterprise": {"name": "Acme"},
        "site": [{"name": "Delft"}],
        "server": [{"name": "del-dir1", "site": "Delft", "role": "pec"}],
    }
)
KEYS = [
    (section.name, key.name)
    for section in fields(Config)
    if section.name != "hosts"
    for key in fields(type(getattr(Config(), section.name)))
]


@pytest.fixture
def place(tmp_path: Path) -> NodePlace:
    store, journal, log = (str(tmp_path / name) for name in ("directory.db", "journal", "log"))
    files = (str(tmp_path), str(tmp_path / "mqis.toml"), store, journal, log)
    return NodePlace("del-dir1", "pec", "Delft", "127.0.0.1", 1, 2, 3, 4, 5, *files)


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_every_key_can_be_taken_out(section: str, key: str, place: NodePlace) -> None:
    """Keys whose values are members of an enumeration were refused."""
    nodes = Nodes("Acme", (place,))
    write_config(PLAN, nodes, place)
    fresh = getattr(getattr(read(Path(place.config)), section), key)
    write_config(PLAN, nodes, place, dropped={section: {key: "anything"}})
    usual = getattr(getattr(override(Config(), DEFAULT_OPTIONS, "usual"), section), key)
    now = getattr(getattr(read(Path(place.config)), section), key)
    assert now in (usual, fresh)  # 'mqis up' sets some of them itself


@pytest.mark.parametrize(
    ("section", "key", "given"),
    [
        ("replication", "signing", "accept"),
        ("replication", "heartbeat_s", 7),
        ("log", "level", "debug"),
        ("security", "anonymous", False),
        ("security", "administrators", ["S-1-5-32-545"]),
        ("security", "domain", "ELSEWHERE"),
    ],
)
def test_its_value_becomes_the_usual_one(
    section: str, key: str, given: object, place: NodePlace
) -> None:
    nodes, usual = Nodes("Acme", (place,)), override(Config(), DEFAULT_OPTIONS, "usual")
    wanted = getattr(getattr(usual, section), key)
    write_config(replace(PLAN, options={section: {key: given}}), nodes, place)
    assert getattr(getattr(read(Path(place.config)), section), key) != wanted
    write_config(PLAN, nodes, place, dropped={section: {key: given}})
    assert getattr(getattr(read(Path(place.config)), section), key) == wanted
