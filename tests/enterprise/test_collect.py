"""Several servers' own words put beside each other."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.nodes import Nodes, save_nodes
from mqis.config.processlocks import ProcessLock
from mqis.enterprise.collected_status import Collector, collect
from mqis.enterprise.roster import roster_of_nodes
from mqis.enterprise.states import ProcessState, Supervised, Supervision, save_states
from mqis.enterprise.status import EnterpriseStatus
from mqis.protocol.directory.objects import Partition
from mqis.storage.schema import VERSION
from mqis.storage.sqlite import SqliteStore, schema_version
from mqis.testing.ports import free_port
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber
from tests.enterprise.monitors import PARTITION, Monitors, closing_monitors, node, told


@pytest.fixture
def fakes() -> Iterator[Monitors]:
    with closing_monitors() as made:
        yield made


def look(nodes: Nodes, supervised: dict[str, Supervised] | None = None) -> EnterpriseStatus:
    return collect(roster_of_nodes(nodes, supervised))


def test_a_replica_is_as_far_behind_as_its_authority_is_ahead(fakes: Monitors) -> None:
    a = fakes.add(told("a", 0x105, authority=True))
    b = fakes.add(told("b", 0x100, authority=False))
    found = look(Nodes("Acme", (node("a", a), node("b", b)), 1))
    assert not found.converged
    assert [server.behind for server in found.servers] == [0, 5]
    first = found.servers[0]
    assert (first.up, first.queued, first.connected, len(first.peers)) == (True, 7, 1, 2)
    assert (first.pid, first.restarts, first.counters["calls"]) == (42, 2, 7.0)
    shown = json.loads(json.dumps(found.to_json()))
    assert shown["servers"][1]["partitions"][0]["behind"] == 5
    assert shown["converged"] is False


def test_without_its_authority_nothing_is_said_of_a_partition(fakes: Monitors) -> None:
    b = fakes.add(told("b", 9, authority=False))
    found = look(Nodes("Acme", (node("b", b), node("a", free_port()))))
    assert found.servers[0].replicas[0].behind is None
    assert not found.converged
    assert (found.servers[1].up, found.servers[1].state) == (False, "down")
    assert "refused" in found.servers[1].reason


def test_what_is_no_status_is_told(fakes: Monitors) -> None:
    found = look(Nodes("Acme", (node("a", fakes.add({"server": "a"})),)))
    assert found.servers[0].reason.endswith(" as a server does")
    assert found.servers[0].state.text == "does not answer"


def test_a_collector_remembers_since_when(fakes: Monitors, tmp_path: Path) -> None:
    a = fakes.add(told("a", 5, authority=True))
    b = fakes.add(told("b", 4, authority=False))
    save_nodes(tmp_path, Nodes("Acme", (node("a", a), node("b", b)), supervisor=77))
    collector = Collector.of_run(tmp_path)
    first = collector.collect()
    assert first.servers[1].behind_s == 0.0
    assert first.supervisor is None  # nobody holds the lock, whatever the file says
    later = collector.collect().servers[1].behind_s
    assert later is not None
    assert later > 0.0
    fakes.answers[b] = told("b", 5, authority=False)
    assert collector.collect().servers[1].behind_s is None
    fakes.answers[b] = told("b", 3, authority=False)
    assert collector.collect().servers[1].behind_s == 0.0


def test_the_supervisor_knows_why_a_server_is_away(tmp_path: Path) -> None:
    nodes = Nodes("Acme", (node("a", free_port()), node("b", free_port())))
    save_nodes(tmp_path, nodes)
    states = {
        "a": Supervised(ProcessState.FAILED, 1000.0, "status 1: no store"),
        "b": Supervised(ProcessState.STARTING, 2000.0),
    }
    save_states(tmp_path, Supervision("", False, states))
    lock = ProcessLock(tmp_path / "lock")
    assert lock.take()
    lock.name(4711)
    found = Collector.of_run(tmp_path).collect()
    assert found.supervisor == 4711
    assert [(s.state, s.since, s.reason) for s in found.servers] == [
        ("failed", 1000.0, "status 1: no store"),
        ("starting", 2000.0, ""),
    ]
    lock.let_go()
    alone = Collector.of_run(tmp_path).collect()
    assert [s.state for s in alone.servers] == ["failed", "down"]


def test_a_server_without_its_directory_is_neither_up_nor_equal(fakes: Monitors) -> None:
    """It tells how it is before it takes calls, and has nothing that could be behind."""
    empty = {**told("b", 0, authority=False), "partitions": []}
    nodes = Nodes(
        "Acme", (node("a", fakes.add(told("a", 5, authority=True))), node("b", fakes.add(empty)))
    )
    assert not look(nodes).converged
    found = look(nodes, {"b": Supervised(ProcessState.STARTING, 1.0)})
    assert [(s.up, s.state) for s in found.servers] == [(True, "ready"), (False, "starting")]
    assert look(nodes, {"b": Supervised(ProcessState.READY, 1.0)}).servers[1].up


# --- stores of servers that do not answer ---------------------------------------------------------


def with_store(path: Path) -> Nodes:
    store = SqliteStore(path)
    with store.write() as tx:
        tx.put_partition(Partition(Guid.parse(PARTITION), "A", SequenceNumber(9)))
    store.close()
    return Nodes("Acme", (node("a", free_port(), f"sqlite:{path}"),))


def test_the_store_of_a_server_that_does_not_answer_is_read(tmp_path: Path) -> None:
    nodes = with_store(tmp_path / "a.db")
    for supervised in ({}, {"a": Supervised(ProcessState.STOPPED, 1.0)}):
        (replica,) = look(nodes, supervised).servers[0].replicas
        assert (replica.last_seq, replica.authority) == ("0000000000000009", True)
    assert collect(roster_of_nodes(nodes), None).servers[0].partitions is None


def test_the_store_of_a_server_that_starts_is_left_alone(tmp_path: Path) -> None:
    nodes = with_store(tmp_path / "a.db")
    for state in (ProcessState.WAITING, ProcessState.STARTING):
        assert look(nodes, {"a": Supervised(state, 1.0)}).servers[0].partitions is None


def test_a_store_of_another_version_is_left_alone(tmp_path: Path) -> None:
    """Opening one would bring it up to date, which is for its server to do."""
    nodes = with_store(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute(f"PRAGMA user_version={VERSION - 1}")
    assert look(nodes).servers[0].partitions is None
    assert schema_version(tmp_path / "a.db") == VERSION - 1
