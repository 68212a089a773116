"""The store of a pass-through server over a Samba domain controller.

The sentences of ``protocol.ports`` have the names that they have in ``tests/storage``. Active
Directory chooses identifiers, so that objects are compared by what the store returned for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from mqis.protocol.directory.indexing import key_of
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.errors import ChangedMeanwhile, DirectoryError
from mqis.protocol.ldap.urls import LdapUrl
from mqis.protocol.ports import Store, View
from mqis.runtime.activedirectory.estate import IN_ORDER
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.ldap.ldap_logon import LdapLogin
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import UserSignCerts, digest_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.seqnum import SequenceNumber
from tests.estate.planted import BERLIN, OU, PARIS, SITES, computer, made, sound
from tests.interop.active_directory_contract import DOES_NOT_APPLY
from tests.interop.samba_domain import PASSWORD, USER, load_entries, samba_domain
from tests.runtime.activedirectory.comparisons import check_equal, queries, restrictions_of
from tests.storage import test_contract
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.interop

QUEUE = ObjectType.QUEUE


def varied() -> Iterator[AddEntry]:
    """Objects with attributes that the estate's have not."""
    host = f"CN=msmq,CN=VAR,{OU}"
    yield computer("VAR", "192.0.2.99")
    yield made(
        host, "top", "mSMQConfiguration", mSMQSites=(BERLIN, PARIS), mSMQForeign="TRUE",
        mSMQOSType=999, mSMQServiceType=16, mSMQDsServices="TRUE", mSMQQuota=-1,
        mSMQComputerTypeEx="A*B", mSMQDependentClientServices="TRUE",
    )  # fmt: skip
    for number, given in enumerate(
        (
            {"mSMQLabelEx": "Bills", "mSMQJournal": "TRUE", "mSMQQueueQuota": 7},
            {"mSMQLabelEx": " bills ", "mSMQJournal": "FALSE", "mSMQBasePriority": -3},
            {"mSMQLabelEx": "GRÖßE", "mSMQBasePriority": 7, "mSMQQueueQuota": 0},
            {"mSMQLabelEx": "*", "mSMQPrivacyLevel": 2, "mSMQQueueType": b"t" * 16},
            {"mSMQLabelEx": ")(cn=*", "mSMQPrivacyLevel": 0, "mSMQTransactional": "TRUE"},
            {"mSMQQueueQuota": -1, "mSMQQueueJournalQuota": 5, "mSMQAuthenticate": "TRUE"},
        )
    ):
        yield made(f"CN=q{number},{host}", "top", "mSMQQueue", **given)
    yield made(f"CN=VAR,{SITES}", "top", "site")
    yield made(
        f"CN=Foreign,{SITES}", "top", "site", mSMQSiteForeign="TRUE", mSMQInterval1=70000,
        mSMQInterval2=3, mSMQNt4Stub=5,
    )  # fmt: skip


def fill(directory: Path) -> None:
    load_entries(directory, (*sound(), *varied()))


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one", before_start=fill) as directory:
        yield directory


@pytest.fixture(scope="module")
def settings(domain: Path) -> LdapSettings:
    return LdapSettings(
        (LdapUrl.parse("ldaps://127.0.0.1"),),
        LdapLogin(USER, PASSWORD),
        TlsSettings(domain / "private/tls/own.pem", "dc1.corp.example"),
        connect_timeout_s=10,
        operation_timeout_s=60,
    )


@pytest.fixture(scope="module")
def store(settings: LdapSettings) -> Iterator[ActiveDirectoryStore]:
    opened = ActiveDirectoryStore(settings)
    yield opened
    opened.close()


def test_samba_and_the_lookup_find_the_same(store: ActiveDirectoryStore) -> None:
    with store.read() as view:
        some = Random(19).sample(restrictions_of(view), 300)  # all of them take a minute
        assert check_equal(view, queries(some, pairs=50)) > 500


# --- the contract of stores -----------------------------------------------------------------------


def test_every_sentence_is_kept_or_has_a_reason() -> None:
    here = {name for name in globals() if name.startswith("test_")}
    sentences = {name for name in vars(test_contract) if name.startswith("test_")}
    assert sentences - here == set(DOES_NOT_APPLY)
    assert not here & set(DOES_NOT_APPLY)


def new_queue(name: str, label: str = "", **others: Value) -> DirectoryObject:
    values: dict[int, Value] = {P.Q_PATHNAME: f"VAR\\{name}", P.Q_LABEL: label}
    values |= {P[key]: value for key, value in others.items()}
    return DirectoryObject(
        QUEUE, Guid.NULL, ENTERPRISE_PARTITION, SequenceNumber.MIN, props(values)
    )


def insert(store: Store, obj: DirectoryObject) -> DirectoryObject:
    """Inserts an object and returns what the store now has."""
    with store.write() as transaction:
        given = transaction.insert(obj)
    assert given is not None
    with store.read() as view:
        found = view.get(obj.type, given.id)
    assert found is not None
    return found


def labelled(view: View, label: str) -> list[Guid]:
    key = key_of(label)
    assert key is not None
    return [obj.id for obj in view.having(QUEUE, P.Q_LABEL, key)]


def test_get_by_type_and_identifier(store: Store) -> None:
    made_now = insert(store, new_queue("get", "Get", Q_QUOTA=7, Q_JOURNAL=1))
    assert made_now.path == "var\\get"
    assert (made_now.value(P.Q_QUOTA), made_now.value(P.Q_JOURNAL)) == (7, 1)
    with store.read() as view:
        for kind in IN_ORDER:
            for obj in view.objects(kind):
                assert view.get(kind, obj.id) == obj
        assert view.get(ObjectType.MACHINE, made_now.id) is None
        assert view.get(QUEUE, Guid(b"x" * 16)) is None


@pytest.mark.parametrize(("name", "asked"), [("Orders.1", "oRDERS.1"), ("a,b=*)(", "A,B=*)(")])
def test_find_ignores_case(store: Store, name: str, asked: str) -> None:
    obj = insert(store, new_queue(name))
    with store.read() as view:
        assert view.find(QUEUE, f"var\\{asked}") == obj
        assert view.find(QUEUE, f"VAR\\{name}") == obj
        assert view.find(ObjectType.MACHINE, f"VAR\\{name}") is None
        assert view.find(QUEUE, f"VAR\\{name}3") is None


def test_the_same_name_under_two_types(store: Store) -> None:
    with store.read() as view:
        machine, site = view.find(ObjectType.MACHINE, "var"), view.find(ObjectType.SITE, "var")
        assert machine is not None
        assert site is not None
        assert (machine.type, site.type) == (ObjectType.MACHINE, ObjectType.SITE)


def test_owned_by_machine_site_and_enterprise(store: Store) -> None:
    """A machine of two sites belongs to both: the values of an attribute have no order."""
    with store.read() as view:
        machine = view.find(ObjectType.MACHINE, "VAR")
        assert machine is not None
        owned = list(view.owned_by(QUEUE, machine.id))
        assert owned
        assert all(obj.value(P.Q_QMID) == machine.id for obj in owned)
        assert not list(view.owned_by(QUEUE, Guid(b"x" * 16)))
        for site in (BERLIN, PARIS):
            assert machine.id in [obj.id for obj in view.owned_by(ObjectType.MACHINE, site)]
        links = view.owned_by(ObjectType.ROUTINGLINK, Guid.NULL)
        assert [obj.id for obj in links] == [o.id for o in view.objects(ObjectType.ROUTINGLINK)]


def test_having_finds_each_element_of_a_list_once(store: Store) -> None:
    kind = ObjectType.MACHINE
    with store.read() as view:
        for site in (BERLIN, PARIS):
            found = [obj.id for obj in view.having(kind, P.QM_SITE_IDS, site.raw)]
            wanted = [m.id for m in view.objects(kind) if site in guids_of(m.value(P.QM_SITE_IDS))]
            assert sorted(found) == sorted(wanted)
            assert wanted
        assert not list(view.having(kind, P.QM_SITE_IDS, b"x" * 16))


def test_having_by_label_ignores_case(store: Store) -> None:
    obj = insert(store, new_queue("unicode", "Ünïcode"))
    with store.read() as view:
        assert labelled(view, "üNÏCODE") == [obj.id]


def test_update_moves_the_keys(store: Store) -> None:
    old = insert(store, new_queue("moved", "before", Q_TYPE=BERLIN))
    new = old.with_properties(props({P.Q_LABEL: "after"}), old.seq)
    with store.write() as transaction:
        transaction.update(old, new)
    with store.read() as view:
        assert labelled(view, "before") == []
        assert labelled(view, "after") == [old.id]
        assert [obj.id for obj in view.having(QUEUE, P.Q_TYPE, BERLIN.raw)] == [old.id]


def certified(*names: bytes) -> dict[int, PropVariant]:
    """Certificates of a user, and their digests."""
    listed = [c for n in names for c in UserSignCerts.wrap(n, Guid(b"c" * 16)).certificates]
    digests = tuple(Guid(digest_of(name)) for name in names)
    return props({P.U_SIGN_CERT: UserSignCerts(tuple(listed)).to_bytes(), P.U_DIGEST: digests})


@pytest.mark.parametrize("before", [(b"one",), ()])
def test_certificates_that_were_changed_meanwhile_are_not_replaced(
    store: Store, before: tuple[bytes, ...]
) -> None:
    with store.read() as view:
        sid = next(view.objects(ObjectType.USER)).value(P.U_SID)
    assert isinstance(sid, bytes)

    def alice() -> DirectoryObject:
        with store.read() as view:
            (found,) = view.having(ObjectType.USER, P.U_SID, sid)
        return found

    def write(old: DirectoryObject, *names: bytes) -> None:
        with store.write() as transaction:
            transaction.update(old, old.with_properties(certified(*names), old.seq))

    with store.write() as transaction:
        transaction.delete(alice())
    if before:
        write(alice(), *before)
    read = alice()
    write(read, *before, b"two")
    with pytest.raises(ChangedMeanwhile):
        write(read, *before, b"three")
    if before:
        with pytest.raises(ChangedMeanwhile), store.write() as transaction:
            transaction.delete(read)
    write(alice(), *before, b"two", b"three")
    wanted = certified(*before, b"two", b"three")
    assert alice().value(P.U_SIGN_CERT) == wanted[P.U_SIGN_CERT].value
    assert set(guids_of(alice().value(P.U_DIGEST))) == set(guids_of(wanted[P.U_DIGEST].value))


def test_delete_takes_the_keys_along(store: Store) -> None:
    obj = insert(store, new_queue("deleted", "old label"))
    with store.write() as transaction:
        transaction.delete(obj)
        transaction.insert(new_queue("deleted", "new label"))
    with store.read() as view:
        assert labelled(view, "old label") == []
        assert len(labelled(view, "new label")) == 1


def test_defaults_are_not_indexed(store: Store) -> None:
    with store.read() as view:
        assert not list(view.having(QUEUE, P.Q_LABEL, b""))
        assert not list(view.having(QUEUE, P.Q_TYPE, bytes(16)))


def test_count(store: Store) -> None:
    with store.read() as view:
        for kind in IN_ORDER:
            assert view.count(kind) == sum(1 for _ in view.objects(kind))


def test_results_longer_than_two_pages(store: ActiveDirectoryStore) -> None:
    async def paged(reader: ForestReader) -> list[Guid]:
        small = replace(reader, page_size=3)
        return [obj.id async for obj in small.search(QUEUE)]

    with store.read() as view:
        whole = [obj.id for obj in view.objects(QUEUE)]
    assert len(whole) > 6
    assert sorted(store.connection.ask(QUEUE, paged)) == sorted(whole)


def test_a_taken_identifier_or_name_is_refused(store: Store) -> None:
    """A name; the directory chooses identifiers."""
    insert(store, new_queue("taken"))
    with store.write() as transaction:
        with pytest.raises(DirectoryError) as refused, transaction.savepoint():
            transaction.insert(new_queue("TAKEN"))
        assert refused.value.hresult == HResult.MQ_ERROR_QUEUE_EXISTS
        transaction.insert(new_queue("free"))
        assert transaction.find(QUEUE, "var\\free") is not None


def test_objects_without_a_name_do_not_collide(store: Store) -> None:
    with store.read() as view:
        for kind in (ObjectType.USER, ObjectType.ROUTINGLINK):
            found = [obj.id for obj in view.objects(kind)]
            assert len(set(found)) == len(found) == view.count(kind) > 0


def test_what_is_missing_cannot_be_updated_or_deleted(store: Store) -> None:
    missing = replace(new_queue("missing"), id=Guid(b"x" * 16))
    changed = missing.with_properties(props({P.Q_LABEL: "x"}), missing.seq)
    with store.write() as transaction:
        with pytest.raises(DirectoryError) as refused:
            transaction.update(missing, changed)
        assert refused.value.hresult == HResult.MQDS_OBJECT_NOT_FOUND
        with pytest.raises(DirectoryError) as refused:
            transaction.delete(missing)
        assert refused.value.hresult == HResult.MQDS_OBJECT_NOT_FOUND


def test_a_commit_that_returns_has_committed(store: Store) -> None:
    with store.write() as transaction:
        transaction.insert(new_queue("committed"))
        with suppress(DirectoryError):
            transaction.insert(new_queue("committed"))
    with store.read() as view:
        assert view.find(QUEUE, "var\\committed") is not None


def test_a_transaction_sees_its_own_changes(store: Store) -> None:
    old = insert(store, new_queue("own", "own before"))
    gone = insert(store, new_queue("gone"))
    with store.write() as transaction:
        count = transaction.count(QUEUE)
        assert transaction.get(QUEUE, old.id) == old
        new = old.with_properties(props({P.Q_LABEL: "own after"}), old.seq)
        transaction.update(old, new)
        transaction.delete(gone)
        found = transaction.get(QUEUE, old.id)
        assert found is not None
        assert found.value(P.Q_LABEL) == "own after"
        assert transaction.find(QUEUE, "var\\gone") is None
        assert labelled(transaction, "own after") == [old.id]
        assert labelled(transaction, "own before") == []
        assert transaction.count(QUEUE) == count - 1


def test_write_passes_the_exception_on(store: Store) -> None:
    with pytest.raises(KeyError, match="why"), store.write():
        raise KeyError("why")


def test_a_savepoint_passes_the_exception_on(store: Store) -> None:
    with (
        store.write() as transaction,
        pytest.raises(KeyError, match="why"),
        transaction.savepoint(),
    ):
        raise KeyError("why")


def test_readers_of_several_threads(store: Store) -> None:
    """No reader fails or sees half an object, while queues are made."""
    with store.read() as view:
        before = view.count(QUEUE)

    def look() -> set[Value]:
        with store.read() as view:
            return {obj.value(P.Q_LABEL) for obj in view.objects(QUEUE)}

    with ThreadPoolExecutor(3) as threads:
        made_now = threads.submit(
            lambda: [insert(store, new_queue(f"many{n}", "many")) for n in range(5)]
        )
        looks = [threads.submit(look) for _ in range(6)]
        assert len(made_now.result(DEADLINE_S)) == 5
        assert all(look.result(DEADLINE_S) for look in looks)
    with store.read() as view:
        assert view.count(QUEUE) == before + 5
        assert len(labelled(view, "many")) == 5


def test_reopening_shows_all_data(store: Store, settings: LdapSettings) -> None:
    obj = insert(store, new_queue("reopened", "Reopened"))
    other = ActiveDirectoryStore(settings)
    with other.read() as view:
        assert view.get(QUEUE, obj.id) == obj
    other.close()
    other.close()


def test_a_closed_store_is_not_used(settings: LdapSettings) -> None:
    """Views and transactions are open to the connection: they fail when they ask it something."""
    store = ActiveDirectoryStore(settings)
    with store.read() as view:
        assert view.count(QUEUE) > 0
        store.close()
        with pytest.raises(DirectoryError, match="closed"):
            view.count(QUEUE)
    with store.write() as transaction, pytest.raises(DirectoryError, match="closed"):
        transaction.insert(new_queue("late"))
    assert "closed" in store.check()[0]
