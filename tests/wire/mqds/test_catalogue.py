"""The property catalogue: what was generated, against the tables it comes from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import VarType
from tools import generate_catalogue

SPEC = Path(__file__).parents[3] / "docs" / "spec"


def table(name: str) -> list[dict[str, str]]:
    with (SPEC / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


MQDS = table("mqds-properties.csv")
MQDSRP = table("mqdsrp-propids.csv")

#: MS-MQDS 2.2.10.1.
RANGES = {
    ObjectType.QUEUE: (101, 126),
    ObjectType.MACHINE: (201, 243),
    ObjectType.SITE: (301, 312),
    ObjectType.CN: (501, 505),
    ObjectType.ENTERPRISE: (601, 618),
    ObjectType.USER: (701, 706),
    ObjectType.ROUTINGLINK: (801, 813),
}


class TestGenerated:
    def test_modules_are_up_to_date(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("sys.argv", ["generate_catalogue.py", "--check"])
        assert generate_catalogue.main() == 0, capsys.readouterr().out

    def test_a_stale_module_is_told(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        tmp_path: Path,
    ) -> None:
        monkeypatch.setattr("sys.argv", ["generate_catalogue.py", "--check"])
        monkeypatch.setattr(generate_catalogue, "TARGET", tmp_path)
        (tmp_path / "propid.py").write_text(generate_catalogue.propid_module(), "utf-8")
        (tmp_path / "catalogue.py").write_text("stale", "utf-8")
        assert generate_catalogue.main() == 1
        assert capsys.readouterr().out.startswith("catalogue.py differs from")

    def test_129_identifiers(self) -> None:
        assert len(PropId) == len(PROPERTIES) == len(MQDS) == 129

    @pytest.mark.parametrize("row", MQDS, ids=lambda row: row["propid"])
    def test_row(self, row: dict[str, str]) -> None:
        entry = PROPERTIES[int(row["propid"])]
        assert entry.id == int(row["propid"])
        assert entry.name == row["name"]
        assert entry.object_type.name == row["object_type"].removeprefix("MQDS_")
        assert str(entry.vt) == row["variant_type"]

    @pytest.mark.req("MQDSRP-2.2.1-01")
    def test_the_identifiers_of_replication_have_the_same_types(self) -> None:
        assert len(MQDSRP) == 92
        for row in MQDSRP:
            entry = PROPERTIES[int(row["propid"])]
            assert (entry.name, str(entry.vt)) == (row["name"], row["variant_type"])
            assert f"MQDS_{entry.object_type.name}" == row["object_type"]


class TestIdentifiers:
    @pytest.mark.req("MQDS-2.2.8-01")
    def test_object_types(self) -> None:
        assert {kind.name: int(kind) for kind in ObjectType} == {
            "QUEUE": 1,
            "MACHINE": 2,
            "SITE": 3,
            "DELETEDOBJECT": 4,
            "CN": 5,
            "ENTERPRISE": 6,
            "USER": 7,
            "ROUTINGLINK": 8,
        }
        for number in (0, 9, 58):
            with pytest.raises(ValueError, match="is not a valid"):
                ObjectType(number)

    @pytest.mark.parametrize("kind", ObjectType)
    def test_labels(self, kind: ObjectType) -> None:
        assert ObjectType.parse(kind.label) is ObjectType.parse(kind.label.upper()) is kind

    def test_unknown_label(self) -> None:
        with pytest.raises(ValueError, match="'folder' is not an object type"):
            ObjectType.parse("folder")

    @pytest.mark.req("MQDS-2.2.10.1-01")
    def test_ranges(self) -> None:
        public = [entry for entry in PROPERTIES.values() if entry.id < 1000]
        for entry in public:
            low, high = RANGES[entry.object_type]
            assert low <= entry.id <= high
        assert {entry.object_type for entry in public} == set(RANGES)  # a tombstone has none

    @pytest.mark.req("MQDS-2.2.10.1-01")
    @pytest.mark.parametrize(
        "number",
        [120, 122, 204, 225, 226, 230, 235, 236, 240, 243, 618, 0, 100, 127, 200, 401, 0xFFFFFFFF],
    )
    def test_numbers_without_a_definition_are_no_properties(self, number: int) -> None:
        assert number not in PROPERTIES

    @pytest.mark.parametrize(
        ("number", "name", "kind", "vt"),
        [
            pytest.param(*row, marks=pytest.mark.req(f"MQDS-{section}-01"))
            for section, rows in {
                "2.2.10.2": [
                    (101, "Q_INSTANCE", 1, VarType.CLSID),
                    (115, "Q_QMID", 1, VarType.CLSID),
                    (1102, "Q_OBJ_SECURITY", 1, VarType.BLOB),
                ],
                "2.2.10.3": [
                    (201, "QM_SITE_ID", 2, VarType.CLSID),
                    (202, "QM_MACHINE_ID", 2, VarType.CLSID),
                    (222, "QM_SITE_IDS", 2, VarType.VECTOR_CLSID),
                    (234, "QM_OBJ_SECURITY", 2, VarType.BLOB),
                    (238, "QM_ENCRYPT_PKS", 2, VarType.BLOB),
                    (239, "QM_SIGN_PKS", 2, VarType.BLOB),
                    (1202, "QM_SIGN_PK", 2, VarType.BLOB),
                    (1203, "QM_ENCRYPT_PK", 2, VarType.BLOB),
                ],
                "2.2.10.4": [
                    (302, "S_SITEID", 3, VarType.CLSID),
                    (1302, "S_PSC_SIGNPK", 3, VarType.BLOB),
                ],
                "2.2.10.5": [
                    (503, "CN_GUID", 5, VarType.CLSID),
                    (609, "E_ID", 6, VarType.CLSID),
                    (706, "U_ID", 7, VarType.CLSID),
                    (806, "L_ID", 8, VarType.CLSID),
                ],
            }.items()
            for row in rows
        ],
    )
    def test_what_the_protocol_interprets(
        self, number: int, name: str, kind: int, vt: VarType
    ) -> None:
        entry = PROPERTIES[number]
        assert (entry.id.name, entry.object_type, entry.vt) == (name, kind, vt)

    def test_types_that_are_easily_mistaken(self) -> None:
        """Properties for which the text or a neighbouring property suggests another type."""
        assert {p: PROPERTIES[p].vt for p in (106, 109, 223, 310, 311, 705, 812)} == {
            106: VarType.I2,
            109: VarType.I4,
            223: VarType.VECTOR_LPWSTR,
            310: VarType.UI2,
            311: VarType.UI1,
            705: VarType.VECTOR_CLSID,
            812: VarType.UI4,
        }
