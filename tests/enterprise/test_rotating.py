"""The steps of a rotation, by what the stores of stopped servers say."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.claims import claimed_store
from mqis.config.file import default_toml, override, read
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.enterprise.rotating import KeyRotation, KeyWitness, held_keys, learn_keys
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.keyring import KeyRing, KeyStage
from mqis.server.founding import found
from mqis.server.identity import parse_seed
from mqis.wire.errors import MqisError
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import RsaPublicKey, key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.cli.commands import process, run

NAMES = ("pec1", "psc2")


class Homes:
    """Two servers that have the same directory, with the PEC's machine."""

    def __init__(self, directory: Path, names: Sequence[str] = NAMES) -> None:
        self.homes = {name: directory / "servers" / name for name in names}
        for name, home in self.homes.items():
            home.mkdir(parents=True)
            ring = KeyRing.open(home / "signing.key")
            with closing(open_store(str(home / "directory.db"), create=True)) as store:
                found(store, "Acme", "Delft", "pec1")
            values: dict[str, dict[str, object]] = {
                "server": {"name": name, "role": "pec"},
                "store": {"url": "sqlite:directory.db"},
            }
            self.config(name).write_text(default_toml(override(Config(), values, "test")))
            if name == "pec1":
                self.key = ring.signing.public
        for name in names:
            self.publish(name, self.key)

    def config(self, name: str) -> Path:
        return self.homes[name] / "mqis.toml"

    def ring(self, name: str) -> KeyRing:
        return KeyRing.open(self.homes[name] / "signing.key")

    def publish(self, at: str, *keys: RsaPublicKey) -> None:
        with claimed_store(str(self.homes[at] / "directory.db")) as store, store.write() as tx:
            machine = tx.find(ObjectType.MACHINE, "pec1")
            assert machine is not None
            events = DirectoryEvents(tx, 1, SystemEntropy())
            events.set_stored(machine, props({PropId.QM_SIGN_PKS: key_list(*keys)}))

    @property
    def nodes(self) -> Nodes:
        return Nodes("Acme", tuple(self.place(name) for name in self.homes))

    def place(self, name: str) -> NodePlace:
        home = self.homes[name]
        names = ("mqis.toml", "directory.db", "journal", "log")
        config, store, journal, log = (str(home / file) for file in names)
        at = ("pec", "Delft", "127.0.0.1", 1, 1, 1, 1, 1)
        return NodePlace(name, *at, str(home), config, store, journal, log)

    @property
    def witnesses(self) -> list[KeyWitness]:
        return [
            KeyWitness(name, "", str(home / "directory.db"), home / "mqis.toml")
            for name, home in self.homes.items()
        ]

    def rotation(self, *without: str) -> KeyRotation:
        return KeyRotation(self.config("pec1"), self.witnesses, without=without)


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path)


@pytest.mark.req("SEC-26-01", "SEC-26-02")
def test_each_step_waits_for_those_that_have_not_seen_the_one_before(homes: Homes) -> None:
    with homes.rotation() as rotation:
        assert not rotation.begin()
        announced = rotation.ring
        assert announced.following is not None
        new = announced.following.public
        assert set(rotation.step().waiting) == {"pec1", "psc2"}
        homes.publish("pec1", *announced.published)
        told = rotation.step().waiting
        assert list(told) == ["psc2"]
        assert "does not know the new key yet" in told["psc2"]
        homes.publish("psc2", *announced.published)
        assert rotation.step().stage is KeyStage.FORMER
        assert rotation.ring.signing.public == new

        assert set(rotation.step().waiting) == {"pec1", "psc2"}
        for name in NAMES:
            homes.publish(name, *rotation.ring.published)
        assert rotation.step().stage is KeyStage.WITHDRAWN

        homes.publish("pec1", new)
        assert "still accepts another key" in rotation.step().waiting["psc2"]
        homes.publish("psc2", new)
        last = rotation.step()
        assert last.done
        assert rotation.ring.stage is KeyStage.STEADY


@pytest.mark.req("SEC-26-02")
def test_a_rotation_that_was_interrupted_goes_on_with_the_same_key(homes: Homes) -> None:
    with homes.rotation() as rotation:
        rotation.begin()
        first = rotation.ring.following
    with homes.rotation() as rotation:
        assert rotation.begin()
        again = rotation.ring.following
        assert first is not None
        assert again is not None
        assert again.public == first.public
        with pytest.raises(MqisError, match="another 'mqis key rotate' is at work"):
            homes.rotation().__enter__()


def test_a_server_that_is_left_out_finds_the_new_key_in_its_seeds(homes: Homes) -> None:
    with homes.rotation("PSC2") as rotation:
        rotation.begin()
        homes.publish("pec1", *rotation.ring.published)
        assert rotation.step().stage is KeyStage.FORMER
    (seed,) = (parse_seed(text) for text in read(homes.config("psc2")).replication.seeds)
    assert (seed.name, seed.key) == ("pec1", homes.ring("pec1").signing.public)
    assert read(homes.config("pec1")).replication.seeds == ()


def test_the_list_fits_a_narrow_terminal(tmp_path: Path) -> None:
    names = ("pec1", "frankfurt-dir1", "frankfurt-dir2", "frankfurt-dir3", "frankfurt-dir4")
    homes = Homes(tmp_path, names)
    save_nodes(tmp_path, homes.nodes)
    shown = process("key", "list", "--run", tmp_path, env={"COLUMNS": "80"}).stdout.decode()
    told = json.loads(run("key", "list", "--run", tmp_path, "--json").stdout)
    for held in told:
        since = time.strftime("%Y-%m-%d %H:%M", time.gmtime(held["since"]))
        assert f" {held['key'][:12]}   {since}" in shown, "neither is broken"
        others = [] if held["server"] == "pec1" else list(names)
        assert (len(held["key"]), held["accepted_otherwise_by"]) == (16, others)
    shortened = ": 5 servers accept other keys: pec1, frankfurt-dir1, frankfurt-dir2 and 2 more"
    assert shown.count(shortened) == 4


@pytest.mark.req("SEC-26-04")
def test_a_restored_server_learns_the_keys_of_the_others(homes: Homes) -> None:
    assert learn_keys(homes.place("psc2"), homes.nodes) == []
    new = homes.ring("pec1").announced().switched(2e9)
    new.settled().save(homes.homes["pec1"] / "signing.key")
    assert learn_keys(homes.place("psc2"), homes.nodes) == ["pec1"]
    (seed,) = (parse_seed(text) for text in read(homes.config("psc2")).replication.seeds)
    assert seed.key == new.signing.public
    (homes.homes["pec1"] / "signing.key").unlink()
    assert learn_keys(homes.place("psc2"), homes.nodes) == []


def test_the_list_tells_who_accepts_another_key(homes: Homes, tmp_path: Path) -> None:
    homes.publish("psc2", homes.ring("psc2").signing.public)
    (pec, psc) = held_keys(homes.witnesses)
    assert pec.own is not None
    assert pec.own.signs_with == homes.ring("pec1").signing.key_id.hex()[:16]
    assert pec.differing == ("psc2",)
    assert psc.differing == NAMES, "the directory has no machine of it"
    save_nodes(tmp_path, homes.nodes)
    shown = run("key", "list", "PEC1", "--run", tmp_path).stdout
    assert f" {pec.own.signs_with[:12]} " in shown
    assert "pec1: 1 server accepts other keys: psc2\n" in shown
    assert "no such server" in run("key", "list", "pec9", "--run", tmp_path).output
    told = run("key", "rotate", "pec1", "--run", tmp_path, "--wait", "0")
    assert told.exit_code == 1
    assert "it waits for 2 servers:" in told.output
    assert "psc2: does not know the new key yet" in told.output
    again = run("key", "rotate", "pec1", "--run", tmp_path, "--wait", "0")
    assert "the rotation goes on" in again.output
    assert "next" in run("key", "list", "pec1", "--run", tmp_path).stdout
