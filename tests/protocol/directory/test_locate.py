"""Finding objects by path or identifier (3.1.6.12)."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.locate import Target, locate, object_type_of
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory.world import (
    ALICE,
    C14,
    CN,
    DELETED,
    ENTERPRISE,
    ENTERPRISE_ID,
    LINK,
    LINK_AB,
    MACHINE,
    NET,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    USER,
    World,
    refusal,
)

NOT_FOUND = HResult.MQDS_OBJECT_NOT_FOUND
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
#: The name that clients give a link: both sites' GUIDs in hexadecimal (3.2.6.1.4).
LINK_PATH = SITE_A.big_endian.hex() + SITE_B.big_endian.hex()


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def _located(world: World, target: Target) -> Guid:
    with world.store.read() as view:
        return locate(view, target).id


def _refused(world: World, target: Target) -> int:
    with world.store.read() as view:
        return refusal(lambda: locate(view, target))


@pytest.mark.req("MQDS-3.1.6.12-01")
@pytest.mark.parametrize(
    ("object_type", "path", "guid"),
    [
        (QUEUE, "C14\\orders", ORDERS),
        (MACHINE, "C14", C14),
        (SITE, "Alpha", SITE_A),
        (CN, "Net", NET),
        (ENTERPRISE, "Corp", ENTERPRISE_ID),
        (LINK, LINK_PATH, LINK_AB),
    ],
)
def test_by_path_and_by_guid(world: World, object_type: ObjectType, path: str, guid: Guid) -> None:
    assert _located(world, Target(object_type, path)) == guid
    assert _located(world, Target(object_type, path.upper())) == guid
    assert _located(world, Target(object_type, None, guid)) == guid
    # Where there is a path, the GUID is not looked at.
    assert _located(world, Target(object_type, path, OTHER)) == guid


@pytest.mark.req("MQDS-3.1.6.12-01", "MQDS-3.1.4.7-06")
@pytest.mark.parametrize("object_type", [QUEUE, MACHINE, SITE, CN, LINK])
def test_what_is_not_there(world: World, object_type: ObjectType) -> None:
    assert _refused(world, Target(object_type, "nobody")) == NOT_FOUND
    assert _refused(world, Target(object_type, None, OTHER)) == NOT_FOUND
    assert _refused(world, Target(object_type)) == INVALID


@pytest.mark.req("MQDS-3.1.6.12-02")
def test_users_have_no_name(world: World) -> None:
    assert _located(world, Target(USER, None, ALICE)) == ALICE
    assert _refused(world, Target(USER, "alice")) == INVALID
    assert _refused(world, Target(USER)) == INVALID
    assert _refused(world, Target(USER, None, OTHER)) == NOT_FOUND


@pytest.mark.req("MQDS-3.1.6.12-02", "MQDS-3.1.1.14-02")
def test_there_is_one_enterprise_whatever_it_is_called(world: World) -> None:
    for target in (
        Target(ENTERPRISE),
        Target(ENTERPRISE, "anything"),
        Target(ENTERPRISE, None, OTHER),
    ):
        assert _located(world, target) == ENTERPRISE_ID


def test_there_may_be_none() -> None:
    assert _refused(World(empty=True), Target(ENTERPRISE, "Corp")) == NOT_FOUND


@pytest.mark.req("MQDS-3.1.6.12-03")
def test_a_machine_by_its_dns_name(world: World) -> None:
    assert _located(world, Target(MACHINE, "c14.corp.example.com")) == C14
    assert _refused(world, Target(MACHINE, "c99.corp.example.com")) == NOT_FOUND


@pytest.mark.departs("MQDS-3.1.6.12-04")
def test_a_network_is_not_a_site(world: World) -> None:
    """Over Active Directory it is made up from the site of its name; a store of its own has it."""
    assert _located(world, Target(CN, "Net")) == NET
    assert _refused(world, Target(CN, "Alpha")) == NOT_FOUND
    assert _refused(world, Target(CN, None, SITE_A)) == NOT_FOUND


@pytest.mark.req("MQDS-3.1.6.12-03", "MQDS-3.1.4.7-09")
@pytest.mark.parametrize(
    "path",
    [
        LINK_PATH[:-1],
        LINK_PATH + "0",
        "g" * 64,
        LINK_PATH[32:] + LINK_PATH[:32],
        LINK_PATH[:32] * 2,
    ],
)
def test_paths_that_are_no_links(world: World, path: str) -> None:
    assert _refused(world, Target(LINK, path)) == NOT_FOUND


@pytest.mark.req("MQDS-2.2.8-01", "MQDS-3.1.4.21.1-02")
@pytest.mark.parametrize("number", [4, 9, 10, 58])
def test_types_that_mean_nothing_to_clients(number: int) -> None:
    assert refusal(lambda: object_type_of(number)) == INVALID
    wrong = HResult.MQDS_WRONG_OBJ_TYPE
    assert refusal(lambda: object_type_of(number, wrong)) == wrong
    assert refusal(lambda: Target.from_wire(number, "path")) == INVALID


def test_types_that_do() -> None:
    assert [Target.from_wire(n).object_type for n in (1, 2, 3, 5, 6, 7, 8)] == [
        kind for kind in ObjectType if kind is not DELETED
    ]
