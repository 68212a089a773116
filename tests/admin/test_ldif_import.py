"""LDIF files as ldapsearch and ldifde write them, into a store: all of them, or nothing."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.admin.activedirectory.ldif import NO_COMPUTER, NO_ENTERPRISE, import_ldif, is_ldif
from mqis.admin.activedirectory.taking import (
    UNKNOWN_GATE,
    UNKNOWN_SITE,
    WITHOUT_DESCRIPTOR,
    WITHOUT_SITE,
    EstateResult,
)
from mqis.config.stores import open_store
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.wire.guid import Guid
from mqis.wire.ldap.ldif import MAXIMUM_LINE, LdifError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

BERLIN, PARIS, SRV1, ORDERS, LINK, ROOT = (Guid(bytes([n]) * 16) for n in range(1, 7))
CONFIGURATION = "CN=Configuration,DC=corp,DC=example"
SERVICES = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"


def octets(guid: Guid) -> str:
    return base64.b64encode(guid.raw).decode()


def entry(name: str, ldap_class: str, guid: Guid, *lines: str) -> str:
    head = [f"dn: {name}", "objectClass: top", f"objectClass: {ldap_class}"]
    return "\n".join([*head, f"objectGUID:: {octets(guid)}", *lines, "", ""])


def site(name: str, guid: Guid) -> str:
    return entry(f"CN={name},CN=Sites,{CONFIGURATION}", "site", guid, f"cn: {name}")


def machine(name: str, guid: Guid, *lines: str) -> str:
    where = f"CN=msmq,CN={name},OU=Berlin\\, Haus 2,DC=corp,DC=example"
    return entry(where, "mSMQConfiguration", guid, *lines)


def queue(name: str, guid: Guid, *lines: str, computer: str = "SRV1") -> str:
    where = f"CN={name},CN=msmq,CN={computer},OU=Berlin\\, Haus 2,DC=corp,DC=example"
    return entry(where, "mSMQQueue", guid, *lines)


COMPUTER = (
    "dn: CN=SRV1,OU=Berlin\\, Haus 2,DC=corp,DC=example\n"
    "objectClass: user\nobjectClass: computer\n\n"
)
WHOLE = [
    queue("orders", ORDERS, "mSMQLabelEx: Orders of\n  the week", "mSMQJournal: TRUE"),
    machine("SRV1", SRV1, f"mSMQSites:: {octets(BERLIN)}", "mSMQRoutingServices: TRUE"),
    COMPUTER,
    entry(
        f"CN={BERLIN.big_endian.hex()}{PARIS.big_endian.hex()},{SERVICES}",
        "mSMQSiteLink",
        LINK,
        f"mSMQSite1: CN=Berlin,CN=Sites,{CONFIGURATION}",
        f"mSMQSite2: CN=Paris,CN=Sites,{CONFIGURATION}",
        "mSMQCost: 3",
        "mSMQSiteGates: CN=msmq,CN=SRV1,OU=Berlin\\2C Haus 2,DC=corp,DC=example",
    ),
    site("Berlin", BERLIN),
    site("Paris", PARIS),
    entry(SERVICES, "mSMQEnterpriseSettings", ROOT, "mSMQLongLived: 7200"),
    "dn: OU=Berlin\\, Haus 2,DC=corp,DC=example\nobjectClass: organizationalUnit\n\n",
]


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store("memory:")) as opened:
        yield opened


@pytest.fixture
def take(store: Store, tmp_path: Path) -> Callable[[str | bytes], EstateResult]:
    def taken(text: str | bytes) -> EstateResult:
        path = tmp_path / "estate.ldif"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return import_ldif(store, [path])

    return taken


Take = Callable[[str | bytes], EstateResult]


def told(result: EstateResult) -> dict[str, int]:
    return {note.what: note.count for note in result.notes}


def is_empty(store: Store) -> bool:
    with store.read() as view:
        return not view.partitions() and not any(view.count(kind) for kind in ObjectType)


# --- what is read ---------------------------------------------------------------------------------


def test_entries_in_any_order_become_objects(take: Take, store: Store) -> None:
    result = take("version: 1\n\n# a comment\n" + "".join(WHOLE))
    assert dict(result.imported.objects) == {
        ObjectType.ENTERPRISE: 1, ObjectType.SITE: 2, ObjectType.CN: 2, ObjectType.ROUTINGLINK: 1,
        ObjectType.MACHINE: 1, ObjectType.QUEUE: 1,
    }  # fmt: skip
    assert told(result) == {WITHOUT_DESCRIPTOR: 5}
    with store.read() as view:
        root = enterprise(view)
        assert root is not None
        assert root.id == ROOT
        assert root.path == "DC=corp,DC=example"
        assert root.value(P.E_LONG_LIVE) == 7200
        found = view.get(ObjectType.QUEUE, ORDERS)
        assert found is not None
        assert found.path == "srv1\\orders"
        assert found.partition == BERLIN
        assert found.value(P.Q_LABEL) == "Orders of the week"
        assert found.value(P.Q_JOURNAL) == 1
        assert found.value(P.Q_QMID) == SRV1
        assert P.Q_CREATE_TIME not in found.properties
        link = view.get(ObjectType.ROUTINGLINK, LINK)
        assert link is not None
        assert link.value(P.L_GATES) == (SRV1,)
        berlin, paris = (view.get(ObjectType.SITE, guid) for guid in (BERLIN, PARIS))
        assert berlin is not None
        assert berlin.value(P.S_GATES) == (SRV1,)
        assert paris is not None
        assert paris.value(P.S_GATES) == ()
    assert store.check() == []


def test_windows_line_ends_and_a_mark_of_utf8(take: Take) -> None:
    text = "".join(WHOLE).replace("\n", "\r\n").encode()
    assert take(b"\xef\xbb\xbf" + text).imported.objects[ObjectType.QUEUE] == 1


def test_the_end_that_ldapsearch_writes(take: Take) -> None:
    end = "# search result\nsearch: 2\nresult: 0 Success\n\n# numResponses: 9\n"
    reference = f"# search reference\nref: ldap://corp.example/{CONFIGURATION}\n\n"
    assert take("".join(WHOLE) + reference + end).imported.objects[ObjectType.SITE] == 2


def test_several_files_are_one_estate(store: Store, tmp_path: Path) -> None:
    paths = [tmp_path / "domain.ldif", tmp_path / "configuration.ldif"]
    paths[0].write_text("".join(WHOLE[:3]))
    paths[1].write_text("version: 1\n\n" + "".join(WHOLE[3:]))
    seen: list[tuple[int, int]] = []
    result = import_ldif(store, paths, lambda done, total: seen.append((done, total)))
    assert sum(result.imported.objects.values()) == 8
    total = sum(path.stat().st_size for path in paths)
    assert seen[-1] == (total, total)


def test_files_are_known_by_name_or_first_line(tmp_path: Path) -> None:
    for name, text in (("a.ldif", ""), ("b.LDF", ""), ("c", "dn: x"), ("d.txt", "version: 1")):
        (tmp_path / name).write_text(text)
        assert is_ldif(tmp_path / name)
    (tmp_path / "e.jsonl").write_text("{}")
    assert not is_ldif(tmp_path / "e.jsonl")
    assert not is_ldif(tmp_path / "missing")


# --- what is told ---------------------------------------------------------------------------------


def test_missing_entries_are_told(take: Take, store: Store) -> None:
    nowhere = machine("SRV2", Guid(b"2" * 16))
    strange = machine("SRV3", Guid(b"3" * 16), f"mSMQSites:: {octets(LINK)}")
    gateless = WHOLE[3].replace("CN=SRV1", "CN=GONE")
    lost = queue("lost", Guid(b"4" * 16), computer="SRV9")
    without_guid = queue("x", ORDERS).replace("objectGUID::", "objectSid::")
    result = take("".join([nowhere, strange, gateless, lost, without_guid, *WHOLE[4:6]]))
    notes = told(result)
    assert notes[NO_ENTERPRISE] == notes[WITHOUT_SITE] == notes[UNKNOWN_SITE] == 1
    assert notes[UNKNOWN_GATE] == 1
    assert notes[NO_COMPUTER] == 2
    left_out = [note for note in result.notes if note.what.startswith("left out")]
    assert len(left_out) == 2
    assert any("was read without its objectGUID" in str(note) for note in left_out)
    assert any("no machine 'srv9' for queue 'srv9\\\\lost'" in str(note) for note in left_out)
    with store.read() as view:
        assert view.count(ObjectType.MACHINE) == 2
        assert view.count(ObjectType.QUEUE) == 0


def test_a_link_to_a_deleted_site_is_left_out(take: Take) -> None:
    result = take("".join(WHOLE[3:5]))
    assert ObjectType.ROUTINGLINK not in result.imported.objects
    assert any("mSMQSite2 names no entry that exists" in note.what for note in result.notes)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mSMQJournal:: Zm9v!", "line 18: |the value of mSMQJournal is not base64"),
        (f"mSMQLabelEx: {'x' * (MAXIMUM_LINE + 1)}", "line 18: |the line is longer than"),
        ("mSMQLabelEx:< file:///etc/passwd", "line 18: |stands elsewhere (':<')"),
        ("no colon here", "line 18: |neither 'attribute: value'"),
        ("objectClass: mSMQTopic", "line 14: |'msmqtopic' is no class of MS-MQDSSM"),
    ],
)
def test_a_wrong_line_imports_nothing(
    take: Take, store: Store, tmp_path: Path, text: str, place: str
) -> None:
    broken = (
        f"dn: CN=q,CN=msmq,CN=SRV1,DC=corp,DC=example\nobjectClass: top\ncn: q\nname: q\n{text}\n"
    )
    before = "".join((WHOLE[1], WHOLE[4]))
    assert before.count("\n") == 13
    with pytest.raises(LdifError) as caught:
        take(before + broken)
    line, _, reason = place.partition("|")
    assert str(caught.value).startswith(f"{tmp_path}/estate.ldif, {line}")
    assert reason in str(caught.value)
    assert is_empty(store)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dn: CN=a\ncn: a\n", "objectClass: is missing"),
        ("dn: CN=a,,\nobjectClass: mSMQQueue\n", "attribute name is missing"),
        ("dn: CN=a\nchangetype: delete\n", "a change, not an entry"),
        ("search: 2\nresult: 4 Size limit exceeded\n", "was cut off: 4 Size limit exceeded"),
        ("\xff\xfed\x00n\x00", "the file is UTF-16"),
    ],
)
def test_a_wrong_file_is_refused(take: Take, store: Store, text: str, reason: str) -> None:
    with pytest.raises(LdifError) as caught:
        take(text.encode("latin-1"))
    assert reason in str(caught.value)
    assert is_empty(store)


def test_another_enterprise_is_refused(take: Take, store: Store) -> None:
    take("".join(WHOLE))
    with store.read() as view:
        before = {kind: view.count(kind) for kind in ObjectType}
    with pytest.raises(Exception, match="is not 'DC=corp,DC=example'"):
        take("".join(WHOLE).replace("DC=corp", "DC=other"))
    with store.read() as view:
        assert before == {kind: view.count(kind) for kind in ObjectType}


def test_an_unreadable_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"missing\.ldif: cannot be read: No such file"):
        import_ldif(store, [tmp_path / "missing.ldif"])
