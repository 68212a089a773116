"""The connection of a store to its domain controller: its beginning, its users, its end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.connection import ForestConnection
from mqis.runtime.activedirectory.errors import DirectoryNotConnected
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import LdapFault
from mqis.wire.hresult import HResult
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import EVERYTHING, SaslBind, SearchRequest, Unbind
from mqis.wire.ldap.responses import BindResponse, LdapResult, SearchEntry
from mqis.wire.mqds.objecttype import ObjectType
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.activedirectory.passing import settings_for
from tests.waiting import in_time, wait_until

#: Longer than any test, and no time at all.
NEVER_S, AT_ONCE_S = 86_400.0, 0.0


class ThreadedDomain(ScriptedDomain):
    """Its connections can be ended from a thread."""

    def disconnect(self) -> None:
        assert self._server is not None
        self._server.get_loop().call_soon_threadsafe(super().disconnect)


def connected(
    test: Callable[[ForestConnection, Estate], None],
    *,
    retry_s: float = NEVER_S,
    settings: Callable[[ScriptedDomain], LdapSettings] = settings_for,
    root: str = "DC=corp,DC=example",
) -> None:
    """Runs a plain function in a thread, while the loop serves the directory."""

    async def run() -> None:
        async with ThreadedDomain.of(root) as server:
            estate = Estate(server)
            link = ForestConnection(settings(server), retry_s=retry_s)
            try:
                await asyncio.to_thread(test, link, estate)
            finally:
                await asyncio.to_thread(link.close)

    asyncio.run(in_time(run()))


def queues(link: ForestConnection) -> int:
    return sum(1 for _ in link.search(ObjectType.QUEUE))


def enterprise(link: ForestConnection) -> DirectoryObject | None:
    return link.ask(ObjectType.ENTERPRISE, lambda reader: reader.read_enterprise())


def root_reads(server: ScriptedDomain) -> list[SearchRequest]:
    return [r for r in _searches(server) if not r.base]


def _searches(server: ScriptedDomain) -> list[SearchRequest]:
    return [r for r in server.operations(SearchRequest) if isinstance(r, SearchRequest)]


def closing(_message: LdapMessage) -> Any:
    return [LdapFault.CLOSE]


@pytest.mark.req("MQDSSM-3.1.3-01", "MQDSSM-3.1.1.5-01", "MQDSSM-3.1.1.6-01", "MQDSSM-3.1.6.18-06")
def test_first_operations_at_once_share_one_connection_and_wait_for_its_contexts() -> None:
    def test(link: ForestConnection, estate: Estate) -> None:
        assert timers(link) == []
        assert estate.server.connections == 0  # nobody has asked anything
        began = threading.Semaphore(0)

        def ask(_: int) -> int:
            began.release()
            return queues(link)

        def answer_late(_message: LdapMessage) -> None:
            """The first answer waits until all have asked."""
            for _ in range(8):
                began.acquire(timeout=10)
            time.sleep(0.1)
            estate.server.on_message = None

        estate.server.on_message = answer_late
        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(ask, range(8))) == {2}
        assert estate.server.connections == 1
        assert _searches(estate.server)[0] == root_reads(estate.server)[0]
        assert len(root_reads(estate.server)) == 1
        assert len([s for s in _searches(estate.server) if s.base != estate.computer]) == 9

    connected(test)


@pytest.mark.req("MQDSSM-3.1.1.5-01")
@pytest.mark.departs("MQDSSM-3.1.3-02")
def test_the_root_entry_is_read_once_and_by_the_names_of_its_attributes() -> None:
    def test(link: ForestConnection, estate: Estate) -> None:
        queues(link)
        (asked,) = root_reads(estate.server)
        assert (asked.base, asked.scope, asked.filter) == ("", SearchScope.BASE, EVERYTHING)
        assert (asked.size_limit, asked.time_limit_s) == (0, 0)
        assert {"configurationNamingContext", "defaultNamingContext"} <= set(asked.attributes)
        estate.server.disconnect()
        assert queues(link) == 2
        assert estate.server.connections == 2
        assert len(root_reads(estate.server)) == 1  # a forest does not change its contexts

    connected(test)


@pytest.mark.req("MQDSSM-3.1.3-03")
def test_the_configuration_context_is_what_the_server_says() -> None:
    def test(link: ForestConnection, estate: Estate) -> None:
        server = estate.server
        server.on_message = closing
        with pytest.raises(DirectoryNotConnected):
            queues(link)
        assert all(not request.base for request in _searches(server))  # no context is known yet
        server.on_message = None
        (root,) = [each for each in server.entries if not each.name]
        child = {"defaultNamingContext": (f"DC=eu,{server.root}".encode(),)}
        server.entries.remove(root)
        server.entries.append(SearchEntry("", tuple({**dict(root.attributes), **child}.items())))
        assert sum(1 for _ in link.search(ObjectType.SITE)) == 2
        bases = [request.base for request in _searches(server)]
        assert f"CN=Sites,{server.configuration}" in bases

    connected(test, retry_s=AT_ONCE_S, root="OU=a,DC=elsewhere")


@pytest.mark.departs("MQDSSM-3.1.3-04")
def test_a_directory_that_was_away_at_the_start_is_tried_again() -> None:
    def test(link: ForestConnection, estate: Estate) -> None:
        estate.server.on_message = closing
        with pytest.raises(DirectoryNotConnected):
            queues(link)
        estate.server.on_message = None
        assert queues(link) == 2  # no minute has passed

    connected(test, retry_s=AT_ONCE_S)


def test_after_a_failure_calls_fail_at_once_for_a_while() -> None:
    def test(link: ForestConnection, estate: Estate) -> None:
        estate.server.on_message = closing
        with pytest.raises(DirectoryNotConnected):
            queues(link)
        tried = estate.server.connections
        estate.server.on_message = None
        with pytest.raises(DirectoryNotConnected):
            queues(link)
        assert estate.server.connections == tried

    connected(test, retry_s=NEVER_S)


def timers(link: ForestConnection) -> list[object]:
    """What would act later by itself: timers and tasks in the connection's loop, and threads."""
    loop: Any = link._loop._loop

    async def scheduled() -> list[object]:
        waiting = [handle for handle in loop._scheduled if not handle.cancelled()]
        return [*waiting, *(asyncio.all_tasks() - {asyncio.current_task()})]

    threads = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    return [*link._loop.run(scheduled()), *threads]


def has_socket(link: ForestConnection) -> bool:
    """Returns whether the loop listens to more than to other threads."""
    loop: Any = link._loop._loop

    async def sockets() -> int:
        return len(loop._selector.get_map()) - 1

    return link._loop.run(sockets()) > 0


@pytest.mark.req("MQDSSM-3.1.2-01")
def test_no_timer_runs_and_nothing_connects_again_before_somebody_asks() -> None:
    def test(link: ForestConnection, estate: Estate) -> None:
        assert timers(link) == []
        assert queues(link) == 2
        assert timers(link) == []
        assert has_socket(link)
        estate.server.disconnect()
        assert wait_until(lambda: not has_socket(link), "the connection is lost")
        assert timers(link) == []
        assert estate.server.connections == 1
        estate.server.on_message = closing
        with pytest.raises(DirectoryNotConnected):
            queues(link)
        assert wait_until(lambda: not has_socket(link))
        assert timers(link) == []
        tried = estate.server.connections
        estate.server.on_message = None
        assert queues(link) == 2
        assert estate.server.connections == tried + 1
        assert timers(link) == []

    connected(test, retry_s=AT_ONCE_S)


@pytest.mark.req("MQDSSM-3.1.6.18-01")
@pytest.mark.departs("MQDSSM-3.1.6.21-01")
def test_a_connection_is_kept_for_the_next_operation_and_unbound_at_the_end() -> None:
    ended: list[int] = []

    async def run() -> None:
        async with ScriptedDomain.of() as server:
            Estate(server)
            link = ForestConnection(settings_for(server))
            for _ in range(3):
                assert await asyncio.to_thread(queues, link) == 2
                assert await asyncio.to_thread(enterprise, link) is not None
            assert (server.connections, server.operations(Unbind)) == (1, [])
            await asyncio.to_thread(link.close)
            ended.append(
                await asyncio.to_thread(wait_until, lambda: len(server.operations(Unbind)))
            )

    asyncio.run(in_time(run()))
    assert ended == [1]


@pytest.mark.departs("MQDSSM-3.1.6.18-03")
def test_a_refused_password_is_an_outage_and_is_not_tried_at_each_server() -> None:
    """Each wrong password counts towards the lockout of the account."""

    def twice(server: ScriptedDomain) -> LdapSettings:
        login = LdapLogin("mqis@x", "wrong", BindMethod.NTLM)
        refused = BindResponse(LdapResult(ResultCode.INVALID_CREDENTIALS))
        server.on_message = lambda message: (
            [refused] if isinstance(message.operation, SaslBind) else None
        )
        return replace(settings_for(server), servers=(LdapUrl.parse(server.url),) * 2, login=login)

    def test(link: ForestConnection, estate: Estate) -> None:
        for _ in range(3):
            with pytest.raises(DirectoryNotConnected, match="mqis@x: the logon is") as caught:
                queues(link)
            assert caught.value.hresult == HResult.MQ_ERROR_NO_DS
        assert len(estate.server.operations(SaslBind)) == 1
        assert link.outage is not None
        assert "invalidCredentials" in link.outage

    connected(test, settings=twice)
