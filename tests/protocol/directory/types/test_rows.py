"""The rows of the object types against the specification's tables, and against each other."""

from __future__ import annotations

import csv
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from mqis.protocol.directory.objects import Scope
from mqis.protocol.directory.types import (
    deletion,
    enterprise,
    link,
    machine,
    network,
    queue,
    site,
    user,
)
from mqis.protocol.directory.types.catalogue import (
    COMPUTED,
    DEFAULTS,
    EXTENDED,
    ROWS,
    STORED_AS,
    by_role,
    by_type,
    ids_where,
)
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import PropertyRole, Takes, ValueMeaning, WriteRule
from mqis.protocol.directory.types.value_checks import check_of, refusal_of
from mqis.protocol.directory.write_mapping import on_create, on_update
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType

SPEC = Path(__file__).parents[4] / "docs" / "spec"
MODULES = {
    ObjectType.QUEUE: queue,
    ObjectType.MACHINE: machine,
    ObjectType.SITE: site,
    ObjectType.DELETEDOBJECT: deletion,
    ObjectType.CN: network,
    ObjectType.ENTERPRISE: enterprise,
    ObjectType.USER: user,
    ObjectType.ROUTINGLINK: link,
}

Line = dict[str, str]
every_row = pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.id.name)


def table(name: str) -> list[Line]:
    with (SPEC / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


MQDS = {int(line["propid"]): line for line in table("mqds-properties.csv")}
MQDSRP = {int(line["propid"]): line for line in table("mqdsrp-propids.csv")}


# --- one row for each property --------------------------------------------------------------------


def test_every_property_has_one_row() -> None:
    listed = [row.id for module in MODULES.values() for row in module.ROWS]
    assert sorted(listed) == sorted(PROPERTIES) == sorted(MQDS)
    assert list(ROWS) == sorted(PROPERTIES)


@pytest.mark.parametrize("object_type", MODULES)
def test_a_module_has_the_properties_of_one_type(object_type: ObjectType) -> None:
    rows = MODULES[object_type].ROWS
    assert {row.object_type for row in rows} == {object_type}
    assert [row.id for row in rows] == sorted(row.id for row in rows)


def test_what_a_property_allows_has_no_default() -> None:
    """Whoever adds a property decides who may write it."""
    decided = {column.name for column in fields(PropertyRow) if column.default is MISSING}
    assert decided == {"id", "create", "update", "takes"}


# --- the tables of MS-MQDS 3.1.4.21.8 -------------------------------------------------------------


def update_rule(line: Line) -> WriteRule:
    text = line["set_rule"]
    if line["settable_setprops"] == "y":
        return WriteRule.APPLY
    if text.startswith("invalid") or "reject" in text:
        return WriteRule.INVALID
    if text.startswith(("accepted, ignored", "may be unused")):
        return WriteRule.IGNORE
    return WriteRule.UNLISTED


def create_rule(line: Line) -> WriteRule:
    text = line["create_rule"]
    if line["settable_create"] == "y":
        return WriteRule.APPLY
    if text.startswith("invalid"):
        return WriteRule.INVALID
    if text.startswith("update rule"):
        return update_rule(line)
    return WriteRule.IGNORE


def default(line: Line) -> Value:
    """The default; None where the table gives none or the server's own."""
    text, vt = line["default_at_create"], line["variant_type"]
    number = re.match(r"0x[0-9A-Fa-f]+", text)
    if number:
        return int(number[0], 16)
    if text == "null GUID":
        return Guid.NULL
    if text.startswith("empty"):
        empty: dict[str, Value] = {"VT_LPWSTR": "", "VT_BLOB": b"", "VT_CLSID|VT_VECTOR": ()}
        return empty[vt]
    if text.startswith("Enterprise") or text == "IP":
        return 1  # MQDS_ENTERPRISESCOPE, IP_ADDRESS_TYPE
    if text.startswith("Microsoft"):
        return text.removesuffix(" (MQMQ)")
    return None


#: Rows that differ from the text. Each row says why.
READABLE_ANYWAY = {PropId.CN_PROTOCOLID}
#: Effects of a create and of an update here, where they are others than in the text: this server
#: has no Active Directory that would supply the value or decide (docs/errata.md).
CREATE = {
    PropId.QM_ENCRYPT_PKS: WriteRule.APPLY,
    PropId.QM_ADDRESS: WriteRule.APPLY,
    PropId.QM_CNS: WriteRule.APPLY,
    PropId.QM_SITE_IDS: WriteRule.APPLY,
    PropId.S_PSC: WriteRule.APPLY,
    PropId.Q_PARTITIONID: WriteRule.IGNORE,
}
UPDATE = {
    PropId.QM_ENCRYPT_PKS: WriteRule.APPLY,
    PropId.QM_CNS: WriteRule.APPLY,
    PropId.QM_SERVICE: WriteRule.APPLY,
    PropId.Q_PARTITIONID: WriteRule.IGNORE,
    PropId.QM_PARTITIONID: WriteRule.IGNORE,
}


@every_row
def test_reading_and_writing_are_those_of_the_text(row: PropertyRow) -> None:
    line = MQDS[row.id]
    assert row.readable == (line["readable"] == "y" or row.id in READABLE_ANYWAY)
    assert row.default == default(line)
    assert on_update(row.id) is UPDATE.get(row.id, update_rule(line))
    assert on_create(row.id) is CREATE.get(row.id, create_rule(line))


def test_a_departure_from_the_text_is_one() -> None:
    assert all(MQDS[propid]["readable"] == "n" for propid in READABLE_ANYWAY)
    assert all(update_rule(MQDS[propid]) is not rule for propid, rule in UPDATE.items())
    assert all(create_rule(MQDS[propid]) is not rule for propid, rule in CREATE.items())


@pytest.mark.parametrize(
    ("number", "update", "create", "value"),
    [
        (101, "invalid", "ignore", None),
        (103, "ignore", "ignore", None),
        (105, "apply", "apply", 0xFFFFFFFF),
        (113, "apply", "apply", 0),
        (112, "apply", "apply", 1),
        (114, "apply", "apply", 1),
        (117, "ignore", "ignore", None),
        (118, "unlisted", "ignore", None),
        (218, "invalid", "invalid", None),
        (227, "unlisted", "apply", 0),
        (233, "ignore", "ignore", None),
        (1203, "invalid", "apply", b""),
        (1301, "unlisted", "invalid", None),
    ],
)
def test_spot(number: int, update: str, create: str, value: object) -> None:
    row = ROWS[number]
    assert (row.update, row.create) == (WriteRule(update), WriteRule(create))
    assert row.default == value


# --- roles ----------------------------------------------------------------------------------------

ROLES = {
    "identity": PropertyRole.IDENTIFIER,
    "name": PropertyRole.NAME,
    "partition": PropertyRole.PARTITION,
    "sequence": PropertyRole.SEQUENCE,
}


@pytest.mark.parametrize("role", PropertyRole)
def test_a_type_has_a_role_once(role: PropertyRole) -> None:
    having = [row.object_type for row in ROWS.values() if row.role is role]
    assert having
    assert len(having) == len(set(having))
    assert by_role(role) == {row.object_type: row.id for row in ROWS.values() if row.role is role}


def test_roles_are_those_of_replication() -> None:
    """Tombstones have their identity outside of objects: they are no objects themselves."""
    expected = {
        propid: ROLES[line["role"]]
        for propid, line in MQDSRP.items()
        if line["role"] in ROLES and line["object_type"] != "MQDS_DELETEDOBJECT"
    }
    assert len(expected) == 7 * 3 + 5
    found = {row.id: row.role for row in ROWS.values() if row.role in ROLES.values()}
    assert found == expected


def test_fillers_are_those_of_replication() -> None:
    expected = {propid for propid, line in MQDSRP.items() if line["role"] == "filler"}
    assert len(expected) == 11
    assert ids_where(lambda row: row.filler) == expected


def test_what_travels_is_in_the_list_of_replication() -> None:
    travelling = ids_where(lambda row: row.replicated > 0)
    assert travelling <= MQDSRP.keys()
    assert {p for p in travelling if ROWS[p].readable} >= {PropId.Q_LABEL, PropId.QM_SITE_ID}


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        lambda row: row.replicated,
        lambda row: row.notified.created,
        lambda row: row.notified.changed,
        lambda row: row.notified.always,
    ],
    ids=["replicated", "created", "changed", "always"],
)
def test_places_count_from_one_without_gaps(place: Any) -> None:
    listed = by_type(place)
    assert listed
    for ids in listed.values():
        assert [place(ROWS[propid]) for propid in ids] == list(range(1, len(ids) + 1))


def test_notifications_are_about_queues_and_machines() -> None:
    assert by_type(lambda row: row.notified.created).keys() == {ObjectType.QUEUE}
    both = {ObjectType.QUEUE, ObjectType.MACHINE}
    assert by_type(lambda row: row.notified.changed).keys() == both
    assert by_type(lambda row: row.notified.always).keys() == both


# --- values ---------------------------------------------------------------------------------------

TYPES: dict[ValueMeaning, set[VarType]] = {
    ValueMeaning.FLAG: {VarType.UI1, VarType.UI2},
    ValueMeaning.WORD: {VarType.UI1, VarType.UI4},
    ValueMeaning.TIME: {VarType.I4},
    ValueMeaning.QUOTA: {VarType.UI4},
    ValueMeaning.SERVICE: {VarType.UI4},
    ValueMeaning.DESCRIPTOR: {VarType.BLOB},
    ValueMeaning.SID: {VarType.BLOB},
    ValueMeaning.KEYS: {VarType.BLOB},
    ValueMeaning.CERTIFICATES: {VarType.BLOB},
    ValueMeaning.ADDRESSES: {VarType.BLOB},
    ValueMeaning.SEQUENCE: {VarType.BLOB},
}

#: MS-MQDS 3.1.4.21.8, written out once more.
WORDS = {
    PropId.Q_PRIV_LEVEL: {0: "none", 1: "optional", 2: "body"},
    PropId.Q_SCOPE: {0: "site", 1: "enterprise"},
    PropId.CN_PROTOCOLID: {1: "IP", 3: "IPX", 5: "foreign"},
    PropId.QM_OS: {
        0x000: "unknown",
        0x100: "foreign",
        0x200: "Windows 95",
        0x300: "Windows client",
        0x400: "Windows server",
        0x500: "Windows enterprise server",
    },
}


@every_row
def test_the_meaning_suits_the_variant_type(row: PropertyRow) -> None:
    assert row.vt in TYPES.get(row.meaning, set(VarType))
    assert (row.words is not None) == (row.meaning is ValueMeaning.WORD)
    assert row.words == WORDS.get(row.id)
    if row.refers_to is not None:
        assert row.vt in (VarType.CLSID, VarType.VECTOR_CLSID)
    for role, meaning in (
        (PropertyRole.SECURITY, ValueMeaning.DESCRIPTOR),
        (PropertyRole.SEQUENCE, ValueMeaning.SEQUENCE),
        (PropertyRole.CREATE_TIME, ValueMeaning.TIME),
        (PropertyRole.MODIFY_TIME, ValueMeaning.TIME),
    ):
        assert row.role is not role or row.meaning is meaning


@every_row
def test_a_default_passes_its_own_check(row: PropertyRow) -> None:
    for value in (row.default, row.unset):
        if value is not None:
            assert PropVariant(row.vt, value) == row.variant(value)
            check = check_of(row)
            assert check is None or check(value) == value
    assert (row.id in DEFAULTS) == (row.default is not None)


def test_refusals() -> None:
    """Three codes, and the two of descriptors and keys belong to what they mean."""
    codes: dict[HResult, set[str]] = {}
    for row in ROWS.values():
        if check_of(row) is not None:
            codes.setdefault(refusal_of(row), set()).add(row.id.name)
    assert codes[HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR] == {
        *("Q_SECURITY", "Q_OBJ_SECURITY", "QM_SECURITY", "QM_OBJ_SECURITY"),
        *("S_SECURITY", "CN_SECURITY", "E_SECURITY"),
    }
    assert codes[HResult.MQ_ERROR_INVALID_PARAMETER] == {
        *("QM_SIGN_PK", "QM_SIGN_PKS", "QM_ENCRYPT_PK", "QM_ENCRYPT_PKS", "S_PSC_SIGNPK"),
    }
    assert len(codes) == 3


def test_scopes_have_the_names_of_their_enumeration() -> None:
    assert {scope.value: scope.name.lower() for scope in Scope} == queue.SCOPES


# --- how a value is kept --------------------------------------------------------------------------


@every_row
def test_a_value_is_kept_in_one_way(row: PropertyRow) -> None:
    assert sum([row.alias_of is not None, row.store is not None, row.reserved]) <= 1
    if row.alias_of is not None:
        stored = ROWS[row.alias_of]
        assert (stored.object_type, stored.vt) == (row.object_type, row.vt)
        assert (stored.takes, stored.meaning) == (row.takes, row.meaning)
        assert stored.alias_of is None
        assert row.id not in by_role(PropertyRole.SECURITY).values()
    if row.store is not None:
        assert row.computed is not None  # else it would show what is not stored under its number
    assert not row.also_stored or row.store is not None


def test_computed() -> None:
    """COMPUTED has what is kept outside the properties, aliases, and what a row computes."""
    outside = {PropertyRole.IDENTIFIER, PropertyRole.SEQUENCE, PropertyRole.PARTITION}
    expected = {
        row.id
        for row in ROWS.values()
        if row.computed is not None or row.alias_of is not None or row.role in outside
    }
    assert COMPUTED.keys() == expected
    assert expected >= {101, 116, 117, 201, 210, 234, 803, 1102}
    assert not expected & {103, 108, 222, 812, 1101}


def test_other_names() -> None:
    assert {row.id: row.alias_of for row in ROWS.values() if row.alias_of is not None} == STORED_AS


@every_row
def test_what_travels_for_another_property_is_replicated(row: PropertyRow) -> None:
    if row.travels_as is not None:
        assert ROWS[row.travels_as].replicated
        assert not row.replicated
        assert row.stored


# --- tables of a few ------------------------------------------------------------------------------


@pytest.mark.req("MQDS-3.3.4.2-01")
def test_what_the_extended_call_gives() -> None:
    assert {p.name: t for p, t in EXTENDED.items()} == {
        "Q_OBJ_SECURITY": ObjectType.QUEUE,
        "QM_OBJ_SECURITY": ObjectType.MACHINE,
        "QM_ENCRYPT_PKS": ObjectType.MACHINE,
        "QM_SIGN_PKS": ObjectType.MACHINE,
    }


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("required", "L_ACTUAL_COST L_NEIGHBOR1 L_NEIGHBOR2 U_DIGEST U_SIGN_CERT"),
        ("names_owner", "QM_SITE_ID Q_QMID"),
        ("also_stored", "QM_SERVICE QM_SERVICE_DSSERVER"),
        (
            "indexed",
            "L_NEIGHBOR1 L_NEIGHBOR2 QM_CNS QM_SITE_IDS Q_LABEL Q_TYPE U_DIGEST U_SID",
        ),
        (
            "lasting",
            "E_NAME QM_CREATE_TIME QM_PATHNAME Q_CREATE_TIME Q_PATHNAME S_PATHNAME U_SID",
        ),
        (
            "announced",
            "QM_ADDRESS QM_ENCRYPT_PKS QM_MODIFY_TIME QM_SERVICE QM_SERVICE_DSSERVER QM_SIGN_PKS",
        ),
    ],
)
def test_properties_of_which_a_column_is_true(column: str, names: str) -> None:
    found = ids_where(lambda row: bool(getattr(row, column)))
    assert sorted(PropId(propid).name for propid in found) == names.split()


@every_row
def test_what_nobody_writes_takes_no_right(row: PropertyRow) -> None:
    """A property that no client sets and that keeps nothing gives nobody power."""
    if row.reserved:
        assert row.takes is Takes.NOTHING
    if row.takes is Takes.PERMISSIONS:
        assert row.meaning is ValueMeaning.DESCRIPTOR
