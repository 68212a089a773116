"""Properties that give power over others, and the rights needed to set them."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

from mqis.protocol.directory.objects import SECURITY_PROPERTY
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.powers import (
    ServerKind,
    demands,
    is_named_authority,
    server_kind,
)
from mqis.protocol.directory.types.catalogue import POWERS, ROWS, ids_where
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import Takes, WriteRule
from mqis.protocol.directory.write_mapping import on_create, on_update
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.masks import EnterpriseRights, SiteRights
from mqis.wire.mqds.catalogue import PROPERTIES, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.protocol.directory.world import (
    MACHINE,
    OTHER,
    QUEUE,
    SITE_A,
    SITE_B,
    World,
    ui4,
)

SECURITY_DOC = Path(__file__).parents[3] / "docs" / "security.md"


ORDINARY = ids_where(lambda row: row.takes is Takes.NOTHING)


@pytest.mark.req("SEC-2-08")
@pytest.mark.parametrize("object_type", list(ObjectType))
def test_every_property_has_a_right_and_the_column_has_no_default(object_type: ObjectType) -> None:
    mine = {p.id for p in PROPERTIES.values() if p.object_type is object_type}
    assert mine
    assert {ROWS[propid].id for propid in mine} == mine
    assert POWERS.keys() & mine == mine - ORDINARY
    [takes] = [column for column in fields(PropertyRow) if column.name == "takes"]
    assert takes.default is MISSING


def test_what_a_client_can_set_and_needs_no_more_than_the_object_is_listed_as_such() -> None:
    """A property that somebody makes settable has to be looked at again."""
    settable = {
        p for p in ORDINARY for rule in (on_create, on_update) if rule(p) is WriteRule.APPLY
    }
    P = PropId  # noqa: N806
    assert settable == {
        *(P.Q_TYPE, P.Q_JOURNAL, P.Q_QUOTA, P.Q_BASEPRIORITY, P.Q_JOURNAL_QUOTA, P.Q_LABEL),
        *(P.Q_AUTHENTICATE, P.Q_PRIV_LEVEL, P.Q_TRANSACTION, P.Q_SCOPE, P.Q_NAME_SUFFIX),
        *(P.QM_MACHINE_ID, P.QM_CNS, P.QM_OUTFRS, P.QM_INFRS, P.QM_QUOTA, P.QM_JOURNAL_QUOTA),
        *(P.QM_MACHINE_TYPE, P.QM_FOREIGN, P.QM_OS),
        *(P.S_SITEID, P.S_INTERVAL1, P.S_INTERVAL2, P.S_NT4_STUB, P.S_FOREIGN),
        *(P.CN_PROTOCOLID, P.CN_NAME, P.CN_GUID, P.L_ID, P.L_DESCRIPTION),
    }


def test_descriptors_are_powers() -> None:
    assert {POWERS[p] for p in SECURITY_PROPERTY.values()} == {Takes.PERMISSIONS}


@pytest.mark.req("SEC-2-08")
def test_the_documentation_has_the_same_table() -> None:
    rows = re.findall(
        r"^\| `PROPID_(\w+)`[^|]*\| ([^|]+) \|$", SECURITY_DOC.read_text("utf-8"), re.M
    )
    assert dict(rows) == {propid.name: takes.value for propid, takes in POWERS.items()}


# --- what machines take ---------------------------------------------------------------------------


def rights(world: World, change: OwnChange) -> list[tuple[ObjectType | None, int]]:
    with world.store.read() as view:
        return [(None if d.on is None else d.on.type, d.right) for d in demands(change, view)]


def test_kinds_of_servers() -> None:
    world = World()
    machine = world.one(MACHINE)
    kinds = {
        1: ServerKind.ROUTER,
        2: ServerKind.CONTROLLER,
        4: ServerKind.PRIMARY,
        8: ServerKind.PRIMARY,
        16: ServerKind.ROUTER,
        3: ServerKind.ROUTER | ServerKind.CONTROLLER,
    }
    with world.store.read() as view:
        assert server_kind(machine, view) is ServerKind.NONE
        for bits, kind in kinds.items():
            made = machine.with_properties(props({PropId.QM_SERVICE: bits}), machine.seq)
            assert server_kind(made, view) == kind
        clients = machine.with_properties(props({PropId.QM_SERVICE_DEPCLIENTS: 1}), machine.seq)
        assert server_kind(clients, view) is ServerKind.ROUTER
        assert is_named_authority("pec0", view)
        assert is_named_authority("psc2", view)
        assert not is_named_authority("C14", view)


def test_without_an_enterprise_partitions_name_authorities() -> None:
    with World(empty=True).store.read() as view:
        assert not is_named_authority("PEC0", view)


def test_a_server_that_moves_takes_its_role_at_both_sites() -> None:
    world = World()
    old = world.update_event(world.one(MACHINE), {210: ui4(3)})
    new = old.with_properties(props({PropId.QM_SITE_IDS: (SITE_B,)}), old.seq)
    change = OwnChange(ChangeKind.UPDATE, new, old, (PropId.QM_SITE_IDS,))
    site = ObjectType.SITE
    assert rights(world, change) == [
        (site, SiteRights.CREATE_MACHINE),
        *[(site, SiteRights.CREATE_BSC)] * 2,
        *[(site, SiteRights.CREATE_FRS)] * 2,
    ]


def test_a_site_that_is_not_there_grants_nothing() -> None:
    world = World()
    old = world.one(MACHINE)
    new = old.with_properties(
        props(
            {
                PropId.QM_SITE_IDS: (
                    SITE_A,
                    OTHER,
                )
            }
        ),
        old.seq,
    )
    change = OwnChange(ChangeKind.UPDATE, new, old, (PropId.QM_SITE_IDS,))
    assert rights(world, change) == [(None, SiteRights.CREATE_MACHINE)]
    nowhere = old.with_properties({PropId.QM_SITE_IDS: ui4(1)}, old.seq)
    gone = OwnChange(ChangeKind.UPDATE, nowhere, old, (PropId.QM_SITE_IDS,))
    assert rights(world, gone) == []


def test_another_partition_takes_the_enterprise() -> None:
    world = World()
    old = world.one(QUEUE)
    change = OwnChange(ChangeKind.UPDATE, replace(old, partition=SITE_B), old, ())
    assert rights(world, change) == [
        (ObjectType.ENTERPRISE, EnterpriseRights.SET_ENTERPRISE_PROPERTIES)
    ]


def test_a_site_with_an_authority_is_deleted_as_one_is_chosen() -> None:
    world = World()
    sites = {name: world.find(ObjectType.SITE, name) for name in ("Alpha", "Far")}
    found = {
        name: rights(world, OwnChange(ChangeKind.DELETE, site, site))
        for name, site in sites.items()
        if site is not None
    }
    assert found == {
        "Alpha": [(ObjectType.ENTERPRISE, EnterpriseRights.SET_ENTERPRISE_PROPERTIES)],
        "Far": [],
    }


def test_a_queue_that_names_no_machine_is_refused() -> None:
    world = World()
    old = world.one(QUEUE)
    new = old.with_properties({PropId.Q_QMID: ui4(3)}, old.seq)
    with pytest.raises(DirectoryError):
        rights(world, OwnChange(ChangeKind.UPDATE, new, old, (PropId.Q_QMID,)))
