"""The changes that take repairs back."""

from __future__ import annotations

from mqis.protocol.activedirectory.estate.repairing import lost_in, undo_of
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)

ONE, OTHER = "CN=one,DC=corp", "CN=other,DC=corp"


def replaced(name: str, attribute: str, *values: bytes) -> ModifyEntry:
    return ModifyEntry(name, (AttributeChange(ModifyKind.REPLACE, attribute, values),))


def test_the_last_change_is_taken_back_first() -> None:
    before = AddEntry(ONE, (("cn", (b"one",)), ("whenChanged", (b"1",)), ("memberOfBL", (b"x",))))
    repair: list[EntryChange] = [
        AddEntry(OTHER, (("cn", (b"other",)),)),
        replaced(ONE, "cn", b"two"),
        DeleteEntry(ONE),
    ]
    assert list(undo_of(repair, {ONE: before})) == [
        AddEntry(ONE, (("cn", (b"one",)),)),
        replaced(ONE, "cn", b"one"),
        DeleteEntry(OTHER),
    ]


def test_what_was_not_read_cannot_be_taken_back_and_is_told() -> None:
    named = AttributeChange(ModifyKind.DELETE, "cn", (b"old",))
    repair: list[EntryChange] = [
        DeleteEntry(ONE),
        replaced(OTHER, "cn", b"new"),
        ModifyEntry(OTHER, (named,)),
    ]
    added = AttributeChange(ModifyKind.ADD, "cn", (b"old",))
    assert list(undo_of(repair, {})) == [ModifyEntry(OTHER, (added,))]
    assert lost_in(repair, {}) == [ONE, OTHER]
