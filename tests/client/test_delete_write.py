"""Delete Directory Object and Write Directory (MS-MQDS 3.2.6.2, 3.2.6.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mqis.client import (
    ConnectedNetwork,
    DirectoryElement,
    Enterprise,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    User,
)
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.protocol.errors import DirectoryError
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import Asked, Line, Scripted, run, scripted_event
from tests.client.samples import KINDS, ONE, SAMPLES, THREE, TWO, populated, properties, rows

SUCCESS = DirectoryOperationResult.SUCCESS
GENERIC = DirectoryOperationResult.GENERIC_ERROR

FAILURES = [0xC00E0025, 0xC00E050F, 0x400E0001]


def delete(element: Any, lines: dict[Any, Line] | None = None) -> tuple[Outcome[None], Scripted]:
    return run(scripted_event(lambda e: e.delete_directory_object(element), lines))


def write(
    element: Any,
    attributes: Sequence[str] | None = None,
    lines: dict[Any, Line] | None = None,
) -> tuple[Outcome[None], Scripted]:
    return run(scripted_event(lambda e: e.write_directory(element, attributes), lines))


def only_call(outcome: Outcome[None], peer: Scripted) -> Asked:
    assert outcome.status is SUCCESS
    assert len(peer.names) == 1
    return next(asked for asked in peer.asked if asked.name == peer.names[0])


def refused(outcome: Outcome[None], peer: Scripted) -> None:
    assert outcome.status is GENERIC
    assert peer.asked == []


class TestDelete:
    @pytest.mark.req("MQDS-3.2.6.2-01")
    @pytest.mark.parametrize("element", [populated("Enterprise"), object(), None])
    def test_what_cannot_be_deleted(self, element: Any) -> None:
        refused(*delete(element))

    @pytest.mark.parametrize(
        ("element", "number", "path"),
        [
            pytest.param(
                QueueManager(computer_name="c14", identifier=ONE),
                2,
                "c14",
                marks=pytest.mark.req("MQDS-3.2.6.2.1-01"),
            ),
            pytest.param(
                Queue(pathname="c14\\q", identifier=ONE),
                1,
                "c14\\q",
                marks=pytest.mark.req("MQDS-3.2.6.2.2-01"),
            ),
            pytest.param(
                QueueManager(computer_name="c15"),
                2,
                "c15",
                marks=pytest.mark.req("MQDS-3.2.6.2.1-01"),
            ),
            pytest.param(
                Queue(pathname="c15\\q"), 1, "c15\\q", marks=pytest.mark.req("MQDS-3.2.6.2.2-01")
            ),
        ],
    )
    def test_by_name_where_there_is_one(
        self, element: DirectoryElement, number: int, path: str
    ) -> None:
        asked = only_call(*delete(element))
        assert asked.operation is dscomm.DELETE_OBJECT
        assert asked.request == dscomm.ByPath(number, path)

    @pytest.mark.parametrize(
        ("element", "number"),
        [
            pytest.param(
                QueueManager(identifier=ONE), 2, marks=pytest.mark.req("MQDS-3.2.6.2.1-01")
            ),
            pytest.param(Queue(identifier=ONE), 1, marks=pytest.mark.req("MQDS-3.2.6.2.2-01")),
            pytest.param(
                Site(identifier=ONE, name="Leiden"),
                3,
                marks=pytest.mark.req("MQDS-3.2.6.2.3-01"),
            ),
            pytest.param(
                RoutingLink(identifier=ONE), 8, marks=pytest.mark.req("MQDS-3.2.6.2.4-01")
            ),
            pytest.param(
                ConnectedNetwork(identifier=ONE, name="IP"),
                5,
                marks=pytest.mark.req("MQDS-3.2.6.2.5-01"),
            ),
            pytest.param(
                User(certificate_digest_list=(ONE,), identifier=TWO),
                7,
                marks=pytest.mark.req("MQDS-3.2.6.2.6-01"),
            ),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.2-01")
    def test_by_identifier(self, element: DirectoryElement, number: int) -> None:
        asked = only_call(*delete(element))
        assert asked.operation is dscomm.DELETE_OBJECT_GUID
        assert asked.request == dscomm.ByGuid(number, ONE)

    @pytest.mark.parametrize(
        "element",
        [
            pytest.param(
                QueueManager(queue_manager_quota=5), marks=pytest.mark.req("MQDS-3.2.6.2.1-01")
            ),
            pytest.param(Queue(label="x"), marks=pytest.mark.req("MQDS-3.2.6.2.2-01")),
            pytest.param(Site(name="Leiden"), marks=pytest.mark.req("MQDS-3.2.6.2.3-01")),
            pytest.param(
                RoutingLink(site1_identifier=ONE), marks=pytest.mark.req("MQDS-3.2.6.2.4-01")
            ),
            pytest.param(ConnectedNetwork(name="IP"), marks=pytest.mark.req("MQDS-3.2.6.2.5-01")),
            pytest.param(User(identifier=ONE), marks=pytest.mark.req("MQDS-3.2.6.2.6-01")),
            pytest.param(
                User(certificate_digest_list=(ONE, TWO)),
                marks=pytest.mark.req("MQDS-3.2.6.2.6-01"),
            ),
            pytest.param(
                User(certificate_digest_list=()), marks=pytest.mark.req("MQDS-3.2.6.2.6-01")
            ),
        ],
    )
    def test_what_is_not_addressed(self, element: DirectoryElement) -> None:
        refused(*delete(element))

    @pytest.mark.req("MQDS-3.2.6.2-02")
    @pytest.mark.parametrize("code", FAILURES)
    @pytest.mark.parametrize("kind", [k for k in KINDS if k != "Enterprise"])
    def test_anything_but_ok_is_an_error(self, kind: str, code: int) -> None:
        result = dscomm.DirectoryResult(code)
        lines = {dscomm.DELETE_OBJECT: result, dscomm.DELETE_OBJECT_GUID: result}
        outcome, peer = delete(populated(kind), lines)
        assert outcome.status is GENERIC
        assert isinstance(outcome.error, DirectoryError)
        assert outcome.error.hresult == code
        assert len(peer.names) == 1


#: Identifiers that a server fails the whole call for (3.1.4.21.8.2).
NOT_BY_DEFAULT = {210, 227, 238, 609, 801, 802, 808, 809, 1101, 1301, 1302, 1501, 1601}


class TestWrite:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("QueueManager", marks=pytest.mark.req("MQDS-3.2.6.7.1-02")),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.7.2-01")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.7.3-01")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.7.4-01")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.7.5-01")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.7.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.7.7-01")),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.7-02")
    def test_the_whole_table_goes_when_all_is_named(self, kind: str) -> None:
        request = only_call(*write(populated(kind), list(SAMPLES[kind]))).request
        assert dict(zip(request.ids, request.values, strict=True)) == properties(kind, "write")
        assert request.object_type == int(rows(kind, "write")[0]["object_type_id"])

    @pytest.mark.req("MQDS-3.2.6.7.1-02", "MQDS-3.2.6.7-01", "MQDS-2.2.10.1-51")
    @pytest.mark.parametrize("kind", [k for k in KINDS if k != "ConnectedNetwork"])
    def test_without_a_list_what_servers_refuse_stays_behind(self, kind: str) -> None:
        request = only_call(*write(populated(kind))).request
        sent = dict(zip(request.ids, request.values, strict=True))
        assert sent == properties(kind, "write", *NOT_BY_DEFAULT)
        assert sent  # each type has something to write

    @pytest.mark.req("MQDS-3.2.6.7-01", "MQDS-3.2.6.1.1-05")
    def test_a_list_selects(self) -> None:
        asked = only_call(*write(populated("Queue"), ["Label", "Transactional", "CreateTime"]))
        assert asked.request.ids == (PropId.Q_LABEL,)

    @pytest.mark.req("MQDS-3.2.6.7-03")
    @pytest.mark.parametrize(
        ("element", "listed"),
        [
            (Queue(pathname="c14\\q", label="x"), []),
            (Queue(pathname="c14\\q", label="x"), ["Transactional"]),
            (Queue(pathname="c14\\q"), None),
            (populated("ConnectedNetwork"), None),
        ],
    )
    def test_nothing_to_write_is_a_success_without_a_call(
        self, element: DirectoryElement, listed: list[str] | None
    ) -> None:
        outcome, peer = write(element, listed)
        assert outcome.status is SUCCESS
        assert peer.asked == []

    @pytest.mark.req("MQDS-3.2.6.7-02")
    @pytest.mark.parametrize("element", [object(), "Queue"])
    def test_other_types(self, element: Any) -> None:
        refused(*write(element))

    @pytest.mark.parametrize(
        "element",
        [
            pytest.param(
                QueueManager(queue_manager_quota=5), marks=pytest.mark.req("MQDS-3.2.6.7.1-01")
            ),
            pytest.param(Queue(label="x"), marks=pytest.mark.req("MQDS-3.2.6.7.2-02")),
            pytest.param(Enterprise(name="x"), marks=pytest.mark.req("MQDS-3.2.6.7.3-01")),
            pytest.param(
                Site(name="x", foreign_site=True), marks=pytest.mark.req("MQDS-3.2.6.7.4-01")
            ),
            pytest.param(RoutingLink(description="x"), marks=pytest.mark.req("MQDS-3.2.6.7.5-01")),
            pytest.param(
                ConnectedNetwork(name="x", security=b"sd"),
                marks=pytest.mark.req("MQDS-3.2.6.7.6-01"),
            ),
            pytest.param(
                User(certificates=b"x", certificate_digest_list=(ONE,)),
                marks=pytest.mark.req("MQDS-3.2.6.7.7-01"),
            ),
        ],
    )
    def test_what_is_not_addressed(self, element: DirectoryElement) -> None:
        refused(*write(element, list(SAMPLES[type(element).__name__])))

    @pytest.mark.parametrize(
        ("element", "path"),
        [
            pytest.param(
                QueueManager(computer_name="c14", identifier=ONE, journal_quota=5),
                "c14",
                marks=pytest.mark.req("MQDS-3.2.6.7.1-01", "MQDS-3.2.6.7.1-03"),
            ),
            pytest.param(
                Queue(pathname="c14\\q", identifier=ONE, label="x"),
                "c14\\q",
                marks=pytest.mark.req("MQDS-3.2.6.7.2-02"),
            ),
            pytest.param(
                QueueManager(computer_name="c15", journal_quota=5),
                "c15",
                marks=pytest.mark.req("MQDS-3.2.6.7.1-01"),
            ),
            pytest.param(
                Queue(pathname="c15\\q", label="x"),
                "c15\\q",
                marks=pytest.mark.req("MQDS-3.2.6.7.2-02"),
            ),
        ],
    )
    def test_by_name_where_there_is_one(self, element: DirectoryElement, path: str) -> None:
        asked = only_call(*write(element))
        assert asked.operation is dscomm.SET_PROPS
        assert asked.request.path == path

    @pytest.mark.parametrize(
        ("element", "number"),
        [
            pytest.param(
                QueueManager(identifier=ONE, journal_quota=5),
                2,
                marks=pytest.mark.req("MQDS-3.2.6.7.1-03"),
            ),
            pytest.param(
                Queue(identifier=ONE, label="x"), 1, marks=pytest.mark.req("MQDS-3.2.6.7.2-02")
            ),
            pytest.param(
                Enterprise(identifier=ONE, default_time_to_live=5),
                6,
                marks=pytest.mark.req("MQDS-3.2.6.7.3-01"),
            ),
            pytest.param(
                Site(identifier=ONE, foreign_site=True),
                3,
                marks=pytest.mark.req("MQDS-3.2.6.7.4-01"),
            ),
            pytest.param(
                RoutingLink(identifier=ONE, description="x"),
                8,
                marks=pytest.mark.req("MQDS-3.2.6.7.5-01"),
            ),
            pytest.param(
                User(identifier=ONE, certificates=b"x"),
                7,
                marks=pytest.mark.req("MQDS-3.2.6.7.7-01"),
            ),
        ],
    )
    def test_by_identifier(self, element: DirectoryElement, number: int) -> None:
        asked = only_call(*write(element))
        assert asked.operation is dscomm.SET_PROPS_GUID
        assert (asked.request.object_type, asked.request.guid) == (number, ONE)

    @pytest.mark.req("MQDS-3.2.6.7.6-01")
    def test_of_a_network_just_its_security(self) -> None:
        asked = only_call(*write(populated("ConnectedNetwork"), ["Name", "Identifier", "Security"]))
        assert asked.request == dscomm.SetPropsGuid(
            5, ONE, (PropId.CN_SECURITY,), (PropVariant(VarType.BLOB, b"descriptor"),)
        )

    @pytest.mark.req("MQDS-3.2.6.7.3-01")
    @pytest.mark.parametrize(("old", "version"), [(True, 3), (False, 200)])
    def test_the_version_of_a_directory(self, old: bool, version: int) -> None:
        asked = only_call(*write(Enterprise(identifier=THREE, old_directory=old)))
        assert asked.request.values == (PropVariant(VarType.UI2, version),)

    @pytest.mark.req("MQDS-3.2.6.7-03", "MQDS-3.2.6.7.1-03")
    @pytest.mark.parametrize("code", FAILURES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_anything_but_ok_is_an_error(self, kind: str, code: int) -> None:
        result = dscomm.DirectoryResult(code)
        lines = {dscomm.SET_PROPS: result, dscomm.SET_PROPS_GUID: result}
        outcome, peer = write(populated(kind), list(SAMPLES[kind]), lines)
        assert outcome.status is GENERIC
        assert isinstance(outcome.error, DirectoryError)
        assert outcome.error.hresult == code
        assert len(peer.names) == 1
