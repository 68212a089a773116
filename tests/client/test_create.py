"""Create Directory Object (MS-MQDS 3.2.6.1): what is sent, and what comes of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from mqis.client.elements import DirectoryServerType, OperatingSystemType, PrivacyLevel, Scope
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.protocol.errors import DirectoryError
from mqis.runtime.directory.results import no_properties
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import NEW, OK, Line, Scripted, guid_of, run, scripted_event
from tests.client.samples import KINDS, ONE, SAMPLES, THREE, TWO, guid, populated, properties

SUCCESS = DirectoryOperationResult.SUCCESS
GENERIC = DirectoryOperationResult.GENERIC_ERROR

MACHINE = QueueManager(computer_name="c14", site_identifier_list=(ONE,))
QUEUE = Queue(pathname="c14\\orders", label="Orders")
LINK = RoutingLink(site1_identifier=ONE, site2_identifier=TWO, actual_cost=7)
USER = User(security_identifier=b"sid")


def create(
    element: Any,
    attributes: Sequence[str] | None = None,
    lines: dict[Any, Line] | None = None,
) -> tuple[Outcome[Guid | None], Scripted]:
    return run(scripted_event(lambda e: e.create_directory_object(element, attributes), lines))


def sent(element: DirectoryElement, attributes: Sequence[str] | None = None) -> dscomm.CreateObject:
    outcome, peer = create(element, attributes)
    assert outcome.status is SUCCESS
    assert peer.names == ["S_DSCreateObject"]
    request: dscomm.CreateObject = peer.only(dscomm.CREATE_OBJECT)
    return request


def sent_properties(request: dscomm.CreateObject) -> dict[int, PropVariant]:
    assert len(set(request.ids)) == len(request.ids) == len(request.values)
    return dict(zip(request.ids, request.values, strict=True))


def refused(element: Any, attributes: Sequence[str] | None = None) -> None:
    """GenericError, and the server is not even connected to."""
    outcome, peer = create(element, attributes)
    assert outcome.status is GENERIC
    assert outcome.value is None
    assert peer.asked == []


class TestDispatch:
    @pytest.mark.req("MQDS-3.2.6.1-01")
    def test_takes_a_subset_and_gives_status_and_guid(self) -> None:
        outcome, peer = create(populated("Queue"), ["Label", "Quota"])
        assert (outcome.status, outcome.value) == (SUCCESS, NEW)
        request = peer.only(dscomm.CREATE_OBJECT)
        assert set(request.ids) == {PropId.Q_LABEL, PropId.Q_QUOTA}

    @pytest.mark.req("MQDS-3.2.6.1-02")
    @pytest.mark.parametrize(
        "element", [Enterprise(name="Meridian", identifier=ONE), object(), "Queue", None]
    )
    def test_nothing_else_is_created(self, element: Any) -> None:
        refused(element)

    @pytest.mark.parametrize(
        ("kind", "number", "path"),
        [
            ("QueueManager", 2, "c14"),
            ("Queue", 1, "c14\\orders"),
            ("Site", 3, "Leiden"),
            ("RoutingLink", 8, "0" * 30 + "A1" + "0" * 30 + "B2"),
            ("ConnectedNetwork", 5, "Corporate IP"),
            ("User", 7, None),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.1-03", "MQDS-2.2.9-51")
    def test_each_type_has_its_number_and_path(
        self, kind: str, number: int, path: str | None
    ) -> None:
        request = sent(populated(kind))
        assert (request.object_type, request.path) == (number, path)


class TestTables:
    """Everything that a populated element has of its table, converted, and nothing else."""

    @pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                "QueueManager",
                marks=pytest.mark.req("MQDS-3.2.6.1.1-02", "MQDS-3.2.6.1.1-04"),
            ),
            pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.1.2-02", "MQDS-3.2.6.1.2-03")),
            pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.1.3-02")),
            pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.1.4-02")),
            pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.1.5-02")),
            pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.1.6-02")),
        ],
    )
    def test_without_a_list_the_whole_table_goes(self, kind: str) -> None:
        assert sent_properties(sent(populated(kind))) == properties(kind, "create")

    @pytest.mark.req("MQDS-3.2.6.1.1-03")
    @pytest.mark.parametrize("kind", [k for k in KINDS if k != "Enterprise"])
    def test_with_all_names_listed_it_goes_as_well(self, kind: str) -> None:
        request = sent(populated(kind), list(SAMPLES[kind]))
        assert sent_properties(request) == properties(kind, "create")

    @pytest.mark.req("MQDS-3.2.6.1.1-03")
    def test_only_what_is_both_listed_and_populated_goes(self) -> None:
        queue = Queue(pathname="c14\\q", label="Orders", quota=5, base_priority=1)
        request = sent(queue, ["Label", "Quota", "Journaling"])
        assert sent_properties(request) == props(
            {
                PropId.Q_LABEL: "Orders",
                PropId.Q_QUOTA: 5,
            }
        )

    @pytest.mark.req("MQDS-3.2.6.1.1-05")
    def test_names_that_no_table_has_are_passed_over(self) -> None:
        machine = replace(MACHINE, full_path="CN=c14", clustered=True, create_time=5)
        listed = ["SiteIdentifierList", "FullPath", "Clustered", "CreateTime", "Nonsense"]
        assert set(sent(machine, listed).ids) == {PropId.QM_SITE_IDS}

    @pytest.mark.parametrize(
        ("element", "listed", "propid"),
        [
            (Queue(pathname="c14\\q"), None, PropId.Q_PATHNAME),
            (Queue(pathname="c14\\q", label="x"), ["Quota"], PropId.Q_PATHNAME),
            (Site(name="Leiden"), None, PropId.S_PATHNAME),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.1.1-03")
    def test_a_call_never_goes_without_properties(
        self, element: Any, listed: list[str] | None, propid: PropId
    ) -> None:
        request = sent(element, listed)
        assert request.ids == (propid,)
        assert request.values == (PropVariant(VarType.LPWSTR, request.path),)

    def test_both_spellings_name_an_attribute(self) -> None:
        assert sent(QUEUE, ["label"]) == sent(QUEUE, ["Label"])


class TestPreconditions:
    @pytest.mark.req("MQDS-3.2.6.1.1-01")
    @pytest.mark.parametrize(
        ("machine", "listed"),
        [
            (QueueManager(computer_name="c14"), None),
            (QueueManager(site_identifier_list=(ONE,)), None),
            (MACHINE, ["ComputerName"]),
            (MACHINE, []),
        ],
    )
    def test_queue_manager(self, machine: QueueManager, listed: list[str] | None) -> None:
        refused(machine, listed)

    @pytest.mark.req("MQDS-3.2.6.1.1-01")
    def test_queue_manager_with_its_site_listed(self) -> None:
        assert sent(MACHINE, ["SiteIdentifierList"]).ids == (PropId.QM_SITE_IDS,)

    @pytest.mark.req("MQDS-3.2.6.1.2-01")
    def test_queue(self) -> None:
        refused(Queue(label="Orders"))
        assert sent(QUEUE).ids == (PropId.Q_LABEL,)

    @pytest.mark.req("MQDS-3.2.6.1.3-01")
    def test_site(self) -> None:
        refused(Site(primary_site_controller="lei-dir1"))
        assert sent(Site(name="Leiden", foreign_site=True)).ids == (PropId.S_FOREIGN,)

    @pytest.mark.req("MQDS-3.2.6.1.4-01")
    @pytest.mark.parametrize("missing", ["site1_identifier", "site2_identifier", "actual_cost"])
    def test_link(self, missing: str) -> None:
        refused(replace(LINK, **{missing: None}))
        needed = {"site1_identifier", "site2_identifier", "actual_cost"}
        refused(LINK, sorted(needed - {missing}))
        assert len(sent(LINK, sorted(needed)).ids) == 3

    @pytest.mark.req("MQDS-3.2.6.1.5-01")
    def test_network(self) -> None:
        refused(ConnectedNetwork(identifier=ONE))
        refused(ConnectedNetwork(name="IP"), ["Identifier"])
        assert sent(ConnectedNetwork(name="IP"), ["Name"]).ids == (PropId.CN_NAME,)

    @pytest.mark.req("MQDS-3.2.6.1.6-01")
    def test_user(self) -> None:
        refused(User(certificates=b"x"))
        refused(USER, ["Certificates"])
        refused(replace(USER, certificates=b"x"), ["Certificates"])
        for name in ("SecurityIdentifier", "SID"):
            assert sent(USER, [name]).ids == (PropId.U_SID,)

    def test_a_value_of_the_wrong_kind_is_not_sent(self) -> None:
        refused(Queue(pathname="c14\\q", quota=-1))
        refused(Queue(pathname="c14\\q", label=7))  # type: ignore[arg-type]


class TestArguments:
    @pytest.mark.req("MQDS-3.2.6.1.1-06", "MQDS-3.2.6.1.1-08")
    def test_queue_manager(self) -> None:
        request = sent(MACHINE)
        assert (request.object_type, request.path) == (2, "c14")
        assert request.guid == Guid.NULL  # a pointer that is not null, for the answer

    @pytest.mark.req("MQDS-3.2.6.1.1-07")
    def test_security_of_a_machine_goes_when_it_is_named(self) -> None:
        machine = replace(MACHINE, security=b"sd")
        assert sent(machine, ["SiteIdentifierList", "Security"]).descriptor == b"sd"
        assert sent(machine, ["SiteIdentifierList"]).descriptor is None
        assert sent(MACHINE, ["SiteIdentifierList", "Security"]).descriptor is None
        assert sent(machine).descriptor is None  # servers refuse it with anything but a queue

    @pytest.mark.req("MQDS-3.2.6.1.2-04")
    def test_queue(self) -> None:
        queue = replace(QUEUE, security=b"sd")
        request = sent(queue)
        assert (request.object_type, request.path) == (1, "c14\\orders")
        assert request.descriptor == b"sd"
        assert sent(queue, ["Label"]).descriptor is None
        assert sent(QUEUE).descriptor is None

    @pytest.mark.req("MQDS-3.2.6.1.3-03")
    def test_site(self) -> None:
        site = Site(name="Leiden", security=b"sd", foreign_site=False)
        assert sent(site, ["Security", "ForeignSite"]).descriptor == b"sd"
        request = sent(site)
        assert (request.object_type, request.path, request.descriptor) == (3, "Leiden", None)

    @pytest.mark.req("MQDS-3.2.6.1.4-03", "MQDS-3.2.6.1.4-04")
    def test_link(self) -> None:
        first = Guid.parse("{01234567-89ab-cdef-0123-456789abcdef}")
        link = replace(LINK, site1_identifier=first, site2_identifier=guid(15))
        request = sent(link, ["Site1Identifier", "Site2Identifier", "ActualCost", "Security"])
        assert request.path == "0123456789ABCDEF0123456789ABCDEF" + "0" * 31 + "F"
        assert (request.object_type, request.descriptor) == (8, None)

    @pytest.mark.req("MQDS-3.2.6.1.4-02")
    def test_the_computed_cost_of_a_link_is_never_sent(self) -> None:
        request = sent(replace(LINK, cost=9), ["Cost", *properties_of_link()])
        assert PropId.L_COST not in request.ids

    @pytest.mark.req("MQDS-3.2.6.1.5-02")
    def test_network(self) -> None:
        request = sent(populated("ConnectedNetwork"), ["Name", "Security", "Identifier"])
        assert (request.object_type, request.path) == (5, "Corporate IP")
        assert (request.ids, request.descriptor) == ((PropId.CN_NAME,), None)

    @pytest.mark.req("MQDS-3.2.6.1.6-03")
    def test_user(self) -> None:
        request = sent(populated("User"))
        assert (request.object_type, request.path, request.descriptor) == (7, None, None)


def properties_of_link() -> list[str]:
    return ["Site1Identifier", "Site2Identifier", "ActualCost"]


class TestConversions:
    @pytest.mark.parametrize(
        ("machine", "bits"),
        [
            (QueueManager(routing_server=False), 0x00),
            (QueueManager(routing_server=True), 0x01),
            (QueueManager(remote_access_server=True), 0x10),
            (QueueManager(routing_server=True, remote_access_server=True), 0x11),
            (QueueManager(remote_access_server=True, routing_server=False), 0x10),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.1.1.1-01")
    def test_service_bits(self, machine: QueueManager, bits: int) -> None:
        assert self.service(machine) == bits

    @pytest.mark.parametrize(
        ("server", "kind", "bits"),
        [
            (True, DirectoryServerType.STANDALONE, 0x0),
            (True, DirectoryServerType.BACKUP_SITE_CONTROLLER, 0x2),
            (True, DirectoryServerType.PRIMARY_SITE_CONTROLLER, 0x4),
            (True, DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER, 0x8),
            (True, None, 0x0),
            (False, DirectoryServerType.PRIMARY_SITE_CONTROLLER, 0x0),
            (None, DirectoryServerType.PRIMARY_SITE_CONTROLLER, 0x0),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.1.1.1-02")
    def test_role_bits(
        self, server: bool | None, kind: DirectoryServerType | None, bits: int
    ) -> None:
        machine = QueueManager(directory_server=server, directory_server_type=kind)
        assert self.service(machine) == bits

    def service(self, machine: QueueManager) -> object:
        complete = replace(machine, computer_name="c14", site_identifier_list=(ONE,))
        return sent_properties(sent(complete))[PropId.QM_SERVICE].value

    @pytest.mark.req("MQDS-3.2.6.1.1.1-01")
    def test_service_goes_when_any_of_the_four_is_listed(self) -> None:
        machine = replace(MACHINE, routing_server=True, remote_access_server=True)
        request = sent(machine, ["SiteIdentifierList", "RemoteAccessServer"])
        assert sent_properties(request)[PropId.QM_SERVICE].value == 0x11
        assert PropId.QM_SERVICE_ROUTING not in request.ids
        assert PropId.QM_SERVICE not in sent(machine, ["SiteIdentifierList"]).ids
        assert PropId.QM_SERVICE not in sent(MACHINE).ids

    @pytest.mark.parametrize(
        ("system", "number"),
        [
            (OperatingSystemType.OTHER, 0x000),
            (OperatingSystemType.FOREIGN, 0x100),
            (OperatingSystemType.WIN95, 0x200),
            (OperatingSystemType.WIN_CLIENT, 0x300),
            (OperatingSystemType.WIN_SERVER, 0x400),
            (OperatingSystemType.WIN_ENT, 0x500),
        ],
    )
    @pytest.mark.req("MQDS-3.2.6.1.1.2-01")
    def test_operating_systems(self, system: OperatingSystemType, number: int) -> None:
        request = sent(replace(MACHINE, operating_system_type=system))
        assert sent_properties(request)[PropId.QM_OS] == prop(PropId.QM_OS, number)

    @pytest.mark.req("MQDS-3.2.6.1.2-03")
    @pytest.mark.parametrize(("truth", "number"), [(True, 1), (False, 0)])
    def test_flags_of_a_queue(self, truth: bool, number: int) -> None:
        queue = Queue(
            pathname="c\\q",
            journaling=truth,
            authentication=truth,
            transactional=truth,
            scope=Scope.ENTERPRISE if truth else Scope.SITE,
        )
        flags = (PropId.Q_JOURNAL, PropId.Q_AUTHENTICATE, PropId.Q_TRANSACTION, PropId.Q_SCOPE)
        wanted = dict.fromkeys(map(int, flags), PropVariant(VarType.UI1, number))
        assert sent_properties(sent(queue)) == wanted

    @pytest.mark.req("MQDS-3.2.6.1.2.1-01")
    @pytest.mark.parametrize(
        ("level", "number"),
        [(PrivacyLevel.NONE, 0), (PrivacyLevel.OPTIONAL, 1), (PrivacyLevel.BODY, 2)],
    )
    def test_privacy_levels(self, level: PrivacyLevel, number: int) -> None:
        request = sent(Queue(pathname="c\\q", privacy_level=level))
        assert sent_properties(request) == {PropId.Q_PRIV_LEVEL: PropVariant(VarType.UI4, number)}

    @pytest.mark.req("MQDS-3.2.6.1.3-02")
    def test_flags_of_a_site(self) -> None:
        site = Site(name="Leiden", migrated_from_msmq10=False, foreign_site=True)
        assert sent_properties(sent(site)) == props(
            {
                PropId.S_NT4_STUB: 0,
                PropId.S_FOREIGN: 1,
            }
        )


#: Each type that can be created, with the row that says how its call is answered.
ANSWERED = [
    "QueueManager",
    pytest.param("Queue", marks=pytest.mark.req("MQDS-3.2.6.1.2-04")),
    pytest.param("Site", marks=pytest.mark.req("MQDS-3.2.6.1.3-03")),
    pytest.param("RoutingLink", marks=pytest.mark.req("MQDS-3.2.6.1.4-04")),
    pytest.param("ConnectedNetwork", marks=pytest.mark.req("MQDS-3.2.6.1.5-02")),
    pytest.param("User", marks=pytest.mark.req("MQDS-3.2.6.1.6-03")),
]


class TestAnswers:
    @pytest.mark.parametrize("kind", ANSWERED)
    @pytest.mark.parametrize("code", [0xC00E0005, 0x80004005, 0x400E0001, 1])
    @pytest.mark.req("MQDS-3.2.6.1.1-09")
    def test_anything_but_ok_is_an_error(self, kind: str, code: int) -> None:
        lines = {dscomm.CREATE_OBJECT: dscomm.Created(NEW, code)}
        outcome, peer = create(populated(kind), lines=lines)
        assert (outcome.status, outcome.value) == (GENERIC, None)
        assert isinstance(outcome.error, DirectoryError)
        assert outcome.error.hresult == code
        assert peer.names == ["S_DSCreateObject"]

    @pytest.mark.req("MQDS-3.2.6.1.1-10")
    @pytest.mark.parametrize("kind", ANSWERED)
    def test_the_guid_of_the_answer(self, kind: str) -> None:
        answer = {dscomm.CREATE_OBJECT: dscomm.Created(THREE, OK)}
        outcome, peer = create(populated(kind), lines=answer)
        assert (outcome.status, outcome.value) == (SUCCESS, THREE)
        assert peer.names == ["S_DSCreateObject"]
        assert peer.only(dscomm.CREATE_OBJECT).guid == Guid.NULL  # without it none is returned

    @pytest.mark.parametrize("told", [Guid.NULL, None])
    @pytest.mark.req("MQDS-3.2.6.1.1-08", "MQDS-3.2.6.1.3-03")
    def test_a_guid_that_was_not_told_is_read_back_by_name(self, told: Guid | None) -> None:
        lines: dict[Any, Line] = {
            dscomm.CREATE_OBJECT: dscomm.Created(told, OK),
            dscomm.GET_PROPS: lambda _call, request: dscomm.PropsGot(
                (guid_of(TWO),), bytes(request.signature_size), OK
            ),
        }
        outcome, peer = create(Site(name="Leiden"), lines=lines)
        assert (outcome.status, outcome.value) == (SUCCESS, TWO)
        asked = peer.only(dscomm.GET_PROPS)
        assert (asked.object_type, asked.path, asked.ids) == (3, "Leiden", (PropId.S_SITEID,))

    @pytest.mark.parametrize("element", [QUEUE, USER, LINK])
    def test_a_guid_that_cannot_be_found_out_is_none(self, element: DirectoryElement) -> None:
        lines: dict[Any, Line] = {
            dscomm.CREATE_OBJECT: dscomm.Created(Guid.NULL, OK),
            dscomm.GET_PROPS: lambda _call, request: no_properties(request, 0xC00E0025),
        }
        outcome, _ = create(element, lines=lines)
        assert (outcome.status, outcome.value) == (SUCCESS, None)
