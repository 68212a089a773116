"""Attributes in ranges: collected in order, and nothing believed."""

from __future__ import annotations

import pytest

from mqis.protocol.ldap import ranges
from mqis.protocol.ldap.errors import LdapViolation
from mqis.protocol.ldap.ranges import RangedEntry, ValueRange, has_ranges
from mqis.wire.ldap.responses import SearchEntry


def entry(*rows: tuple[str, list[bytes]]) -> SearchEntry:
    return SearchEntry("CN=a", tuple((name, tuple(values)) for name, values in rows))


def test_names_with_ranges() -> None:
    assert ValueRange.parse("member;range=0-1499") == ValueRange("member", 0, 1499)
    assert ValueRange.parse("Member;Range=1500-*") == ValueRange("Member", 1500, None)
    assert ValueRange.parse("member") is None
    assert ValueRange.parse("member;range=x") is None
    assert ValueRange("member", 0, 1499).next == "member;range=1500-*"
    assert ValueRange("member", 0, None).next is None


def test_parts_are_put_together() -> None:
    whole = RangedEntry(
        entry(("cn", [b"a"]), ("m;range=0-1", [b"0", b"1"]), ("n;range=0-*", [b"n"]))
    )
    assert list(whole.missing) == ["m;range=2-*"]
    whole.add(entry(("M;range=2-3", [b"2", b"3"]), ("other", [b"x"]), ("n;range=0-*", [b"y"])))
    assert list(whole.missing) == ["m;range=4-*"]
    whole.add(entry(("m;range=4-*", [b"4"])))
    assert not whole.missing
    found = whole.entry()
    assert found.values("cn") == (b"a",)
    assert found.values("n") == (b"n",)
    assert found.values("m") == (b"0", b"1", b"2", b"3", b"4")
    assert not has_ranges(found)


def test_a_part_that_is_gone_has_no_more_values() -> None:
    whole = RangedEntry(entry(("m;range=0-1", [b"0", b"1"])))
    whole.add(entry())
    assert not whole.missing
    assert whole.entry().values("m") == (b"0", b"1")


@pytest.mark.parametrize("name", ["m;range=0-1", "m;range=3-*", "m;range=2-1"])
def test_a_part_that_was_not_asked_for_is_refused(name: str) -> None:
    whole = RangedEntry(entry(("m;range=0-1", [b"0", b"1"])))
    with pytest.raises(LdapViolation, match="CN=a: the server sends values"):
        whole.add(entry((name, [b"2"])))


def test_the_number_of_values_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "MAXIMUM_VALUES", 3)
    whole = RangedEntry(entry(("m;range=0-1", [b"0", b"1"])))
    with pytest.raises(LdapViolation, match="m has too many values"):
        whole.add(entry(("m;range=2-*", [b"2", b"3"])))
