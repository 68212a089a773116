"""The lines of an export: both ways, and every way to be wrong."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.export_format import (
    ORDER,
    ExportedServer,
    ExportError,
    ExportHeader,
    check_against_catalogue,
    format_entry,
    format_header,
    parse_end,
    parse_entry,
    parse_header,
)
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Partition, Scope
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.strategies.export import directory_objects, headers, tombstones

ID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
SITE = Guid.parse("00000000-0000-0000-0000-0000000000aa")
QUEUE = DirectoryObject(
    ObjectType.QUEUE,
    ID,
    SITE,
    SequenceNumber(256),
    props(
        {
            PropId.Q_SECURITY: b"\0\xff",
            PropId.Q_PATHNAME: "host\\q",
            PropId.Q_LABEL: "é\ud800",
            PropId.Q_SCOPE: 0,
            PropId.Q_QMID: ID,
        }
    ),
)
QUEUE_LINE = (
    '{"type":"queue","id":"a1b2c3d4-0001-0002-0304-05060708090a",'
    '"partition":"00000000-0000-0000-0000-0000000000aa","seq":"0000000000000100",'
    '"path":"host\\\\q","props":{'
    '"103":{"vt":"VT_LPWSTR","value":"host\\\\q"},'
    '"108":{"vt":"VT_LPWSTR","value":"\\u00e9\\ud800"},'
    '"114":{"vt":"VT_UI1","value":0},'
    '"115":{"vt":"VT_CLSID","value":"a1b2c3d4-0001-0002-0304-05060708090a"},'
    '"1101":{"vt":"VT_BLOB","value":"AP8="}}}'
)
TOMBSTONE_LINE = (
    '{"type":"deleted","id":"a1b2c3d4-0001-0002-0304-05060708090a",'
    '"partition":"00000000-0000-0000-0000-0000000000aa","seq":"0000000000000007",'
    '"object_type":"network","scope":"site"}'
)


def test_an_object_is_written_as_documented() -> None:
    assert format_entry(QUEUE) == QUEUE_LINE
    assert parse_entry(QUEUE_LINE, 2) == QUEUE


def test_a_tombstone_is_written_as_documented() -> None:
    tombstone = DeletedObject(ID, SITE, SequenceNumber(7), ObjectType.CN, Scope.SITE)
    assert format_entry(tombstone) == TOMBSTONE_LINE
    assert parse_entry(TOMBSTONE_LINE, 2) == tombstone


def test_the_header_is_written_as_documented() -> None:
    header = ExportHeader(
        "Ent",
        (Partition(SITE, "psc", SequenceNumber(9), SequenceNumber(3)),),
        12,
        ExportedServer(ID, "Psc"),
    )
    line = (
        '{"format":"mqis-directory","version":2,'
        '"server":{"id":"a1b2c3d4-0001-0002-0304-05060708090a","name":"Psc"},"enterprise":"Ent","partitions":['
        '{"id":"00000000-0000-0000-0000-0000000000aa","owner":"psc",'
        '"last_seq":"0000000000000009","purged_seq":"0000000000000003",'
        '"allowed_purge_seq":"0000000000000000","purge_state":"normal"}],"lines":12}'
    )
    assert format_header(header) == line
    assert parse_header(line) == header


def test_a_header_may_leave_the_count_away() -> None:
    line = '{"format":"mqis-directory","version":1,"enterprise":null,"partitions":[]}'
    assert parse_header(line) == ExportHeader(None, (), version=1)


@given(directory_objects())
def test_any_object_survives_its_line(obj: DirectoryObject) -> None:
    line = format_entry(obj)
    assert line.isascii()
    assert "\n" not in line
    assert parse_entry(line, 1) == obj
    assert format_entry(parse_entry(line, 1)) == line


@given(tombstones)
def test_any_tombstone_survives_its_line(tombstone: DeletedObject) -> None:
    assert parse_entry(format_entry(tombstone), 1) == tombstone


@given(headers)
def test_any_header_survives_its_line(header: ExportHeader) -> None:
    assert parse_header(format_header(header)) == header


@given(directory_objects())
def test_properties_ascend_by_number(obj: DirectoryObject) -> None:
    keys = list(json.loads(format_entry(obj))["props"])
    assert keys == sorted(keys, key=int)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.text() | _json.map(json.dumps))
@pytest.mark.untraced
def test_garbage_raises_only_export_errors(text: str) -> None:
    for parse in (parse_header, lambda line: parse_entry(line, 3)):
        with pytest.raises(ExportError):
            parse(text)


@given(st.sampled_from(list(json.loads(QUEUE_LINE))), _json)
def test_a_wrong_value_anywhere_raises_only_export_errors(key: str, value: object) -> None:
    content = json.loads(QUEUE_LINE)
    content[key] = value
    with suppress(ExportError):  # the value may be right, then there is none
        parse_entry(json.dumps(content), 3)


def _with(path: str, value: object) -> str:
    """The queue's line with one key changed; a value of ... takes the key away."""
    content: dict[str, Any] = json.loads(QUEUE_LINE)
    *parents, last = path.split("/")
    place = content
    for key in parents:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "line 17: the line is empty"),
        ("{", "line 17, column 2: not JSON"),
        (QUEUE_LINE[:-10], "line 17, column "),
        ("[1]", "line 17: wants an object in braces, got [1]"),
        ("[" * 100_000, "line 17: not JSON that can be read"),
        ("9" * 5000, "line 17: not JSON that can be read"),
        (_with("type", ...), "line 17, type: wants text, got None"),
        (_with("type", "quue"), "line 17, type: 'quue' is not an object type"),
        (_with("id", "x"), "line 17, id: 'x' is not a GUID"),
        (_with("id", 5), "line 17, id: wants text, got 5"),
        (_with("partition", ...), "line 17, partition: is missing"),
        (_with("seq", "1"), "line 17, seq: '1' is not a sequence number (16 hexadecimal digits)"),
        (_with("colour", "red"), "line 17, colour: is not a key of this line"),
        (_with("path", "host\\z"), "line 17, path: 'host\\\\z' disagrees with the name in props"),
        (_with("path", None), "line 17, path: None disagrees with the name in props"),
        (_with("path", 5), "line 17, path: wants text or null, got 5"),
        (_with("props", []), "line 17, props: wants an object in braces, got []"),
        (_with("props/x", {}), "line 17, props.x: a property is named by its number"),
        (_with("props/0108", {}), "line 17, props.0108: a property is named by its number"),
        (_with("props/9999999999", {}), "line 17, props.9999999999: a property number has 32 bits"),
        (_with("props/108", 5), 'line 17, props.108: wants {"vt": ..., "value": ...}, got 5'),
        (_with("props/108/vt", "VT_X"), "line 17, props.108.vt: 'VT_X' is not a variant type"),
        (_with("props/108/vt", ...), "line 17, props.108.vt: is missing"),
        (_with("props/108/value", 5), "line 17, props.108.value: VT_LPWSTR: wants text, got 5"),
        (_with("props/108/more", 5), "line 17, props.108.more: is not a key of this line"),
        (_with("props/114/value", 256), "line 17, props.114.value: VT_UI1: 256 is outside 0..255"),
        (_with("props/114/value", True), "line 17, props.114.value: VT_UI1: wants an integer"),
        (_with("props/114/value", 1.0), "line 17, props.114.value: VT_UI1: wants an integer"),
        (_with("props/115/value", "x"), "line 17, props.115.value: VT_CLSID: 'x' is not a GUID"),
        (_with("props/115/value", [1]), "line 17, props.115.value: VT_CLSID: wants a GUID as text"),
        (_with("props/1101/value", "A"), "line 17, props.1101.value: VT_BLOB: wants base64 text"),
        (_with("props/1101/value", "é="), "line 17, props.1101.value: VT_BLOB: wants base64 text"),
        (
            _with("props/114", {"vt": "VT_UI4|VT_VECTOR", "value": 5}),
            "line 17, props.114.value: VT_UI4|VT_VECTOR: wants a list, got 5",
        ),
        (
            _with("props/114", {"vt": "VT_NULL", "value": 5}),
            "line 17, props.114.value: VT_NULL: carries no value, got 5",
        ),
        (
            _with(
                "props/114",
                {"vt": "VT_VARIANT|VT_VECTOR", "value": [{"vt": "VT_UI1", "value": -1}]},
            ),
            "line 17, props.114.value[0].value: VT_UI1: -1 is outside 0..255",
        ),
        (
            QUEUE_LINE.replace('"108":', '"114":', 1),
            "line 17: the key '114' stands twice",
        ),
        (
            QUEUE_LINE.replace('"path":', '"seq":"0000000000000100","path":', 1),
            "line 17: the key 'seq' stands twice",
        ),
        (
            TOMBSTONE_LINE.replace("network", "deleted"),
            "line 17, object_type: 'deleted' is not the type of an object",
        ),
        (
            TOMBSTONE_LINE.replace('"site"', '"far"'),
            "line 17, scope: 'far' is none of site, enterprise",
        ),
    ],
)
def test_a_fault_names_line_and_key(line: str, message: str) -> None:
    with pytest.raises(ExportError) as caught:
        parse_entry(line, 17)
    assert str(caught.value).startswith(message)


def test_variants_nest_to_a_bound() -> None:
    nested: object = {"vt": "VT_UI1", "value": 1}
    for _ in range(5):
        nested = {"vt": "VT_VARIANT|VT_VECTOR", "value": [nested]}
    with pytest.raises(ExportError, match="variants nest deeper than 4"):
        parse_entry(_with("props/114", nested), 2)


_HEADER = '{"format":"mqis-directory","version":1,"enterprise":null,"partitions":[]}'
_PARTITION = json.loads(format_header(ExportHeader(None, (Partition(SITE, "psc"),))))["partitions"][
    0
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "csv"}, "line 1, format: this is not an export of mqis"),
        ({"version": 3}, "line 1, version: 3 is not version 1 or 2, which this mqis reads"),
        ({"version": 2}, "line 1, server: is missing"),
        ({"version": 2, "server": 5}, "line 1, server: wants an object in braces or null, got 5"),
        ({"version": 2, "server": {"id": "x"}}, "line 1, server.name: is missing"),
        ({"version": 2, "server": {"id": "x", "name": "y"}}, "line 1, server.id: "),
        ({"server": None}, "line 1, server: is not a key of this line"),
        ({"enterprise": 5}, "line 1, enterprise: wants text or null, got 5"),
        ({"partitions": 5}, "line 1, partitions: wants a list, got 5"),
        ({"partitions": [5]}, "line 1, partitions[0]: wants an object in braces, got 5"),
        ({"partitions": [{}]}, "line 1, partitions[0].allowed_purge_seq: is missing"),
        (
            {"partitions": [_PARTITION, _PARTITION]},
            "line 1, partitions[1].id: partition 00000000-0000-0000-0000-0000000000aa stands twice",
        ),
        (
            {"partitions": [_PARTITION | {"purge_state": "odd"}]},
            "line 1, partitions[0].purge_state: 'odd' is none of normal, starting_sync0",
        ),
        ({"partitions": [_PARTITION | {"owner": 1}]}, "line 1, partitions[0].owner: wants text"),
        ({"lines": -1}, "line 1, lines: wants a number of lines, got -1"),
        ({"lines": True}, "line 1, lines: wants a number of lines, got True"),
        ({"more": 1}, "line 1, more: is not a key of this line"),
    ],
)
def test_a_wrong_header_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ExportError) as caught:
        parse_header(json.dumps(json.loads(_HEADER) | changes))
    assert str(caught.value).startswith(message)


def test_a_colon_in_a_value_is_no_key() -> None:
    obj = parse_entry(_with("props/108/value", "a:b:c"), 2)
    assert isinstance(obj, DirectoryObject)
    assert obj.value(PropId.Q_LABEL) == "a:b:c"


def test_true_is_not_remembered_as_one() -> None:
    """Python takes 1 and True for the same key."""
    as_number = {"vt": "VT_UI1", "value": 1}
    as_boolean = {"vt": "VT_BOOL", "value": True}
    for _ in range(2):
        parse_entry(_with("props/114", as_number), 2)
        parse_entry(_with("props/114", as_boolean), 2)
        with pytest.raises(ExportError):
            parse_entry(_with("props/114", as_number | {"value": True}), 2)
        with pytest.raises(ExportError):
            parse_entry(_with("props/114", as_boolean | {"value": 1}), 2)


@pytest.mark.parametrize(
    ("properties", "key", "reason"),
    [
        (props({PropId.QM_OS: 0}), "props.220", "not a property of a queue"),
        ({9: PropVariant(VarType.UI4, 0)}, "props.9", "not a property of a queue"),
        (
            {PropId.Q_LABEL: PropVariant(VarType.UI4, 0)},
            "props.108.vt",
            "PROPID_Q_LABEL is VT_LPWSTR, not VT_UI4",
        ),
        ({}, "props", "a queue needs PROPID_Q_PATHNAME"),
    ],
)
def test_what_no_directory_holds(properties: dict[int, PropVariant], key: str, reason: str) -> None:
    obj = DirectoryObject(ObjectType.QUEUE, ID, SITE, SequenceNumber(1), properties)
    with pytest.raises(ExportError, match=reason) as caught:
        check_against_catalogue(obj, 4)
    assert (caught.value.line, caught.value.key) == (4, key)


def test_what_a_directory_holds() -> None:
    check_against_catalogue(QUEUE, 4)
    null = DirectoryObject(ObjectType.USER, Guid.NULL, SITE, SequenceNumber(1), {})
    with pytest.raises(ExportError, match="the null GUID identifies nothing"):
        check_against_catalogue(null, 4)


def test_every_type_but_tombstones_has_a_place() -> None:
    assert set(ORDER) == set(ObjectType) - {ObjectType.DELETEDOBJECT}


def test_the_error_survives_a_process_border() -> None:
    error = pickle.loads(pickle.dumps(ExportError("bad", 3, "id", "file.jsonl")))
    assert str(error) == "file.jsonl: line 3, id: bad"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type": "end", "sha256": "00"}', "64 hexadecimal digits"),
        ('{"type": "end", "sha256": "' + "g" * 64 + '"}', "sha256"),
        ('{"type": "end", "sha256": "' + "0" * 64 + '", "more": 1}', "more"),
        ("{", "not JSON"),
    ],
)
def test_a_wrong_last_line_is_refused(line: str, message: str) -> None:
    with pytest.raises(ExportError, match=message) as caught:
        parse_end(line, 7)
    assert caught.value.line == 7


def test_the_last_line_has_the_digest() -> None:
    assert parse_end('{"type": "end", "sha256": "' + "0f" * 32 + '"}', 7) == b"\x0f" * 32
