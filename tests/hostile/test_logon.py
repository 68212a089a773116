"""Attacks on logons: relayed, meant for others, guessed. The server is a process of its own."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from impacket.dcerpc.v5 import transport
from impacket.dcerpc.v5.rpcrt import DCERPC_v5, DCERPCException

from mqis.config.stores import open_store
from mqis.lab import demo
from tests.cli.running import CONFIG, Running, prepare
from tests.cli.running import serving as serving_process
from tests.hostile import plain_rpc as rpc
from tests.hostile.plain_rpc import Line
from tests.interop import mqds_impacket as mqds
from tests.interop.mqds_impacket import LPWSTR_, ask, put_properties, variant
from tests.runtime.authentication.handmade import EOL, Client, av, negotiate
from tests.waiting import DEADLINE_S

ALICE = ("alice", "rabbit hole")
QUEUE, LABEL = 1, 108
VICTIM = "ams-app1\\orders"
OK, ACCESS_DENIED = 0, 0xC00E0025


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_store(str(path), create=True)) as made:
        demo.build(made)
    return path


@pytest.fixture(scope="module")
def lenient(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """For attacks that are not about guessing: nobody ever has to wait."""
    directory = tmp_path_factory.mktemp("lenient")
    prepare(directory, store, f"{CONFIG}logon_failures = 1000\n")
    with serving_process(directory, "--json") as running:
        yield running


@pytest.fixture
def server(store: Path, tmp_path: Path) -> Iterator[Running]:
    prepare(tmp_path, store)
    with serving_process(tmp_path, "--json") as running:
        yield running


def port_of(running: Running) -> int:
    return int(running.ready["port"])


def stock_client(port: int, user: tuple[str, str], level: int) -> DCERPC_v5:
    """impacket, connected and bound."""
    way = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    way.set_connect_timeout(DEADLINE_S)
    way.set_credentials(*user, "LAB")
    dce = way.get_dce_rpc()
    dce.set_auth_level(level)
    dce.connect()
    dce.bind(mqds.DSCOMM)
    return dce


def renaming(label: str) -> mqds.S_DSSetProps:
    """A change that administrators may make, and nobody else."""
    call = mqds.S_DSSetProps()
    call["dwObjectType"] = QUEUE
    call["pwcsPathName"] = VICTIM + "\0"
    put_properties(call, {LABEL: variant(LPWSTR_, label)})
    return call


def rename(dce: DCERPC_v5, label: str) -> int:
    code: int = ask(dce, renaming(label))["ErrorCode"]
    return code


def audit_lines(running: Running) -> list[str]:
    return [line for line in running.log.splitlines() if " mqis.audit: " in line]


# --- relaying -------------------------------------------------------------------------------------


class Relay:
    """Stands between a client and the server, and logs on with what the client sends.

    The client asks for privacy; towards the server the attacker says ``level``. Once the client's
    last leg has gone through, the connection to the server is the attacker's.
    """

    def __init__(self, server_port: int, level: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(DEADLINE_S)
        self.port: int = self._listener.getsockname()[1]
        self.server = Line(server_port)
        self._level = level
        self._thread = threading.Thread(target=self._relay)
        self._thread.start()

    def _relay(self) -> None:
        client, _ = self._listener.accept()
        with client:
            client.settimeout(DEADLINE_S)
            bind = rpc.read_pdu(client)
            assert rpc.kind_of(bind) == rpc.BIND
            self.server.send(rpc.with_level(bind, self._level))
            client.sendall(rpc.with_level(self.server.receive(), rpc.PRIVACY))
            auth3 = rpc.read_pdu(client)
            assert rpc.kind_of(auth3) == rpc.AUTH3
            self.server.send(rpc.with_level(auth3, self._level))

    def close(self) -> None:
        self._thread.join(DEADLINE_S)
        self._listener.close()
        self.server.socket.close()


@pytest.mark.req("SEC-5-06", "SEC-5-01")
def test_an_administrators_logon_at_privacy_is_not_relayed_to_a_bind_at_connect(
    lenient: Running,
) -> None:
    relay = Relay(port_of(lenient), rpc.CONNECT)
    try:
        stock_client(relay.port, ALICE, rpc.PRIVACY).disconnect()
        relay._thread.join(DEADLINE_S)
        answer = relay.server.call(3, renaming("relayed").getData())
        assert rpc.result_of(answer) == ACCESS_DENIED
    finally:
        relay.close()
    lenient.wait_for("LAB\\alice logged on below security.min_level and counts as anonymous")


@pytest.mark.req("SEC-5-06")
@pytest.mark.parametrize("level", [rpc.PACKET, rpc.INTEGRITY, rpc.PRIVACY])
def test_a_relayed_logon_cannot_sign(lenient: Running, level: int) -> None:
    """At the levels that count, every message wants a key that the attacker does not have."""
    forged = "refused: a message that was not signed by LAB\\alice"
    before = lenient.log.count(forged)
    relay = Relay(port_of(lenient), level)
    try:
        stock_client(relay.port, ALICE, rpc.PRIVACY).disconnect()
        relay._thread.join(DEADLINE_S)
        stub = renaming("relayed").getData()
        padded = stub + bytes(-len(stub) % 16)
        body = struct.pack("<IHH", len(padded), 0, 3) + padded
        auth = rpc.trailer(level, b"\1" + bytes(15), context_id=79231)
        relay.server.send(rpc.pdu(rpc.REQUEST, body, auth, call_id=9))
        assert rpc.kind_of(relay.server.receive()) == rpc.FAULT
    finally:
        relay.close()
    assert lenient.log.count(forged) == before + 1


@pytest.mark.req("SEC-5-01")
def test_an_administrator_without_integrity_is_nobody(lenient: Running) -> None:
    dce = stock_client(port_of(lenient), ALICE, rpc.CONNECT)
    assert rename(dce, "unprotected") == ACCESS_DENIED
    dce.disconnect()
    protected = stock_client(port_of(lenient), ALICE, rpc.INTEGRITY)
    assert rename(protected, "Orders") == OK
    protected.disconnect()


# --- a logon that was meant for another server ----------------------------------------------------


def log_on_for(port: int, target: str) -> int | None:
    """Log on at integrity, naming ``target``, and make a change; its result, None if refused."""
    client = Client(ALICE[0], "LAB", ALICE[1])
    named = av(9, target.encode("utf-16-le"))
    with Line(port) as line:
        first = rpc.trailer(rpc.INTEGRITY, negotiate())
        line.send(rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM), first))
        challenge = rpc.token_of(line.receive())
        token = client.authenticate(challenge, named + EOL)
        line.send(rpc.pdu(rpc.AUTH3, bytes(4), rpc.trailer(rpc.INTEGRITY, token)))
        stub = renaming("Orders").getData()
        padding = -len(stub) % 16
        body = struct.pack("<IHH", len(stub), 0, 3) + stub + bytes(padding)
        auth = bytearray(rpc.trailer(rpc.INTEGRITY, bytes(16)))
        auth[2] = padding
        request = rpc.pdu(rpc.REQUEST, body, bytes(auth), call_id=2)
        line.send(request[:-16] + client.signature(0, request[:-16]))
        answer = line.receive()
        if rpc.kind_of(answer) != rpc.RESPONSE:
            return None
        (length,) = struct.unpack_from("<H", answer, 10)
        pad = answer[len(answer) - length - 6]
        stub_end = len(answer) - length - 8 - pad
        result: int = struct.unpack_from("<I", answer, stub_end - 4)[0]
        return result


@pytest.mark.req("SEC-5-02")
def test_a_logon_collected_under_another_name_is_refused(lenient: Running) -> None:
    port = port_of(lenient)
    for own in ("host/ams-dir1", "cifs/AMS-DIR1.lab", "host/127.0.0.1:2879", "rpc/localhost", ""):
        assert log_on_for(port, own) == OK, own
    strangers = ("host/intranet", "cifs/ams-dir1.evil.example", "host/10.0.0.1", "host/")
    for stranger in strangers:
        assert log_on_for(port, stranger) is None, stranger
    lenient.wait_for("the logon is meant for 'host/intranet', which is not a name of this server")


# --- guessing -------------------------------------------------------------------------------------


def guess(port: int, name: str, password: str) -> bool:
    """Try one password on a connection of its own."""
    try:
        dce = stock_client(port, (name, password), rpc.INTEGRITY)
        try:
            return rename(dce, "guessed") in (OK, ACCESS_DENIED)
        finally:
            dce.disconnect()
    except (DCERPCException, ConnectionError):
        return False


@pytest.mark.req("SEC-5-03", "SEC-5-05")
def test_passwords_are_not_guessed_at_full_speed(server: Running) -> None:
    """Most guesses are not even judged; other accounts of the address are not hindered."""
    guesses = 30
    for number in range(guesses):
        assert not guess(port_of(server), "alice", f"guess {number}")
    judged = [line for line in audit_lines(server) if "LAB\\alice cannot log on" in line]
    assert 5 <= len(judged) < guesses / 2
    assert "wait_s=" not in judged[3]
    assert "peer=127.0.0.1" in judged[4]
    assert "wait_s=1.0" in judged[4]
    assert guess(port_of(server), "bob", "builder")


@pytest.mark.req("SEC-5-04")
def test_guessing_on_one_connection_ends_it(lenient: Running) -> None:
    """A new security context in an alter_context, its last leg in an auth3, again and again."""
    client = Client("alice", "LAB", "wrong")
    with Line(port_of(lenient)) as line:
        for number in range(50):
            first = rpc.trailer(rpc.INTEGRITY, negotiate(), context_id=number)
            kind = rpc.ALTER if number else rpc.BIND
            try:
                line.send(rpc.pdu(kind, rpc.proposal(mqds.DSCOMM), first))
                answer = line.receive()
                if not answer:
                    break
                token = client.authenticate(rpc.token_of(answer), EOL)
                last = rpc.trailer(rpc.INTEGRITY, token, context_id=number)
                line.send(rpc.pdu(rpc.AUTH3, bytes(4), last))
            except ConnectionError:
                break
        assert number == 3


def validate(line: Line, client: Client) -> int | None:
    """S_DSValidateServer with a handshake of NTLM; its result, None if the connection ended."""
    call = mqds.S_DSValidateServer()
    call["pguidEnterpriseId"] = bytes(16)
    call["fSetupMode"], call["dwContext"] = 0, 7
    call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = len(negotiate())
    call["pClientBuff"] = negotiate()
    stub = call.getData()
    body = struct.pack("<IHH", len(stub), 0, 22) + stub
    line.send(rpc.pdu(rpc.REQUEST, body, call_id=2))
    while rpc.kind_of(answer := line.receive()) == rpc.REQUEST:  # S_InitSecCtx
        at = answer.find(b"NTLMSSP\0\2")
        token = client.authenticate(answer[at:], EOL) if at >= 0 else b""
        told = struct.pack("<III", 65_536, 0, len(token)) + token + bytes(-len(token) % 4)
        told += struct.pack("<II", len(token), OK)
        line.send(rpc.pdu(rpc.RESPONSE, struct.pack("<IHH", len(told), 0, 0) + told, call_id=2))
    return rpc.result_of(answer) if answer else None


@pytest.mark.req("SEC-5-03", "SEC-5-04", "SEC-5-05")
def test_passwords_are_not_guessed_through_s_dsvalidateserver(server: Running) -> None:
    """The connection is anonymous and ends after three guesses; the count is that of logons."""
    answers: list[int | None] = []
    for _ in range(2):
        with Line(port_of(server)) as line:
            line.send(rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM)))
            assert rpc.kind_of(line.receive()) == rpc.BIND_ACK
            for _ in range(20):
                try:
                    answers.append(validate(line, Client("alice", "LAB", "wrong")))
                except ConnectionError:
                    answers.append(None)
                if answers[-1] is None:
                    break
    failed = 0xC00E0043
    assert answers == [failed, failed, failed, None] * 2
    judged = [line for line in audit_lines(server) if "LAB\\alice cannot log on" in line]
    assert all("peer=127.0.0.1" in line for line in judged)
    assert "wait_s=" in judged[4], "the fifth guess was answered like the first"


@pytest.mark.req("SEC-5-05")
def test_every_audit_line_names_the_peer(lenient: Running) -> None:
    """Denied, logged on below the minimum, refused, forged: whatever these tests did."""
    port = port_of(lenient)
    dce = stock_client(port, ("bob", "builder"), rpc.INTEGRITY)
    assert rename(dce, "denied") == ACCESS_DENIED
    dce.disconnect()
    assert not guess(port, "nobody", "nothing")
    lenient.wait_for("nobody cannot log on")
    lines = audit_lines(lenient)
    assert any("denied: " in line for line in lines)
    assert [line for line in lines if "peer=127.0.0.1" not in line] == []
