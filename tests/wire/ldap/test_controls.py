"""Controls: values as the laboratory's domain controller took them, and answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ldap import ber, controls
from mqis.wire.ldap.controls import (
    DirSync,
    DirSyncFlags,
    LdapControl,
    PagedResults,
    SdFlags,
    find_control,
)
from mqis.wire.ldap.requests import TokenStream, frame


@pytest.mark.parametrize(
    ("control", "oid", "value"),
    [
        (controls.sd_flags(SdFlags(7)), "1.2.840.113556.1.4.801", "3003020107"),
        (controls.extended_dn(), "1.2.840.113556.1.4.529", "3003020101"),
        (controls.show_deleted, "1.2.840.113556.1.4.417", None),
        (controls.notification, "1.2.840.113556.1.4.528", None),
        (controls.tree_delete, "1.2.840.113556.1.4.805", None),
        (PagedResults(100, b"c").control(), "1.2.840.113556.1.4.319", "3006020164040163"),
        (
            DirSync(DirSyncFlags.OBJECT_SECURITY, 1, b"c").control(),
            "1.2.840.113556.1.4.841",
            "3009020101020101040163",
        ),
        (
            DirSync(DirSyncFlags.INCREMENTAL_VALUES).control(),
            "1.2.840.113556.1.4.841",
            "300b020480000000 0201000400",
        ),
    ],
)
def test_values(control: LdapControl, oid: str, value: str | None) -> None:
    assert control.oid == oid
    assert control.critical
    assert control.value == (None if value is None else bytes.fromhex(value))


@given(st.integers(0, 1 << 31), st.binary(max_size=120))
def test_answers_read_back(size: int, cookie: bytes) -> None:
    pages, sync = PagedResults(size, cookie), DirSync(size, 0, cookie)
    assert PagedResults.from_bytes(pages.control().value or b"") == pages
    assert DirSync.from_bytes(sync.control().value or b"") == sync
    assert sync.more == (size != 0)


@given(st.binary(max_size=30))
def test_garbage_raises_wire_errors_only(data: bytes) -> None:
    for decode in (PagedResults.from_bytes, DirSync.from_bytes):
        try:
            decode(data)
        except WireError:
            continue


def test_a_cookie_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "MAXIMUM_COOKIE", 3)
    value = ber.sequence(ber.integer(1), ber.octet_string(b"four"))
    with pytest.raises(WireError, match="a cookie of 4 bytes; at most 3 at offset 5"):
        PagedResults.from_bytes(value)


def test_a_control_is_found_by_its_name() -> None:
    found = (LdapControl("1.1", False, b"a"), LdapControl("1.2"))
    assert find_control(found, "1.1") == b"a"
    assert find_control(found, "1.2") is None
    assert find_control(found, "1.3") is None


@given(st.lists(st.binary(max_size=30), max_size=5), st.integers(1, 9))
def test_protected_messages_in_pieces(tokens: list[bytes], step: int) -> None:
    data = b"".join(map(frame, tokens))
    stream = TokenStream()
    found: list[bytes] = []
    for at in range(0, len(data), step):
        found += stream.feed(data[at : at + step])
    assert found == tokens


def test_a_protected_message_has_a_limit() -> None:
    stream = TokenStream(limit=8)
    assert list(stream.feed(frame(b"12345678"))) == [b"12345678"]
    with pytest.raises(WireError, match="a protected message of 9 bytes; at most 8 at offset 12"):
        list(stream.feed(frame(b"123456789")[:4]))
