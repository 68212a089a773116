"""Samba judges our LDIF: its directory takes what our plans write; its checker finds no error."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.protocol.activedirectory.creating import EntryCreation, plan_after_creation, plan_creation
from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.activedirectory.reading import read_properties
from mqis.protocol.activedirectory.steps import PlanFacts
from mqis.protocol.activedirectory.view import EntryView, References
from mqis.protocol.ldap.entry import LdapEntry
from mqis.protocol.security.masks import QueueRights
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, EntryChange
from mqis.wire.ldap.ldif import read_ldif, write_ldif
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE
from tests.interop.samba_domain import load_ldif

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "samba_domain.sh"
MISSING = 3

DOMAIN = DistinguishedName.parse("DC=corp,DC=example")
FOREST = Forest(DOMAIN.child("CN", "Configuration"), DOMAIN, DOMAIN)
COMPUTER = DOMAIN.child("OU", "Berlin, Haus 2").child("CN", "SRV1")
BERLIN, PARIS, MACHINE = (Guid(bytes([n]) * 16) for n in (0x11, 0x22, 0x33))
FACTS = PlanFacts(
    LdapEntry(str(COMPUTER), ()),
    References(
        {
            BERLIN: FOREST.site("Berlin"),
            PARIS: FOREST.site("Paris"),
            MACHINE: COMPUTER.child("CN", "msmq"),
        }
    ),
)
QUEUES = ("orders", "a=b,c+d", "*)(cn=*", "#1", 'q"<x>', "x" * 63, "y" * 64, "z=" * 62)
LABEL = "Aufträge *)(\\"


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A provisioned forest, not served; MQIS_SAMBA_TEMPLATE names one that is there already."""
    place = tmp_path_factory.mktemp("samba")
    template = Path(os.environ.get("MQIS_SAMBA_TEMPLATE", place / "template"))
    if not template.exists():
        done = _run(TOOL, "provision", template)
        if done.returncode == MISSING:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
    assert _run(TOOL, "copy", template, place / "one").returncode == 0
    return place / "one"


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def creation(
    object_type: ObjectType, path: str, id_: Guid, given: dict[int, Value]
) -> EntryCreation:
    return EntryCreation(object_type, path, props(given), identifier=id_, sites_allowed=True)


def estate() -> Iterator[EntryChange]:
    yield AddEntry(str(COMPUTER.parent), (("objectClass", (b"organizationalUnit",)),))
    account = ("sAMAccountName", (b"SRV1$",)), ("userAccountControl", (b"4096",))
    yield AddEntry(str(COMPUTER), (("objectClass", (b"computer",)), *account))
    server: dict[int, Value] = {
        P.QM_SITE_IDS: (BERLIN,), P.QM_SERVICE: 1, P.QM_QUOTA: 0xFFFFFFFF,
        P.QM_SIGN_PKS: UserSignCerts.wrap(b"certificate", BERLIN).to_bytes(),
    }  # fmt: skip
    machine = creation(ObjectType.MACHINE, "SRV1", MACHINE, server)
    everyone = SecurityDescriptor(dacl=Acl((allow(EVERYONE, int(QueueRights.QUEUE_GENERIC_READ)),)))
    queue: dict[int, Value] = {
        P.Q_LABEL: LABEL, P.Q_JOURNAL: 1, P.Q_QUOTA: 7, P.Q_SECURITY: everyone.to_bytes(),
        P.Q_TYPE: PARIS, P.Q_BASEPRIORITY: -5, P.Q_PRIV_LEVEL: 2,
    }  # fmt: skip
    link: dict[int, Value] = {
        P.L_NEIGHBOR1: BERLIN, P.L_NEIGHBOR2: PARIS, P.L_ACTUAL_COST: 3, P.L_GATES: (MACHINE,)
    }  # fmt: skip
    made = [
        creation(ObjectType.SITE, "Berlin", BERLIN, {P.S_INTERVAL1: 5}),
        creation(ObjectType.SITE, "Paris", PARIS, {P.S_FOREIGN: 1}),
        machine,
        *(
            creation(ObjectType.QUEUE, f"SRV1\\{name}", Guid(bytes([0x40 + at]) * 16), queue)
            for at, name in enumerate(QUEUES)
        ),
        creation(ObjectType.ROUTINGLINK, "", Guid(b"L" * 16), link),
    ]
    for each in made:
        yield plan_creation(each, FOREST, FACTS).change
    for step in plan_after_creation(machine, MACHINE, FACTS):
        if not isinstance(step.change, DeleteEntry):  # there are no old settings
            yield step.change


def test_samba_takes_our_ldif(domain: Path) -> None:
    file = domain / "estate.ldif"
    file.write_text("".join(write_ldif(estate())), "utf-8")
    dump = load_ldif(domain, file)
    found = [
        LdapEntry(record.name, record.attributes)
        for record in read_ldif(dump.encode().splitlines(), "samba")
        if isinstance(record, AddEntry)
    ]
    check_what_samba_has(found)
    checked = _run("samba-tool", "dbcheck", "--cross-ncs", "-s", domain / "etc" / "smb.conf")
    assert "(0 errors)" in checked.stdout, checked.stdout + checked.stderr


def check_what_samba_has(found: list[LdapEntry]) -> None:
    queues = [entry for entry in found if entry.is_of("mSMQQueue")]
    wanted = [P.Q_PATHNAME, P.Q_LABEL, P.Q_QUOTA, P.Q_BASEPRIORITY, P.Q_QMID, P.Q_SECURITY]
    read = [
        read_properties(
            EntryView(entry, FOREST, references=FACTS.references), ObjectType.QUEUE, wanted
        )
        for entry in queues
    ]
    assert {row[P.Q_PATHNAME].value for row in read} == {f"srv1\\{name}".lower() for name in QUEUES}
    assert {row[P.Q_LABEL].value for row in read} == {LABEL}
    assert {(row[P.Q_QUOTA].value, row[P.Q_BASEPRIORITY].value) for row in read} == {(7, -5)}
    assert {row[P.Q_QMID].value for row in read} == {MACHINE}
    for row in read:
        descriptor = SecurityDescriptor.from_bytes(row[P.Q_SECURITY].value)  # type: ignore[arg-type]
        assert descriptor.dacl is not None
        assert allow(EVERYONE, int(QueueRights.QUEUE_GENERIC_READ)) in descriptor.dacl.aces
    (machine,) = [entry for entry in found if entry.is_of("mSMQConfiguration")]
    assert machine.values("mSMQQuota") == (b"-1",)
    (link,) = [entry for entry in found if entry.is_of("mSMQSiteLink")]
    view = EntryView(link, FOREST, references=FACTS.references)
    wanted = [P.L_NEIGHBOR1, P.L_GATES, P.L_ACTUAL_COST]
    ends = read_properties(view, ObjectType.ROUTINGLINK, wanted)
    assert [ends[p].value for p in wanted] == [BERLIN, (MACHINE,), 3]
    (settings,) = [entry for entry in found if entry.is_of("mSMQSettings")]
    assert settings.values("mSMQQMID") == (MACHINE.raw,)
