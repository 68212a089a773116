"""The list of known servers (MS-MQDS 3.2.1.3, 3.2.1.4, 3.2.6.8) and where it is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqis.client import JsonFile, KnownServers, ServerAddress
from mqis.client.known import ClientState
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.lab.demo import SeededEntropy
from mqis.protocol.errors import StorageError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.query_stubs import PropertyRestriction
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import (
    HOST,
    NOTHING,
    OK,
    QUERY,
    Line,
    Scripted,
    demo_store,
    events_at,
    run,
    served,
    text,
)
from tests.client.samples import ONE, TWO

SUCCESS = DirectoryOperationResult.SUCCESS
EMPTY = PropVariant(VarType.EMPTY, None)

Row = tuple[PropVariant, PropVariant, PropVariant]


def row(dns: str, name: str, *addresses: str) -> Row:
    blob = AddressList(tuple(TaAddress.ip(address) for address in addresses)).to_bytes()
    return text(dns), text(name), PropVariant(VarType.BLOB, blob)


def giving(*rows: Row, then: int = OK) -> dict[Any, Line]:
    """These rows, one for each call, then nothing, or a failure."""
    left = list(rows)

    def line(_call: object, request: Any) -> dscomm.LookupGot:
        found = left.pop(0) if left else ()
        return dscomm.LookupGot(found, bytes(request.signature_size), OK if found else then)

    return {dscomm.LOOKUP_NEXT: line}


def refresh(
    lines: dict[Any, Line], known: KnownServers | None = None, site: Guid | None = ONE
) -> tuple[Outcome[tuple[ServerAddress, ...]], Scripted, KnownServers]:
    async def main() -> tuple[Outcome[tuple[ServerAddress, ...]], Scripted, KnownServers]:
        async with Scripted(lines) as peer:
            servers = known or KnownServers.of([peer.address], site=site)
            async with events_at(servers) as events:
                return await events.initialize_known_servers(), peer, servers

    return run(main())


class TestRefresh:
    @pytest.mark.req("MQDS-3.2.6.8-03", "MQDS-3.2.1.3-01")
    def test_the_query(self) -> None:
        outcome, peer, _ = refresh(giving())
        assert outcome.status is SUCCESS
        request = peer.only(dscomm.LOOKUP_BEGIN)
        assert request.restriction is not None
        assert request.restriction.restrictions == (
            PropertyRestriction(2, 210, PropVariant(VarType.UI4, 1)),
            PropertyRestriction(4, 201, PropVariant(VarType.CLSID, ONE)),
        )
        assert request.columns.columns == (233, 203, 206)
        assert request.sort is None

    @pytest.mark.parametrize("then", [OK, 0xC00E0523])
    @pytest.mark.req("MQDS-3.2.6.8-04", "MQDS-3.2.6.8-05")
    def test_rows_until_there_are_none_then_the_end(self, then: int) -> None:
        """The text waits for a failure; a server tells by a success without values."""
        lines = giving(
            row("dir1.example", "dir1", "10.0.0.1", "10.0.0.2"), row("", "dir2"), then=then
        )
        outcome, peer, known = refresh(lines)
        assert peer.names == ["S_DSLookupBegin", *["S_DSLookupNext"] * 3, "S_DSLookupEnd"]
        assert peer.only(dscomm.LOOKUP_END).handle == QUERY
        assert outcome.status is SUCCESS
        assert outcome.value == known.servers
        assert known.servers[1:] == (
            ServerAddress("dir1.example", addresses=("10.0.0.1", "10.0.0.2")),
            ServerAddress("dir2"),
        )

    @pytest.mark.req("MQDS-3.2.6.8-05")
    def test_the_current_server_stays_in_the_list(self) -> None:
        _, peer, known = refresh(giving(row("dir1.example", "dir1")))
        assert known.current == known.servers[0] == peer.address
        _, peer, known = refresh(giving())
        assert known.servers == (peer.address,)

    @pytest.mark.req("MQDS-3.2.6.8-05")
    def test_one_that_is_found_again_keeps_its_ports(self) -> None:
        async def main() -> None:
            lines = giving(row("dir9.example", "dir9", HOST), row("dir8.example", "dir8"))
            async with Scripted(lines) as peer:
                old = replace(peer.address, mapper_port=1135)
                other = ServerAddress("dir8.example", 2879, 1136)
                known = KnownServers.of([old, ServerAddress("gone"), other], site=ONE)
                async with events_at(known) as events:
                    await events.initialize_known_servers()
                assert known.servers == (replace(old, addresses=(HOST,)), other)
                assert known.current == known.servers[0]

        run(main())

    @pytest.mark.req("MQDS-3.2.6.8-02")
    def test_without_a_connection_it_stops(self, caplog: pytest.LogCaptureFixture) -> None:
        dead = (ServerAddress(HOST, 1), ServerAddress(HOST, 2))
        outcome, peer, known = refresh({}, KnownServers.of(dead, site=ONE))
        assert outcome.status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
        assert known.servers == dead
        assert peer.asked == []
        assert "not refreshed" in caplog.text

    @pytest.mark.parametrize(
        "begun", [dscomm.HandleGot(NOTHING, 0xC00E0025), dscomm.HandleGot(NOTHING, OK)]
    )
    @pytest.mark.req("MQDS-3.2.6.8-03")
    def test_a_refused_query_leaves_the_old_list(self, begun: dscomm.HandleGot) -> None:
        outcome, peer, known = refresh({dscomm.LOOKUP_BEGIN: begun})
        assert outcome.status is DirectoryOperationResult.GENERIC_ERROR
        assert known.servers == (peer.address,)
        assert peer.names == ["S_DSLookupBegin"]

    @pytest.mark.req("MQDS-3.2.1.3-01")
    def test_without_a_site_there_is_nothing_to_ask(self) -> None:
        outcome, peer, _ = refresh({}, site=None)
        assert outcome.status is DirectoryOperationResult.GENERIC_ERROR
        assert peer.asked == []

    def test_rows_without_a_name_or_with_half_an_address(self) -> None:
        blob = PropVariant(VarType.BLOB, b"\x04\x00\x01")
        lines = giving((EMPTY, EMPTY, EMPTY), (EMPTY, text("dir1"), blob))
        _, _, known = refresh(lines)
        assert known.servers[1:] == (ServerAddress("dir1"),)

    @pytest.mark.req("MQDS-3.2.6.8-01")
    def test_it_runs_when_it_is_asked_for(self) -> None:
        """Against a real directory: the servers of the site, and no sooner."""
        store = demo_store()
        site = SeededEntropy()
        site.guid()
        amsterdam = site.guid()

        async def main() -> None:
            async with served(store) as server:
                known = KnownServers.of([server.address], site=amsterdam)
                async with events_at(known) as events:
                    assert known.servers == (server.address,)
                    outcome = await events.initialize_known_servers()
                assert outcome.status is SUCCESS
                assert known.current == server.address
                assert {s.host for s in known.servers} - {HOST} == {"ams-dir1", "ams-dir2"}
                first = next(s for s in known.servers if s.host == "ams-dir1")
                assert first.addresses == ("10.1.0.10",)

        run(main())
        with store.read() as view:
            assert view.get(ObjectType.SITE, amsterdam) is not None


class TestList:
    @pytest.mark.req("MQDS-3.2.1.4-01", "MQDS-3.2.1.7-01")
    def test_the_current_server_is_one_of_the_list(self) -> None:
        one, two, three = map(ServerAddress, ("one", "two", "three"))
        known = KnownServers.of([one, two, three])
        known.use(two)
        assert known.in_order() == (two, one, three)
        with pytest.raises(ValueError, match="not one of"):
            known.use(ServerAddress("four"))
        with pytest.raises(ValueError, match="needs at least one"):
            KnownServers.of([])

    def test_names_are_compared_as_names(self) -> None:
        known = KnownServers.of([ServerAddress("DIR1", 2879)])
        known.replace([ServerAddress("dir1"), ServerAddress("dir2")])
        assert known.servers == (ServerAddress("DIR1", 2879), ServerAddress("dir2"))

    def test_servers_on_one_host_differ_by_port(self) -> None:
        known = KnownServers.of([ServerAddress(HOST, 1)])
        known.replace([ServerAddress(HOST, 1), ServerAddress(HOST, 2)])
        assert [server.port for server in known.servers] == [1, 2]


class TestFile:
    @pytest.mark.req("MQDS-3.2.1.4-02", "MQDS-3.2.1.3-01")
    def test_what_is_saved_comes_back(self, tmp_path: Path) -> None:
        store = JsonFile(tmp_path / "servers.json")
        assert store.load() is None
        servers = (ServerAddress("dir1", 2879), ServerAddress("dir2", None, 1135, ("10.0.0.1",)))
        state = ClientState(servers, servers[1], ONE, TWO)
        store.save(state)
        assert store.load() == state
        assert [path.name for path in tmp_path.iterdir()] == ["servers.json"]

    @pytest.mark.req("MQDS-3.2.1.4-02")
    def test_the_first_time_the_operator_names_the_one_server(self, tmp_path: Path) -> None:
        store = JsonFile(tmp_path / "servers.json")
        known = KnownServers.open(store, ServerAddress("dir1"), site=ONE, enterprise=TWO)
        assert known.servers == (known.current,) == (ServerAddress("dir1"),)
        again = KnownServers.open(store, ServerAddress("dir2"))
        assert again.state == known.state
        assert (again.site, again.enterprise) == (ONE, TWO)

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "{",
            "[]",
            "{}",
            '{"servers": [], "current": 0}',
            '{"servers": [{"host": "a", "mapper_port": 135, "addresses": []}], "current": 1}',
            '{"servers": [{"host": "a", "mapper_port": 135, "addresses": []}], "current": true}',
            '{"servers": [{"host": "a", "port": "x", "mapper_port": 1, "addresses": []}], "current": 0}',  # noqa: E501
            '{"servers": [{"host": "a"}], "current": 0}',
            '{"servers": [{"host": "a", "mapper_port": 1, "addresses": []}], "current": 0, "site": "x"}',  # noqa: E501
            '{"servers": 5, "current": 0}',
            '{"servers": ["a"], "current": 0}',
        ],
    )
    def test_a_damaged_file_is_said_to_be_one(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "servers.json"
        path.write_text(content)
        with pytest.raises(StorageError, match=r"servers\.json"):
            JsonFile(path).load()

    def test_a_disk_that_does_not_take_it(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """At setup that is an error; later the client goes on without."""
        missing = JsonFile(tmp_path / "no" / "servers.json")
        with pytest.raises(StorageError):
            KnownServers.open(missing, ServerAddress("dir1"))
        state = ClientState((ServerAddress("a"), ServerAddress("b")), ServerAddress("a"))
        known = KnownServers(state, missing)
        known.use(ServerAddress("b"))
        assert known.current == ServerAddress("b")
        assert "could not be saved" in caplog.text
        with pytest.raises(StorageError):
            JsonFile(tmp_path).load()

    def test_it_is_plain_to_read(self, tmp_path: Path) -> None:
        path = tmp_path / "servers.json"
        KnownServers.open(JsonFile(path), ServerAddress("dir1"))
        assert json.loads(path.read_text()) == {
            "current": 0,
            "servers": [{"host": "dir1", "port": None, "mapper_port": 135, "addresses": []}],
            "site": None,
            "enterprise": None,
        }
