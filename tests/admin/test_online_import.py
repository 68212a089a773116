"""An Active Directory over LDAP into a store: everything or nothing, and only read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.online import CHANGED, NO_ENTERPRISE, import_domains
from mqis.admin.activedirectory.taking import UNKNOWN_GATE, WITHOUT_DESCRIPTOR, EstateResult
from mqis.config.stores import open_store
from mqis.protocol.ports import Store
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import LdapFault, ScriptedAnswer
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, RenameEntry
from mqis.wire.ldap.controls import PAGED_RESULTS, PagedResults, find_control
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.mqds.keys import PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

KEYS = PublicKeys(()).to_bytes()


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store("memory:")) as opened:
        yield opened


def domain(queues: int = 3) -> ScriptedDomain:
    """Two sites, a link with a gate, and a machine with queues."""
    server = ScriptedDomain.of()
    berlin, paris = server.add_site("Berlin"), server.add_site("Paris")
    computer = server.add_computer("SRV1", mSMQSignCertificates=KEYS)
    machine = f"CN=msmq,{computer}"
    server.put(
        machine, objectClass=b"mSMQConfiguration", mSMQSites=berlin.raw, mSMQRoutingServices=b"TRUE"
    )
    ends = {
        f"mSMQSite{n}": f"CN={s},CN=Sites,{server.configuration}".encode()
        for n, s in ((1, "Berlin"), (2, "Paris"))
    }
    services = f"CN=MsmqServices,CN=Services,{server.configuration}"
    server.put(
        f"CN={berlin.big_endian.hex()}{paris.big_endian.hex()},{services}",
        objectClass=b"mSMQSiteLink", mSMQCost=b"7", mSMQSiteGates=machine.encode(), **ends,
    )  # fmt: skip
    for number in range(queues):
        server.put(f"CN=q{number},{machine}", objectClass=b"mSMQQueue", mSMQLabelEx=b"*)(\\")
    server.add_user("ann", bytes.fromhex("010100000000000512000000"), mSMQDigests=b"d" * 16)
    return server


def imported(server: ScriptedDomain, store: Store, **options: object) -> EstateResult:
    async def run() -> EstateResult:
        async with server:
            wanted = ConnectingOptions(
                (server.url,),
                connect_timeout_s=60,
                operation_timeout_s=60,
                **options,  # type: ignore[arg-type]
            )
            return await import_domains([wanted], store)

    return asyncio.run(run())


def is_empty(store: Store) -> bool:
    with store.read() as view:
        return not view.partitions() and not any(view.count(kind) for kind in ObjectType)


def test_an_estate_is_read_in_pages_and_only_read(store: Store) -> None:
    server = domain(queues=45)
    server.page_limit = 20
    result = imported(server, store)
    assert dict(result.imported.objects) == {
        ObjectType.ENTERPRISE: 1, ObjectType.SITE: 2, ObjectType.CN: 2, ObjectType.ROUTINGLINK: 1,
        ObjectType.USER: 1, ObjectType.MACHINE: 1, ObjectType.QUEUE: 45,
    }  # fmt: skip
    assert not result.notes
    assert not any(
        server.operations(kind) for kind in (AddEntry, ModifyEntry, DeleteEntry, RenameEntry)
    )
    with store.read() as view:
        machine = view.find(ObjectType.MACHINE, "srv1")
        assert machine is not None
        assert machine.value(P.QM_SIGN_PKS) == KEYS
        site = view.find(ObjectType.SITE, "berlin")
        assert site is not None
        assert site.value(P.S_GATES) == (machine.id,)
        queue = view.find(ObjectType.QUEUE, "srv1\\q7")
        assert queue is not None
        assert (queue.value(P.Q_LABEL), queue.value(P.Q_QMID)) == ("*)(\\", machine.id)
        assert P.Q_SECURITY in queue.properties
    assert store.check() == []


def without(server: ScriptedDomain, ldap_class: bytes) -> ScriptedDomain:
    server.entries = [e for e in server.entries if ldap_class not in e.values("objectClass")]
    return server


def test_a_deleted_gate_and_queues_without_machine_are_told(store: Store) -> None:
    told = {note.what for note in imported(without(domain(), b"mSMQConfiguration"), store).notes}
    assert UNKNOWN_GATE in told
    assert any(what.startswith("left out") for what in told)  # the queues


def test_a_missing_enterprise_is_told(store: Store) -> None:
    result = imported(without(domain(), b"mSMQEnterpriseSettings"), store)
    assert [note.what for note in result.notes] == [NO_ENTERPRISE]


def test_an_account_that_may_not_read_permissions(store: Store) -> None:
    server = domain()
    for at, found in enumerate(server.entries):
        rows = tuple(row for row in found.attributes if row[0] != "nTSecurityDescriptor")
        server.entries[at] = type(found)(found.name, rows)
    result = imported(server, store)
    assert {note.what: note.count for note in result.notes} == {WITHOUT_DESCRIPTOR: 7}


def test_an_entry_that_vanishes_between_two_pages(store: Store) -> None:
    server = domain(queues=25)
    server.page_limit = 10

    def vanish(message: LdapMessage) -> ScriptedAnswer | None:
        paging = find_control(message.controls, PAGED_RESULTS)
        if paging is not None and PagedResults.from_bytes(paging).cookie:
            server.entries = [e for e in server.entries if not e.name.startswith("CN=q24,")]
        return None

    server.on_message = vanish
    assert imported(server, store).imported.objects[ObjectType.QUEUE] == 24
    assert store.check() == []


def test_changes_during_the_import_are_told(store: Store) -> None:
    server = domain()
    server.put(
        f"CN=new,CN=msmq,CN=SRV1,CN=Computers,{server.root}",
        objectClass=b"mSMQQueue",
        uSNChanged=b"2",
    )
    (note,) = imported(server, store).notes
    assert (note.what, note.count) == (CHANGED, 1)


@pytest.mark.parametrize("fault", [LdapFault.CLOSE, LdapFault.GARBAGE])
def test_a_connection_that_breaks_imports_nothing(store: Store, fault: LdapFault) -> None:
    server = domain()

    def broken(message: LdapMessage) -> ScriptedAnswer | None:
        asked = message.operation
        if isinstance(asked, SearchRequest) and "mSMQQueueType" in asked.attributes:
            return [fault]
        return None

    server.on_message = broken
    with pytest.raises(MqisError, match=r"the connection|answer is damaged"):
        imported(server, store)
    assert is_empty(store)


def test_a_wrong_password_is_one_line(store: Store, tmp_path: Path) -> None:
    server = domain()
    server.users = {"ann@corp.example": b"right"}
    (tmp_path / "pw").write_text("wrong\n")
    (tmp_path / "pw").chmod(0o600)
    with pytest.raises(MqisError) as caught:
        imported(
            server, store, user="ann@corp.example", password_file=tmp_path / "pw",
            method=BindMethod.SIMPLE,
        )  # fmt: skip
    assert "\n" not in str(caught.value)
