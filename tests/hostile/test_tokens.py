"""Tokens that a stranger sends before a logon: bounded before a library parses them.

A provider's parser takes quadratic time for some of them, inside the event loop. What is refused
here is refused for its size and its counts, before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo
from tests.cli.running import CONFIG, Running, prepare, serving
from tests.hostile import plain_rpc as rpc
from tests.hostile.plain_rpc import Line
from tests.hostile.rawrpc import FIRST, LAST, request
from tests.hostile.spnego_tokens import SPNEGO, offering
from tests.interop import mqds_impacket as mqds

#: MQ_ERROR_DS_ERROR, the answer to S_DSValidateServer if a token is refused.
FAILED = 0xC00E0043


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("tokens")
    with closing(open_store(str(directory / "demo.db"), create=True)) as store:
        demo.build(store)
    prepare(directory, directory / "demo.db", f"{CONFIG}logon_failures = 1000\n")
    with serving(directory, "--json") as running:
        yield running


def by_bind(line: Line, token: bytes) -> bool:
    """Returns whether the server answers a token in a bind with one of its own."""
    trailer = rpc.trailer(rpc.PRIVACY, token, kind=SPNEGO)
    line.send(rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM), trailer))
    answer = line.receive()
    assert rpc.kind_of(answer) in (rpc.BIND_ACK, rpc.BIND_NAK)
    return rpc.kind_of(answer) == rpc.BIND_ACK and bool(rpc.token_of(answer))


def by_alter(line: Line, token: bytes) -> bool:
    line.send(rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM)))
    assert rpc.kind_of(line.receive()) == rpc.BIND_ACK
    trailer = rpc.trailer(rpc.PRIVACY, token, kind=SPNEGO)
    line.send(rpc.pdu(rpc.ALTER, rpc.proposal(mqds.DSCOMM), trailer))
    answer = line.receive()
    assert rpc.kind_of(answer) in (rpc.ALTER_RESP, rpc.FAULT)
    return rpc.kind_of(answer) == rpc.ALTER_RESP and bool(rpc.token_of(answer))


def by_validation(line: Line, token: bytes) -> bool:
    """Returns whether S_DSValidateServer goes on with S_InitSecCtx."""
    line.send(rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM)))
    assert rpc.kind_of(line.receive()) == rpc.BIND_ACK
    call = mqds.S_DSValidateServer()
    call["pguidEnterpriseId"] = bytes(16)
    call["fSetupMode"], call["dwContext"] = 0, 7
    call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = len(token)
    call["pClientBuff"] = token
    stub, room = call.getData(), 5840 - 24
    for at in range(0, len(stub), room):
        flags = (0 if at else FIRST) | (LAST if at + room >= len(stub) else 0)
        line.send(request(call.opnum, stub[at : at + room], flags))
    answer = line.receive()
    if rpc.kind_of(answer) == rpc.REQUEST:
        return b"NTLMSSP\0\2" in answer
    assert rpc.result_of(answer) == FAILED
    return False


Way = Callable[[Line, bytes], bool]
PLACES = pytest.mark.parametrize("way", [by_bind, by_alter, by_validation])


def accepted(running: Running, way: Way, token: bytes) -> bool:
    with Line(int(running.ready["port"])) as line:
        return way(line, token)


@PLACES
@pytest.mark.req("SEC-17-01")
def test_a_token_offers_few_mechanisms(server: Running, way: Way) -> None:
    assert accepted(server, way, offering(16))
    assert not accepted(server, way, offering(17))
    server.wait_for("cannot log on: SPNEGO: the token is refused: more than 16 mechanisms")


@pytest.mark.req("SEC-17-01")
def test_a_token_has_a_size(server: Running) -> None:
    assert accepted(server, by_validation, offering(1, payload=65_000))
    assert not accepted(server, by_validation, offering(1, payload=66_000))
    server.wait_for("bytes; at most 65536 are accepted")


@pytest.mark.req("SEC-17-01")
def test_the_token_that_stopped_servers(server: Running) -> None:
    """130,000 mechanisms, half a megabyte: refused for its size, and others are served."""
    assert not accepted(server, by_validation, offering(130_000))
    assert accepted(server, by_bind, offering(2))
