"""From properties to attributes (MS-MQDS 3.2.6.3): every table, and values outside of them."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.client import (
    Queue,
)
from mqis.client import elements as e
from mqis.client.mapping import python_name
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import text
from tests.client.reading import (
    read_values,
)
from tests.client.samples import (
    KINDS,
    ONE,
    SAMPLES,
    TWO,
    on_the_wire,
    populated,
    rows,
)


class TestConversions:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("QueueManager", marks=pytest.mark.req("MQDS-3.2.6.3.1-06")),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.3.2-04")),
            pytest.param(
                "Enterprise", marks=pytest.mark.req("MQDS-3.2.6.3.3-02", "MQDS-3.2.6.3.3-03")
            ),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.3.4-02")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.3.5-02")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.3.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.3.7-02")),
        ],
    )
    def test_every_attribute_of_the_table(self, kind: str) -> None:
        values = {int(row["propid"]): on_the_wire(row) for row in rows(kind, "read")}
        assert read_values(kind, values, list(SAMPLES[kind])) == populated(kind)

    @pytest.mark.req("MQDS-3.2.6.3.4-02")
    def test_the_gates_of_a_site(self) -> None:
        gates = (ONE, TWO)
        assert read_values("Site", props({PropId.S_GATES: gates})).site_gate_identifier_list == (
            ONE,
            TWO,
        )

    @pytest.mark.req("MQDS-3.2.6.3.1-06")
    @pytest.mark.parametrize("nothing", [VarType.EMPTY, VarType.NULL])
    @pytest.mark.parametrize("kind", KINDS)
    def test_no_value_leaves_the_attribute_unset(self, kind: str, nothing: VarType) -> None:
        values = {int(row["propid"]): PropVariant(nothing, None) for row in rows(kind, "read")}
        assert read_values(kind, values, list(SAMPLES[kind])) == KINDS[kind]()

    def test_a_value_of_another_type_leaves_it_unset(self) -> None:
        values = {PropId.Q_LABEL: PropVariant(VarType.UI4, 7), PropId.Q_QUOTA: text("much")}
        assert read_values("Queue", values) == Queue()

    @pytest.mark.parametrize(
        "attribute",
        ["ForeignSystem", "RoutingServer", "DirectoryServer", "SupportingServer", "Clustered"],
    )
    @pytest.mark.req("MQDS-3.2.6.3.1-07")
    def test_flags_of_a_machine(self, attribute: str) -> None:
        row = next(r for r in rows("QueueManager", "read") if r["attribute"] == attribute)
        for number, truth in ((1, True), (0, False), (2, None), (255, None)):
            values = {int(row["propid"]): PropVariant(VarType.UI1, number)}
            machine = read_values("QueueManager", values, [attribute])
            assert getattr(machine, python_name(attribute)) is truth

    @pytest.mark.req("MQDS-3.2.6.3.1-07")
    @pytest.mark.parametrize(("bits", "truth"), [(0x10, True), (0x1F, True), (0x0F, False)])
    def test_remote_access_is_a_bit(self, bits: int, truth: bool) -> None:
        values = props({PropId.QM_SERVICE: bits})
        machine = read_values("QueueManager", values, ["RemoteAccessServer"])
        assert machine.remote_access_server is truth

    def server_type(self, bits: int, flag: PropVariant | None) -> object:
        values: dict[int, PropVariant] = props({PropId.QM_SERVICE: bits})
        if flag is not None:
            values[PropId.QM_SERVICE_DSSERVER] = flag
        return read_values("QueueManager", values, ["DirectoryServerType"]).directory_server_type

    @pytest.mark.req("MQDS-3.2.6.3.1.1-01")
    def test_what_is_no_server_has_no_type(self) -> None:
        assert self.server_type(0x4, PropVariant(VarType.UI1, 0)) is None
        assert self.server_type(0x4, PropVariant(VarType.NULL, None)) is None
        assert self.server_type(0x4, None) is None

    @pytest.mark.req("MQDS-3.2.6.3.1.1-02")
    @pytest.mark.parametrize(
        ("bits", "kind"),
        [
            (0x00, e.DirectoryServerType.STANDALONE),
            (0x11, e.DirectoryServerType.STANDALONE),
            (0x02, e.DirectoryServerType.BACKUP_SITE_CONTROLLER),
            (0x04, e.DirectoryServerType.PRIMARY_SITE_CONTROLLER),
            (0x06, e.DirectoryServerType.PRIMARY_SITE_CONTROLLER),
            (0x08, e.DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER),
            (0x1F, e.DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER),
        ],
    )
    def test_the_type_of_a_server(self, bits: int, kind: e.DirectoryServerType) -> None:
        assert self.server_type(bits, PropVariant(VarType.UI1, 1)) is kind

    @pytest.mark.parametrize(
        ("kind", "attribute", "vt", "numbers"),
        [
            pytest.param(
                "QueueManager",
                "OperatingSystemType",
                VarType.UI4,
                {
                    0x000: e.OperatingSystemType.OTHER,
                    0x100: e.OperatingSystemType.FOREIGN,
                    0x200: e.OperatingSystemType.WIN95,
                    0x300: e.OperatingSystemType.WIN_CLIENT,
                    0x400: e.OperatingSystemType.WIN_SERVER,
                    0x500: e.OperatingSystemType.WIN_ENT,
                    0x600: None,
                },
                marks=pytest.mark.req("MQDS-3.2.6.3.1.2-01"),
            ),
            pytest.param(
                "Queue",
                "PrivacyLevel",
                VarType.UI4,
                {
                    0: e.PrivacyLevel.NONE,
                    1: e.PrivacyLevel.OPTIONAL,
                    2: e.PrivacyLevel.BODY,
                    3: None,
                },
                marks=pytest.mark.req("MQDS-3.2.6.3.2.1-01"),
            ),
            pytest.param(
                "Queue",
                "Scope",
                VarType.UI1,
                {0: e.Scope.SITE, 1: e.Scope.ENTERPRISE, 2: None},
                marks=pytest.mark.req("MQDS-3.2.6.3.2-04"),
            ),
            pytest.param(
                "Enterprise",
                "WeakenedSecurity",
                VarType.UI1,
                {0: False, 1: True, 2: False, 3: None},
                marks=pytest.mark.req("MQDS-3.2.6.3.3.1-01"),
            ),
            pytest.param(
                "Enterprise",
                "OldDirectory",
                VarType.UI2,
                {3: True, 200: False, 7: False},
                marks=pytest.mark.req("MQDS-3.2.6.3.3-02"),
            ),
            pytest.param(
                "Enterprise",
                "CryptographicProvider",
                VarType.LPWSTR,
                {
                    "Microsoft Base Cryptographic Provider v1.0": e.CryptographicProvider.BASE,
                    "Microsoft Enhanced Cryptographic Provider v1.0": (
                        e.CryptographicProvider.ENHANCED
                    ),
                    "Microsoft Enhanced RSA and AES Cryptographic Provider": (
                        e.CryptographicProvider.ENHANCED_AES
                    ),
                    "A provider of our own": None,
                },
                marks=pytest.mark.req("MQDS-3.2.6.3.3.2-01"),
            ),
        ],
    )
    def test_tables_of_values(
        self, kind: str, attribute: str, vt: VarType, numbers: dict[Any, object]
    ) -> None:
        row = next(r for r in rows(kind, "read") if r["attribute"] == attribute)
        for number, meaning in numbers.items():
            values = {int(row["propid"]): PropVariant(vt, number)}
            element = read_values(kind, values, [attribute])
            assert getattr(element, python_name(attribute)) is meaning

    @pytest.mark.req("MQDS-3.2.6.3.2-04")
    @pytest.mark.parametrize("attribute", ["Journaling", "Authentication", "Transactional"])
    def test_flags_of_a_queue(self, attribute: str) -> None:
        row = next(r for r in rows("Queue", "read") if r["attribute"] == attribute)
        for number, truth in ((1, True), (0, False)):
            values = {int(row["propid"]): PropVariant(VarType.UI1, number)}
            queue = read_values("Queue", values, [attribute])
            assert getattr(queue, python_name(attribute)) is truth
