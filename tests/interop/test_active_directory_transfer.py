"""Samba judges import, export and publish: what we write it takes, what it has we read."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.exporting import LdifOptions, export_ldif
from mqis.admin.activedirectory.ldif import import_ldif
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.online import import_online
from mqis.admin.activedirectory.publishing import PublishAction, PublishStep, publish_store
from mqis.cli.tour.activedirectory import EXAMPLE
from mqis.config.stores import open_store
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.errors import MqisError
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.interop.samba_domain import PASSWORD, USER, load_ldif, samba_domain

pytestmark = pytest.mark.interop

LDAPS = "ldaps://127.0.0.1"
#: A name that would be a filter, one that would be another path, one with every special character.
HOSTILE = ("*)(cn=*", "a=b,cn=msmq+c", 'q"<#x>=,+', "#1", "x" * 124, "))(|(cn=*)")
LABEL = "*()\\ \N{EURO SIGN},cn=x"


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one") as directory:
        yield directory


@pytest.fixture(scope="module")
def estate(domain: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of our own, and the same estate in Samba, loaded from the LDIF that we write."""
    with closing(open_store("memory:")) as store:
        import_ldif(store, [EXAMPLE])
        with store.write() as tx:
            events = DirectoryEvents(tx, 0, SystemEntropy())
            for name in HOSTILE:
                path, label = f"ams-app1\\{name}", LABEL
                events.create(ObjectType.QUEUE, path, props({P.Q_LABEL: label}))
        file = tmp_path_factory.mktemp("ldif") / "estate.ldif"
        options = LdifOptions(base="DC=corp,DC=example")
        with store.read() as view, file.open("wb") as out:
            export_ldif(view, out, options, TransferNotes())
        load_ldif(domain, file)
        yield store


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def options(domain: Path, password: str = PASSWORD) -> ConnectingOptions:
    file = domain / "password"
    file.write_text(f"{password}\n")
    file.chmod(0o600)
    certificate = domain / "private/tls/own.pem"
    return ConnectingOptions((LDAPS,), USER, file, certificate, "dc1.corp.example")


def objects(store: Store, kind: ObjectType) -> dict[str, DirectoryObject]:
    with store.read() as view:
        return {(obj.path or str(obj.id)).lower(): obj for obj in view.objects(kind)}


def imported(domain: Path) -> Store:
    store = open_store("memory:")
    import_online([options(domain)], store)
    return store


def published(
    domain: Path, store: Store, *, write: bool
) -> tuple[list[PublishStep], int, TransferNotes]:
    return asyncio.run(publish_store([options(domain)], store, write=write))


def test_samba_finds_no_error_in_what_we_wrote(domain: Path, estate: Store) -> None:
    checked = run("samba-tool", "dbcheck", "--cross-ncs", "-s", domain / "etc/smb.conf")
    assert "(0 errors)" in checked.stdout, checked.stdout + checked.stderr


def test_hostile_names_and_labels_come_back(domain: Path, estate: Store) -> None:
    with closing(imported(domain)) as found:
        ours, theirs = (objects(s, ObjectType.QUEUE) for s in (estate, found))
        assert set(ours) == set(theirs)
        for path, queue in ours.items():
            assert theirs[path].id == queue.id
            assert theirs[path].value(P.Q_LABEL) == queue.value(P.Q_LABEL)
            assert theirs[path].value(P.Q_QMID) == queue.value(P.Q_QMID)
        links = objects(found, ObjectType.ROUTINGLINK)
        for key, link in objects(estate, ObjectType.ROUTINGLINK).items():
            gates = P.L_GATES, P.L_ACTUAL_COST, P.L_NEIGHBOR1
            assert [links[key].value(p) for p in gates] == [link.value(p) for p in gates]
        assert found.check() == []


def test_the_dump_of_ldapsearch_gives_the_same_objects(
    domain: Path, estate: Store, tmp_path: Path
) -> None:
    dump = tmp_path / "dump.ldif"
    with dump.open("w") as out:
        for base in ("DC=corp,DC=example", "CN=Configuration,DC=corp,DC=example"):
            subprocess.run(
                ["ldapsearch", "-x", "-H", LDAPS, "-D", USER, "-w", PASSWORD, "-b", base],
                env=os.environ | {"LDAPTLS_CACERT": str(domain / "private/tls/own.pem")},
                stdout=out,
                check=True,
            )
    with closing(open_store("memory:")) as found:
        import_ldif(found, [dump])
        assert set(objects(found, ObjectType.QUEUE)) == set(objects(estate, ObjectType.QUEUE))
        assert set(objects(found, ObjectType.MACHINE)) == set(objects(estate, ObjectType.MACHINE))


def test_a_plan_writes_nothing(domain: Path, estate: Store) -> None:
    steps, written, _ = published(domain, estate, write=False)
    assert written == 0
    assert {step.action for step in steps} == {PublishAction.PRESENT}


def test_deleted_objects_come_back_with_their_identifiers(domain: Path, estate: Store) -> None:
    """A queue of its own, then a whole machine with the rest of its queues."""
    from mqis.admin.activedirectory.connecting import connect
    from mqis.wire.ldap.changes import DeleteEntry
    from mqis.wire.ldap.names import guid_name

    queues, machines = (objects(estate, k) for k in (ObjectType.QUEUE, ObjectType.MACHINE))

    async def delete() -> None:
        client, _ = await connect(options(domain))
        await client.apply(DeleteEntry(guid_name(queues["ber-app1\\invoices"].id)))
        await client.apply(DeleteEntry(guid_name(machines["ams-app1"].id), tree=True))
        await client.close()

    asyncio.run(delete())
    steps, written, notes = published(domain, estate, write=True)
    back = [step for step in steps if step.action is PublishAction.PUT_BACK]
    assert written == len(back) == 2 + sum(p.startswith("ams-app1") for p in queues), list(notes)
    with closing(imported(domain)) as found:
        theirs = objects(found, ObjectType.QUEUE)
        assert {path: obj.id for path, obj in theirs.items()} == {
            p: q.id for p, q in queues.items()
        }
        assert theirs["ams-app1\\*)(cn=*"].value(P.Q_LABEL) == LABEL
        assert objects(found, ObjectType.MACHINE)["ams-app1"].id == machines["ams-app1"].id
    again, written, _ = published(domain, estate, write=True)
    assert written == 0
    assert {step.action for step in again} == {PublishAction.PRESENT}
    checked = run("samba-tool", "dbcheck", "--cross-ncs", "-s", domain / "etc/smb.conf")
    assert "(0 errors)" in checked.stdout, checked.stdout + checked.stderr


def test_a_new_queue_gets_another_identifier_and_that_is_told(domain: Path, estate: Store) -> None:
    with estate.write() as tx:
        events = DirectoryEvents(tx, 0, SystemEntropy())
        new = events.create(ObjectType.QUEUE, "ber-app1\\*(new)\\"[:-1], props({P.Q_LABEL: LABEL}))
    _, written, notes = published(domain, estate, write=True)
    assert written == 1
    (note,) = notes
    assert note.what == "objects got another identifier"
    with closing(imported(domain)) as found:
        made = objects(found, ObjectType.QUEUE)["ber-app1\\*(new)"]
        assert made.id != new.id
        assert made.value(P.Q_LABEL) == LABEL


def test_a_wrong_password_is_one_line(domain: Path) -> None:
    with closing(open_store("memory:")) as store, pytest.raises(MqisError) as caught:
        import_online([options(domain, "wrong")], store)
    assert "the user name or the password is wrong" in str(caught.value)
    assert "\n" not in str(caught.value)
