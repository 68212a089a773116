"""A server whose own account lacks a right, told apart from a caller who lacks one."""

from __future__ import annotations

import logging

import pytest

from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.activedirectory.connection import TOLD_S
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.runtime.directory.readers import StoreReaders
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings
from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from tests.runtime.activedirectory.estate import Estate
from tests.runtime.activedirectory.passing import through
from tests.runtime.activedirectory.test_changes import LABEL, Given, create, delete, refusing, write
from tests.runtime.activedirectory.test_iterators import refusing as refusing_searches
from tests.runtime.directory.serving import ADMIN, ALICE, OK, scenario, serving
from tests.runtime.directory.test_lookups import begin, wanted
from tests.waiting import DEADLINE_S

REFUSED = HResult.MQ_ERROR_DS_ERROR
DENIED = ResultCode.INSUFFICIENT_ACCESS_RIGHTS


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [
        r.getMessage() for r in caplog.records if r.name.endswith("activedirectory.connection")
    ]
    caplog.clear()
    return lines


def test_the_log_names_the_account_the_entry_and_the_right(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("mqis.runtime.activedirectory.connection.monotonic", lambda: now[0])

    @scenario
    async def run() -> None:
        async with through() as passing:
            caller, server, estate = passing.caller, passing.server, passing.estate
            place = f"CN=msmq,CN=SRV1,CN=Computers,{server.root}"
            server.on_message = refusing(0, DENIED)
            assert (await create(caller, ObjectType.QUEUE, "SRV1\\new", LABEL))[0] == REFUSED
            (line,) = told(caplog)
            assert "the directory refuses the server" in line
            assert f"add CN=new,{place}" in line
            assert f"needs the right to create mSMQQueue entries below {place}" in line
            for change, right in (
                (write(caller, ObjectType.QUEUE, estate.queues[0], LABEL), "to write mSMQLabelEx"),
                (delete(caller, ObjectType.QUEUE, estate.queues[0]), "to delete this entry"),
                (delete(caller, ObjectType.MACHINE, estate.machine),
                 "to delete this entry with all below it"),
            ):  # fmt: skip
                server.on_message = refusing(0, DENIED)
                assert await change == REFUSED
                (line,) = told(caplog)
                assert line.endswith(right)
            server.on_message = refusing_searches(DENIED)
            assert (await begin(caller, wanted(P.Q_LABEL))).result == REFUSED
            (line,) = told(caplog)
            assert line.endswith("to read queue entries")
            # The same again is no news, until a minute has passed.
            assert (await begin(caller, wanted(P.Q_LABEL))).result == REFUSED
            assert told(caplog) == []
            now[0] += TOLD_S
            assert (await begin(caller, wanted(P.Q_LABEL))).result == REFUSED
            assert len(told(caplog)) == 1

    with caplog.at_level(logging.ERROR):
        run()


def test_the_account_is_the_one_of_the_configuration(caplog: pytest.LogCaptureFixture) -> None:
    @scenario
    async def run() -> None:
        async with ScriptedDomain.of() as server:
            estate = Estate(server)
            login = LdapLogin("mqis@corp.example", "x", BindMethod.ANONYMOUS)
            settings = LdapSettings(
                (LdapUrl.parse(server.url),),
                login,
                connect_timeout_s=DEADLINE_S,
                operation_timeout_s=DEADLINE_S,
            )
            store = ActiveDirectoryStore(settings)
            readers = StoreReaders(store, 1)
            try:
                async with (
                    serving(store=store, readers=readers) as served,
                    served.caller(ADMIN) as caller,
                ):
                    server.on_message = refusing(0, DENIED)
                    refused = await write(caller, ObjectType.QUEUE, estate.queues[0], LABEL)
                    assert refused == REFUSED
            finally:
                readers.close()
                store.close()

    with caplog.at_level(logging.ERROR):
        run()
    (line,) = told(caplog)
    assert "the account mqis@corp.example needs the right to write mSMQLabelEx" in line


def test_a_caller_without_the_right_is_denied_and_nothing_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @scenario
    async def run() -> None:
        async with through() as passing, passing.served.caller(ALICE) as alice:
            given: Given = {P.QM_SITE_ID: passing.estate.berlin}
            passing.server.add_computer("SRV2")
            denied, _ = await create(alice, ObjectType.MACHINE, "SRV2", given)
            assert denied == HResult.MQ_ERROR_ACCESS_DENIED
            made, guid = await create(passing.caller, ObjectType.MACHINE, "SRV2", given)
            assert (made, isinstance(guid, Guid)) == (OK, True)

    with caplog.at_level(logging.ERROR):
        run()
    assert told(caplog) == []
