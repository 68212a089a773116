"""``mqis get`` and ``mqis lookup``."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqis.config.stores import open_store
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import DirectoryError
from mqis.runtime.entropy import SystemEntropy
from mqis.views.presentation.properties import PropertyError, find_property, friendly, names_of
from mqis.wire.mqds.catalogue import PROPERTIES, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.cli.commands import process, run


def looked_up(store: Path, *arguments: str) -> list[dict[str, Any]]:
    result = run("lookup", *arguments, "--json", "--store", store)
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


# --- get ------------------------------------------------------------------------------------------


def test_get_by_name_for_people(demo_store: Path) -> None:
    done = process("get", "queue", "AMS-app1\\PAYMENTS", "--store", demo_store)
    assert done.returncode == 0, done.stderr
    shown = {line.split()[0]: line.split(None, 1)[1:] for line in done.stdout.decode().splitlines()}
    values = {key: rest[0].strip() for key, rest in shown.items() if rest}
    assert values["queue"] == "ams-app1\\payments"
    assert values["label"] == "Payments received"
    assert values["journal"] == "no"
    assert values["priv_level"] == "body"
    assert values["scope"] == "enterprise"
    assert values["qmid"] == "ams-app1"
    assert values["quota"] == "unlimited"
    assert values["create_time"] == "2024-03-01T08:00:00Z"
    assert values["security"] == "O:BAG:BAD:P(A;;GA;;;BA)(A;;0x20026;;;AU)"


def test_get_a_machine_for_people(demo_store: Path) -> None:
    text = run("get", "machine", "ams-dir1", "--store", demo_store).stdout
    assert "routing, PEC" in text
    assert "IP 10.1.0.10" in text
    assert "Windows enterprise server" in text
    assert "RSA 1024 bits, Microsoft Base Cryptographic Provider v1.0" in text


def test_get_by_identifier_as_json(demo_store: Path) -> None:
    (row,) = looked_up(demo_store, "queue", "--where", "path=ams-app1\\orders")
    result = run("get", "queue", row["id"], "--json", "--store", demo_store)
    content = json.loads(result.stdout)
    assert list(content) == ["type", "id", "path", "partition", "seq", "properties"]
    assert content["path"] == "ams-app1\\orders"
    assert content["properties"]["transaction"] == 1
    assert content["properties"]["label"] == "Incoming orders"
    assert content["properties"]["create_time"] == 1_709_280_000


def test_get_chosen_properties(demo_store: Path) -> None:
    """By word, by full name, by number; computed ones too."""
    result = run(
        *("get", "machine", "ber-dir1", "--json", "--store", demo_store),
        *("--prop", "site_id", "--prop", "PROPID_QM_OS", "--prop", "227", "--prop", "owner_sid"),
    )
    properties = json.loads(result.stdout)["properties"]
    assert list(properties) == ["site_id", "os", "service_routing", "owner_sid"]
    assert properties["os"] == 0x500
    assert properties["service_routing"] == 1
    assert properties["owner_sid"] is None


@pytest.mark.parametrize("kind", ObjectType)
def test_a_property_has_one_name(kind: ObjectType) -> None:
    """The one that get prints is accepted everywhere, and means the same property."""
    names = names_of(kind)
    assert len(names) == sum(entry.object_type is kind for entry in PROPERTIES.values())
    assert {friendly(propid): propid for propid in names.values()} == names
    assert {name: find_property(kind, name) for name in names} == names


def test_names_of_get_are_columns_of_lookup(demo_store: Path) -> None:
    shown = run("get", "queue", "ams-app1\\orders", "--store", demo_store).stdout.splitlines()
    names = [line.split()[0] for line in shown[3:] if line.strip()]
    assert {"id", "path", "label", "seq"} <= set(names)
    assert len(names) == len(set(names))
    readable = [name for name in names if name not in ("partition", "seq")]
    (row,) = looked_up(
        demo_store, "queue", "--where", "path=ams-app1\\orders", "--columns", ",".join(readable)
    )
    assert set(row) == set(readable)


def test_get_what_is_not_there(demo_store: Path) -> None:
    for kind, name in (("queue", "ams-app1\\nothing"), ("user", "anna")):
        error = run("get", kind, name, "--store", demo_store).exception
        assert isinstance(error, DirectoryError)
        assert f"there is no {kind} {name!r} in the store" in str(error)


def test_get_a_property_that_is_none(demo_store: Path) -> None:
    error = run(
        "get", "queue", "ams-app1\\orders", "--prop", "lable", "--store", demo_store
    ).exception
    assert isinstance(error, PropertyError)
    assert str(error) == "a queue has no property 'lable'; did you mean label?"


# --- lookup ---------------------------------------------------------------------------------------


def test_lookup_for_people(demo_store: Path) -> None:
    done = process("lookup", "site", "--store", demo_store)
    lines = done.stdout.decode().splitlines()
    assert lines[0].split() == ["path", "psc", "gates", "foreign"]
    assert lines[2].split() == ["Amsterdam", "ams-dir1", "ams-dir1,", "ams-route1", "no"]
    assert lines[-1] == "3 sites"


@pytest.mark.parametrize(
    "kind", ["queue", "machine", "site", "link", "network", "user", "enterprise"]
)
def test_lookup_of_every_type(demo_store: Path, kind: str) -> None:
    result = run("lookup", kind, "--store", demo_store)
    assert result.exit_code == 0, result.output
    assert len(looked_up(demo_store, kind)) > 0


@pytest.mark.parametrize(
    ("kind", "conditions", "found"),
    [
        ("queue", ["label=audit TRAIL"], 6),
        ("queue", ["label!=Audit trail"], 54),
        ("queue", ["transaction=yes", "label=Incoming orders"], 6),
        ("queue", ["scope=site"], 6),
        ("queue", ["scope = 0"], 6),
        ("queue", ["qmid=ams-app1"], 7),
        ("queue", ["label=nothing"], 0),
        ("queue", ["create_time >= 2024-03-01T08:00:00"], 60),
        ("queue", ["create_time > 2024-03-01T08:00:00Z"], 0),
        ("queue", ["create_time<0x7fffffff"], 60),
        ("queue", ["quota=unlimited"], 60),
        ("queue", ["priv_level=body"], 6),
        ("machine", ["site_id=Berlin"], 6),
        ("machine", ["os=foreign"], 1),
        ("machine", ["os<=0x300"], 8),
        ("machine", ["site_ids=Berlin"], 6),
        ("link", ["cost>=20"], 2),
        ("link", ["neighbor1=Amsterdam", "cost < 50"], 1),
        ("user", ["sid=S-1-5-21-1801-135-2103-1101"], 1),
        ("network", ["protocolid=IP"], 2),
        ("queue", ["path=AMS-app1*"], 7),
        ("queue", ["path=ams-app1\\*"], 7),
        ("queue", ["path=ams-app?\\orders", "transaction=yes"], 2),
        ("queue", ["label=*trail"], 6),
        ("queue", ["label!=*TRAIL"], 54),
        ("queue", ["label=[*]*"], 0),
        ("queue", ["label=[A]udit*"], 0),
        ("machine", ["path=*", "site_id=Berlin"], 6),
    ],
)
def test_lookup_conditions(demo_store: Path, kind: str, conditions: list[str], found: int) -> None:
    options = [part for text in conditions for part in ("--where", text)]
    assert len(looked_up(demo_store, kind, *options)) == found


def test_lookup_columns_sort_and_limit(demo_store: Path) -> None:
    rows = looked_up(
        demo_store,
        *("queue", "--columns", "path,label,scope", "--sort", "-label,path", "--limit", "8"),
    )
    assert [list(row) for row in rows] == [["id", "path", "label", "scope"]] * 8
    labels = [row["label"] for row in rows]
    assert labels == ["Shipping notes"] * 6 + ["Replies to requests"] * 2
    assert rows[0]["path"] == "ams-app1\\shipping"
    text = run("lookup", "queue", "--limit", "2", "--store", demo_store).stdout
    assert text.splitlines()[-1] == "2 of 60 queues"


def test_lookup_sorts_by_path_by_itself(demo_store: Path) -> None:
    paths = [row["path"] for row in looked_up(demo_store, "queue")]
    assert paths == sorted(paths)
    assert len(paths) == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--where", "label"], "'label' is not a condition: write property=value"),
        (["--where", "lable=x"], "a queue has no property 'lable'; did you mean label?"),
        (["--where", "scope=far"], "scope: 'far' is no value of VT_UI1: wants one of site, enter"),
        (["--where", "quota=x"], "quota: 'x' is no value of VT_UI4: wants a number"),
        (["--where", "scope=999"], "scope: '999' is no value of VT_UI1: VT_UI1: 999 is outside"),
        (["--where", "path>a*"], "'path>a*': a wildcard fits only = and !="),
        (["--where", "scope=en*"], "scope: 'en*' is no value of VT_UI1: wants one of site, enter"),
        (["--where", "qmid=ams*"], "qmid: 'ams*' is no value of VT_CLSID: 'ams*' is not a GUID"),
        (["--where", "type=x"], "type: 'x' is no value of VT_CLSID: 'x' is not a GUID"),
        (
            ["--where", "qmid=x"],
            "qmid: 'x' is no value of VT_CLSID: 'x' is not a GUID",
        ),
        (["--where", "security=O:XX"], "security: 'O:XX' is no value of VT_BLOB: SDDL: a SID"),
        (["--columns", ","], "--columns names no property; choose from id, type"),
        (["--sort", "-x"], "a queue has no property 'x'; known: "),
    ],
)
def test_lookups_that_make_no_sense(demo_store: Path, options: list[str], message: str) -> None:
    error = run("lookup", "queue", *options, "--store", demo_store).exception
    assert isinstance(error, PropertyError)
    assert str(error).startswith(message)


def test_what_names_hold_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    evil = "[red]\x1b[2J\ud800\u202e"
    with closing(open_store(str(path), create=True)) as store, store.write() as tx:
        events = DirectoryEvents(tx, 0, SystemEntropy())
        name = evil
        events.create_directory_object(ObjectType.SITE, props({PropId.S_PATHNAME: name}))
    result = run("lookup", "site", "--store", path)
    assert result.exit_code == 0, result.output
    assert "[red]\\x1b[2J\\ud800\\u202e" in result.stdout
    assert looked_up(path, "site")[0]["path"] == evil
