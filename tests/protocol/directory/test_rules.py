"""Properties that a server without Active Directory treats differently from the text."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.types.catalogue import STORED_AS, ids_where
from mqis.protocol.directory.types.row_columns import WriteRule
from mqis.protocol.directory.write_mapping import on_create, on_update
from mqis.wire.mqds.propid import PropId

APPLY, IGNORE = WriteRule.APPLY, WriteRule.IGNORE


@pytest.mark.departs("MQDS-3.1.4.21.8.2-01", "MQDS-3.1.4.21.8.2-02", "MQDS-3.1.4.21.8.2-09")
def test_updates_that_the_text_leaves_to_active_directory() -> None:
    effects = {116: IGNORE, 207: APPLY, 210: APPLY, 211: IGNORE}
    assert {propid: on_update(propid) for propid in effects} == effects


@pytest.mark.departs("MQDS-3.1.4.21.8.3-04", "MQDS-3.1.4.21.8.3-05", "MQDS-3.1.4.21.8.3-11")
def test_creates_that_the_text_leaves_to_active_directory() -> None:
    effects = {116: IGNORE, 206: APPLY, 207: APPLY, 222: APPLY, 304: APPLY}
    assert {propid: on_create(propid) for propid in effects} == effects


def test_238_and_701_are_taken_although_no_table_lists_them() -> None:
    assert on_update(PropId.QM_ENCRYPT_PKS) is APPLY
    assert on_create(PropId.QM_ENCRYPT_PKS) is APPLY
    assert on_create(PropId.U_SID) is APPLY
    assert on_update(PropId.U_SID) is WriteRule.UNLISTED


def test_fillers_are_reserved() -> None:
    """Values that peers fill at random must not make two copies of an object differ (E68)."""
    assert {118, 119, 212, 605, 606, *range(610, 616)} <= ids_where(lambda row: row.reserved)


def test_a_property_is_stored_under_one_number() -> None:
    assert {int(alias): int(stored) for alias, stored in STORED_AS.items()} == {
        234: 1201,
        803: 812,
        1102: 1101,
        1202: 239,
        1203: 238,
    }
