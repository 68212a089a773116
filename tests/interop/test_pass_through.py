"""impacket asks our pass-through server, whose directory is a Samba domain controller.

Neither our client nor our store is used: impacket makes the calls, Samba keeps the objects, and
ldapsearch and samba-tool say what is there.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_PRIVACY, DCERPC_v5

from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.directory.readers import StoreReaders
from mqis.runtime.ldap.ldap_logon import LdapLogin
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from tests.interop.mqds_impacket import (
    CLSID,
    LPWSTR_,
    UI4,
    connect,
    disconnect_all,
    variant,
)
from tests.interop.rpc_threads import in_thread
from tests.interop.samba_domain import PASSWORD, USER, samba_domain, start_domain, stop_domain
from tests.interop.test_mqds_impacket import (
    create,
    delete,
    get,
    validate,
)
from tests.runtime.directory.serving import Served, serving

pytestmark = pytest.mark.interop

QUEUE, MACHINE, SITE, LINK = 1, 2, 3, 8
OK, NOT_FOUND, NO_DS, QUEUE_EXISTS = 0, 0xC00E050F, 0xC00E0013, 0xC00E0005
ROOT = "DC=corp,DC=example"
LABEL = "Aufträge *)(\\"
QUEUES = ("orders", "a=b,c+d", "*)(cn=*", "#1", 'q"<x>', "x" * 63, "y" * 65, "z=" * 62)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one") as directory:
        ldap(directory, "ldapadd", COMPUTER)
        yield directory


COMPUTER = f"""dn: CN=SRV1,CN=Computers,{ROOT}
objectClass: computer
sAMAccountName: SRV1$
dNSHostName: srv1.corp.example
userAccountControl: 4096
"""


def ldap(domain: Path, command: str, text: str = "", *arguments: str) -> str:
    done = subprocess.run(
        [command, "-x", "-H", "ldaps://127.0.0.1", "-D", USER, "-w", PASSWORD, *arguments],
        env=os.environ | {"LDAPTLS_CACERT": str(domain / "private/tls/own.pem")},
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def found(domain: Path, condition: str, *attributes: str) -> list[str]:
    """The lines that ldapsearch prints for a filter."""
    options = ("-LLL", "-o", "ldif-wrap=no", "-b", ROOT)
    return ldap(domain, "ldapsearch", "", *options, condition, *attributes).splitlines()


@asynccontextmanager
async def served_from(store: ActiveDirectoryStore) -> AsyncIterator[Served]:
    readers = StoreReaders(store)
    try:
        async with serving(store=store, readers=readers) as served:
            yield served
    finally:
        readers.close()


@pytest.fixture
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


@pytest.fixture
def caller(store: ActiveDirectoryStore) -> Iterator[DCERPC_v5]:
    with in_thread(served_from(store)) as served:
        yield connect(served.port, "admin", RPC_C_AUTHN_LEVEL_PKT_PRIVACY)
        disconnect_all()


def site_id(store: ActiveDirectoryStore) -> Guid:
    with store.read() as view:
        site = view.find(ObjectType.SITE, "Default-First-Site-Name")
    assert site is not None
    return site.id


def test_objects_of_impacket_in_samba(
    domain: Path, caller: DCERPC_v5, store: ActiveDirectoryStore
) -> None:
    assert store.schema_defects() == []
    site = site_id(store)
    properties = {201: variant(CLSID, UUID(bytes_le=site.raw)), 210: variant(UI4, 1)}
    code, machine = create(caller, MACHINE, "SRV1", properties=properties)
    assert (code, machine is not None) == (OK, True), hex(code)
    for name in QUEUES:
        given = {108: variant(LPWSTR_, LABEL), 105: variant(UI4, 7)}
        assert create(caller, QUEUE, f"SRV1\\{name}", properties=given)[0] == OK, name
    again = create(caller, QUEUE, "SRV1\\orders", properties={108: variant(LPWSTR_, "x")})
    assert again[0] == QUEUE_EXISTS
    auth = validate(caller)
    for name in QUEUES:
        code, values = get(caller, auth, QUEUE, f"srv1\\{name}", 103, 108, 105)
        assert (code, values) == (OK, [f"srv1\\{name}".lower(), LABEL, 7])
    lines = found(domain, "(objectClass=mSMQQueue)", "mSMQQueueQuota")
    assert sum(line == "mSMQQueueQuota: 7" for line in lines) == len(QUEUES)
    settings = found(domain, "(objectClass=mSMQSettings)", "mSMQRoutingService")
    del settings  # below the configuration context, which dbcheck looks at
    assert delete(caller, QUEUE, "SRV1\\orders") == OK
    assert get(caller, auth, QUEUE, "srv1\\orders", 108)[0] == NOT_FOUND
    assert not [line for line in found(domain, "(cn=orders)", "cn") if line.startswith("dn:")]
    checked = subprocess.run(
        ["samba-tool", "dbcheck", "--cross-ncs", "-s", str(domain / "etc/smb.conf")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "(0 errors)" in checked.stdout, checked.stdout + checked.stderr


def test_a_domain_controller_that_dies_and_comes_back(
    domain: Path, caller: DCERPC_v5, store: ActiveDirectoryStore
) -> None:
    auth = validate(caller)
    asked = (caller, auth, SITE, "Default-First-Site-Name", 301)
    assert get(*asked)[0] == OK
    stop_domain(domain)
    try:
        assert get(*asked)[0] == NO_DS
        began = time.monotonic()
        assert get(*asked)[0] == NO_DS
        assert time.monotonic() - began < 5
        assert store.connection.outage
    finally:
        start_domain(domain)
    deadline = time.monotonic() + 60
    while (code := get(*asked)[0]) != OK and time.monotonic() < deadline:
        time.sleep(0.2)
    assert code == OK
    assert store.connection.outage is None
