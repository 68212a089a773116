"""Accounts and configurations of an enterprise, before anything runs."""

from __future__ import annotations

import tomllib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.config.errors import ConfigError
from mqis.config.file import load
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.sections import ConfiguredRole
from mqis.config.stores import open_store
from mqis.enterprise.configs import is_member, write_config
from mqis.enterprise.first_server import found_pec, journal_local_changes
from mqis.enterprise.placing import SERVERS
from mqis.enterprise.plan import RunPlan, parse_plan
from mqis.enterprise.setup import administrator, make_accounts
from mqis.protocol.directory.objects import Scope
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.replication.outgoing_changes import deletion
from mqis.runtime.authentication.account import nt_hash
from mqis.server.accounts import AccountsFile
from mqis.storage.memory_store import MemoryStore
from mqis.wire.journal import RecordState
from mqis.wire.journal.record import decode_body
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.security.sid import ADMINISTRATORS

PLAN = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
[[server]]
name = "del-dir2"
site = "Delft"
role = "bsc"
[[account]]
name = "root"
administrator = true
password_file = "secret.txt"
[[account]]
name = "clerk"
[options.replication]
heartbeat_s = 17
"""


@pytest.fixture
def plan() -> RunPlan:
    return parse_plan(tomllib.loads(PLAN))


def nodes_in(run: Path) -> Nodes:
    def node(name: str, role: str, host: int) -> NodePlace:
        home = run / SERVERS / name
        return NodePlace(
            *(name, role, "Delft", f"127.77.1.{host}", 2879, 135, 1801, 1801, 9364),
            *(str(home), str(home / "mqis.toml"), str(home / "directory.db")),
            *(str(home / "journal"), str(home / "log")),
        )

    return Nodes("Acme", (node("del-dir1", "pec", 1), node("del-dir2", "bsc", 2)))


def test_passwords_are_given_or_made_up(tmp_path: Path, plan: RunPlan) -> None:
    (tmp_path / "secret.txt").write_text("correct horse\nbattery\n", encoding="utf-8")
    (tmp_path / "secret.txt").chmod(0o600)
    run = tmp_path / "run"
    run.mkdir()
    make_accounts(run, plan, tmp_path)
    assert administrator(run, plan, tmp_path).password == "correct horse"
    accounts = AccountsFile(run / "accounts.toml")
    root, clerk = accounts.accounts()
    assert root.groups == frozenset({ADMINISTRATORS})
    assert not clerk.groups
    made = (run / "passwords" / "clerk").read_text(encoding="utf-8").strip()
    assert clerk.nt_hash == nt_hash(made)
    make_accounts(run, plan, tmp_path)
    assert accounts.accounts() == (root, clerk)


def test_a_password_that_cannot_be_read_is_told(tmp_path: Path, plan: RunPlan) -> None:
    with pytest.raises(ConfigError, match=r"secret\.txt: the password cannot be read"):
        make_accounts(tmp_path, plan, tmp_path)
    (tmp_path / "secret.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "secret.txt").chmod(0o600)
    with pytest.raises(ConfigError, match="the first line must be the password, but is empty"):
        make_accounts(tmp_path, plan, tmp_path)


def test_a_configuration_follows_the_plan_and_keeps_what_others_changed(
    tmp_path: Path, plan: RunPlan
) -> None:
    nodes = nodes_in(tmp_path)
    place = nodes.named("del-dir2")
    Path(place.home).mkdir(parents=True)
    write_config(plan, nodes, place)
    assert not is_member(place)
    path = Path(place.config)
    first = load(path)
    assert first.server.role is ConfiguredRole.BSC
    assert first.replication.heartbeat_s == 17
    assert dict(first.hosts.entries)["del-dir1"] == "127.77.1.1:1801"
    text = path.read_text(encoding="utf-8")
    promoted = text.replace('role = "bsc"', 'role = "psc"').replace("burst = 20", "burst = 30")
    path.write_text(promoted, encoding="utf-8")
    moved = replace(place, queue_port=12_345)
    others = tuple(node for node in nodes.nodes if node.name != moved.name)
    write_config(plan, replace(nodes, nodes=(*others, moved)), moved)
    second = load(path)
    assert second.replication.port == 12_345
    assert dict(second.hosts.entries)["del-dir2"] == "127.77.1.2:12345"
    assert second.server.role is ConfiguredRole.PSC
    assert second.discovery.burst == 30


def test_the_first_server_is_founded_once_and_written_down(tmp_path: Path, plan: RunPlan) -> None:
    """Every change of the founding is a record: without gaps, so that it can be rebuilt."""
    nodes = nodes_in(tmp_path)
    found_pec(plan, nodes)
    place = nodes.named("del-dir1")
    assert is_member(place)
    store = open_store(place.store)
    try:
        with store.read() as view:
            written = [record for _, record in view.outbox(0, 100)]
            enterprise = next(iter(view.objects(ObjectType.ENTERPRISE)))
            assert view.find(ObjectType.CN, "IP") is not None
            for state in view.partitions():
                numbers = [r.seq.value for r in written if r.partition == state.id]
                assert numbers == list(range(1, state.last_seq.value + 1))
        assert {record.state for record in written} == {RecordState.LOCAL}
    finally:
        store.close()
    found_pec(plan, nodes)
    again = open_store(place.store)
    try:
        with again.read() as view:
            assert next(iter(view.objects(ObjectType.ENTERPRISE))) == enterprise
    finally:
        again.close()


def test_a_deletion_during_the_founding_is_written_down_with_scope_and_type(
    tmp_path: Path, plan: RunPlan
) -> None:
    """As replication writes it: a deletion without them could not be rebuilt."""
    nodes = nodes_in(tmp_path)
    found_pec(plan, nodes)
    with closing(open_store(nodes.named("del-dir1").store)) as founded, founded.read() as view:
        network = next(iter(view.objects(ObjectType.CN)))
    store = MemoryStore()
    with store.write() as tx:
        journal_local_changes(tx, [OwnChange(ChangeKind.DELETE, network)], 0)
    with store.read() as view:
        [(_, record)] = view.outbox(0, 2)
    body = decode_body(record)
    assert isinstance(body, DirectoryChange)
    assert body.properties == deletion(ObjectType.CN, Scope.ENTERPRISE)
