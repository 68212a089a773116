"""``mqis estate check`` on a Samba domain controller with one planted fault of each kind.

Through the installed command, by an administrator and by an ordinary account from which something
is hidden; the repairs and their undo are applied with ``ldapmodify``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqis.wire.ldap.changes import AddEntry, DeleteEntry
from mqis.wire.ldap.ldif import read_ldif, write_ldif
from mqis.wire.security.sid import Sid
from tests.estate.forest import migrated
from tests.estate.planted import CONFIGURATION, OSLO, OU, ROOT, faults, site, sound
from tests.interop.samba_domain import PASSWORD, USER, load_entries, samba_domain
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.interop

#: Faults whose repair takes people: an account, a server, or the queue that was meant.
BY_HAND = {
    "alias_to_nowhere",
    "computer_name_doubled",
    "conflicting_entry",
    "disabled_computer",
    "machine_without_site",
    "site_without_router",
}
READER, READER_PASSWORD = "reader@corp.example", "Passw0rd.2"
URL = "ldaps://127.0.0.1"
_MQIS = Path(sys.executable).with_name("mqis")
#: All parts of a descriptor but auditing entries, for ldapsearch.
_DESCRIPTORS = "!1.2.840.113556.1.4.801=::MAMCAQc="
#: Attributes that every entry that was made again has anew.
_NEW = {"objectguid", "whencreated", "whenchanged", "usncreated", "usnchanged"}


def possible() -> dict[str, list[AddEntry]]:
    """The faults that Samba lets in: it refuses a name that another account has.

    It refuses a link to no site as well: a site is deleted later for that.
    """
    refused = "service_name_doubled", "link_to_nowhere"
    return {check: each for check, each in faults().items() if check not in refused}


def load(directory: Path) -> None:
    """Loads the faults; the unknown user has to be of the domain, whose SID is not known yet."""
    loaded = (each for check, each in possible().items() if check != "unknown_user")
    oslo = site(OSLO), *faults()["link_to_nowhere"]
    load_entries(directory, (*sound(), *oslo, *(entry for each in loaded for entry in each)))
    conf = str(directory / "etc/smb.conf")
    created = ["samba-tool", "user", "create", "reader", READER_PASSWORD, "-s", conf]
    subprocess.run(created, capture_output=True, check=True)


class Domain:
    """The domain controller, by the tools of OpenLDAP and by the command."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.certificate = str(directory / "private/tls/own.pem")
        for user, password in ((USER, PASSWORD), (READER, READER_PASSWORD)):
            file = directory / user
            file.write_text(password)
            file.chmod(0o600)

    def ldap(self, tool: str, *arguments: str, text: str = "") -> str:
        logon = ["-x", "-H", URL, "-D", USER, "-w", PASSWORD]
        done = subprocess.run(
            [tool, *logon, *arguments],
            env=os.environ | {"LDAPTLS_CACERT": self.certificate},
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def search(self, base: str, *arguments: str) -> list[AddEntry]:
        # In pages: Samba was seen to leave a large answer inside TLS unsent for ever.
        paged = "-E", "pr=10/noprompt"
        text = self.ldap("ldapsearch", "-LLL", *paged, "-b", base, *arguments)
        found = read_ldif(text.encode().splitlines(keepends=True), "ldapsearch")
        return [entry for entry in found if isinstance(entry, AddEntry)]

    def state(self) -> dict[str, dict[str, set[bytes]]]:
        """All attributes of all entries that repairs may concern."""
        wanted = "(|(objectClass=mSMQConfiguration)(objectClass=user)(objectClass=site)"
        named = "-E", _DESCRIPTORS, f"{wanted}(objectClass=server)(objectClass=group))", "*"
        queues = "(|(objectClass=mSMQQueue)(objectClass=mSMQMigratedUser)(objectClass=mSMQSiteLink)"
        others = "-E", _DESCRIPTORS, f"{queues}(objectClass=mSMQSettings))", "*"
        bases = OU, f"CN=LostAndFound,{ROOT}", CONFIGURATION
        entries = [
            entry
            for base in bases
            for asked in (named, others)
            for entry in self.search(base, *asked, "nTSecurityDescriptor")
        ]
        return {
            entry.name: {name.lower(): set(values) for name, values in entry.attributes}
            for entry in entries
        }

    def check(self, user: str, *arguments: str | Path) -> dict[str, Any]:
        given = ["--user", user, "--password-file", str(self.directory / user)]
        given += ["--ca-file", self.certificate, "--server-name", "dc1.corp.example", "--json"]
        done = subprocess.run(
            [_MQIS, "estate", "check", URL, *given, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def found(self, told: dict[str, Any]) -> list[str]:
        return sorted(finding["check"] for finding in told["findings"])

    def deny(self, name: str, rights: str) -> None:
        """Denies rights on an entry to the ordinary account."""
        (reader,) = self.search(ROOT, "(sAMAccountName=reader)", "objectSid")
        sid = Sid.from_bytes(reader.values("objectSid")[0])
        command = [
            "samba-tool",
            "dsacl",
            "set",
            f"--objectdn={name}",
            f"--sddl=(D;;{rights};;;{sid})",
        ]
        conf = str(self.directory / "etc/smb.conf")
        url = str(self.directory / "private/sam.ldb")
        done = subprocess.run(
            [*command, "-H", url, "-s", conf], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one", before_start=load) as directory:
        domain = Domain(directory)
        (head,) = domain.search(ROOT, "-s", "base", "objectSid")
        own = Sid.from_bytes(head.values("objectSid")[0])
        unknown = migrated("nobody", Sid(5, (*own.sub_authorities, 9999)))
        domain.ldap("ldapadd", text="".join(write_ldif([unknown])))
        yield domain


def test_an_ordinary_reader_finds_the_same(domain: Domain) -> None:
    told = domain.check(READER)
    assert domain.found(told) == sorted(possible())
    assert (told["unknown"], told["unreadable"]) == ([], [])


def test_planted_faults_are_found_mended_and_brought_back(domain: Domain, tmp_path: Path) -> None:
    before, repairs = domain.state(), tmp_path / "repairs.ldif"
    told = domain.check(USER, "--ldif", repairs)
    assert domain.found(told) == sorted(possible())
    assert (told["unknown"], told["unreadable"]) == ([], [])

    domain.ldap("ldapmodify", "-f", str(repairs))
    mended = domain.check(USER)
    assert set(domain.found(mended)) == BY_HAND
    assert domain.check(READER)["objects"] == mended["objects"], "a closed queue is still seen"
    with repairs.open("rb") as file:
        records = list(read_ldif(file, "repairs"))
    deleted = {change.name for change in records if isinstance(change, DeleteEntry)}
    assert len(deleted) == 6

    domain.ldap("ldapmodify", "-f", str(tmp_path / "repairs.undo.ldif"))
    after = domain.state()
    changed = deleted | {change.name for change in records}
    assert changed <= after.keys() == before.keys()
    for name in after:
        for state in (before, after):
            dropped = _NEW if name in deleted else {"whenchanged", "usnchanged"}
            state[name] = {key: v for key, v in state[name].items() if key not in dropped}
    assert after == before


def test_a_link_to_a_deleted_site_is_deleted(domain: Domain) -> None:
    before = domain.found(domain.check(USER))
    (dead,) = faults()["link_to_nowhere"]
    domain.ldap("ldapdelete", site(OSLO).name)
    for user in (READER, USER):
        told = domain.check(user)
        assert domain.found(told) == sorted([*before, "link_to_nowhere"])
        assert [f["check"] for f in told["findings"] if f["where"] == dead.name] == [
            "link_to_nowhere"
        ]
    (found,) = (f for f in told["findings"] if f["where"] == dead.name)
    domain.ldap("ldapmodify", text=found["ldif"])
    assert domain.found(domain.check(USER)) == before


def test_a_reader_is_told_what_is_hidden(domain: Domain) -> None:
    """Last, because what it denies stays denied."""
    before = domain.found(domain.check(USER))
    domain.deny(f"CN=open,CN=msmq,CN=WS1,{OU}", "RC")
    domain.deny(f"CN=SRV2,{OU}", "RPLCLO")
    told = domain.check(READER)
    unknown = {limit["check"]: limit["left_out"] for limit in told["unknown"]}
    expected = {"bad_gate": 1, "left_settings": 2, "open_queue": 1, "unknown_user": 1}
    assert unknown == expected | {"alias_to_nowhere": 1}, "its queue manager is at SRV2"
    assert set(domain.found(told)) <= set(before) - {"left_settings", "open_queue", "unknown_user"}
    assert not [f for f in told["findings"] if "SRV2" in str(f["ldif"])]
    assert domain.found(domain.check(USER)) == before
