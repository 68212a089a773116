"""Import, mirror, check, publish and a pass-through store at a controller as strict as Windows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, settings_of
from mqis.admin.activedirectory.estate.sources import check_directory
from mqis.admin.activedirectory.mirror.running import MirrorPlaces, mirror_once
from mqis.admin.activedirectory.online import import_domains
from mqis.admin.activedirectory.publishing import publish_store
from mqis.protocol.ldap.errors import LdapError, LdapRefused
from mqis.protocol.ldap.ports import LdapQuery
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.ldap import settings
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.storage.memory_store import MemoryStore
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import DeleteEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.controls import show_deleted
from mqis.wire.ldap.filters import parse_filter
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.runtime.ldap.certificates import server_context
from tests.strict_domain import StrictDomain
from tests.waiting import in_time

#: More queues than a page has, in more sites than a part of an attribute has.
QUEUES, SITES = 150, 350
PAGE, PART = 100, 200


def estate(tmp_path: Path, *, tls: bool) -> StrictDomain:
    """SRV1 in its sites, with its queues. A large estate would make the server of the test slow."""
    server = StrictDomain.of()
    assert isinstance(server, StrictDomain)
    berlin = server.add_site("Berlin")
    sites = [berlin.raw, *(bytes([255] * 12) + n.to_bytes(4, "big") for n in range(SITES - 1))]
    computer = server.add_computer("SRV1")
    machine = f"CN=msmq,{computer}"
    server.put(
        machine, objectClass=b"mSMQConfiguration", mSMQSites=sites, mSMQServiceType=b"1"
    )  # fmt: skip
    for number in range(QUEUES):
        server.put(f"CN=q{number:04},{machine}", objectClass=b"mSMQQueue")
    server.page_limit, server.range_limit = PAGE, PART
    if tls:
        server.tls, server.ldaps = server_context(tmp_path), True
        server.certificate = tmp_path / "ca.pem"
    return server


def test_it_gives_as_much_as_windows() -> None:
    assert (StrictDomain().page_limit, StrictDomain().range_limit) == (1_000, 1_500)


def asked(
    tmp_path: Path,
    test: Callable[[StrictDomain, ConnectingOptions], Awaitable[None]],
    *,
    tls: bool = False,
) -> StrictDomain:
    (tmp_path / "pw").write_text("secret")
    (tmp_path / "pw").chmod(0o600)
    server = estate(tmp_path, tls=tls)

    async def run() -> None:
        async with server:
            ca_file = tmp_path / "ca.pem" if tls else None
            await test(
                server,
                ConnectingOptions(
                    (server.url,),
                    "LAB\\mqis",
                    tmp_path / "pw",
                    ca_file,
                    method=BindMethod.NTLM,
                    operation_timeout_s=300,
                    connect_timeout_s=60,
                ),
            )

    asyncio.run(in_time(run()))
    return server


def test_a_substring_of_an_object_identifier_is_refused(tmp_path: Path) -> None:
    async def test(server: StrictDomain, options: ConnectingOptions) -> None:
        client, _ = await connect(options)
        query = LdapQuery(server.root, filter=parse_filter("(|(cn=x)(objectClass=mSMQ*))"))
        with pytest.raises(LdapRefused, match="no substring match") as refused:
            [entry async for entry in client.search(query)]
        assert refused.value.code == ResultCode.INAPPROPRIATE_MATCHING
        # What has no pages ends after one of them; what is of another domain is referred to it.
        everything = LdapQuery(server.root, attributes=("cn",), page_size=0)
        with pytest.raises(LdapRefused) as refused:
            [entry async for entry in client.search(everything)]
        assert refused.value.code == ResultCode.SIZE_LIMIT_EXCEEDED
        with pytest.raises(LdapRefused) as refused:
            await client.read(f"CN=x,DC=child,{server.root}")
        assert refused.value.code == ResultCode.REFERRAL
        await client.close()

    asked(tmp_path, test)


@pytest.mark.parametrize("tls", [False, True], ids=["signed", "bound to the certificate"])
def test_an_estate_is_imported_mirrored_and_checked(tmp_path: Path, *, tls: bool) -> None:
    async def test(server: StrictDomain, options: ConnectingOptions) -> None:
        result = await import_domains([options], store := MemoryStore())
        assert result.imported.objects[ObjectType.QUEUE] == QUEUES
        copy = MemoryStore()
        done = await mirror_once([options], MirrorPlaces(copy, None))
        assert done.left_out == {}
        gone = f"CN=q0000,CN=msmq,CN=SRV1,CN=Computers,{server.root}"
        number = Guid(next(e for e in server.entries if e.name == gone).values("objectGUID")[0])
        client, _ = await connect(options)
        await client.apply(DeleteEntry(gone))
        assert await client.read(number, ("objectClass",)) is None
        assert await client.read(number, ("objectClass",), (show_deleted,)) is not None
        await client.close()
        done = await mirror_once([options], MirrorPlaces(copy, None))
        assert (done.fresh, done.counts.deleted) == ("", 1)
        for held, queues in ((store, QUEUES), (copy, QUEUES - 1)):
            with held.read() as view:
                assert view.count(ObjectType.QUEUE) == queues
                machine = view.find(ObjectType.MACHINE, "SRV1")
            assert machine is not None
            sites = machine.value(PropId.QM_SITE_IDS)
            assert isinstance(sites, tuple)
            assert len(sites) == SITES
        report = await check_directory([options])
        assert report.counts["queue"] == QUEUES - 1

    assert asked(tmp_path, test, tls=tls).refused == []


def test_publishing_and_a_pass_through_store(tmp_path: Path) -> None:
    async def test(server: StrictDomain, options: ConnectingOptions) -> None:
        await import_domains([options], store := MemoryStore())
        before = len(server.entries)
        server.entries = [e for e in server.entries if not e.name.startswith("CN=q0001,")]
        _, written, notes = await publish_store([options], store, write=True)
        assert (written, len(server.entries)) == (1, before), [str(note) for note in notes]

        def passed() -> None:
            through = ActiveDirectoryStore(settings_of(options, {}))
            with through.read() as view:
                found = view.find(ObjectType.QUEUE, "srv1\\q0007")
                assert found is not None
                assert view.count(ObjectType.QUEUE) == QUEUES
                machine = view.find(ObjectType.MACHINE, "SRV1")
                assert machine is not None
                assert sum(1 for _ in view.owned_by(ObjectType.QUEUE, machine.id)) == QUEUES
            through.close()

        await asyncio.to_thread(passed)

    assert asked(tmp_path, test).refused == []


def test_nobody_asks_without_a_logon_and_no_password_is_sent_in_clear(tmp_path: Path) -> None:
    async def test(_server: StrictDomain, options: ConnectingOptions) -> None:
        anonymous = replace(options, user="", password_file=None, method=BindMethod.ANONYMOUS)
        with pytest.raises(MqisError, match="a successful bind must be completed"):
            await import_domains([anonymous], MemoryStore())
        with pytest.raises(MqisError, match="TLS"):
            await connect(replace(options, method=BindMethod.SIMPLE))

    asked(tmp_path, test)


def test_a_logon_without_channel_binding_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "channel_binding", lambda _certificate: b"another server's")

    async def test(_server: StrictDomain, options: ConnectingOptions) -> None:
        with pytest.raises((MqisError, LdapError), match="80090346"):
            await connect(options)

    assert asked(tmp_path, test, tls=True).refused
