"""The two profiles: where a server without Active Directory differs from the text."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.rules import Profile, on_create, on_update
from mqis.protocol.directory.types.catalogue import STORED_AS, ids_where
from mqis.protocol.directory.types.columns import WriteRule
from mqis.wire.mqds.propid import PropId

APPLY, IGNORE, INVALID = WriteRule.APPLY, WriteRule.IGNORE, WriteRule.INVALID


@pytest.mark.req("MQDS-3.1.4.21.8.2-01", "MQDS-3.1.4.21.8.2-02", "MQDS-3.1.4.21.8.2-09")
def test_updates_differ_in_these_alone() -> None:
    differing = {
        int(p): (on_update(p, Profile.STANDARD), on_update(p, Profile.OWN_STORE))
        for p in PropId
        if on_update(p, Profile.STANDARD) is not on_update(p, Profile.OWN_STORE)
    }
    assert differing == {
        116: (APPLY, IGNORE),
        207: (IGNORE, APPLY),
        210: (INVALID, APPLY),
        211: (APPLY, IGNORE),
    }


@pytest.mark.req("MQDS-3.1.4.21.8.3-04", "MQDS-3.1.4.21.8.3-05", "MQDS-3.1.4.21.8.3-11")
def test_creates_differ_in_these_alone() -> None:
    differing = {
        int(p): (on_create(p, Profile.STANDARD), on_create(p, Profile.OWN_STORE))
        for p in PropId
        if on_create(p, Profile.STANDARD) is not on_create(p, Profile.OWN_STORE)
    }
    assert differing == {
        116: (APPLY, IGNORE),
        206: (IGNORE, APPLY),
        207: (IGNORE, APPLY),
        222: (INVALID, APPLY),
        304: (IGNORE, APPLY),
    }


@pytest.mark.parametrize("profile", Profile)
def test_238_and_701_are_taken_although_no_table_lists_them(profile: Profile) -> None:
    assert on_update(PropId.QM_ENCRYPT_PKS, profile) is APPLY
    assert on_create(PropId.QM_ENCRYPT_PKS, profile) is APPLY
    assert on_create(PropId.U_SID, profile) is APPLY
    assert on_update(PropId.U_SID, profile) is WriteRule.UNLISTED


def test_fillers_are_reserved() -> None:
    """What peers fill with anything must not make two copies of an object differ (E68)."""
    assert {118, 119, 212, 605, 606, *range(610, 616)} <= ids_where(lambda row: row.reserved)


def test_a_property_is_stored_under_one_number() -> None:
    assert {int(alias): int(stored) for alias, stored in STORED_AS.items()} == {
        234: 1201,
        803: 812,
        1102: 1101,
        1202: 239,
        1203: 238,
    }
