"""Somebody without an account, from many addresses: what all strangers together may take."""

from __future__ import annotations

import re
import select
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_INTEGRITY

from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.server.accounts import AccountsFile
from tests.cli.running import CONFIG, Running, prepare, serving
from tests.hostile import plain_rpc as rpc
from tests.hostile.nobody import Signer, validation
from tests.hostile.plain_rpc import Line
from tests.interop import mqds_impacket as mqds
from tests.runtime.authentication.handmade import Client, negotiate
from tests.waiting import DEADLINE_S, wait_until

ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]

Serve = Callable[[str], AbstractContextManager[Running]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_store(str(path), create=True)) as made:
        demo.build(made)
    return path


@pytest.fixture
def serve(store: Path, tmp_path: Path) -> Serve:
    @contextmanager
    def started(limit: str) -> Iterator[Running]:
        config = CONFIG.replace("mapper_port = 0", f"mapper_port = 0\n{limit}")
        prepare(tmp_path, store, f"{config}[monitoring]\nenabled = true\nport = 0\n")
        AccountsFile(tmp_path / "accounts.toml").add("honest", "honest", domain="LAB")
        with serving(tmp_path, "--json") as running:
            yield running
            mqds.disconnect_all()

    return started


def port_of(running: Running) -> int:
    return int(running.ready["port"])


def metric(running: Running, name: str) -> int:
    """A counter of the directory's port."""
    url = f"http://127.0.0.1:{running.ready['monitoring_port']}/metrics"
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        text = answer.read().decode()
    found = re.search(rf'^{name}{{endpoint="directory"}} (\d+)', text, re.MULTILINE)
    assert found, text
    return int(found[1])


def honest_is_served(running: Running) -> bool:
    """Returns whether a user can connect, log on and get a handle."""
    dce = mqds.connect(port_of(running), "honest", RPC_C_AUTHN_LEVEL_PKT_INTEGRITY)
    return bool(mqds.ask(dce, validation())["ErrorCode"] == 0)


def bound(running: Running, source: str = "127.0.0.1") -> Line:
    """A connection of a stranger that has bound, and is silent from then on."""
    line = Line(port_of(running), source)
    line.send(rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM)))
    assert rpc.kind_of(line.receive()) == rpc.BIND_ACK
    return line


def is_open(line: Line) -> bool:
    """Returns whether the server has not closed a connection that it owes nothing."""
    return not select.select([line.socket], [], [], 0)[0]


# --- who is a stranger ----------------------------------------------------------------------------


@pytest.mark.req("SEC-17-02")
def test_nobody_from_many_addresses_does_not_take_the_handles_of_users(serve: Serve) -> None:
    """64 handles of all, 32 of all strangers, 8 of one address, 2 of one connection."""
    with serve("max_handles = 64") as server, ExitStack() as stack:
        taken = 0
        for address in ADDRESSES:
            for _ in range(4):
                nobody = stack.enter_context(Signer(port_of(server), address))
                answers = [nobody.call(validation()) for _ in range(3)]
                taken += sum(rpc.kind_of(answer) == rpc.RESPONSE for answer in answers)
        assert taken == 32
        assert honest_is_served(server)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.req("SEC-17-03")
def test_nobody_keeps_few_security_contexts_on_a_connection(serve: Serve) -> None:
    with serve("") as server, Signer(port_of(server)) as nobody:
        while nobody.log_on():
            assert nobody.contexts <= 8
        assert nobody.contexts == 8


@pytest.mark.req("SEC-17-03")
def test_security_contexts_of_strangers_take_memory_of_strangers(serve: Serve) -> None:
    """All strangers have 512 kB; eight contexts beyond a logon are 104 kB."""
    with serve("memory_mb = 1") as server, ExitStack() as stack:
        counts = []
        for number in range(8):
            nobody = stack.enter_context(Signer(port_of(server), ADDRESSES[number % 2]))
            while nobody.contexts < 8 and nobody.log_on():
                pass
            counts.append(nobody.contexts)
        assert counts[:4] == [8] * 4
        assert 0 < min(counts) < 8
        server.wait_for("for lack of memory (rpc.memory_mb): all anonymous callers together")
        assert honest_is_served(server)


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.req("SEC-17-04")
def test_silent_strangers_do_not_keep_a_user_out(serve: Serve) -> None:
    """All 16 places, again and again: who logged on before stays, and others can log on."""
    with serve("max_connections = 16") as server, ExitStack() as stack:
        account = Client("honest", "LAB", "honest")
        user = stack.enter_context(Signer(port_of(server), client=account))
        assert rpc.kind_of(user.call(validation())) == rpc.RESPONSE
        lines = [stack.enter_context(bound(server)) for _ in range(40)]
        assert honest_is_served(server)
        assert rpc.kind_of(user.call(validation())) == rpc.RESPONSE
        wait_until(lambda: sum(map(is_open, lines)) <= 12)
        assert any(map(is_open, lines[-12:])), "the latest ones are still there"
        assert not any(map(is_open, lines[:20]))
        server.wait_for("closed a connection of 127.0.0.1, which has not logged on, to make room")
        assert server.log.count("to make room") == 1
        assert metric(server, "mqis_rpc_connections_evicted_total") >= 28


@pytest.mark.req("SEC-17-04")
def test_strangers_that_never_answer_a_callback_do_not_keep_a_user_out(serve: Serve) -> None:
    """Each has a call under way, which waits for the stranger and not for the server."""
    with serve("max_connections = 16") as server, ExitStack() as stack:
        call = mqds.S_DSValidateServer()
        call["pguidEnterpriseId"] = bytes(16)
        call["fSetupMode"], call["dwContext"] = 0, 7
        call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = len(negotiate())
        call["pClientBuff"] = negotiate()
        for _ in range(16):
            line = stack.enter_context(bound(server))
            assert rpc.kind_of(line.call(call.opnum, call.getData())) == rpc.REQUEST
        assert honest_is_served(server)


@pytest.mark.req("SEC-17-04")
def test_the_strangers_of_one_address_make_room_for_those_of_another(serve: Serve) -> None:
    with serve("max_connections = 16") as server, ExitStack() as stack:
        few = [stack.enter_context(bound(server, "127.0.0.2")) for _ in range(3)]
        for _ in range(40):
            stack.enter_context(bound(server, "127.0.0.3"))
        assert all(map(is_open, few))


# --- association groups ---------------------------------------------------------------------------


@pytest.mark.req("SEC-17-05")
def test_a_stranger_does_not_use_up_the_handles_of_a_users_association(serve: Serve) -> None:
    """Two handles of one association; the stranger knows its id, and is at the same address."""
    with serve("max_handles = 64") as server, ExitStack() as stack:
        account = Client("honest", "LAB", "honest")
        user = stack.enter_context(Signer(port_of(server), client=account))
        assert rpc.kind_of(user.call(validation())) == rpc.RESPONSE
        stranger = stack.enter_context(Signer(port_of(server), group=user.group))
        kinds = [rpc.kind_of(stranger.call(validation())) for _ in range(3)]
        assert kinds == [rpc.RESPONSE, rpc.RESPONSE, rpc.FAULT]
        assert rpc.kind_of(user.call(validation())) == rpc.RESPONSE


@pytest.mark.req("SEC-17-05")
def test_the_next_association_cannot_be_guessed(serve: Serve) -> None:
    with serve("") as server, ExitStack() as stack:
        ids = [stack.enter_context(Signer(port_of(server))).group for _ in range(8)]
        assert all(abs(one - other) > 1000 for one in ids for other in ids if one is not other)
