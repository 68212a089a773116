"""A program that logs on with a wrong name or password learns that, and not that nobody answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from mqis.client import (
    Credentials,
    DirectoryClient,
    LogonCredentials,
    LogonRefusedError,
    NoServerError,
    ServerAddress,
)
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.endpoint_map import EndpointRegistry
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.rpc import epmapper
from tests.cli.running import ALICE, PASSWORDS, Running, prepare, serving

WRONG = LogonCredentials("alice", "LAB", "wrong")
#: Of another account: after a few failures, an account has to wait.
WRONG_TOO = LogonCredentials("bob", "LAB", "wrong")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("server")
    with closing(open_store(str(directory / "demo.db"), create=True)) as store:
        demo.build(store)
    prepare(directory, directory / "demo.db")
    with serving(directory, "--json") as running:
        yield running


def connect(*servers: str, **given: object) -> str:
    async def main() -> str:
        parsed = [ServerAddress.parse(server) for server in servers]
        async with await DirectoryClient.connect(parsed, **given) as directory:  # type: ignore[arg-type]
            return str(directory.server)

    return asyncio.run(main())


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user(server: Running, user: str) -> None:
    with pytest.raises(LogonRefusedError) as refused:
        connect(server.address, logon=LogonCredentials(user, "LAB", "wrong"))
    text = str(refused.value)
    assert text.startswith(f"{server.address} refused the logon: check the name and the password")
    assert "no directory server answers" not in text
    assert "wrong" not in text


@pytest.mark.parametrize("kind", [AuthType.NTLM, AuthType.SPNEGO])
def test_a_refusal_at_the_first_call(server: Running, kind: AuthType) -> None:
    """NTLM sends its last token without waiting, so that the first call hears of the refusal."""
    credentials = Credentials(PyspnegoInitiator(WRONG), kind, AuthLevel.INTEGRITY, "127.0.0.1")
    with pytest.raises(LogonRefusedError, match="refused the logon"):
        connect(server.address, credentials=credentials)


def test_a_refusal_counts_more_than_servers_that_are_down(server: Running) -> None:
    with pytest.raises(LogonRefusedError, match=server.address):
        connect("127.0.0.1:1", server.address, logon=WRONG)
    with pytest.raises(NoServerError, match="no directory server answers"):
        connect("127.0.0.1:1", logon=WRONG)


@contextmanager
def unasked(host: str, port: int = 0) -> Iterator[str]:
    """An address that nobody may connect to meanwhile."""
    with socket.create_server((host, port)) as listener:
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("kind", [AuthType.NTLM, AuthType.SPNEGO])
def test_no_other_server_is_asked_after_a_refusal(server: Running, kind: AuthType) -> None:
    """Each server that was asked counted one more wrong password, until the account was locked."""
    credentials = Credentials(PyspnegoInitiator(WRONG_TOO), kind, AuthLevel.PRIVACY, "127.0.0.1")
    with (
        unasked("127.0.0.1") as other,
        pytest.raises(LogonRefusedError, match=f"{server.address} refused the logon"),
    ):
        connect("127.0.0.1:1", server.address, other, credentials=credentials, timeout_s=2)


def test_no_other_address_of_the_server_is_asked_after_a_refusal(server: Running) -> None:
    port = server.ready["port"]
    address = ServerAddress("127.0.0.1", port, addresses=("127.9.8.7",))
    with unasked("127.9.8.7", port), pytest.raises(LogonRefusedError, match="refused the logon"):
        asyncio.run(DirectoryClient.connect([address], logon=WRONG_TOO, timeout_s=2))


class Closed(EndpointMapperService):
    """An endpoint mapper that answers nobody."""

    def _map(self, call: IncomingCall, request: epmapper.MapAsked) -> epmapper.MapFound:
        raise RpcFault(FaultStatus.ACCESS_DENIED)


def test_the_next_server_is_asked_after_an_endpoint_mapper_refused(server: Running) -> None:
    """The mapper is asked without a logon, so that it can refuse none."""

    async def main() -> str:
        mapper = RpcServer([Closed(EndpointRegistry())], SystemEntropy())
        closed = ServerAddress("127.0.0.1", mapper_port=await mapper.listen("127.0.0.1"))
        addresses = [closed, ServerAddress.parse(server.address)]
        async with await DirectoryClient.connect(addresses, logon=right()) as directory:
            used = str(directory.server)
        with pytest.raises(NoServerError, match="the endpoint mapper refused the question"):
            await DirectoryClient.connect([closed], logon=right())
        await mapper.close(0.2)
        return used

    assert asyncio.run(main()) == server.address


def right() -> LogonCredentials:
    domain, _, name = ALICE.rpartition("\\")
    return LogonCredentials(name, domain, PASSWORDS[ALICE].decode().strip())


def test_the_right_password(server: Running) -> None:
    assert connect(server.address, logon=right()) == server.address
