"""Association groups and their context handles."""

from __future__ import annotations

import pytest

from mqis.protocol.authentication import Identity
from mqis.protocol.budget import Budget, Quota
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.rpc.groups import AssociationGroup, AssociationGroups
from mqis.protocol.rpc.interface import Interface
from mqis.wire.guid import Guid
from tests.protocol.rpc.talk import ECHO, OTHER, STRICT, Counting, Talk, make_endpoint

ALICE = Identity("LAB", "alice")


def new_group(groups: AssociationGroups | None = None, peer: str = "peer") -> AssociationGroup:
    if groups is None:
        groups = AssociationGroups(Counting())
    group = groups.join(0, peer)
    assert group is not None
    return group


def mismatch(group: AssociationGroup, handle: Guid, interface: Interface) -> None:
    for use in (group.handle, group.close_handle):
        with pytest.raises(RpcFault) as caught:
            use(handle, interface)
        assert caught.value.status == 0x1C00001A


def test_a_handle_stands_for_its_value_until_it_is_closed() -> None:
    group = new_group()
    handle = group.create_handle("value", ECHO)
    assert group.handle(handle, ECHO) == "value"
    assert group.close_handle(handle, ECHO) == "value"
    mismatch(group, handle, ECHO)


def test_handles_are_shared_by_the_interfaces_of_a_group() -> None:
    group = new_group()
    assert group.handle(group.create_handle("value", ECHO), OTHER) == "value"
    assert group.close_handle(group.create_handle("value", OTHER), ECHO) == "value"


def test_but_not_with_a_strict_one() -> None:
    group = new_group()
    mismatch(group, group.create_handle("value", ECHO), STRICT)
    own = group.create_handle("value", STRICT)
    mismatch(group, own, ECHO)
    assert group.handle(own, STRICT) == "value"


def test_handles_of_another_group_and_handles_that_were_made_up() -> None:
    groups = AssociationGroups(Counting())
    mine, yours = new_group(groups), new_group(groups)
    mismatch(yours, mine.create_handle("value", ECHO), ECHO)
    mismatch(mine, Guid.parse("deadbeef-0000-0000-0000-000000000000"), ECHO)
    mismatch(mine, Guid.NULL, ECHO)


def test_handles_live_as_long_as_any_connection_of_the_group() -> None:
    endpoint = make_endpoint()
    first = Talk(endpoint).bound()
    group = first.server.group
    assert group is not None
    second = Talk(endpoint).bound(group=group.id)
    ended: list[str] = []
    group.create_handle("a", ECHO, lambda: ended.append("a"))
    closed = group.create_handle("b", ECHO, lambda: ended.append("b"))
    group.create_handle("c", STRICT, lambda: ended.append("c"))
    group.create_handle("d", ECHO)
    assert first.server.connection_lost() == []
    assert second.server.group is group
    assert group.close_handle(closed, ECHO) == "b"
    orphans = second.server.connection_lost()
    assert [handle.value for handle in orphans] == ["a", "c", "d"]
    assert ended == []  # whoever drives the machine runs them down
    for handle in orphans:
        if handle.rundown is not None:
            handle.rundown()
    assert ended == ["a", "c"]
    assert second.server.connection_lost() == []
    assert len(endpoint.groups) == 0


def test_a_connection_that_never_bound_leaves_nothing() -> None:
    assert Talk().server.connection_lost() == []


def test_budgets_of_a_group_and_of_all_together() -> None:
    groups = AssociationGroups(
        Counting(), Budget(Quota(connection=3, address=5, anonymous=5, process=5))
    )
    one, two = new_group(groups), new_group(groups)

    def refused(group: AssociationGroup) -> None:
        with pytest.raises(RpcFault, match="too many context handles") as caught:
            group.create_handle("value", ECHO)
        assert caught.value.status == FaultStatus.REMOTE_NO_MEMORY

    handles = [one.create_handle(n, ECHO) for n in range(3)]
    refused(one)
    for n in range(2):
        two.create_handle(n, ECHO)
    refused(two)
    one.close_handle(handles[0], ECHO)
    two.create_handle("third", ECHO)
    refused(one)
    groups.leave(two)
    one.create_handle("again", ECHO)
    groups.leave(one)
    assert groups.budget.used == 0


def test_those_who_logged_on_have_handles_that_strangers_cannot_take() -> None:
    quota = Quota(connection=5, address=2, anonymous=3, process=6)
    groups = AssociationGroups(Counting(), Budget(quota), lambda peer: str(peer)[:3])
    near, far = groups.join(0, "aaa1"), groups.join(0, "bbb1")
    same = groups.join(0, "aaa2")
    assert near is not None
    assert far is not None
    assert same is not None
    near.create_handle(1, ECHO)
    same.create_handle(2, ECHO)
    for group in (near, same):  # one address, as it is counted
        with pytest.raises(RpcFault, match="this address: 2 of 2 held"):
            group.create_handle(3, ECHO)
    far.create_handle(3, ECHO)
    with pytest.raises(RpcFault, match="all anonymous callers together: 3 of 3"):
        far.create_handle(4, ECHO)
    for n in range(2):
        near.create_handle(n, ECHO, identity=ALICE)
    far.create_handle(5, ECHO, identity=ALICE)
    with pytest.raises(RpcFault, match="this server: 6 of 6 held"):
        far.create_handle(6, ECHO, identity=ALICE)
    for group in (near, far, same):
        groups.leave(group)
    assert groups.budget.used == 0


def test_no_handle_is_made_for_a_client_that_is_gone() -> None:
    """A call may outlive its client; a handle made then would never be run down."""
    groups = AssociationGroups(Counting())
    group = new_group(groups)
    groups.leave(group)
    with pytest.raises(RpcFault, match="gone"):
        group.create_handle("value", ECHO)
