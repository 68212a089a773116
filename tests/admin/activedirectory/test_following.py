"""How a mirror learns of changes: the cookie that it stores, and the search that wakes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqis.admin.activedirectory.mirror.following import DirectoryWatch, follow
from mqis.admin.activedirectory.mirror.round import EstateMirror, MirrorRound
from mqis.protocol.activedirectory.mirror.cursor import read_cursor
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.reading import read_forest
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.ldap import entry
from mqis.wire.ldap.controls import SHOW_DELETED, DirSync, find_control
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import EVERYTHING, SearchRequest
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored

#: MS-ADTS 3.1.1.3.4.1.3 and 3.1.1.3.4.1.9.
DIR_SYNC = "1.2.840.113556.1.4.841"
NOTIFICATION = "1.2.840.113556.1.4.528"


def asked_with(estate: MirroredEstate, oid: str) -> list[tuple[SearchRequest, LdapMessage]]:
    return [
        (message.operation, message)
        for message in estate.server.received
        if isinstance(message.operation, SearchRequest)
        and any(control.oid == oid for control in message.controls)
    ]


@pytest.mark.req("MQDSSM-3.1.6.15-10")
def test_dirsync_of_each_context_goes_on_behind_the_stored_cookie() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        with estate.store.read() as view:
            stored = read_cursor(view)
        assert stored is not None
        estate.label(estate.orders, b"Orders")
        estate.delete(estate.bills)
        estate.server.received.clear()
        another = EstateMirror(estate.client, estate.store, "corp.example")
        assert (await another.round()).counts.written == 2
        asked = [
            (request.base, DirSync.from_bytes(find_control(message.controls, DIR_SYNC) or b""))
            for request, message in asked_with(estate, DIR_SYNC)
        ]
        contexts = estate.server.root, estate.server.configuration
        assert asked == [
            (c, DirSync(0, 0, k)) for c, k in zip(contexts, stored.cookies, strict=True)
        ]
        assert estate.held()["queue"] == ["srv1\\orders"]  # a tombstone told of the other

    mirrored(test, may_dirsync=True)


@pytest.mark.req("MQDSSM-3.1.6.15-11")
def test_a_notification_only_wakes_the_mirror() -> None:
    async def test(estate: MirroredEstate) -> None:
        listening: list[int] = []

        def notify(message: LdapMessage) -> Any:
            if not any(control.oid == NOTIFICATION for control in message.controls):
                return None
            listening.append(message.id)
            if len(listening) == 2:  # both contexts are watched: something changes
                estate.label(estate.orders, b"Orders")
                return [entry("CN=anything,DC=corp,DC=example")]
            return []

        settings = LdapSettings((LdapUrl.parse(estate.server.url),))
        watched = LdapDirectoryClient(DomainControllers(settings))
        await estate.mirror.round()
        estate.server.on_message = notify
        rounds: list[MirrorRound | Exception] = []
        stop = asyncio.Event()

        def report(done: MirrorRound | Exception) -> None:
            rounds.append(done)
            if len(rounds) == 2:  # only a notification brings the second
                stop.set()

        watch = DirectoryWatch([(watched, await read_forest(estate.client))])
        await follow(estate.mirror, watch, report, stop, interval_s=1e6)
        await watch.close()
        assert len(listening) == 2
        assert all(isinstance(done, MirrorRound) for done in rounds)
        assert estate.value(ObjectType.QUEUE, estate.orders, PropId.Q_LABEL) == "Orders"
        asked = asked_with(estate, NOTIFICATION)
        contexts = {estate.server.root, estate.server.configuration}
        assert {request.base for request, _ in asked} == contexts
        for request, message in asked:
            assert request.filter == EVERYTHING  # another one is refused
            assert SHOW_DELETED in {control.oid for control in message.controls}

    mirrored(test)
