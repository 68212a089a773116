"""The store of a pass-through server over a Samba domain controller."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.ldap.binding import LdapLogin
from mqis.runtime.ldap.settings import LdapSettings
from mqis.runtime.ldap.tls import TlsSettings
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import write_ldif
from tests.estate.planted import BERLIN, OU, PARIS, SITES, computer, made, sound
from tests.interop.samba_domain import PASSWORD, USER, samba_domain
from tests.runtime.activedirectory.comparisons import check_equal, queries, restrictions_of

pytestmark = pytest.mark.interop

LOADER = Path(__file__).with_name("samba_ldif.py")


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
    yield made(
        f"CN=Foreign,{SITES}", "top", "site", mSMQSiteForeign="TRUE", mSMQInterval1=70000,
        mSMQInterval2=3, mSMQNt4Stub=5,
    )  # fmt: skip


def fill(directory: Path) -> None:
    file = directory / "estate.ldif"
    entries = [
        AddEntry(entry.name, tuple(row for row in entry.attributes if row[0] != "objectSid"))
        for entry in (*sound(), *varied())
    ]
    file.write_text("".join(write_ldif(entries)), "utf-8")
    command = ["/usr/bin/python3", str(LOADER), str(directory / "etc/smb.conf"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one", before_start=fill) as directory:
        yield directory


@pytest.fixture(scope="module")
def store(domain: Path) -> Iterator[ActiveDirectoryStore]:
    settings = LdapSettings(
        (LdapUrl.parse("ldaps://127.0.0.1"),),
        LdapLogin(USER, PASSWORD),
        TlsSettings(domain / "private/tls/own.pem", "dc1.corp.example"),
        connect_timeout_s=10,
        operation_timeout_s=60,
    )
    opened = ActiveDirectoryStore(settings)
    yield opened
    opened.close()


def test_samba_and_the_lookup_find_the_same(store: ActiveDirectoryStore) -> None:
    with store.read() as view:
        some = Random(19).sample(restrictions_of(view), 300)  # all of them take a minute
        assert check_equal(view, queries(some, pairs=50)) > 500
