"""The LDAP client on real sockets, against the scripted server and its faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapRefused, LdapViolation
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.domain_controllers import (
    DomainControllers,
    LocatedServer,
    open_connection,
)
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.ldap import LdapFault, ScriptedDirectory, entry
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import (
    PAGED_RESULTS,
    LdapControl,
    SdFlags,
    notification,
    sd_flags,
    tree_delete,
)
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import Abandon, SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchEntry, SearchReference

ROOT = "DC=x"
EVERYTHING = LdapQuery(ROOT)


def forest(count: int = 0) -> list[SearchEntry]:
    return [entry(ROOT, dc=b"x"), *(entry(f"CN=q{n},{ROOT}", cn=b"q%d" % n) for n in range(count))]


def client(*servers: ScriptedDirectory, **settings: Any) -> LdapDirectoryClient:
    urls = tuple(LdapUrl.parse(server.url) for server in servers)
    return LdapDirectoryClient(DomainControllers(LdapSettings(urls, **settings)))


async def names(directory: LdapDirectoryClient, query: LdapQuery = EVERYTHING) -> list[str]:
    return [found.name async for found in directory.search(query)]


def once(answer: Any, kind: type = SearchRequest) -> Callable[[LdapMessage], Any]:
    """Gives ``answer`` to the first request of a kind; the server answers the others."""
    left = [answer]

    def script(message: LdapMessage) -> Any:
        return left.pop() if left and isinstance(message.operation, kind) else None

    return script


def run(test: Any) -> None:
    asyncio.run(test())


def test_pages_bring_everything() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest(250), page_limit=100) as server:
            directory = client(server)
            assert len(await names(directory, replace(EVERYTHING, page_size=50))) == 251
            assert len(server.operations(SearchRequest)) == 6
            assert len(await names(directory)) == 251
            await directory.close()

    run(test)


def test_without_pages_a_server_ends_at_its_limit() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest(1100)) as server:
            with pytest.raises(LdapRefused, match=r"sizeLimitExceeded \(4\)") as raised:
                await names(client(server), replace(EVERYTHING, page_size=0))
            assert raised.value.code == ResultCode.SIZE_LIMIT_EXCEEDED

    run(test)


def test_objects_that_vanish_between_pages_are_left_out() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest(10)) as server:
            directory = client(server)
            found = []
            async for each in directory.search(replace(EVERYTHING, page_size=4)):
                found.append(each.name)
                if len(found) == 4:
                    del server.entries[8:]
            assert len(found) == 8

    run(test)


def test_long_attributes_are_fetched_in_ranges() -> None:
    async def test() -> None:
        values = [b"%d" % n for n in range(4000)]
        group = entry(f"CN=g,{ROOT}", cn=b"g", member=values)
        async with ScriptedDirectory([*forest(), group]) as server:
            directory = client(server)
            found = await directory.read(group.name, ["member"])
            assert found is not None
            assert found.attributes == (("member", tuple(values)),)
            asked = [m.operation.attributes for m in server.received]  # type: ignore[union-attr]
            assert asked == [("member",), ("member;range=1500-*",), ("member;range=3000-*",)]

    run(test)


def test_an_object_that_vanishes_between_two_ranges_is_left_out() -> None:
    async def test() -> None:
        group = entry(f"CN=g,{ROOT}", member=[b"1", b"2", b"3"])
        async with ScriptedDirectory([*forest(), group], range_limit=2) as server:

            def vanish(message: LdapMessage) -> None:
                if len(server.received) == 2:
                    del server.entries[1]

            server.on_message = vanish
            assert await names(client(server)) == [ROOT]

    run(test)


def test_changes() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest()) as server:
            directory = client(server)
            name = f"CN=q,{ROOT}"
            await directory.apply(AddEntry(name, (("cn", (b"q",)),)))
            with pytest.raises(LdapRefused, match=r"add CN=q,DC=x: .* entryAlreadyExists \(68\)"):
                await directory.apply(AddEntry(name, ()))
            replace_label = AttributeChange(ModifyKind.REPLACE, "label", (b"l",))
            await directory.apply(ModifyEntry(name, (replace_label,), descriptor_parts=4))
            assert server.received[-1].controls == (sd_flags(SdFlags.DACL),)
            found = await directory.read(name)
            assert found is not None
            assert found.values("label") == (b"l",)
            before = len(server.received)
            await directory.apply(RenameEntry(name, "CN=r"))
            assert len(server.received) == before + 1
            assert await directory.read(name) is None
            await directory.apply(DeleteEntry(f"CN=r,{ROOT}", tree=True))
            assert server.received[-1].controls == (tree_delete,)
            with pytest.raises(LdapRefused, match="noSuchObject"):
                await directory.apply(DeleteEntry(name))
            await directory.close()

    run(test)


@pytest.mark.parametrize(
    ("fault", "error", "reason"),
    [
        (LdapFault.CLOSE, LdapConnectionLost, "the server closed the connection"),
        (LdapFault.HANG, LdapConnectionLost, r"no answer within 200 ms"),
        (LdapFault.GARBAGE, LdapViolation, "the answer is damaged: .* not LDAP"),
        (
            LdapFault.OVERSIZED,
            LdapViolation,
            "the answer is damaged: a message of 2147483653 bytes",
        ),
    ],
)
@pytest.mark.parametrize("page_size", [0, 2])
def test_faults_in_the_middle_of_a_search(
    fault: LdapFault, error: type[LdapError], reason: str, page_size: int
) -> None:
    """After an entry has come; of pages, after the first one has."""

    async def test() -> None:
        async with ScriptedDirectory(forest(4)) as server:
            faulty = once([entry("CN=a"), fault])
            first = 1 if page_size else 0

            def script(message: LdapMessage) -> Any:
                begun = len(server.operations(SearchRequest)) > first
                return faulty(message) if begun else None

            server.on_message = script
            directory = client(server, operation_timeout_s=0.2)
            query = replace(EVERYTHING, page_size=page_size)
            with pytest.raises(error, match=reason):
                await names(directory, query)
            assert len(await names(directory, query)) == 5  # on a new connection
            assert server.connections == 2

    run(test)


def test_a_search_whose_first_page_is_lost_is_repeated() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest(4)) as server:
            server.on_message = once([entry("CN=a"), LdapFault.CLOSE])
            assert len(await names(client(server))) == 5
            assert server.connections == 2

    run(test)


def test_a_page_is_asked_for_while_the_one_before_is_taken() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest(9)) as server:
            directory = client(server)
            search = directory.search(replace(EVERYTHING, page_size=2))
            await anext(search)
            await directory.read(ROOT)  # answered after what was sent before it
            assert len(server.operations(SearchRequest)) == 3  # two pages of five, and this read
            await search.aclose()
            assert (await directory.connection())._client.outstanding == 0

    run(test)


def test_a_search_that_has_not_begun_is_repeated_at_the_next_server() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest()) as one, ScriptedDirectory(forest(3)) as two:
            directory = client(one, two)
            assert await names(directory) == [ROOT]
            await one.__aexit__()
            assert len(await names(directory)) == 4
            assert directory.where == two.url

    run(test)


def test_a_change_is_not_repeated() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest()) as server:
            server.on_message = lambda message: [LdapFault.CLOSE]
            with pytest.raises(LdapConnectionLost):
                await client(server).apply(DeleteEntry("CN=a"))
            assert len(server.received) == 1

    run(test)


def test_no_server_answers() -> None:
    async def test() -> None:
        async with ScriptedDirectory() as server:
            url = LdapUrl.parse(server.url)
        directory = LdapDirectoryClient(DomainControllers(LdapSettings((url,))))
        with pytest.raises(LdapConnectionLost, match=f"{url}: no connection: Connection refused"):
            await names(directory)

    run(test)


def test_a_server_that_accepts_and_says_nothing() -> None:
    async def test() -> None:
        async with ScriptedDirectory() as server:
            server.on_message = lambda message: [LdapFault.HANG]
            with pytest.raises(LdapConnectionLost, match=r"no answer within 100 ms"):
                await names(client(server, operation_timeout_s=0.1))

    run(test)


def _at_loopback(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, BindMethod]]:
    """Connects to this computer, whatever the name; returns the names and the ways to log on."""
    asked: list[tuple[str, BindMethod]] = []

    async def redirected(url: LdapUrl, settings: LdapSettings) -> Any:
        asked.append((url.host, settings.login.chosen))
        return await open_connection(replace(url, host="127.0.0.1"), settings)

    monkeypatch.setattr("mqis.runtime.ldap.domain_controllers.open_connection", redirected)
    return asked


@pytest.mark.parametrize(
    "host", ["evil.example", "corp.example.evil.net", "xcorp.example", "example", "127.0.0.1"]
)
@pytest.mark.req("SEC-15-09")
def test_no_server_outside_the_domain_is_asked(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who forges DNS got the password, with a certificate of his own for his own name."""
    asked = _at_loopback(monkeypatch)

    async def locate(_name: str) -> list[LocatedServer]:
        return [LocatedServer(0, 0, host, 636)]

    async def test() -> None:
        url = LdapUrl.parse("ldaps:///DC=corp,DC=example")
        controllers = DomainControllers(LdapSettings((url,), LdapLogin("a", "b")), locate)
        with pytest.raises(LdapConnectionLost, match=f"outside corp.example .*{host}.* in the URL"):
            await controllers.connect()

    run(test)
    assert asked == []


@pytest.mark.req("SEC-15-09")
def test_no_password_is_sent_to_a_server_that_dns_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _at_loopback(monkeypatch)

    async def locate(_name: str) -> list[LocatedServer]:
        return [LocatedServer(0, 0, host, 636) for host in ("evil.example", "dc1.CORP.example")]

    async def test() -> None:
        named = LdapUrl.parse("ldaps://dc2.corp.example:1")
        url = LdapUrl.parse("ldaps://:1/DC=corp,DC=example")
        controllers = DomainControllers(LdapSettings((url, named), LdapLogin("a", "b")), locate)
        with pytest.raises(LdapConnectionLost):
            await controllers.connect()

    run(test)
    assert asked == [
        ("dc1.CORP.example", BindMethod.NEGOTIATE),
        ("dc2.corp.example", BindMethod.NEGOTIATE),
    ]


def test_servers_of_a_domain_come_from_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    connected = _at_loopback(monkeypatch)

    async def test() -> None:
        async with ScriptedDirectory(forest()) as server:
            asked = []

            async def locate(name: str) -> list[LocatedServer]:
                asked.append(name)
                hosts = ("dc2.corp.example", "dc1.corp.example")
                return [LocatedServer(n, 0, host, 1) for n, host in zip((1, 0), hosts, strict=True)]

            url = LdapUrl.parse(f"ldap://:{server.port}/DC=corp,DC=example")
            controllers = DomainControllers(LdapSettings((url,)), locate)
            assert await names(LdapDirectoryClient(controllers)) == [ROOT]
            assert asked == ["_ldap._tcp.dc._msdcs.corp.example"]
            assert [host for host, _ in connected] == ["dc1.corp.example"]

    run(test)


@pytest.mark.req("MQDSSM-3.1.6.18-02")
def test_a_server_of_the_domain_is_asked_at_port_389_and_in_version_3(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(100))
        writer.close()

    async def locate(_name: str) -> list[LocatedServer]:
        return [LocatedServer(0, 0, "dc7.corp.example", 1)]

    async def test() -> None:
        async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            asked = []

            async def redirected(url: LdapUrl, settings: LdapSettings) -> Any:
                asked.append((url.host, url.port))
                return await open_connection(replace(url, host="127.0.0.1", port=port), settings)

            monkeypatch.setattr("mqis.runtime.ldap.domain_controllers.open_connection", redirected)
            login = LdapLogin("a", "b", BindMethod.NTLM)
            url = LdapUrl.parse("ldap:///DC=corp,DC=example")
            controllers = DomainControllers(LdapSettings((url,), login), locate)
            with pytest.raises(LdapConnectionLost):
                await controllers.connect()
            assert asked == [("dc7.corp.example", 389)]

    run(test)
    assert heard.hex(" ").find("02 01 03 04 00 a3") > 0, heard.hex()


def test_addresses_without_a_server() -> None:
    with pytest.raises(MqisError, match="no directory server is given"):
        DomainControllers(LdapSettings(()))

    async def test() -> None:
        directory = LdapDirectoryClient(
            DomainControllers(LdapSettings((LdapUrl.parse("ldap:///"),)))
        )
        with pytest.raises(MqisError, match="names neither a server nor a domain"):
            await names(directory)

    run(test)


# --- memory ---------------------------------------------------------------------------------------


def test_a_slow_reader_stops_the_server_from_filling_memory() -> None:
    async def test() -> None:
        big = [entry(ROOT), *(entry(f"CN=q{n},{ROOT}", a=bytes(10_000)) for n in range(800))]
        async with ScriptedDirectory(big) as server:
            directory = client(server, buffer_limit=50_000)
            connection = await directory.connection()
            most = 0
            async for _ in directory.search(replace(EVERYTHING, page_size=0)):
                most = max(most, connection._client.buffered)
                await asyncio.sleep(0)
            assert most < 50_000 + 300_000  # what one read of the socket brings

    run(test)


def test_pages_larger_than_the_memory_for_answers() -> None:
    async def test() -> None:
        big = [entry(ROOT), *(entry(f"CN=q{n},{ROOT}", a=bytes(10_000)) for n in range(100))]
        async with ScriptedDirectory(big) as server:
            directory = client(server, buffer_limit=50_000)
            connection = await directory.connection()
            found = most = 0
            async for _ in directory.search(replace(EVERYTHING, page_size=60)):
                found += 1
                most = max(most, connection._client.buffered)
                await asyncio.sleep(0)
            assert found == 101
            assert most < 50_000 + 300_000  # what one read of the socket brings

    run(test)


def test_a_read_inside_a_search_does_not_wait_for_the_rest_of_it() -> None:
    async def test() -> None:
        big = [entry(ROOT), *(entry(f"CN=q{n},{ROOT}", a=bytes(3000)) for n in range(20))]
        async with ScriptedDirectory(big) as server:
            directory, found = client(server, buffer_limit=20_000), 0
            async for each in directory.search(EVERYTHING):
                found += (await directory.read(each.name, ["a"])) is not None
            assert found == 21

    run(test)


def test_a_search_that_nobody_reads_fails_before_another_one_starves() -> None:
    async def test() -> None:
        big = [entry(ROOT), *(entry(f"CN=q{n},{ROOT}", a=bytes(10_000)) for n in range(500))]
        async with ScriptedDirectory(big) as server:
            directory = client(server, buffer_limit=50_000)
            search = directory.search(replace(EVERYTHING, page_size=0))
            await anext(search)
            assert await directory.read(ROOT) is not None
            with pytest.raises(LdapError):
                assert [each async for each in search] == []

    run(test)


def test_a_search_that_is_left_is_abandoned() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest()) as server:
            server.on_message = once([entry("CN=a"), entry("CN=b")])
            directory = client(server)
            search = directory.search(replace(EVERYTHING, controls=(notification,), page_size=0))
            assert (await anext(search)).name == "CN=a"
            await search.aclose()
            assert await names(directory) == [ROOT]
            assert server.operations(Abandon) == [Abandon(1)]
            assert server.connections == 1

    run(test)


def test_a_damaged_paging_answer() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest()) as server:
            server.on_message = once([(SearchDone(), LdapControl(PAGED_RESULTS, False, b"\x01"))])
            with pytest.raises(LdapViolation, match="the paging control is damaged"):
                await names(client(server))

    run(test)


# --- referrals ------------------------------------------------------------------------------------


def refer(*uris: str) -> Callable[[LdapMessage], Any]:
    result = LdapResult(ResultCode.REFERRAL, referrals=uris)
    return lambda message: (
        [SearchDone(result)] if isinstance(message.operation, SearchRequest) else None
    )


@pytest.mark.req("MQDSSM-2.2.6-05")
def test_referrals_are_not_followed() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest()) as server:
            server.on_message = once([SearchReference(("ldap://127.0.0.1:1/DC=y",)), SearchDone()])
            assert await names(client(server)) == []
            server.on_message = refer("ldap://127.0.0.1:1/DC=y")
            with pytest.raises(LdapRefused, match=r"referral \(10\)"):
                await names(client(server))

    run(test)


def test_scopes_of_the_scripted_server() -> None:
    async def test() -> None:
        async with ScriptedDirectory(forest(2)) as server:
            directory = client(server)
            one = replace(EVERYTHING, scope=SearchScope.ONE_LEVEL)
            assert len(await names(directory, one)) == 2
            assert await names(directory, replace(EVERYTHING, scope=SearchScope.BASE)) == [ROOT]

    run(test)
