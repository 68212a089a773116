"""Changes and controls of Active Directory against a Samba domain controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.ldap.errors import LdapRefused
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import LdapLogin
from mqis.runtime.ldap.searching import SearchOutcome
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings
from mqis.wire.guid import Guid
from mqis.wire.ldap import controls
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.controls import DIR_SYNC, DirSync, SdFlags, find_control
from mqis.wire.ldap.names import guid_name
from mqis.wire.security.descriptor import SecurityDescriptor
from tests.interop.samba_domain import PASSWORD, USER, samba_domain

pytestmark = pytest.mark.interop

DOMAIN = "DC=corp,DC=example"
SERVICES = f"CN=Services,CN=Configuration,{DOMAIN}"
PLACE = f"CN=Users,{DOMAIN}"
CONTAINER = (("objectClass", (b"container",)),)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one") as directory:
        yield directory


def client(domain: Path) -> LdapDirectoryClient:
    tls = TlsSettings(domain / "private/tls/own.pem", "dc1.corp.example")
    url = LdapUrl.parse("ldaps://127.0.0.1")
    return LdapDirectoryClient(
        DomainControllers(LdapSettings((url,), LdapLogin(USER, PASSWORD), tls))
    )


def described(kind: ModifyKind, value: bytes) -> AttributeChange:
    return AttributeChange(kind, "description", (value,))


def test_an_entry_from_its_birth_to_its_tombstone(domain: Path) -> None:
    name = f"CN=a\\,b*()\\\\ grün,{PLACE}"

    async def test() -> None:
        directory = client(domain)
        await directory.apply(AddEntry(name, (*CONTAINER, ("description", (b"\\00*",)))))
        found = await directory.read(name, ["objectGUID", "cn"])
        assert found is not None
        assert found.values("cn") == ("a,b*()\\ grün".encode(),)
        guid = Guid(found.values("objectGUID")[0])
        with pytest.raises(LdapRefused, match="entryAlreadyExists"):
            await directory.apply(AddEntry(name, CONTAINER))
        swapped = described(ModifyKind.DELETE, b"\\00*"), described(ModifyKind.ADD, b"new")
        swap = ModifyEntry(guid_name(guid), swapped)
        await directory.apply(swap)
        with pytest.raises(LdapRefused, match="noSuchAttribute"):
            await directory.apply(swap)
        await directory.apply(RenameEntry(guid_name(guid), "CN=renamed"))
        assert await directory.read(name) is None
        await directory.apply(AddEntry(f"CN=below,CN=renamed,{PLACE}", CONTAINER))
        with pytest.raises(LdapRefused, match="notAllowedOnNonLeaf"):
            await directory.apply(DeleteEntry(guid_name(guid)))
        await directory.apply(DeleteEntry(f"CN=renamed,{PLACE}", tree=True))
        assert await directory.read(guid, ["cn"]) is None
        dead = await directory.read(guid, ["isDeleted"], [controls.show_deleted])
        assert dead is not None
        assert dead.values("isDeleted") == (b"TRUE",)
        await directory.close()

    asyncio.run(test())


def test_controls_of_active_directory(domain: Path) -> None:
    async def test() -> None:
        directory = client(domain)
        name = f"CN=MsmqServices,{SERVICES}"
        parts = controls.sd_flags(SdFlags.OWNER | SdFlags.GROUP | SdFlags.DACL)
        found = await directory.read(name, ["nTSecurityDescriptor"], [parts])
        assert found is not None
        assert SecurityDescriptor.from_bytes(found.values("nTSecurityDescriptor")[0]).owner
        named = await directory.read(name, ["cn"], [controls.extended_dn()])
        assert named is not None
        assert named.name.startswith("<GUID=")
        await directory.close()

    asyncio.run(test())


async def synchronised(
    directory: LdapDirectoryClient, cookie: bytes, attributes: tuple[str, ...] = ("*",)
) -> tuple[list[LdapEntry], bytes]:
    """The changed entries: an answer may be a part, then it says that there is more."""
    query = LdapQuery(DOMAIN, attributes=attributes, page_size=0)
    found: list[LdapEntry] = []
    while True:
        outcome = SearchOutcome()
        asked = replace(query, controls=(DirSync(cookie=cookie).control(),))
        found += [e async for e in directory.search(asked, outcome)]
        answer = DirSync.from_bytes(find_control(outcome.controls, DIR_SYNC) or b"")
        cookie = answer.cookie
        if not answer.more:
            return found, cookie


def test_dirsync_brings_everything_and_then_what_changes(domain: Path) -> None:
    async def test() -> None:
        directory = client(domain)
        first, cookie = await synchronised(directory, b"")
        assert len(first) > 100
        assert (await synchronised(directory, cookie))[0] == []
        guest = f"CN=Guest,CN=Users,{DOMAIN}"
        await directory.apply(ModifyEntry(guest, (described(ModifyKind.REPLACE, b"told"),)))
        # An entry is told only if one of the attributes that are asked for has changed.
        assert (await synchronised(directory, cookie, ("cn",)))[0] == []
        (changed,), _ = await synchronised(directory, cookie)
        assert changed.name == guest
        assert changed.values("description") == (b"told",)
        assert len(changed.values("objectGUID")[0]) == 16
        await directory.close()

    asyncio.run(test())


def test_a_notification_brings_a_change_at_once(domain: Path) -> None:
    async def test() -> None:
        watching, writing = client(domain), client(domain)
        await watching.connection()
        query = LdapQuery(DOMAIN, controls=(controls.notification,), page_size=0)
        changes = watching.search(query)
        waiting = asyncio.ensure_future(anext(changes))
        name = f"CN=Guest,CN=Users,{DOMAIN}"
        async with asyncio.timeout(120):
            while not waiting.done():  # the server does not say when it has begun to watch
                change = described(
                    ModifyKind.REPLACE, b"seen at %f" % asyncio.get_running_loop().time()
                )
                await writing.apply(ModifyEntry(name, (change,)))
                await asyncio.wait([waiting], timeout=2)
        assert (await waiting).name == name
        await changes.aclose()
        await watching.close()
        await writing.close()

    asyncio.run(test())
