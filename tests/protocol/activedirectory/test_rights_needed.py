"""The right that an account needs for a change, in the words of the log."""

from __future__ import annotations

import pytest

from mqis.protocol.activedirectory.steps import needed_right
from mqis.wire.ldap.changes import (
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)

NAME = "CN=q,CN=msmq,CN=app1,DC=corp"


def modified(*attributes: str) -> ModifyEntry:
    changes = (AttributeChange(ModifyKind.REPLACE, name, (b"1",)) for name in attributes)
    return ModifyEntry(NAME, tuple(changes))


@pytest.mark.parametrize(
    ("change", "right"),
    [
        (modified("mSMQLabel", "mSMQQuota"), "to write mSMQLabel, mSMQQuota"),
        (modified("nTSecurityDescriptor"), "to change permissions (WRITE_DAC, WRITE_OWNER)"),
        (DeleteEntry(NAME), "to delete this entry"),
        (DeleteEntry(NAME, tree=True), "to delete this entry with all below it"),
        (RenameEntry(NAME, "CN=p"), "to rename this entry"),
    ],
)
def test_the_right_is_told(change: EntryChange, right: str) -> None:
    assert needed_right(change) == right
