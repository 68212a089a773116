"""Users who have logged on, and keep their connection when their right to it has ended."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, DCERPC_v5, DCERPCException

from mqis.config.stores import open_store
from mqis.files import write_whole
from mqis.lab import demo
from mqis.runtime.authentication.account import nt_hash
from mqis.server.accounts import AccountsFile
from mqis.wire.security.sid import ADMINISTRATORS
from tests.cli.running import Running, prepare, serving
from tests.interop import mqds_impacket as mqds
from tests.interop.mqds_impacket import LPWSTR_, ask, put_properties, variant
from tests.waiting import wait_until

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
    sock = dce.get_rpc_transport().get_socket()
    return sock.recv(1) == b""


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
