"""A domain in which the account of a server of mqis may act as its callers (MS-SFU)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.server.accounts import AccountsFile
from mqis.wire.security.sid import ADMINISTRATORS, Sid
from tests.estate.planted import (
    BERLIN,
    OU,
    PARIS,
    SERVICES,
    computer,
    machine,
    made,
    queue,
    site,
)
from tests.interop.samba_domain import load_entries, samba_domain

REALM, HOST = "CORP.EXAMPLE", "mqis.corp.example"
SERVICE = "mqis"
#: alice has rights at her machine, bob has none, carol is an administrator of mqis and nothing in
#: the domain, dora's account "is sensitive and cannot be delegated".
USERS = {name: f"Passw0rd.{name}" for name in (SERVICE, "alice", "bob", "carol", "dora")}
#: Create, delete and read children, read and write properties; and delete an entry, or a tree.
FULL_BELOW, DELETES = "CCDCLCRPWPRC", "SDDT"


def tool(directory: Path, *arguments: str) -> str:
    """Runs samba-tool on the databases of a forest; returns what it prints."""
    command = ["samba-tool", *arguments, "-s", str(directory / "etc/smb.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sid_of(directory: Path, user: str) -> str:
    shown = tool(directory, "user", "show", user, "--attributes=objectSid")
    return shown.split("objectSid: ")[1].split()[0]


def judge(directory: Path, entry: str, user: str, rights: str, kind: str = "A") -> None:
    """Allows a user rights on an entry and those below it, or denies them (kind D)."""
    ace = f"({kind};CI;{rights};;;{sid_of(directory, user)})"
    database = f"--URL={directory / 'private/sam.ldb'}"
    tool(directory, "dsacl", "set", database, f"--objectdn={entry}", f"--sddl={ace}")


def _fill(directory: Path) -> None:
    load_entries(
        directory,
        (
            made(OU, "top", "organizationalUnit"),
            site(BERLIN),
            site(PARIS),
            computer("SRV1", "10.0.0.1"),
            machine("SRV1", 21, BERLIN),
            computer("ALICE1", "10.0.0.2"),
            machine("ALICE1", 22, BERLIN),
            queue("there", "ALICE1", 31),
            queue("hidden", "ALICE1", 32),
            queue("sealed", "ALICE1", 33),
            computer("NEW1", "10.0.0.3"),
            computer("NEW2", "10.0.0.4"),
        ),
    )
    for name, password in USERS.items():
        tool(directory, "user", "create", name, password)
    tool(directory, "user", "sensitive", "dora", "on")
    judge(directory, f"CN=msmq,CN=ALICE1,{OU}", "alice", FULL_BELOW + DELETES)
    # bob may not see one queue, and not the permissions of another.
    judge(directory, f"CN=hidden,CN=msmq,CN=ALICE1,{OU}", "bob", "RPLCLORC", "D")
    judge(directory, f"CN=sealed,CN=msmq,CN=ALICE1,{OU}", "bob", "RC", "D")
    judge(directory, f"CN=NEW1,{OU}", "alice", FULL_BELOW + DELETES)
    judge(directory, SERVICES, "alice", FULL_BELOW + DELETES)
    tool(directory, "spn", "add", f"host/{HOST}", SERVICE)
    tool(directory, "delegation", "add-service", SERVICE, "ldap/dc1.corp.example")
    keytab = directory / "mqis.keytab"
    tool(directory, "domain", "exportkeytab", str(keytab), f"--principal={SERVICE}")
    keytab.chmod(0o600)


@dataclass(frozen=True, slots=True)
class DelegatingDomain:
    """A running forest, whose directory has keytab, certificate and settings of Kerberos."""

    directory: Path

    def sid_of(self, user: str) -> str:
        return sid_of(self.directory, user)

    def set_delegation(self, command: str) -> None:
        """Takes the right to delegate from the server's account, or gives it."""
        tool(self.directory, "delegation", command, SERVICE, "ldap/dc1.corp.example")

    def configured(self, tmp_path: Path, **store: Any) -> Config:
        """The configuration of a server that acts as its callers, but for what ``store`` says."""
        accounts = tmp_path / "accounts.toml"
        if not accounts.exists():
            file = AccountsFile(accounts)
            file.add("carol", USERS["carol"], domain="CORP", groups=(ADMINISTRATORS,))
            file.add("alice", USERS["alice"], domain="CORP", sid=Sid.parse("S-1-5-21-9-9-9-1001"))
        values = {
            "server": {"name": "SRV1"},
            "store": {
                "url": "ldaps://127.0.0.1",
                "server_name": "dc1.corp.example",
                "ca_file": str(self.directory / "private/tls/own.pem"),
                "user": f"{SERVICE}@corp.example",
                "keytab": str(self.directory / "mqis.keytab"),
                "timeout_s": 10,
                "acting_as": "caller",
                **store,
            },
            "rpc": {"mapper": False},
            "discovery": {"enabled": False},
            "security": {
                "accounts": str(accounts),
                "domain": "CORP",
                "names": [HOST],
                "keytab": str(self.directory / "mqis.keytab"),
            },
            "monitoring": {"port": 0},
        }
        return override(Config(), values, "test")


@contextmanager
def delegating_domain(directory: Path) -> Iterator[DelegatingDomain]:
    with samba_domain(directory, before_start=_fill) as running:
        old = os.environ.get("KRB5_CONFIG")
        os.environ["KRB5_CONFIG"] = str(running / "krb5.conf")
        try:
            yield DelegatingDomain(running)
        finally:
            del os.environ["KRB5_CONFIG"]
            if old is not None:
                os.environ["KRB5_CONFIG"] = old


def of_user(name: str, auth_type: AuthType = AuthType.KERBEROS) -> Credentials:
    """How a user of the domain logs on to the server of mqis."""
    domain = REALM if auth_type is AuthType.KERBEROS else "CORP"
    secret = LogonCredentials(name, domain, USERS[name])
    return Credentials(PyspnegoInitiator(secret), auth_type, AuthLevel.PRIVACY, f"host/{HOST}")


@asynccontextmanager
async def client_of(
    port: int, name: str, auth_type: AuthType = AuthType.KERBEROS
) -> AsyncIterator[DirectoryClient]:
    credentials = of_user(name, auth_type)
    server = ServerAddress("127.0.0.1", port=port)
    async with await DirectoryClient.connect([server], credentials=credentials) as client:
        yield client
