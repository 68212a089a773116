"""Read Directory (MS-MQDS 3.2.6.3): direct reads, conversions, and reads that are lookups."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.client import (
    DirectoryElement,
    Enterprise,
    Filter,
    Operator,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    User,
    default_attributes,
    equal,
)
from mqis.client import elements as e
from mqis.client.mapping import python_name
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.protocol.errors import DirectoryError
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import NOTHING, Line, run, scripted_event, text
from tests.client.reading import (
    DIRECT,
    END,
    GENERIC,
    NO_ATTRIBUTE,
    NOT_FOUND,
    SUCCESS,
    both,
    failing,
    giving,
    lookup_of,
    public,
    read,
    refused,
)
from tests.client.samples import (
    KINDS,
    MAP,
    ONE,
    THREE,
    TWO,
    on_the_wire,
    populated,
    rows,
)


class TestWhichCall:
    @pytest.mark.parametrize(
        ("kind", "wanted", "number", "path"),
        [
            pytest.param(
                QueueManager,
                equal("ComputerName", "c14"),
                2,
                "c14",
                marks=pytest.mark.req("MQDS-3.2.6.3.1-04"),
            ),
            pytest.param(
                Queue,
                equal("Pathname", "c14\\q"),
                1,
                "c14\\q",
                marks=pytest.mark.req("MQDS-3.2.6.3.2-03"),
            ),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.3-02")
    def test_by_name(
        self, kind: type[DirectoryElement], wanted: Filter, number: int, path: str
    ) -> None:
        outcome, peer = read(kind, [wanted], ["Identifier"], both(giving({})))
        assert outcome.status is SUCCESS
        assert peer.names == ["S_DSGetProps"]
        request = peer.only(dscomm.GET_PROPS)
        assert (request.object_type, request.path) == (number, path)

    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("QueueManager", marks=pytest.mark.req("MQDS-3.2.6.3.1-04")),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.3.2-03")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.3.3-01")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.3.4-01")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.3.5-01")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.3.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.3.7-01")),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.3-02", "MQDS-3.2.6-01")
    def test_by_identifier(self, kind: str) -> None:
        number, wanted = DIRECT[kind]
        outcome, peer = read(KINDS[kind], [wanted], None, both(giving({})))
        assert outcome.status is SUCCESS
        assert peer.names == ["S_DSGetPropsGuid"]
        request = peer.only(dscomm.GET_PROPS_GUID)
        assert (request.object_type, request.guid) == (number, ONE)

    def test_identifiers_may_be_text(self) -> None:
        _, peer = read(Site, [equal("identifier", f"{{{ONE}}}")], None, both(giving({})))
        assert peer.only(dscomm.GET_PROPS_GUID).guid == ONE

    @pytest.mark.parametrize(
        ("kind", "filters"),
        [
            (Queue, None),
            (Queue, []),
            (Queue, [equal("Label", "Orders")]),
            (Queue, [Filter("Pathname", Operator.NOT_EQUALS, "c14\\q")]),
            (Queue, [equal("Pathname", "c14\\q"), equal("Label", "Orders")]),
            (QueueManager, [Filter("ComputerName", Operator.GREATER_THAN, "c14")]),
            (Site, [equal("Name", "Leiden")]),
            (Enterprise, [equal("Name", "Meridian")]),
            (User, [equal("Identifier", ONE)]),
            (User, [equal("SecurityIdentifier", b"sid")]),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.3-03", "MQDS-3.2.6.3-02", "MQDS-3.2.6.3-01")
    def test_everything_else_is_a_lookup(
        self, kind: type[DirectoryElement], filters: list[Filter] | None
    ) -> None:
        identifier = PropVariant(VarType.CLSID, THREE)
        outcome, peer = read(kind, filters, ["Identifier"], lookup_of([identifier]))
        assert peer.names == ["S_DSLookupBegin", "S_DSLookupNext", "S_DSLookupEnd"]
        assert outcome.status is SUCCESS
        assert outcome.value == kind(identifier=THREE)
        begun = peer.only(dscomm.LOOKUP_BEGIN)
        assert begun.sort is None
        restrictions = () if begun.restriction is None else begun.restriction.restrictions
        assert len(restrictions) == len(filters or [])

    @pytest.mark.parametrize(
        ("kind", "wanted"),
        [
            pytest.param(
                QueueManager,
                equal("ComputerName", None),
                marks=pytest.mark.req("MQDS-3.2.6.3.1-01"),
            ),
            pytest.param(
                QueueManager, equal("Identifier", None), marks=pytest.mark.req("MQDS-3.2.6.3.1-01")
            ),
            pytest.param(
                Queue, equal("Pathname", None), marks=pytest.mark.req("MQDS-3.2.6.3.2-01")
            ),
            pytest.param(
                Enterprise, equal("Identifier", None), marks=pytest.mark.req("MQDS-3.2.6.3.3-01")
            ),
            pytest.param(
                Site, equal("Identifier", "Leiden"), marks=pytest.mark.req("MQDS-3.2.6.3.4-01")
            ),
            pytest.param(
                RoutingLink, equal("Identifier", None), marks=pytest.mark.req("MQDS-3.2.6.3.5-01")
            ),
            pytest.param(
                e.ConnectedNetwork,
                equal("Identifier", None),
                marks=pytest.mark.req("MQDS-3.2.6.3.6-01"),
            ),
            pytest.param(
                User,
                equal("CertificateDigestList", (ONE, TWO)),
                marks=pytest.mark.req("MQDS-3.2.6.3.7-01"),
            ),
            pytest.param(
                User,
                equal("CertificateDigestList", ()),
                marks=pytest.mark.req("MQDS-3.2.6.3.7-01"),
            ),
            pytest.param(
                User,
                equal("CertificateDigestList", None),
                marks=pytest.mark.req("MQDS-3.2.6.3.7-01"),
            ),
        ],
    )
    def test_without_a_value_nothing_is_asked(
        self, kind: type[DirectoryElement], wanted: Filter
    ) -> None:
        refused(*read(kind, [wanted]))

    @pytest.mark.parametrize("kind", [DirectoryElement, object, "Queue", None])
    def test_unknown_types(self, kind: Any) -> None:
        refused(*read(kind, [equal("Identifier", ONE)]))
        refused(*read(kind, None))

    @pytest.mark.req("MQDS-3.2.6.3-05")
    def test_reads_call_nothing_that_writes(self) -> None:
        reading = {
            "S_DSValidateServer",
            "S_DSCloseServerHandle",
            "S_DSGetProps",
            "S_DSGetPropsGuid",
            "S_DSLookupBegin",
            "S_DSLookupNext",
            "S_DSLookupEnd",
        }
        for kind, (_, wanted) in DIRECT.items():
            table = rows(kind, "read")
            values = {int(row["propid"]): on_the_wire(row) for row in table}
            lines = {**both(giving(values)), **lookup_of(list(values.values()))}
            for filters in ([wanted], None):
                listed = [row["attribute"] for row in table]
                outcome, peer = read(KINDS[kind], filters, listed, lines)
                assert outcome.value == populated(kind)
                assert {asked.name for asked in peer.asked} <= reading


class TestProperties:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                "QueueManager", marks=pytest.mark.req("MQDS-3.2.6.3.1-01", "MQDS-3.2.6.3.1-03")
            ),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.3.2-01", "MQDS-3.2.6.3.2-02")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.3.3-02")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.3.5-02")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.3.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.3.7-02")),
        ],
    )
    @pytest.mark.req("MQDS-2.2.10.1-51")
    def test_by_default_all_but_the_private_ones(self, kind: str) -> None:
        _, peer = read(KINDS[kind], [DIRECT[kind][1]], None, both(giving({})))
        request = peer.only(dscomm.GET_PROPS_GUID)
        assert list(request.ids) == public(kind)
        assert request.types == (VarType.NULL,) * len(request.ids)

    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("QueueManager", marks=pytest.mark.req("MQDS-3.2.6.3.1-03")),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.3.2-02")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.3.3-02")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.3.4-02")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.3.5-02")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.3.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.3.7-02")),
        ],
    )
    def test_each_attribute_alone_is_the_property_of_its_row(self, kind: str) -> None:
        wanted: dict[str, set[int]] = {}
        for row in rows(kind, "read"):
            wanted.setdefault(row["attribute"], set()).add(int(row["propid"]))
        for attribute, propids in wanted.items():
            _, peer = read(KINDS[kind], [DIRECT[kind][1]], [attribute], both(giving({})))
            if attribute == "DirectoryServerType":  # it means nothing without this one
                propids |= {PropId.QM_SERVICE_DSSERVER}
            assert set(peer.only(dscomm.GET_PROPS_GUID).ids) == propids

    @pytest.mark.req("MQDS-3.2.6.3.4-02", "MQDS-2.2.10.1-51")
    def test_of_a_site_its_gates_as_well(self) -> None:
        """The tables leave them out, and routing is nothing without them."""
        _, peer = read(Site, [DIRECT["Site"][1]], None, both(giving({})))
        assert list(peer.only(dscomm.GET_PROPS_GUID).ids) == [*public("Site"), PropId.S_GATES]

    @pytest.mark.req("MQDS-2.2.10.1-51")
    @pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("RoutingLink", "User")])
    def test_private_ones_when_they_are_named(self, kind: str) -> None:
        _, peer = read(KINDS[kind], [DIRECT[kind][1]], ["Security"], both(giving({})))
        (propid,) = peer.only(dscomm.GET_PROPS_GUID).ids
        row = next(r for r in rows(kind, "read") if r["attribute"] == "Security")
        assert propid == int(row["propid"]) >= 1000

    @pytest.mark.req("MQDS-3.2.6.3-01")
    def test_a_list_selects(self) -> None:
        outcome, peer = read(
            Queue,
            [equal("Pathname", "c14\\q")],
            ["Quota", "Label"],
            both(giving(props({PropId.Q_LABEL: "Orders"}))),
        )
        assert peer.only(dscomm.GET_PROPS).ids == (PropId.Q_QUOTA, PropId.Q_LABEL)
        assert (outcome.status, outcome.value) == (SUCCESS, Queue(label="Orders"))

    @pytest.mark.req("MQDS-3.2.6.3.1-02")
    def test_the_type_of_a_server_needs_to_know_whether_it_is_one(self) -> None:
        wanted = equal("ComputerName", "c14")
        for listed in (["DirectoryServerType"], ["DirectoryServerType", "DirectoryServer"]):
            _, peer = read(QueueManager, [wanted], listed, both(giving({})))
            ids = peer.only(dscomm.GET_PROPS).ids
            assert ids == (PropId.QM_SERVICE, PropId.QM_SERVICE_DSSERVER)
        _, peer = read(QueueManager, [wanted], ["RemoteAccessServer"], both(giving({})))
        assert peer.only(dscomm.GET_PROPS).ids == (PropId.QM_SERVICE,)

    @pytest.mark.req("MQDS-3.2.6.3.1-03")
    def test_a_property_of_two_attributes_is_asked_for_once(self) -> None:
        listed = ["RemoteAccessServer", "DirectoryServerType", "ComputerName", "ComputerName"]
        _, peer = read(QueueManager, [equal("Identifier", ONE)], listed, both(giving({})))
        ids = peer.only(dscomm.GET_PROPS_GUID).ids
        assert ids == (PropId.QM_SERVICE, PropId.QM_PATHNAME, PropId.QM_SERVICE_DSSERVER)

    @pytest.mark.req("MQDS-3.2.6.3-06")
    @pytest.mark.parametrize("kind", KINDS)
    def test_names_that_no_table_has_are_passed_over(self, kind: str) -> None:
        listed = ["Nonsense", "Identifier", "SequenceNumber"]
        outcome, peer = read(KINDS[kind], [DIRECT[kind][1]], listed, both(giving({})))
        assert outcome.status is SUCCESS
        assert len(peer.only(dscomm.GET_PROPS_GUID).ids) == 1

    @pytest.mark.req("MQDS-3.2.6.3.1-03")
    @pytest.mark.parametrize(
        ("kind", "listed"),
        [
            (Enterprise, ["NonLDAPCapableQueueManagerNotification"]),
            (Queue, ["Nonsense"]),
            (Queue, []),
        ],
    )
    def test_if_nothing_is_left_there_is_no_call(
        self, kind: type[DirectoryElement], listed: list[str]
    ) -> None:
        for filters in ([equal("Identifier", ONE)], None):
            outcome, peer = read(kind, filters, listed)
            assert outcome.status is NO_ATTRIBUTE
            assert peer.asked == []


class TestFailures:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("QueueManager", marks=pytest.mark.req("MQDS-3.2.6.3.1-05")),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.3.2-04")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.3.3-03")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.3.4-01")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.3.5-01")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.3.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.3.7-02")),
        ],
    )
    def test_codes(self, kind: str) -> None:
        outcome, _ = read(KINDS[kind], [DIRECT[kind][1]], None, failing(0xC00E050F))
        assert (outcome.status, outcome.value) == (NOT_FOUND, None)
        for code in (0xC00E0025, 0xC00E0039, 0x400E0001):
            outcome, peer = read(KINDS[kind], [DIRECT[kind][1]], None, failing(code))
            assert (outcome.status, outcome.value) == (GENERIC, None)
            assert isinstance(outcome.error, DirectoryError)
            assert outcome.error.hresult == code
            assert len(peer.names) == 1

    @pytest.mark.parametrize(
        ("lines", "status", "names"),
        [
            (
                {dscomm.LOOKUP_BEGIN: dscomm.HandleGot(NOTHING, 0xC00E0025)},
                GENERIC,
                ["S_DSLookupBegin"],
            ),
            (
                {
                    dscomm.LOOKUP_NEXT: lambda _c, r: dscomm.LookupGot(
                        (), bytes(r.signature_size), 0xC00E0025
                    )
                },
                GENERIC,
                ["S_DSLookupBegin", "S_DSLookupNext", "S_DSLookupEnd"],
            ),
            ({}, END, ["S_DSLookupBegin", "S_DSLookupNext", "S_DSLookupEnd"]),
            (
                {
                    **lookup_of([text("Orders")]),
                    dscomm.LOOKUP_END: dscomm.HandleGot(NOTHING, 0xC00E0025),
                },
                GENERIC,
                ["S_DSLookupBegin", "S_DSLookupNext", "S_DSLookupEnd"],
            ),
        ],
        ids=["begin", "next", "nothing found", "end"],
    )
    @pytest.mark.req("MQDS-3.2.6.3-04")
    def test_the_first_failure_of_a_lookup_is_the_result(
        self,
        lines: dict[Any, Line],
        status: DirectoryOperationResult,
        names: list[str],
    ) -> None:
        async def main() -> None:
            async def read_one(events: Any) -> Outcome[Queue]:
                outcome: Outcome[Queue] = await events.read_directory(Queue, None, ["Label"])
                assert len(events.iterators) == 0
                return outcome

            outcome, peer = await scripted_event(read_one, lines)
            assert (outcome.status, outcome.value) == (status, None)
            assert peer.names == names

        run(main())

    def test_as_exceptions(self) -> None:
        with pytest.raises(DirectoryError, match="MQDS_OBJECT_NOT_FOUND"):
            read(Queue, [equal("Identifier", ONE)], None, failing(0xC00E050F))[0].unwrap()
        with pytest.raises(DirectoryError, match="MQDS_OBJECT_NOT_FOUND"):
            read(Queue, None)[0].unwrap()
        with pytest.raises(ValueError, match="exactly one certificate"):
            read(User, [equal("CertificateDigestList", ())])[0].unwrap()


def test_default_attributes_are_the_readable_ones() -> None:
    for kind, element in KINDS.items():
        named = {python_name(r["attribute"]) for r in MAP if r["object_type"] == kind}
        beyond = {"site_gate_identifier_list"} if element is Site else set()
        assert set(default_attributes(element)) <= named | beyond
        private = {
            python_name(r["attribute"]) for r in rows(kind, "read") if r["private_id"] == "y"
        }
        assert not private & set(default_attributes(element))
