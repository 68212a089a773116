"""Read Directory Begin, Next and End (MS-MQDS 3.2.6.4 to 3.2.6.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mqis.client import (
    ClientEvents,
    DirectoryElement,
    Enterprise,
    Filter,
    Operator,
    Queue,
    QueueManager,
    ServerAddress,
    SortOrder,
    default_attributes,
    equal,
)
from mqis.client import elements as e
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import PropertyRestriction, SortColumn
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import (
    AUTH,
    HOST,
    NOTHING,
    OK,
    QUERY,
    Line,
    Scripted,
    events_at,
    run,
    scripted_event,
    text,
)
from tests.client.samples import (
    KINDS,
    ONE,
    SAMPLES,
    TWO,
    on_the_wire,
    populated,
    rows,
    variant_type,
)

SUCCESS = DirectoryOperationResult.SUCCESS
GENERIC = DirectoryOperationResult.GENERIC_ERROR
END = DirectoryOperationResult.END_OF_DATA

#: A handle that no query has.
UNKNOWN = ContextHandle(Guid(b"x" * 16))


def begin(
    kind: Any,
    filters: Sequence[Filter] | None = None,
    attributes: Sequence[str] | None = None,
    sort_order: Sequence[SortOrder] | None = None,
    lines: Mapping[Any, Line] | None = None,
) -> tuple[Outcome[ContextHandle], Scripted]:
    """Begin, and check that the iterators are what they should be afterwards."""

    async def event(events: ClientEvents) -> Outcome[ContextHandle]:
        outcome = await events.read_directory_begin(kind, filters, attributes, sort_order)
        if outcome.ok:
            (iterator,) = events.iterators
            assert iterator.handle == outcome.value
            assert iterator.element_type is kind
        else:
            assert len(events.iterators) == 0
            assert outcome.value is None
        return outcome

    return run(scripted_event(event, lines))


def asked(*arguments: Any, **more: Any) -> dscomm.LookupBegin:
    outcome, peer = begin(*arguments, **more)
    assert outcome.status is SUCCESS
    request: dscomm.LookupBegin = peer.only(dscomm.LOOKUP_BEGIN)
    return request


def refused(*arguments: Any, **more: Any) -> None:
    outcome, peer = begin(*arguments, **more)
    assert outcome.status is GENERIC
    assert peer.asked == []


def columns_of(kind: str) -> list[int]:
    ids = dict.fromkeys(int(row["propid"]) for row in rows(kind, "lookup"))
    beyond = [int(PropId.S_GATES)] if kind == "Site" else []
    return [propid for propid in ids if propid < 1000] + beyond


class TestBegin:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                "QueueManager", marks=pytest.mark.req("MQDS-3.2.6.4.1-01", "MQDS-3.2.6.4.1-02")
            ),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.4.2-01")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.4.3-01")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.4.4-01")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.4.5-01")),
            "ConnectedNetwork",
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.4.7-01")),
        ],
    )
    @pytest.mark.req("MQDS-2.2.10.1-51")
    def test_columns_by_default(self, kind: str) -> None:
        """All but the private ones, by which a server could not tell the type."""
        request = asked(KINDS[kind])
        assert list(request.columns.columns or ()) == columns_of(kind)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.req("MQDS-3.2.6.4.1-02")
    def test_columns_when_all_is_named(self, kind: str) -> None:
        request = asked(KINDS[kind], None, list(SAMPLES[kind]))
        wanted = {int(row["propid"]) for row in rows(kind, "lookup")}
        assert set(request.columns.columns or ()) == wanted
        assert len(request.columns.columns or ()) == len(wanted)

    @pytest.mark.req("MQDS-3.2.6.4.6-01")
    def test_the_columns_of_a_network(self) -> None:
        """Written out: the private SECURITY is a column if the caller names the attribute."""
        request = asked(e.ConnectedNetwork, None, ["Name", "Identifier", "Security"])
        assert request.columns.columns == (502, 503, 1501)

    @pytest.mark.req("MQDS-3.2.6.4.1-01", "MQDS-3.2.6.4.1-02", "MQDS-3.2.1.5-01")
    def test_the_iterator_remembers_attributes_and_columns(self) -> None:
        listed = ["Nonsense", "DirectoryServerType", "ComputerName", "RemoteAccessServer"]
        orders = [SortOrder(9), SortOrder(), SortOrder(1), SortOrder()]

        async def event(events: ClientEvents) -> None:
            begun = await events.read_directory_begin(QueueManager, None, listed, orders)
            (iterator,) = events.iterators
            assert iterator.handle == begun.value == QUERY
            assert iterator.element_type is QueueManager
            assert iterator.columns is not None
            assert iterator.columns.attributes[1:] == (
                "directory_server_type",
                "computer_name",
                "remote_access_server",
                "directory_server",
            )
            assert iterator.columns.propids == (
                PropId.QM_SERVICE,
                PropId.QM_PATHNAME,
                PropId.QM_SERVICE_DSSERVER,
            )

        _, peer = run(scripted_event(event))
        request = peer.only(dscomm.LOOKUP_BEGIN)
        assert request.columns.columns == (
            PropId.QM_SERVICE,
            PropId.QM_PATHNAME,
            PropId.QM_SERVICE_DSSERVER,
        )
        assert request.sort.keys == (SortColumn(PropId.QM_PATHNAME, 0),)

    @pytest.mark.req("MQDS-3.2.6.4.1-02", "MQDS-3.2.6.4-03")
    def test_no_columns_no_call(self) -> None:
        listed = ["NonLDAPCapableQueueManagerNotification"]
        outcome, peer = begin(Enterprise, None, listed)
        assert outcome.status is DirectoryOperationResult.ATTRIBUTE_NOT_FOUND
        assert peer.asked == []

    @pytest.mark.req("MQDS-3.2.6.4.1-06", "MQDS-3.2.6.4-04", "MQDS-3.1.4.17-51")
    def test_the_call(self) -> None:
        outcome, peer = begin(Queue)
        assert (outcome.status, outcome.value) == (SUCCESS, QUERY)
        request = peer.only(dscomm.LOOKUP_BEGIN)
        assert request.context is None
        assert request.auth == AUTH
        assert request.restriction is None
        assert request.sort is None

    @pytest.mark.req("MQDS-3.2.6.4.1-06", "MQDS-3.2.6.4-03")
    @pytest.mark.parametrize("code", [0xC00E0025, 0x400E0001])
    def test_anything_but_ok_is_an_error(self, code: int) -> None:
        lines = {dscomm.LOOKUP_BEGIN: dscomm.HandleGot(QUERY, code)}
        outcome, _ = begin(Queue, lines=lines)
        assert outcome.status is GENERIC
        assert isinstance(outcome.error, DirectoryError)
        assert outcome.error.hresult == code

    @pytest.mark.req("MQDS-3.2.6.4-03")
    def test_without_a_server_nothing_begins(self) -> None:
        async def main() -> None:
            async with events_at(ServerAddress(HOST, 1)) as events:
                begun = await events.read_directory_begin(Queue)
                assert begun.status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
                assert begun.value is None
                assert len(events.iterators) == 0

        run(main())

    @pytest.mark.req("MQDS-3.2.6.4-03")
    def test_success_without_a_handle_is_none(self) -> None:
        lines = {dscomm.LOOKUP_BEGIN: dscomm.HandleGot(NOTHING, OK)}
        outcome, _ = begin(Queue, lines=lines)
        assert outcome.status is GENERIC

    @pytest.mark.req("MQDS-3.2.6.4-02")
    @pytest.mark.parametrize("kind", [DirectoryElement, object, "Queue"])
    def test_unknown_types_leave_no_record(self, kind: Any) -> None:
        refused(kind)

    @pytest.mark.req("MQDS-3.2.6.4-02", "MQDS-3.2.1.6-01")
    def test_the_record_is_there_before_the_call(self) -> None:
        async def main() -> None:
            seen: list[object] = []

            def look(_call: object, _request: object) -> dscomm.HandleGot:
                seen.extend((it.element_type, it.handle) for it in events.iterators)
                return dscomm.HandleGot(QUERY, OK)

            async with (
                Scripted({dscomm.LOOKUP_BEGIN: look}) as peer,
                events_at(peer.address) as events,
            ):
                begun = await events.read_directory_begin(Queue)
                assert seen == [(Queue, None)]
                assert begun.value is not None
                assert events.iterators.find(begun.value) is not None

        run(main())

    @pytest.mark.req("MQDS-3.2.1.6-01")
    def test_each_query_has_its_own_record(self) -> None:
        handles = [ContextHandle(Guid(bytes([n]) * 16)) for n in (1, 2, 3)]
        left = list(handles)

        async def event(events: ClientEvents) -> None:
            kinds = [Queue, QueueManager, Enterprise]
            for kind in kinds:
                await events.read_directory_begin(kind)
            found = [events.iterators.find(handle) for handle in handles]
            assert [it.element_type for it in found if it is not None] == kinds
            await events.read_directory_end(handles[1])
            assert events.iterators.find(handles[1]) is None
            assert len(events.iterators) == 2

        line = {dscomm.LOOKUP_BEGIN: lambda _c, _r: dscomm.HandleGot(left.pop(0), OK)}
        run(scripted_event(event, line))


class TestFilters:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param("QueueManager", marks=pytest.mark.req("MQDS-3.2.6.4.1-04")),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.4.2-01")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.4.3-01")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.4.4-01")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.4.5-01")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.4.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.4.7-01")),
        ],
    )
    @pytest.mark.req("MQDS-2.2.11-52", "MQDS-3.2.6.4.1-03")
    def test_every_attribute_that_may_be_filtered_by(self, kind: str) -> None:
        """As the property of the table, with the constant of exactly its type."""
        filterable = [row for row in rows(kind, "lookup") if row["filterable"] == "y"]
        for row in filterable:
            value = SAMPLES[kind][row["attribute"]][0]
            request = asked(KINDS[kind], [equal(row["attribute"], value)], ["Identifier"])
            assert request.restriction is not None
            (restriction,) = request.restriction.restrictions or ()
            assert restriction == PropertyRestriction(4, int(row["propid"]), on_the_wire(row))
            assert restriction.prval.vt is variant_type(row)

    @pytest.mark.parametrize(
        "attribute",
        [
            "RemoteAccessServer",
            "DirectoryServerType",
            "OutRoutingServerFullPathList",
            "InRoutingServerFullPathList",
            "Nonsense",
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.4.1-04")
    def test_those_that_may_not(self, attribute: str) -> None:
        value = SAMPLES["QueueManager"].get(attribute, ("x", "x"))[0]
        refused(QueueManager, [equal(attribute, value)])

    @pytest.mark.parametrize(
        ("operator", "number"),
        [
            (Operator.LESS_THAN, 0),
            (Operator.LESS_THAN_OR_EQUAL, 1),
            (Operator.GREATER_THAN, 2),
            (Operator.GREATER_THAN_OR_EQUAL, 3),
            (Operator.EQUALS, 4),
            (Operator.NOT_EQUALS, 5),
        ],
    )
    @pytest.mark.req("MQDS-2.2.11-51", "MQDS-3.2.6.4.1-03")
    def test_operators(self, operator: Operator, number: int) -> None:
        request = asked(Queue, [Filter("Quota", operator, 5)])
        assert request.restriction is not None
        (restriction,) = request.restriction.restrictions or ()
        assert restriction.rel == number

    @pytest.mark.parametrize("number", [6, 7, 8, 0x100, 0x200])
    @pytest.mark.req("MQDS-2.2.11-51")
    def test_the_operators_of_the_older_edition_are_not_sent(self, number: Any) -> None:
        refused(Queue, [Filter("Quota", number, 5)])

    @pytest.mark.req("MQDS-3.2.6.4.1-03")
    def test_one_restriction_for_each_filter(self) -> None:
        above, below = Filter("Quota", Operator.GREATER_THAN, 2), Filter("Quota", Operator(0), 5)
        request = asked(Queue, [equal("Label", "x"), above, below])
        assert request.restriction is not None
        assert request.restriction.restrictions == (
            PropertyRestriction(4, PropId.Q_LABEL, prop(PropId.Q_LABEL, "x")),
            PropertyRestriction(2, PropId.Q_QUOTA, prop(PropId.Q_QUOTA, 2)),
            PropertyRestriction(0, PropId.Q_QUOTA, prop(PropId.Q_QUOTA, 5)),
        )
        assert asked(Queue, []).restriction is None

    @pytest.mark.req("MQDS-2.2.11-52")
    def test_identifiers_as_text_become_guids(self) -> None:
        """MS-MQBR gives them so."""
        request = asked(e.RoutingLink, [equal("Site1Identifier", str(ONE))])
        assert request.restriction is not None
        (restriction,) = request.restriction.restrictions or ()
        assert restriction.prval == PropVariant(VarType.CLSID, ONE)
        request = asked(QueueManager, [equal("SiteIdentifierList", [str(ONE), TWO])])
        assert request.restriction is not None
        (restriction,) = request.restriction.restrictions or ()
        assert restriction.prval == PropVariant(VarType.VECTOR_CLSID, (ONE, TWO))

    @pytest.mark.parametrize(
        ("kind", "attribute", "false", "true"),
        [
            pytest.param(
                QueueManager, "Clustered", 0, 1, marks=pytest.mark.req("MQDS-3.2.6.4.1-04")
            ),
            pytest.param(
                QueueManager, "RoutingServer", 0, 1, marks=pytest.mark.req("MQDS-3.2.6.4.1-04")
            ),
            pytest.param(Queue, "Journaling", 0, 1, marks=pytest.mark.req("MQDS-3.2.6.4.2-01")),
            pytest.param(
                Enterprise, "OldDirectory", 200, 3, marks=pytest.mark.req("MQDS-3.2.6.4.3-01")
            ),
            pytest.param(
                Enterprise, "WeakenedSecurity", 0, 1, marks=pytest.mark.req("MQDS-3.2.6.4.3-01")
            ),
            pytest.param(
                e.Site, "MigratedFromMsmq10", 0, 1, marks=pytest.mark.req("MQDS-3.2.6.4.4-01")
            ),
            pytest.param(e.Site, "ForeignSite", 0, 1, marks=pytest.mark.req("MQDS-3.2.6.4.4-01")),
        ],
    )
    def test_truth_in_filters(
        self, kind: type[DirectoryElement], attribute: str, false: int, true: int
    ) -> None:
        for truth, number in ((False, false), (True, true)):
            request = asked(kind, [equal(attribute, truth)])
            assert request.restriction is not None
            (restriction,) = request.restriction.restrictions or ()
            assert restriction.prval.value == number

    @pytest.mark.parametrize(
        ("attribute", "value"),
        [("Quota", "much"), ("Identifier", "no guid"), ("PrivacyLevel", 9), ("Label", None)],
    )
    def test_values_that_do_not_fit_are_not_sent(self, attribute: str, value: object) -> None:
        refused(Queue, [equal("Journaling", True), equal(attribute, value)])


class TestSorting:
    @pytest.mark.req("MQDS-3.2.6.4.1-05", "MQDS-3.2.6.4-01", "MQDS-2.2.14-51")
    def test_highest_priority_first(self) -> None:
        listed = ["Label", "Quota", "Identifier", "Pathname", "Nonsense"]
        orders = [
            SortOrder(1),
            SortOrder(5, ascending=False),
            SortOrder(0, ascending=False),
            SortOrder(3),
            SortOrder(9),
        ]
        request = asked(Queue, None, listed, orders)
        assert request.sort is not None
        assert request.sort.keys == (
            SortColumn(PropId.Q_QUOTA, 1),
            SortColumn(PropId.Q_PATHNAME, 0),
            SortColumn(PropId.Q_LABEL, 0),
        )

    @pytest.mark.req("MQDS-3.2.6.4.1-05")
    def test_without_priorities_nothing_is_sent(self) -> None:
        assert asked(Queue, None, ["Label"], [SortOrder()]).sort is None
        assert asked(Queue, None, ["Label"]).sort is None
        assert asked(Queue, None, ["Nonsense", "Label"], [SortOrder(1), SortOrder()]).sort is None

    @pytest.mark.req("MQDS-3.2.6.4-01")
    def test_orders_run_parallel_to_the_attributes(self) -> None:
        refused(Queue, None, ["Label", "Quota"], [SortOrder(1)])
        names = default_attributes(Queue)
        orders = [SortOrder(1) if name == "quota" else SortOrder() for name in names]
        request = asked(Queue, None, None, orders)
        assert request.sort is not None
        assert request.sort.keys == (SortColumn(PropId.Q_QUOTA, 0),)

    def test_a_property_of_two_attributes_is_one_key(self) -> None:
        listed = ["RemoteAccessServer", "DirectoryServerType"]
        orders = [SortOrder(1), SortOrder(2, ascending=False)]
        request = asked(QueueManager, None, listed, orders)
        assert request.sort is not None
        assert request.sort.keys == (SortColumn(PropId.QM_SERVICE, 1),)


def giving(*found: Sequence[PropVariant], code: int = OK) -> dict[Any, Line]:
    left = [tuple(row) for row in found]

    def line(_call: object, request: Any) -> dscomm.LookupGot:
        row = left.pop(0) if left else ()
        return dscomm.LookupGot(row, bytes(request.signature_size), code)

    return {dscomm.LOOKUP_NEXT: line}


class TestNext:
    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                "QueueManager", marks=pytest.mark.req("MQDS-3.2.6.5.1-03", "MQDS-3.2.6.5-02")
            ),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.5.2-01")),
            pytest.param("Enterprise", marks=pytest.mark.req("MQDS-3.2.6.5.3-01")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.5.4-01")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.5.5-01")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.5.6-01")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.5.7-01")),
        ],
    )
    def test_every_attribute_of_the_table(self, kind: str) -> None:
        listed = list(SAMPLES[kind])

        async def event(events: ClientEvents) -> None:
            begun = await events.read_directory_begin(KINDS[kind], None, listed)
            assert begun.value is not None
            (iterator,) = events.iterators
            assert iterator.columns is not None
            by_id = {int(row["propid"]): on_the_wire(row) for row in rows(kind, "next")}
            peer_rows.append(tuple(by_id[propid] for propid in iterator.columns.propids))
            found = await events.read_directory_next(begun.value)
            assert (found.status, found.value) == (SUCCESS, populated(kind))

        peer_rows: list[tuple[PropVariant, ...]] = []
        lines: dict[Any, Line] = {
            dscomm.LOOKUP_NEXT: lambda _c, r: dscomm.LookupGot(
                peer_rows.pop(), bytes(r.signature_size), OK
            )
        }
        run(scripted_event(event, lines))

    @pytest.mark.req("MQDS-3.2.6.5.1-01", "MQDS-3.1.4.18-51")
    def test_the_call_asks_for_one_object(self) -> None:
        async def event(events: ClientEvents) -> None:
            begun = await events.read_directory_begin(Queue, None, ["Label", "Quota", "Nonsense"])
            assert begun.value is not None
            await events.read_directory_next(begun.value)

        _, peer = run(scripted_event(event))
        request = peer.only(dscomm.LOOKUP_NEXT)
        assert (request.handle, request.size, request.auth) == (QUERY, 2, AUTH)

    def label(self, lines: dict[Any, Line], times: int = 1) -> list[Outcome[Any]]:
        async def event(events: ClientEvents) -> list[Outcome[Any]]:
            begun = await events.read_directory_begin(Queue, None, ["Label", "Quota"])
            assert begun.value is not None
            found = [await events.read_directory_next(begun.value) for _ in range(times)]
            assert events.iterators.find(begun.value) is not None
            ended = await events.read_directory_end(begun.value)
            assert ended.status is SUCCESS
            return found

        return run(scripted_event(event, lines))[0]

    @pytest.mark.req("MQDS-3.2.6.5.1-02", "MQDS-4.3-51")
    def test_the_end_is_a_success_without_values(self) -> None:
        """And the iterator stays until it is ended."""
        row = [text("Orders"), PropVariant(VarType.UI4, 5)]
        found = self.label(giving(row), times=3)
        assert [outcome.status for outcome in found] == [SUCCESS, END, END]
        assert found[0].value == Queue(label="Orders", quota=5)
        assert found[1].value is None

    @pytest.mark.req("MQDS-3.2.6.5.1-01")
    @pytest.mark.parametrize("code", [0xC00E0025, 0x400E0001])
    def test_anything_but_ok_is_an_error(self, code: int) -> None:
        row = [text("Orders"), PropVariant(VarType.UI4, 5)]
        (outcome,) = self.label(giving(row, code=code))
        assert (outcome.status, outcome.value) == (GENERIC, None)
        assert isinstance(outcome.error, DirectoryError)
        assert outcome.error.hresult == code

    @pytest.mark.req("MQDS-3.2.6.5.1-03")
    def test_half_an_object_is_an_error(self) -> None:
        (outcome,) = self.label(giving([text("Orders")]))
        assert outcome.status is GENERIC
        assert isinstance(outcome.error, ProtocolError)

    @pytest.mark.req("MQDS-3.2.6.5-01")
    @pytest.mark.parametrize("handle", [NOTHING, UNKNOWN])
    def test_an_unknown_handle(self, handle: ContextHandle) -> None:
        outcome, peer = run(scripted_event(lambda ev: ev.read_directory_next(handle)))
        assert outcome.status is GENERIC
        assert peer.asked == []

    @pytest.mark.req("MQDS-3.2.6.5-01")
    def test_an_unknown_handle_beside_an_open_query(self) -> None:
        async def event(events: ClientEvents) -> Outcome[Any]:
            await events.read_directory_begin(Queue)
            return await events.read_directory_next(UNKNOWN)

        outcome, peer = run(scripted_event(event))
        assert (outcome.status, outcome.value) == (GENERIC, None)
        assert peer.names == ["S_DSLookupBegin"]

    @pytest.mark.req("MQDS-3.2.6.5-02")
    def test_two_queries_at_once_keep_their_types(self) -> None:
        handles = [ContextHandle(Guid(bytes([n]) * 16)) for n in (1, 2)]
        left = list(handles)

        async def event(events: ClientEvents) -> list[Any]:
            for kind in (Queue, e.Site):
                await events.read_directory_begin(kind, None, ["Identifier"])
            return [await events.read_directory_next(handle) for handle in reversed(handles)]

        identifier = PropVariant(VarType.CLSID, ONE)
        lines: dict[Any, Line] = {
            dscomm.LOOKUP_BEGIN: lambda _c, _r: dscomm.HandleGot(left.pop(0), OK),
            **giving([identifier], [identifier]),
        }
        found, _ = run(scripted_event(event, lines))
        assert [o.value for o in found] == [e.Site(identifier=ONE), Queue(identifier=ONE)]


class TestEnd:
    @pytest.mark.req("MQDS-3.2.6.6-01")
    def test_an_unknown_handle(self) -> None:
        outcome, peer = run(scripted_event(lambda ev: ev.read_directory_end(QUERY)))
        assert outcome.status is GENERIC
        assert peer.asked == []

    @pytest.mark.req("MQDS-3.2.6.6-01")
    def test_an_unknown_handle_beside_an_open_query(self) -> None:
        async def event(events: ClientEvents) -> Outcome[None]:
            await events.read_directory_begin(Queue)
            outcome = await events.read_directory_end(UNKNOWN)
            assert events.iterators.find(QUERY) is not None
            return outcome

        outcome, peer = run(scripted_event(event))
        assert outcome.status is GENERIC
        assert peer.names == ["S_DSLookupBegin"]

    @pytest.mark.parametrize(
        ("code", "status"), [(OK, SUCCESS), (0xC00E0025, GENERIC), (0x400E0001, GENERIC)]
    )
    @pytest.mark.req("MQDS-3.2.6.6-02", "MQDS-3.1.4.19-51")
    def test_the_iterator_goes_first(self, code: int, status: DirectoryOperationResult) -> None:
        async def main() -> None:
            left: list[int] = []

            def line(_call: object, _request: object) -> dscomm.HandleGot:
                left.append(len(events.iterators))
                return dscomm.HandleGot(NOTHING, code)

            async with Scripted({dscomm.LOOKUP_END: line}) as peer:
                async with events_at(peer.address) as events:
                    begun = await events.read_directory_begin(Queue)
                    assert begun.value is not None
                    ended = await events.read_directory_end(begun.value)
                    assert ended.status is status
                    assert left == [0]
                    again = await events.read_directory_end(begun.value)
                    assert again.status is GENERIC
                assert peer.only(dscomm.LOOKUP_END).handle == QUERY  # and never a second time

        run(main())
