"""A program that logs on with a wrong name or password learns that, and not that nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

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
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from tests.cli.running import ALICE, PASSWORDS, Running, prepare, serving

WRONG = LogonCredentials("alice", "LAB", "wrong")


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


def test_the_right_password(server: Running) -> None:
    domain, _, name = ALICE.rpartition("\\")
    logon = LogonCredentials(name, domain, PASSWORDS[ALICE].decode().strip())
    assert connect(server.address, logon=logon) == server.address
