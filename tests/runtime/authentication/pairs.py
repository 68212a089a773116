"""Both sides of a security context in one process, and the people of these tests."""

from __future__ import annotations

from mqis.protocol.authentication import Authenticator, SecurityContext
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.wire.security.sid import ADMINISTRATORS, Sid

PASSWORD = "Päß wörd 1"
ALICE = Account(
    "LAB",
    "alice",
    Sid.parse("S-1-5-21-1-2-3-1000"),
    nt_hash(PASSWORD),
    frozenset({ADMINISTRATORS}),
)
BOB = Account("", "bob", Sid.parse("S-1-5-21-1-2-3-1001"), nt_hash("bob's"))
ACCOUNTS = MemoryAccounts([ALICE, BOB])
SERVER = PyspnegoAuthenticator(ACCOUNTS, "SRV1", "LAB", names=["srv1.lab.test"])
#: A hash, since where Kerberos is installed a password has Negotiate look for a KDC each time.
CLIENT = PyspnegoInitiator(LogonCredentials("Alice", "LAB", nt_hash=nt_hash(PASSWORD)))
TARGET = "host/srv1.lab.test"


def exchange(initiator: SecurityContext, acceptor: SecurityContext) -> list[bytes]:
    """All tokens in their order, the client's first, until neither side has another."""
    tokens: list[bytes] = []
    sides = (initiator, acceptor)
    token: bytes | None = None
    while True:
        token = sides[len(tokens) % 2].step(token)
        if token is None:
            return tokens
        tokens.append(token)
        if len(tokens) > 10:
            raise RuntimeError("the exchange does not end")


def connect(
    auth_type: int,
    level: int,
    client: PyspnegoInitiator = CLIENT,
    server: Authenticator = SERVER,
    target: str = TARGET,
) -> tuple[SecurityContext, SecurityContext]:
    """A complete context: its initiator and its acceptor."""
    initiator = client.initiator(auth_type, level, target)
    acceptor = server.acceptor(auth_type, level)
    exchange(initiator, acceptor)
    return initiator, acceptor
