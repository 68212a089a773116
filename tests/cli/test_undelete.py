"""``mqis undelete`` in a running enterprise: PEC in Delft, PSC and BSC in Leiden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from typer.testing import Result

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.replicated import content
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from tests.cli.commands import run
from tests.server.test_forwarding import Enterprise
from tests.waiting import wait_until

QUEUE, MACHINE, SITE, LINK = (
    ObjectType.QUEUE,
    ObjectType.MACHINE,
    ObjectType.SITE,
    ObjectType.ROUTINGLINK,
)
ALICE, PASSWORD = "LAB\\alice", "rabbit hole"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    directory = tmp_path_factory.mktemp("undelete")
    made = Enterprise(directory)
    accounts = AccountsFile(directory / "pec1" / "accounts.toml")
    accounts.add("alice", PASSWORD, domain="LAB")
    yield made
    made.close()


def at(server: DirectoryServer, *arguments: str, user: str | None = None) -> Result:
    address = ("--server", f"127.0.0.1:{server.ready.port}")
    login = () if user is None else ("--user", user)
    stdin = None if user is None else f"{PASSWORD}\n".encode()
    return run(*arguments, *address, *login, stdin=stdin)


def done(server: DirectoryServer, *arguments: str, user: str | None = None) -> str:
    result = at(server, *arguments, user=user)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def told(server: DirectoryServer, *arguments: str, user: str | None = None) -> Any:
    return json.loads(done(server, *arguments, "--json", user=user))


def objects(server: DirectoryServer) -> dict[tuple[ObjectType, str], DirectoryObject]:
    directory = server._directory
    assert directory is not None
    with directory.store.read() as view:
        kinds = (SITE, MACHINE, QUEUE, LINK)
        return {(k, str(o.id)): o for k in kinds for o in view.objects(k)}


def same(left: DirectoryObject, right: DirectoryObject | None) -> bool:
    """Everything but the sequence number, which is new like that of any change."""
    if right is None:
        return False
    mine, theirs = dict(left.properties), dict(right.properties)
    return (left.type, left.id, left.partition, mine) == (
        right.type,
        right.id,
        right.partition,
        theirs,
    )


def everywhere(running: Enterprise, kind: ObjectType, id_: str, *, there: bool = True) -> None:
    def look(server: DirectoryServer) -> bool:
        return ((kind, id_) in objects(server)) is there

    for server in (running.pec, running.psc, running.bsc):
        wait_until(partial(look, server))


def queue(running: Enterprise, path: str) -> str:
    made = told(running.psc, "create", "queue", path, "label=Orders", "quota=77", user=ALICE)
    everywhere(running, QUEUE, made["id"])
    return str(made["id"])


def test_a_queue_comes_back_as_it_was(running: Enterprise) -> None:
    """With its GUID, times, owner and permissions, at every server, and in the journal."""
    id_ = queue(running, "psc2\\orders")
    done(running.psc, "set", "queue", id_, "label=Changed", user=ALICE)
    done(running.psc, "security", "queue", id_, "--set", "D:(A;;GR;;;AU)", "--part", "dacl")
    before = objects(running.psc)[QUEUE, id_]
    done(running.psc, "delete", "queue", "psc2\\orders", "--yes", user=ALICE)
    everywhere(running, QUEUE, id_, there=False)

    plan = told(running.psc, "undelete", "queue", "psc2\\orders", "--dry-run")
    (entry,) = plan["objects"]
    assert (entry["id"], entry["by"], entry["state"]) == (id_, ALICE, "ready")
    assert (QUEUE, id_) not in objects(running.psc), "a plan changes nothing"
    assert isinstance(at(running.psc, "undelete", "queue", id_).exception, MqisError)

    text = done(running.psc, "undelete", "queue", "psc2\\orders", "--yes")
    assert "brought back 1 object" in text
    everywhere(running, QUEUE, id_)
    assert same(before, objects(running.psc)[QUEUE, id_])
    assert objects(running.psc)[QUEUE, id_].seq > before.seq
    assert told(running.psc, "undelete", "--dry-run", "--under", "psc2")["objects"] == []


def test_by_user_time_and_place(running: Enterprise) -> None:
    mine, other = queue(running, "psc2\\mine"), queue(running, "psc2\\other")
    done(running.psc, "delete", "queue", mine, "--yes", user=ALICE)
    done(running.psc, "delete", "queue", other, "--yes")

    def ids(*options: str) -> set[str]:
        found = told(running.psc, "undelete", "--dry-run", *options)["objects"]
        return {entry["id"] for entry in found}

    assert {mine, other} <= ids()
    assert ids("--deleted-by", "alice") >= {mine}
    assert other not in ids("--deleted-by", "LAB\\Alice")
    assert ids("--deleted-by", "anonymous", "--under", "psc2") == {other}
    assert ids("--at", "2020-01-01..2020-12-31") == set()
    assert ids("--at", "2020-01-01..", "--under", "Leiden") >= {mine, other}
    assert ids("--under", "pec1") == set()
    assert at(running.psc, "undelete", "--under", "nowhere").exit_code == 1
    assert at(running.psc, "undelete", "--at", "yesterday").exit_code == 1
    done(running.psc, "undelete", "--under", "psc2", "--yes")
    everywhere(running, QUEUE, mine)
    everywhere(running, QUEUE, other)


def test_a_machine_and_its_queues_come_back_through_another_server(running: Enterprise) -> None:
    """The PEC asks the authority, the PSC of Leiden."""
    site = str(running.site("Leiden"))
    machine = told(running.psc, "create", "machine", "app9", f"site_id={site}", "os=unknown")["id"]
    everywhere(running, MACHINE, machine)
    made = queue(running, "app9\\work")
    before = objects(running.psc)
    done(running.psc, "delete", "machine", "app9", "--yes")
    everywhere(running, MACHINE, machine, there=False)
    text = done(running.pec, "undelete", "machine", "app9", "--yes")
    assert "to bring back: 1 machine, 1 queue" in text
    everywhere(running, MACHINE, machine)
    everywhere(running, QUEUE, made)
    for key in ((MACHINE, machine), (QUEUE, made)):
        assert same(before[key], objects(running.psc)[key])


def test_conflicts_are_told(running: Enterprise) -> None:
    old = queue(running, "psc2\\again")
    done(running.psc, "delete", "queue", old, "--yes")
    new = queue(running, "psc2\\again")
    result = at(running.psc, "undelete", "queue", old, "--yes")
    assert result.exit_code == 1
    assert f"conflict: queue psc2\\again: the name is taken by queue {new}" in result.output
    assert (QUEUE, old) not in objects(running.psc)


def test_a_site_comes_back_with_machines_and_queues(running: Enterprise) -> None:
    """Its servers were expelled, and are members again; no object is lost or changed."""
    made = queue(running, "psc2\\stays")
    link = told(
        running.pec, "create", "link", "neighbor1=Leiden", "neighbor2=Delft", "actual_cost=3"
    )
    everywhere(running, LINK, link["id"])
    site = str(running.site("Leiden"))
    before = objects(running.pec)
    done(running.pec, "delete", "site", "Leiden", "--force", "Leiden")
    wait_until(lambda: (QUEUE, made) not in objects(running.pec))
    wait_until(lambda: (SITE, site) not in objects(running.psc))

    plan = told(running.pec, "undelete", "site", "Leiden", "--dry-run")["objects"]
    kinds = {entry["type"] for entry in plan}
    assert kinds == {"site", "link", "machine", "queue"}
    assert not [entry for entry in plan if entry["state"] != "ready"], plan
    done(running.pec, "undelete", "site", "Leiden", "--yes")
    after = objects(running.pec)
    for key, obj in before.items():
        assert key in after, obj.path
        assert content(after[key]) == content(obj), obj.path
    everywhere(running, SITE, site)
    everywhere(running, LINK, link["id"])
    assert queue(running, "psc2\\later"), "the PSC decides about its site again"


def test_the_enterprise_comes_back(running: Enterprise) -> None:
    before = told(running.pec, "get", "enterprise", "Acme")["properties"]
    done(running.pec, "delete", "enterprise", "Acme", "--force", "acme")
    assert at(running.pec, "get", "enterprise", "Acme").exit_code == 1
    done(running.pec, "undelete", "enterprise", "Acme", "--yes")
    assert told(running.pec, "get", "enterprise", "Acme")["properties"] == before
    wait_until(lambda: at(running.psc, "get", "enterprise", "Acme").exit_code == 0)
    assert queue(running, "psc2\\after")


def test_without_conditions_it_only_lists(running: Enterprise) -> None:
    made = queue(running, "psc2\\listed")
    done(running.psc, "delete", "queue", made, "--yes")
    assert "psc2\\listed" in done(running.psc, "undelete", "--yes")
    assert (QUEUE, made) not in objects(running.psc)
    error = at(running.psc, "undelete", "queue", "psc2\\never").exception
    assert isinstance(error, DirectoryError)
    assert "no deleted queue 'psc2\\\\never'" in str(error)
