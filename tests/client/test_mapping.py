"""The tables of the events against the specification's, and the elements against the model."""

from __future__ import annotations

import dataclasses

import pytest

from mqis.client import elements as e
from mqis.client.attributes import ATTRIBUTES
from mqis.client.mapping import python_name
from mqis.client.requests import Operator
from mqis.wire.mqds.catalogue import PROPERTIES
from tests.client.samples import ENUMS, KINDS, MAP, MODEL, SAMPLES, variant_type
from tools import generate_client_map

#: Attributes that MS-MQDMPR lists and no property carries.
WITHOUT_PROPERTY = {
    ("QueueManager", "OperatingSystemVersion"),
    ("Queue", "MulticastAddress"),
    ("Queue", "DirectoryPath"),
    ("Enterprise", "NonLDAPCapableQueueManagerNotification"),
}


class TestGenerated:
    def test_is_up_to_date(self) -> None:
        assert generate_client_map.TARGET.read_text("utf-8") == generate_client_map.module()

    def test_both_spell_names_alike(self) -> None:
        for row in MAP:
            for name in row["attribute"].split("+"):
                assert generate_client_map.python_name(name) == python_name(name)

    def test_a_contradiction_stops_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong = dict(MAP[0], operation="write", propid_name="PROPID_QM_QUOTA")
        monkeypatch.setattr(generate_client_map, "rows", lambda: [MAP[0], wrong])
        with pytest.raises(SystemExit, match="QM_CNS"):
            generate_client_map.module()

    def test_properties_have_the_types_of_the_catalogue(self) -> None:
        for row in MAP:
            entry = PROPERTIES[int(row["propid"])]
            assert f"PROPID_{entry.id.name}" == row["propid_name"]
            assert entry.vt is variant_type(row)
            assert int(entry.object_type) == int(row["object_type_id"])


class TestElements:
    @pytest.mark.req("MQDS-3.2.1.1-01")
    def test_there_are_seven(self) -> None:
        assert {kind.__name__ for kind in e.ELEMENTS} == {
            "QueueManager",
            "Queue",
            "Enterprise",
            "Site",
            "RoutingLink",
            "ConnectedNetwork",
            "User",
        }
        assert {kind.__name__: int(number) for kind, number in e.ELEMENTS.items()} == {
            row["object_type"]: int(row["object_type_id"]) for row in MAP
        }

    @pytest.mark.parametrize("kind", KINDS)
    def test_fields_are_the_attributes_of_the_model(self, kind: str) -> None:
        wanted = {
            row["attribute"]
            for row in MODEL
            if row["element"] in (kind, "DirectoryObject") and "MQDS" in row["specs"].split(";")
        }
        wanted |= {name for element, name in WITHOUT_PROPERTY if element == kind}
        wanted.discard("(class)")
        fields = {field.name for field in dataclasses.fields(KINDS[kind])}
        assert fields == {python_name(name) for name in wanted}

    @pytest.mark.parametrize("kind", KINDS)
    def test_nothing_is_populated_at_first(self, kind: str) -> None:
        assert set(dataclasses.asdict(KINDS[kind]()).values()) == {None}

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_attribute_of_the_tables_has_a_sample(self, kind: str) -> None:
        """So that the tests that go by the samples leave none out."""
        named = {
            n for row in MAP if row["object_type"] == kind for n in row["attribute"].split("+")
        }
        assert named == set(SAMPLES[kind])
        known = {name for row in ATTRIBUTES[KINDS[kind]] for name in row.names}
        assert known == {python_name(name) for name in named}

    @pytest.mark.req("MQDS-3.2.1-01")
    def test_an_element_cannot_be_changed_under_its_reader(self) -> None:
        queue = e.Queue(label="Orders")
        with pytest.raises(dataclasses.FrozenInstanceError):
            queue.label = "Others"  # type: ignore[misc]


class TestEnumerations:
    def values(self, group: str) -> dict[str, str]:
        return {
            row["attribute"]: row["conversion"]
            for row in ENUMS
            if row["object_type"] == f"enum:{group}"
        }

    def test_operating_systems(self) -> None:
        assert [int(v) for v in self.values("OS").values()] == list(map(int, e.OperatingSystemType))

    def test_privacy_levels(self) -> None:
        names = {name.upper(): int(value) for name, value in self.values("PRIV_LEVEL").items()}
        assert names == {level.name: int(level) for level in e.PrivacyLevel}

    def test_scopes(self) -> None:
        names = {name.upper(): int(value) for name, value in self.values("SCOPE").items()}
        assert names == {scope.name: int(scope) for scope in e.Scope}

    def test_providers(self) -> None:
        assert list(self.values("CSP_NAME").values()) == [p.value for p in e.CryptographicProvider]

    def test_server_types(self) -> None:
        bits = {k: int(v) for k, v in self.values("SERVICE").items() if "Controller" in k}
        kinds = {kind.name.replace("_", ""): int(kind) for kind in e.DirectoryServerType if kind}
        assert {name.upper(): value for name, value in bits.items()} == kinds

    @pytest.mark.req("MQDS-2.2.11-51")
    def test_operators(self) -> None:
        named = {name.replace("-", "_"): int(value) for name, value in self.values("REL").items()}
        assert named == {operator.name: int(operator) for operator in Operator}
        assert max(Operator) == 5
