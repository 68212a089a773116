"""Users who have logged on, and keep their connection when their right to it has ended."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, DCERPC_v5, DCERPCException

from mqis.client.directory import DirectoryClient
from mqis.client.remote import RemoteUser, connect
from mqis.client.servers import LogonRefusedError, ServerAddress
from mqis.config.stores import open_store
from mqis.files import write_whole
from mqis.lab import demo
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.security.information import SecurityInformation
from mqis.protocol.sessions import SessionsRequest, SessionVerb
from mqis.runtime.authentication.account import nt_hash
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_ports
from mqis.wire.administration import ADMINISTRATION, SESSIONS, AdministrationCall
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ADMINISTRATORS
from tests.cli.running import Running, prepare, serving
from tests.interop import mqds_impacket as mqds
from tests.interop.mqds_impacket import LPWSTR_, ask, put_properties, variant
from tests.server.test_replication_serve import pec_config, with_values
from tests.waiting import in_time, until, wait_until

QUEUE, LABEL = 1, 108
VICTIM = "ams-app1\\orders"
OK, ACCESS_DENIED = 0, 0xC00E0025


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_store(str(path), create=True)) as made:
        demo.build(made)
    return path


@pytest.fixture
def server(store: Path, tmp_path: Path) -> Iterator[Running]:
    """Eve is an administrator, mallory is a user; their names are their passwords."""
    prepare(tmp_path, store)
    accounts = AccountsFile(tmp_path / "accounts.toml")
    accounts.add("eve", "eve", domain="LAB", groups=[ADMINISTRATORS])
    accounts.add("mallory", "mallory", domain="LAB")
    with serving(tmp_path, "--json") as running:
        yield running
        mqds.disconnect_all()


def logged_on(running: Running, name: str) -> DCERPC_v5:
    return mqds.connect(int(running.ready["port"]), name, RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)


def rename(dce: DCERPC_v5, label: str) -> int:
    """A change that administrators may make, and nobody else."""
    call = mqds.S_DSSetProps()
    call["dwObjectType"] = QUEUE
    call["pwcsPathName"] = VICTIM + "\0"
    put_properties(call, {LABEL: variant(LPWSTR_, label)})
    code: int = ask(dce, call)["ErrorCode"]
    return code


def edit_accounts(running: Running, name: str, before: str, after: str) -> None:
    """Edits one account's part of the file, which is replaced as a whole."""
    path = running.directory / "accounts.toml"
    text = path.read_text("utf-8")
    parts = re.split(r"(?=\[\[account\]\])", text)
    [number] = [i for i, part in enumerate(parts) if f'name = "{name}"' in part]
    edited, times = re.subn(before, after, parts[number])
    assert times == 1, parts[number]
    parts[number] = edited
    write_whole(path, "".join(parts), 0o600)


def remove(running: Running) -> None:
    AccountsFile(running.directory / "accounts.toml").remove("eve", "LAB")


def new_password(running: Running) -> None:
    edit_accounts(running, "eve", 'nt_hash = ".*"', f'nt_hash = "{nt_hash("other").hex()}"')


def new_sid(running: Running) -> None:
    """The account of that name is another one."""
    edit_accounts(running, "eve", 'sid = "(.*)-[0-9]+"', r'sid = "\1-4711"')


def reread(running: Running) -> None:
    before = running.log.count("configuration reread")
    running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: running.log.count("configuration reread") > before, "reread")


def fault_of(dce: DCERPC_v5) -> str:
    with pytest.raises(DCERPCException) as caught:
        rename(dce, "too late")
    return str(caught.value)


def is_closed(dce: DCERPC_v5) -> bool:
    """Returns whether the server has ended a connection; waits for it."""
    rest: bytes = dce.get_rpc_transport().get_socket().recv(1)
    return rest == b""


@pytest.mark.req("SEC-18-01")
@pytest.mark.parametrize("change", [remove, new_password, new_sid])
def test_a_revoked_account_makes_no_further_call_on_its_open_connections(
    server: Running, change: Callable[[Running], None]
) -> None:
    eve, mallory = logged_on(server, "eve"), logged_on(server, "mallory")
    assert rename(eve, "before") == OK
    change(server)
    reread(server)
    assert "rpc_s_access_denied" in fault_of(eve)
    assert is_closed(eve), "with it go its handles"
    assert rename(mallory, "x") == ACCESS_DENIED, "others are served as before"
    assert "the logon of LAB\\eve has ended: its account" in server.log
    assert "the logon of LAB\\mallory" not in server.log


@pytest.mark.req("SEC-18-01")
def test_a_removed_account_loses_its_connections_without_a_signal_too(server: Running) -> None:
    eve = logged_on(server, "eve")
    assert rename(eve, "before") == OK
    remove(server)
    server.wait_for("the logon of LAB\\eve has ended: its account was removed")
    assert "rpc_s_access_denied" in fault_of(eve)
    assert is_closed(eve)


@pytest.mark.req("SEC-18-02")
def test_groups_that_an_account_loses_are_lost_on_open_connections(server: Running) -> None:
    eve = logged_on(server, "eve")
    assert rename(eve, "first") == OK
    edit_accounts(server, "eve", r"groups = \[.*\]", "groups = []")
    reread(server)
    assert rename(eve, "second") == ACCESS_DENIED
    edit_accounts(server, "eve", r"groups = \[.*\]", f'groups = ["{ADMINISTRATORS}"]')
    reread(server)
    assert rename(eve, "third") == OK, "the same connection, with the groups of now"


# --- one server in this process, with a clock of its own ------------------------------------------


PASSWORD = "rabbit hole"
LOOKED_AT = "pec1\\secret"
Work = Callable[["Watched"], Coroutine[Any, Any, None]]


class Watched:
    """A PEC whose logons have a clock that a test moves."""

    def __init__(self, server: DirectoryServer, accounts: AccountsFile) -> None:
        self.server = server
        self.accounts = accounts
        authenticator = server._authenticator
        assert authenticator is not None
        self.now = authenticator.clock()
        authenticator.clock = lambda: self.now

    async def logged_on(self, name: str | None) -> DirectoryClient:
        user = None if name is None else RemoteUser(name, "LAB", verify=False)
        address = ServerAddress("127.0.0.1", self.server.ready.port)
        return await connect([address], user, None if name is None else PASSWORD)

    def edit(self, name: str, **values: Any) -> None:
        """Changes an account in place, as an administrator's editor would."""
        with self.accounts._exclusive():
            content = self.accounts._read()
            changed = tuple(
                replace(account, **values) if account.name == name else account
                for account in content.accounts
            )
            self.accounts._write(replace(content, accounts=changed))

    def reread(self) -> None:
        self.server.reread(self.server.config)


def watch(directory: Path, work: Work, **security: object) -> None:
    """Serves while ``work`` runs; alice and carol are administrators, bob is not."""

    async def run() -> None:
        config = with_values(
            pec_config(directory / "pec1", free_ports(2)),
            security={"administrators": [str(ADMINISTRATORS)], "domain": "LAB", **security},
        )
        accounts = AccountsFile(directory / "pec1" / "accounts.toml")
        for name in ("alice", "carol"):
            accounts.add(name, PASSWORD, domain="LAB", groups=[ADMINISTRATORS])
        accounts.add("bob", PASSWORD, domain="LAB")
        async with DirectoryServer(config, grace_s=1) as server:
            await work(Watched(server, accounts))

    asyncio.run(in_time(run()))


async def label(client: DirectoryClient) -> object:
    found = await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path=LOOKED_AT)
    return found[PropId.Q_LABEL].value


async def hide_a_queue(client: DirectoryClient) -> None:
    """A queue that administrators may read, and nobody else."""
    await client.create(ObjectType.QUEUE, LOOKED_AT, props({PropId.Q_LABEL: "secret"}))
    rights = parse_sddl("D:(A;;0xfffff;;;BA)").to_bytes()
    where = SecurityInformation.DACL
    await client.set_security(ObjectType.QUEUE, where, rights, path=LOOKED_AT)


async def fault_status(call: Awaitable[object]) -> int:
    with pytest.raises(RpcFault) as caught:
        await call
    return caught.value.status


async def hresult_of(call: Awaitable[object]) -> int:
    with pytest.raises(DirectoryError) as caught:
        await call
    return caught.value.hresult


@pytest.mark.req("SEC-18-02")
def test_an_answer_that_is_remembered_is_not_given_after_the_rights_are_lost(
    tmp_path: Path,
) -> None:
    async def work(watched: Watched) -> None:
        async with await watched.logged_on("alice") as alice:
            await hide_a_queue(alice)
            for _ in range(3):
                assert await label(alice) == "secret"
            watched.edit("alice", groups=frozenset())
            watched.reread()
            assert await hresult_of(label(alice)) == HResult.MQDS_OBJECT_NOT_FOUND
            watched.edit("alice", groups=frozenset({ADMINISTRATORS}))
            watched.reread()
            assert await label(alice) == "secret"
            config = with_values(
                watched.server.config, security={"administrators": ["S-1-5-32-549"]}
            )
            watched.server.reread(config)
            assert await hresult_of(alice.sessions(LIST)) == HResult.MQ_ERROR_ACCESS_DENIED
            assert alice.usable, "all of it on one connection"

    watch(tmp_path, work)


@pytest.mark.req("SEC-18-02")
def test_an_answer_is_remembered_for_an_account_with_these_groups(tmp_path: Path) -> None:
    """A logon has the groups of its moment; what an earlier one was told is not told to it."""

    async def work(watched: Watched) -> None:
        async with await watched.logged_on("alice") as before:
            await hide_a_queue(before)
            for _ in range(3):
                assert await label(before) == "secret"
            watched.edit("alice", groups=frozenset())
            async with await watched.logged_on("alice") as after:
                assert await hresult_of(label(after)) == HResult.MQDS_OBJECT_NOT_FOUND

    watch(tmp_path, work)


@pytest.mark.req("SEC-18-03")
def test_a_logon_ends_after_its_lifetime(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(watched: Watched) -> None:
        async with (
            await watched.logged_on("alice") as alice,
            await watched.logged_on(None) as nobody,
        ):
            await hide_a_queue(alice)
            watched.now += 3599
            assert await label(alice) == "secret"
            watched.now += 1
            assert await fault_status(label(alice)) == FaultStatus.CONTEXT_EXPIRED
            assert "the logon of LAB\\alice has ended: it is too old" in caplog.text
            assert await label(alice) == "secret", "the client has logged on again"
            await nobody.get(ObjectType.SITE, [PropId.S_PATHNAME], path="Delft")
            # A shorter lifetime holds for logons that are there.
            config = with_values(watched.server.config, security={"logon_lifetime_s": 60})
            watched.server.reread(config)
            watched.now += 60
            assert await fault_status(label(alice)) == FaultStatus.CONTEXT_EXPIRED

    watch(tmp_path, work, logon_lifetime_s=3600)


@pytest.mark.req("SEC-18-01")
def test_an_idle_connection_of_a_removed_account_ends_by_itself(tmp_path: Path) -> None:
    async def work(watched: Watched) -> None:
        rpc = watched.server._rpc
        assert rpc is not None
        rpc.endpoint.limits = replace(rpc.endpoint.limits, bind_timeout_s=0.2)
        async with (
            await watched.logged_on("alice") as alice,
            await watched.logged_on("bob") as bob,
        ):
            await hide_a_queue(alice)
            watched.accounts.remove("alice", "LAB")
            watched.reread()
            await until(lambda: not alice.usable, "the connection of alice ends")
            assert bob.usable
            assert [str(s.names[0]) for s in rpc.sessions()] == ["LAB\\bob"]

    watch(tmp_path, work)


@pytest.mark.req("SEC-18-01")
def test_an_accounts_file_that_is_damaged_ends_no_logon_and_makes_none(tmp_path: Path) -> None:
    async def work(watched: Watched) -> None:
        path = watched.accounts.path
        whole = path.read_bytes()
        async with await watched.logged_on("alice") as alice:
            await hide_a_queue(alice)
            path.write_bytes(b"not TOML")
            watched.server._accounts.look()
            assert await label(alice) == "secret"
            with pytest.raises(LogonRefusedError):
                await watched.logged_on("carol")
            path.write_bytes(whole)
            watched.server._accounts.look()
            assert await label(alice) == "secret"
            path.unlink()
            watched.server._accounts.look()
            assert await label(alice) == "secret"
            watched.reread()
            assert await fault_status(label(alice)) == FaultStatus.ACCESS_DENIED

    watch(tmp_path, work)


# --- the list of sessions -------------------------------------------------------------------------


LIST = SessionsRequest(SessionVerb.LIST)


@pytest.mark.req("SEC-18-04")
def test_only_administrators_see_and_end_sessions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mqis.audit")

    async def work(watched: Watched) -> None:
        async with (
            await watched.logged_on("alice") as alice,
            await watched.logged_on("bob") as bob,
            await watched.logged_on("carol") as carol,
            await watched.logged_on(None) as nobody,
        ):
            await hide_a_queue(carol)
            found = await alice.sessions(LIST)
            accounts = ["LAB\\alice", "LAB\\bob", "LAB\\carol", "anonymous"]
            assert [entry.account for entry in found.sessions] == accounts
            by_account = {entry.account: entry for entry in found.sessions}
            assert [entry.own for entry in found.sessions] == [True, False, False, False]
            assert [entry.level for entry in found.sessions] == [*["privacy"] * 3, "none"]
            assert {entry.address for entry in found.sessions} == {"127.0.0.1"}
            assert by_account["LAB\\carol"].calls == by_account["LAB\\bob"].calls + 2
            assert by_account["LAB\\carol"].handles == 1, "the auth handle"
            assert abs(by_account["LAB\\bob"].since_us - time.time() * 1e6) < 600e6
            for stranger in (bob, nobody):
                for request in (LIST, SessionsRequest("end", by_account["LAB\\carol"].id)):
                    code = await hresult_of(stranger.sessions(request))
                    assert code == HResult.MQ_ERROR_ACCESS_DENIED
            assert carol.usable
            await alice.sessions(SessionsRequest("end", by_account["LAB\\bob"].id))
            await until(lambda: not bob.usable, "the session of bob ends")
            assert carol.usable
            rest = (await alice.sessions(LIST)).sessions
            assert [entry.account for entry in rest] == [accounts[0], *accounts[2:]]
            for request in (
                SessionsRequest("end", by_account["LAB\\bob"].id),
                SessionsRequest("end", by_account["LAB\\alice"].id),
                SessionsRequest("end", -1),
                SessionsRequest("?"),
            ):
                code = await hresult_of(alice.sessions(request))
                assert code == HResult.MQ_ERROR_INVALID_PARAMETER
            assert alice.usable

    watch(tmp_path, work)
    assert "may not see the sessions of enterprise" in caplog.text
    audited = [r.message for r in caplog.records if r.message.startswith("session")]
    assert {"sessions listed", "session not ended"} <= set(audited)
    assert "may not end session" in caplog.text
    [made] = [record for record in caplog.records if record.message == "session ended"]
    about = getattr(made, "details")  # noqa: B009
    assert (about["user"], about["account"]) == ("LAB\\alice", "LAB\\bob")


@pytest.mark.req("SEC-18-04")
def test_requests_about_sessions_that_are_none_are_refused(tmp_path: Path) -> None:
    bodies = [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"{" * 10_000,
        b'{"verb": 1}',
        b'{"verb": "end", "id": "1"}',
        b'{"verb": "end", "id": 99999999999999999999}',
        b'{"verb": "list", "more": 1}',
    ]

    async def work(watched: Watched) -> None:
        async with await watched.logged_on("alice") as alice:
            session = await alice._session()
            for body in bodies:
                asked = AdministrationCall(body)
                answer = await session.call(SESSIONS, asked, interface=ADMINISTRATION)
                assert answer.result == HResult.MQ_ERROR_INVALID_PARAMETER, body[:60]
            assert (await alice.sessions(LIST)).total == 1

    watch(tmp_path, work)
