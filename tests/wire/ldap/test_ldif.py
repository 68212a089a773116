"""LDIF: written and read back, and files that are wrong: file, line, reason."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ldap import ldif
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)
from mqis.wire.ldap.ldif import LdifError, numbered_records, read_ldif, write_ldif

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=90)
VALUES = st.lists(st.binary(max_size=200), min_size=1, max_size=3).map(tuple)
ROWS = st.dictionaries(st.sampled_from(["cn", "mSMQLabelEx", "objectClass"]), VALUES, min_size=1)
RECORDS: st.SearchStrategy[EntryChange] = st.one_of(
    st.builds(AddEntry, TEXT, ROWS.map(lambda rows: tuple(rows.items()))),
    st.builds(DeleteEntry, TEXT),
    st.builds(
        ModifyEntry,
        TEXT,
        st.lists(
            st.builds(
                AttributeChange,
                st.sampled_from(ModifyKind),
                st.sampled_from(["cn", "mSMQCost"]),
                st.lists(st.binary(max_size=90), max_size=2).map(tuple),
            ),
            max_size=3,
        ).map(tuple),
    ),
)


def read(text: str | bytes) -> list[EntryChange]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_ldif(data.splitlines(keepends=True), "estate.ldif"))


def written(records: Iterable[EntryChange]) -> str:
    return "".join(write_ldif(records))


@given(st.lists(RECORDS, max_size=4))
def test_written_and_read_back_is_the_same(records: list[EntryChange]) -> None:
    text = written(records)
    assert list(read_ldif(text.encode().split(b"\n"), "x")) == records
    assert all(len(line) <= 76 and line.isascii() for line in text.split("\n"))


@given(st.lists(st.sampled_from([
    b"\xff", b"dn: a", b"dn:: YQ==",
    b"dn:: !", b"", b" x", b"-", b"add: cn", b"cn: x", b"cn:< file:///x",
    b"changetype: modify", b"changetype: add", b"changetype: delete", b"version: 1", b"# c",
]), max_size=12))  # fmt: skip
def test_garbage_is_one_error_or_records(lines: list[bytes]) -> None:
    try:
        records = list(read_ldif(lines, "x"))
    except LdifError:
        return
    assert list(read_ldif(written(records).encode().split(b"\n"), "x")) == records


def test_content_records_comments_and_continuations() -> None:
    text = (
        "\ufeffversion: 1\r\n# a comment\n  that goes on\ndn: CN=a,\n DC=x\nobjectClass: top\n"
        "cn:: YQ==\nOBJECTCLASS: site\n\n\ndn: CN=b,DC=x\nchangetype: delete\n"
    )
    assert read(text) == [
        AddEntry("CN=a,DC=x", (("objectClass", (b"top", b"site")), ("cn", (b"a",)))),
        DeleteEntry("CN=b,DC=x"),
    ]
    assert read("version: 1\n") == []
    assert read(written([])) == []


def test_values_of_an_entry() -> None:
    entry = AddEntry("CN=a", (("cn", (b"a",)), ("CN", (b"b",))))
    assert entry.values("Cn") == (b"a", b"b")
    assert entry.values("sn") == ()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("dn: a\ncn:: YQ=\n", 2, "not base64"),
        ("dn: a\ncn:< file:///etc/passwd\n", 2, "stands elsewhere"),
        ("dn: a\nno colon\n", 2, "neither"),
        (" x\n", 1, "continues nothing"),
        ("version: 2\n\ndn: a\n", 1, "version 2"),
        ("cn: a\n", 1, "begins with 'dn:'"),
        ("version: 1\n\nversion: 1\n", 3, "begins with 'dn:'"),
        ("dn: a\n", 1, "without attributes"),
        ("dn: a\nchangetype: modrdn\nnewrdn: cn=b\n", 2, "none of add"),
        ("dn: a\ncontrol: 1.2.3 true\nchangetype: delete\n", 2, "controls"),
        ("dn: a\nchangetype: delete\ncn: b\n", 3, "no attributes"),
        ("dn: a\nchangetype: modify\nincrement: b\n", 3, "none of add, delete"),
        ("dn: a\nchangetype: modify\nadd: b\nc: d\n", 4, "a value of c"),
        ("dn: a\ncn: b\n-\n", 3, "modification only"),
        (b"dn: \xff\ncn: b\n", 1, "not UTF-8"),
    ],
)
def test_wrong_files(text: str | bytes, line: int, reason: str) -> None:
    with pytest.raises(LdifError) as caught:
        read(text)
    assert str(caught.value).startswith(f"estate.ldif, line {line}: ")
    assert reason in str(caught.value)
    assert isinstance(caught.value, WireError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldif, "MAXIMUM_LINE", 50)
    with pytest.raises(LdifError, match="line 2: the line is longer than 50"):
        read("dn: a\ncn: " + "x" * 50)
    with pytest.raises(LdifError, match="line 4: the line is longer than 50"):
        read("dn: a\ncn: " + "x" * 30 + "\n " + "x" * 15 + "\n xxx")
    monkeypatch.setattr(ldif, "MAXIMUM_RECORD", 20)
    assert len(read("dn: a\ncn: xxxx\ncn: xxx\n\n" * 2)) == 2  # 20 octets each
    with pytest.raises(LdifError, match="line 3: the record is too large"):
        read("dn: a\ncn: xxxx\ncn: xxxxxxxxx\n")


def test_an_attribute_cannot_carry_a_line() -> None:
    with pytest.raises(ValueError, match="not the name"):
        written([AddEntry("a", (("cn: x\ndn", (b"b",)),))])


def test_the_version_line_can_be_left_out() -> None:
    record = DeleteEntry("CN=a")
    assert "".join(write_ldif([record], version=False)) == "\ndn: CN=a\nchangetype: delete\n"


def test_records_come_with_their_first_line() -> None:
    text = b"# c\n\ndn: CN=a\ncn: a\n\n\ndn: CN=b\ncn: b\n"
    found = numbered_records(text.splitlines(keepends=True), "x")
    assert [line for line, _ in found] == [3, 7]


def test_the_remarks_of_ldapsearch_are_no_records() -> None:
    remarks = "ref: ldap://corp.example/DC=x\n\nsearch: 2\nresult: 0 Success\n\n"
    assert read("dn: CN=a\ncn: a\n\n" + remarks) == [AddEntry("CN=a", (("cn", (b"a",)),))]
    with pytest.raises(LdifError, match="line 2: the search that wrote this file was cut off: 4 S"):
        read("search: 2\nresult: 4 Size limit exceeded\n")


def test_utf16_is_refused() -> None:
    with pytest.raises(LdifError, match="line 1: the file is UTF-16"):
        read("\ufeffdn: CN=a".encode("utf-16-be"))
