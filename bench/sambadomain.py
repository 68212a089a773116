"""A private Samba domain controller with an estate of queues, on loopback; ended at the end.

The forest is provisioned once below .build (half a minute) and copied for each run. Its ports are
fixed, so that only one can run at a time.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from bench.backends import ROOT, Unavailable
from bench.enterprise import label
from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.protocol.activedirectory.rights import to_active_directory
from mqis.protocol.security.masks import generic_mapping
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import write_ldif
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, AUTHENTICATED_USERS, EVERYONE, Sid

URL, SERVER_NAME = "ldaps://127.0.0.1", "dc1.corp.example"
USER, PASSWORD = "Administrator@corp.example", "Passw0rd.1"
DOMAIN = "DC=corp,DC=example"
SITE_NAME = "Bench"
QUEUES_OF_A_MACHINE = 100
_SITES = f"CN=Sites,CN=Configuration,{DOMAIN}"
_SITE = Guid(b"site of machines")
_SCRIPT = ROOT / "tools/samba_domain.sh"
_TEMPLATE = ROOT / ".build/samba-domain"
#: Python with Samba's modules.
_SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class SambaDomain:
    """A domain controller that is running."""

    directory: Path
    queues: int

    @property
    def ca_file(self) -> Path:
        return self.directory / "private/tls/own.pem"

    @property
    def password_file(self) -> Path:
        return self.directory / "bench.password"

    @property
    def pid(self) -> int:
        return int((self.directory / "run/samba.pid").read_text())

    def options(self) -> ConnectingOptions:
        return ConnectingOptions(
            (URL,),
            USER,
            ca_file=self.ca_file,
            server_name=SERVER_NAME,
            password_file=self.password_file,
        )

    def arguments(self) -> list[str]:
        """The options of ``mqis import`` and ``mqis mirror`` that log on."""
        return [
            *("--user", USER, "--password-file", str(self.password_file)),
            *("--ca-file", str(self.ca_file), "--server-name", SERVER_NAME),
        ]


def machine_of(number: int) -> str:
    """The computer of a queue."""
    return f"HOST{number // QUEUES_OF_A_MACHINE:03}"


def path_of(number: int) -> str:
    return f"{machine_of(number)}\\queue{number}"


def name_of(number: int) -> str:
    """The distinguished name of a queue."""
    return f"CN=queue{number},CN=msmq,CN={machine_of(number)},CN=Computers,{DOMAIN}"


def start(directory: Path, queues: int, resources: ExitStack) -> SambaDomain:
    """Serves a forest with so many queues; raises ``Unavailable`` if that is not possible."""
    if which("ldapsearch") is None:
        raise Unavailable("Samba: skipped: ldapsearch is missing (Debian: apt install ldap-utils)")
    if not (_TEMPLATE / "etc/smb.conf").exists():
        _script("provision", str(_TEMPLATE))
    _script("copy", str(_TEMPLATE), str(directory))
    found = SambaDomain(directory, queues)
    found.password_file.write_text(PASSWORD)
    found.password_file.chmod(0o600)
    _fill(directory, queues)
    resources.callback(_script, "stop", str(directory))
    _script("start", str(directory))
    return found


def _script(*arguments: str) -> None:
    # Standard output is no pipe: the server inherits it, and it would stay open.
    done = subprocess.run(
        [_SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"Samba: skipped: {reason}")


def _fill(directory: Path, queues: int) -> None:
    file = directory / "estate.ldif"
    file.write_text("".join(write_ldif(_estate(queues))), "utf-8")
    script, conf = ROOT / "bench/sambafill.py", directory / "etc/smb.conf"
    command = [_SYSTEM_PYTHON, str(script), str(conf), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"Samba: skipped: its databases cannot be filled: {reason}")


def _estate(queues: int) -> Iterator[AddEntry]:
    """A site, machines of a hundred queues; everybody may do everything with the queues."""
    yield _entry(f"CN={SITE_NAME},{_SITES}", "site", objectGUID=_SITE.raw)
    for number in range(queues):
        if number % QUEUES_OF_A_MACHINE == 0:
            yield from _machine(machine_of(number))
        yield _entry(
            name_of(number),
            "mSMQQueue",
            mSMQLabelEx=label(number).encode(),
            mSMQQueueQuota=b"1000",
            mSMQQueueType=(number % 50 + 1).to_bytes(16, "big"),
            nTSecurityDescriptor=OPEN_TO_ALL,
        )


def _machine(name: str) -> Iterator[AddEntry]:
    computer = f"CN={name},CN=Computers,{DOMAIN}"
    host = f"{name.lower()}.corp.example".encode()
    yield _entry(
        computer,
        "computer",
        sAMAccountName=f"{name}$".encode(),
        userAccountControl=b"4096",
        dNSHostName=host,
        servicePrincipalName=b"HOST/" + host,
    )
    yield _entry(f"CN=msmq,{computer}", "mSMQConfiguration", mSMQSites=_SITE.raw)


def _entry(name: str, ldap_class: str, **attributes: bytes) -> AddEntry:
    rows = ((key, (value,)) for key, value in attributes.items())
    return AddEntry(name, (("objectClass", (ldap_class.encode(),)), *rows))


def _allowing(trustee: Sid) -> bytes:
    """A descriptor that allows everything of a queue."""
    dacl = Acl((allow(trustee, generic_mapping(ObjectType.QUEUE).all),))
    plain = SecurityDescriptor(ADMINISTRATORS, ADMINISTRATORS, dacl)
    return to_active_directory(plain, ObjectType.QUEUE).to_bytes()


OPEN_TO_ALL, OPEN_TO_USERS = _allowing(EVERYONE), _allowing(AUTHENTICATED_USERS)
