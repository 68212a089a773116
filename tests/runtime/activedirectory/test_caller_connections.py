"""The connections of callers: one for each logon, few, and closed when they are idle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mqis.protocol.authentication import CallerTicket
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.callers import IDLE_S, CallerConnections
from mqis.runtime.activedirectory.connection import ForestConnection
from mqis.runtime.activedirectory.forestview import ForestView
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.ports import free_port
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType

MOST = 16
PEER = "127.0.0.1:1"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def of(principal: str) -> CallerTicket:
    def refused() -> object:
        raise AssertionError("nothing is asked of the directory")

    return CallerTicket(principal, refused)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def callers(clock: Clock) -> Iterator[CallerConnections]:
    settings = LdapSettings((LdapUrl.parse(f"ldap://127.0.0.1:{free_port()}"),))
    server = ForestConnection(settings)
    made = CallerConnections(server, MOST, clock=clock)
    yield made
    made.close()
    server.close()


def connection_of(callers: CallerConnections, ticket: CallerTicket) -> object:
    with callers.read(ticket, PEER) as view:
        assert isinstance(view, ForestView)
        return view._link


@pytest.mark.req("SEC-27-03")
def test_each_logon_has_a_connection_of_its_own(callers: CallerConnections) -> None:
    first, again, other = of("alice@LAB"), of("alice@LAB"), of("bob@LAB")
    links = [connection_of(callers, ticket) for ticket in (first, again, other)]
    assert len(set(map(id, links))) == 3
    assert connection_of(callers, first) is links[0]  # the next call of the same logon


@pytest.mark.req("SEC-27-03")
def test_one_user_has_a_share_and_gives_back_the_oldest(callers: CallerConnections) -> None:
    tickets = [of("alice@LAB") for _ in range(3)]
    links = [connection_of(callers, ticket) for ticket in tickets]
    assert len(callers) == MOST // 8  # the first one is closed
    assert connection_of(callers, tickets[2]) is links[2]
    assert connection_of(callers, tickets[0]) is not links[0]
    with ExitStack() as used:
        for _ in range(MOST // 8):
            used.enter_context(callers.read(of("eve@LAB"), PEER))
        with pytest.raises(DirectoryError, match="eve@LAB uses 2 connections") as refused:
            connection_of(callers, of("eve@LAB"))
        assert refused.value.hresult == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
        connection_of(callers, of("bob@LAB"))  # others are not kept waiting


@pytest.mark.req("SEC-27-03")
def test_all_together_have_a_limit(callers: CallerConnections) -> None:
    with ExitStack() as used:
        for number in range(MOST):
            used.enter_context(callers.read(of(f"user{number}@LAB"), PEER))
        with pytest.raises(DirectoryError, match="all 16 are in use"):
            connection_of(callers, of("alice@LAB"))
    connection_of(callers, of("alice@LAB"))
    assert len(callers) == MOST


@pytest.mark.req("SEC-27-03")
def test_an_idle_connection_is_closed_and_one_in_use_is_not(
    callers: CallerConnections, clock: Clock
) -> None:
    idle, used = of("alice@LAB"), of("bob@LAB")
    connection_of(callers, idle)
    with callers.write(used, PEER):
        clock.now += IDLE_S
        callers.close_idle()
        assert len(callers) == 1
    clock.now += IDLE_S - 1
    callers.close_idle()
    assert len(callers) == 1
    clock.now += 1
    callers.close_idle()
    assert len(callers) == 0


def test_a_lost_directory_is_one_outage_for_all(
    callers: CallerConnections, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("alice", "bob"):
        with (
            pytest.raises(DirectoryError) as failed,
            callers.read(of(f"{name}@LAB"), PEER) as view,
        ):
            next(view.objects(ObjectType.SITE))
        assert failed.value.hresult == HResult.MQ_ERROR_NO_DS
    assert caplog.text.count("the directory does not answer") == 1
    gc.collect()
