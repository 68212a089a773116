"""Samba domain controllers of one domain: one is down, one only reads, two disagree for a while."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.errors import MissingStore
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import write_ldif
from mqis.wire.mqds.objecttype import ObjectType
from tests.estate.planted import BERLIN, OU, computer, machine, made, sound
from tests.interop.samba_controllers import MQIS, Controllers, controllers
from tests.interop.samba_domain import PASSWORD, load_entries
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.interop

HOST = f"CN=msmq,CN=WS1,{OU}"
#: What a directory decides itself; ``add`` leaves it out.
_ITS_OWN = ("objectGUID", "memberOf", "objectSid", "nTSecurityDescriptor")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """Two controllers, and one for reading only, which may log on ``reader``."""

    def fill(directory: Path) -> None:
        load_entries(directory, sound())
        conf = directory / "etc/smb.conf"
        allowed = "[global]\n\tdsdb:schema update allowed = yes"
        conf.write_text(conf.read_text().replace("[global]", allowed, 1))
        for command in (
            ["user", "create", "reader", PASSWORD],
            ["group", "addmembers", "Allowed RODC Password Replication Group", "reader"],
        ):
            subprocess.run(["samba-tool", *command, "-s", conf], check=True, capture_output=True)

    made = tmp_path_factory.mktemp("pair")
    with controllers(made, "dc2", "rodc", before_start=fill) as found:
        found.preload("reader")
        yield found


def add(pair: Controllers, at: str, *entries: AddEntry) -> None:
    given = (
        AddEntry(each.name, tuple(row for row in each.attributes if row[0] not in _ITS_OWN))
        for each in entries
    )
    pair.ldap("ldapadd", at, text="".join(write_ldif(given)))


def queue(name: str, host: str = HOST) -> AddEntry:
    return made(f"CN={name},{host}", "top", "mSMQQueue")


def held(store: Path) -> dict[str, dict[int, object]]:
    """All objects of a store with the values that say something."""
    with closing(open_store(str(store))) as found, found.read() as view:
        return {
            f"{kind.label} {obj.id}": {k: v.value for k, v in obj.properties.items() if v.value}
            for kind in ORDER
            for obj in view.objects(kind)
        }


def queues(store: Path) -> set[str]:
    try:
        found = open_store(str(store))
    except MissingStore:  # it is being made
        return set()
    with closing(found), found.read() as view:
        return {obj.path or "" for obj in view.objects(ObjectType.QUEUE)}


def findings(told: str) -> list[tuple[str, str]]:
    found: list[dict[str, Any]] = json.loads(told)["findings"]
    return sorted((each["check"], each["where"].partition(",")[0]) for each in found)


def test_another_controller_answers_when_one_is_down(pair: Controllers, tmp_path: Path) -> None:
    both, store = pair.url("dc1", "dc2"), tmp_path / "followed.db"
    pair.mqis("import", pair.url("dc1"), "--store", tmp_path / "before.db")
    logon = pair.logon()
    command = pair.entered(MQIS, "mirror", both, "--store", store, "--interval", "1", *logon)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: "ws1\\orders" in queues(store), "everything of dc1")
            pair.stop("dc1")
            add(pair, "dc2", queue("meanwhile"))
            wait_until(lambda: "ws1\\meanwhile" in queues(store), "a change of dc2")
            pair.mqis("import", both, "--store", tmp_path / "import.db")
            assert findings(pair.mqis("estate", "check", both, "--json")) == []
            told = pair.mqis("import", pair.url("dc1"), "--store", tmp_path / "x.db", status=(1,))
            assert "no connection" in told
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
    assert held(store) == held(tmp_path / "import.db")
    assert len(held(store)) == len(held(tmp_path / "before.db")) + 1
    status = json.loads(pair.run(MQIS, "mirror", "--status", "--store", store, "--json").stdout)
    assert (status["equal"], status["server"]) == (True, "dc2.corp.example")
    pair.start("dc1")
    pair.replicate("dc1", "dc2")


def test_a_read_only_controller_without_attributes_is_refused(
    pair: Controllers, tmp_path: Path
) -> None:
    """Before that it tells all that the others tell, to an account whose password it has."""
    store, reader = tmp_path / "followed.db", "reader@corp.example"
    pair.replicate("rodc", "dc1")
    pair.mqis("import", pair.url("dc1"), "--store", tmp_path / "dc1.db")
    source = pair.url("rodc")
    mirror = "mirror", source, "--store", store, "--once", "--json"
    assert json.loads(pair.mqis(*mirror, user=reader))["equal"]
    assert held(store) == held(tmp_path / "dc1.db")
    assert findings(pair.mqis("estate", "check", source, "--json", user=reader)) == []

    schema = "CN=Schema,CN=Configuration,DC=corp,DC=example"
    change = f"dn: CN=MSMQ-Sites,{schema}\nchangetype: modify\nreplace: searchFlags\n"
    pair.ldap("ldapmodify", "dc1", text=f"{change}searchFlags: 513\n")
    pair.replicate("rodc", "dc1", schema)
    asked: tuple[tuple[str | Path, ...], ...] = (
        ("import", source, "--store", tmp_path / "rodc.db"),
        mirror,
        ("estate", "check", source),
    )
    for command in asked:
        told = pair.mqis(*command, user=reader, status=(1, 2))
        assert "does not give mSMQSites: name a writable one" in told
    assert json.loads(pair.mqis(*mirror[:1], pair.url("dc1"), *mirror[2:]))["equal"]


def test_conflicts_and_lost_entries_are_told(pair: Controllers, tmp_path: Path) -> None:
    """Each controller makes a queue and a queue manager of the same names as the other.

    One of them deletes a queue manager, below which the other one makes a queue.
    """
    orphan = machine("WS3", 50, BERLIN)
    add(pair, "dc1", computer("WS2", "10.1.0.5"), computer("WS3", "10.1.0.6"), orphan)
    pair.replicate("dc2", "dc1")
    stores = {at: tmp_path / f"{at}.db" for at in ("dc1", "dc2")}
    for number, (at, store) in enumerate(stores.items(), 51):
        below = f"CN=msmq,CN=WS2,{OU}"
        add(pair, at, queue("both"), machine("WS2", number, BERLIN), queue(f"of-{at}", below))
        pair.mqis("mirror", pair.url(at), "--store", store, "--once")
        assert {"ws1\\both", f"ws2\\of-{at}"} <= queues(store)
    add(pair, "dc2", queue("lost", orphan.name))
    pair.ldap("ldapdelete", "dc1", "-r", orphan.name)
    for to, of in (("dc2", "dc1"), ("dc1", "dc2"), ("dc2", "dc1")):
        pair.replicate(to, of)

    followed: dict[str, dict[str, dict[int, object]]] = {}
    for at, store in stores.items():
        told = json.loads(pair.mqis("mirror", pair.url(at), "--store", store, "--once", "--json"))
        assert [(each["type"], each["reason"]) for each in told["left_out"]] == [("queue", "host")]
        copy = tmp_path / f"{at}-imported.db"
        (note,) = json.loads(pair.mqis("import", pair.url(at), "--store", copy, "--json"))["notes"]
        assert [name.partition(",")[0] for name in note["entries"]] == ["CN=lost"]
        followed[at] = held(store)
        assert followed[at] == held(copy)
    assert followed["dc1"] == followed["dc2"]
    marked = {re.sub("\ncnf:[-0-9a-f]{36}", " (again)", path) for path in queues(store)}
    assert marked >= {"ws1\\both", "ws1\\both (again)"}
    # One of the two kept the name of its queue manager.
    kept = {path for path in marked if path in ("ws2\\of-dc1", "ws2\\of-dc2")}
    others = {path for path in marked if path.startswith("ws2 (again)\\of-dc")}
    assert (len(kept), len(others)) == (1, 1)

    found = findings(pair.mqis("estate", "check", pair.url("dc1"), "--json", status=(1,)))
    assert [(check, name.partition(":")[0]) for check, name in found] == [
        ("conflicting_entry", "CN=both\\0ACNF"),
        ("conflicting_entry", "CN=msmq\\0ACNF"),
        ("queue_without_machine", "CN=lost"),
    ]
