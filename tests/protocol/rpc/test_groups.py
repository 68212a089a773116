"""Association groups and their context handles."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType, Identity
from mqis.protocol.budget import Budget, Quota
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.rpc.groups import AssociationGroup, AssociationGroups
from mqis.protocol.rpc.server_endpoint import ServerEndpoint
from mqis.runtime.entropy import SystemEntropy
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.rpc.trailer import AuthTrailer
from tests.protocol.rpc.talk import (
    ECHO,
    OTHER,
    STRICT,
    Counting,
    Talk,
    alter_pdu,
    authenticated,
    make_endpoint,
    request_pdu,
)

ALICE = Identity("LAB", "alice")
INTEGRITY = AuthLevel.INTEGRITY


def new_group(groups: AssociationGroups | None = None, peer: str = "peer") -> AssociationGroup:
    if groups is None:
        groups = AssociationGroups(Counting())
    return groups.create(peer)


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
    near, far, same = (groups.create(peer) for peer in ("aaa1", "bbb1", "aaa2"))
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


# --- who shares a group ---------------------------------------------------------------------------


def named_talk(endpoint: ServerEndpoint, name: str, level: int = INTEGRITY, group: int = 0) -> Talk:
    talk = Talk(endpoint)
    authenticated(talk, level, name=name, group=group)
    return talk


def id_of(talk: Talk) -> int:
    assert talk.server.group is not None
    return talk.server.group.id


@pytest.mark.req("SEC-17-05")
@pytest.mark.parametrize(
    ("name", "level", "shares"),
    [
        ("alice", INTEGRITY, True),
        ("alice", AuthLevel.PRIVACY, False),
        ("bob", INTEGRITY, False),
        ("", INTEGRITY, False),
    ],
)
def test_a_group_is_shared_by_one_identity_at_one_level(
    name: str, level: int, *, shares: bool
) -> None:
    endpoint = make_endpoint(SharedSecret())
    alice = named_talk(endpoint, "alice")
    other = named_talk(endpoint, name, level, id_of(alice))
    assert id_of(other) == id_of(alice)
    assert (other.server.group is alice.server.group) is shares


@pytest.mark.req("SEC-17-05")
def test_a_stranger_who_names_the_group_of_a_user_has_one_apart() -> None:
    """It neither keeps her handles alive, nor uses them up, nor wears her association out."""
    endpoint = make_endpoint(SharedSecret(), max_failed_logons=1)
    alice = named_talk(endpoint, "alice")
    hers = alice.server.group
    assert hers is not None
    stranger = Talk(endpoint).bound(group=hers.id)
    apart = stranger.server.group
    assert apart is not None
    assert apart is not hers
    mismatch(apart, hers.create_handle("hers", ECHO, identity=ALICE), ECHO)
    leg = alter_pdu(auth=AuthTrailer(AuthType.NTLM, 99, 1, b"hello"))
    assert stranger.say(leg)[-1] == "closed"
    assert hers.failed_logons == 0
    assert [handle.value for handle in alice.server.connection_lost()] == ["hers"]
    assert stranger.server.connection_lost() == []
    assert len(endpoint.groups) == 0
    assert endpoint.groups.budget.used == 0


@pytest.mark.req("SEC-17-05")
def test_handles_apart_are_charged_apart() -> None:
    endpoint = make_endpoint(SharedSecret())
    endpoint.groups.budget = Budget(Quota(connection=2, address=9, anonymous=9, process=9))
    alice = named_talk(endpoint, "alice")
    stranger = Talk(endpoint).bound(group=id_of(alice))
    hers, apart = alice.server.group, stranger.server.group
    assert hers is not None
    assert apart is not None
    for _ in range(2):
        apart.create_handle("taken", ECHO)
    with pytest.raises(RpcFault, match="this connection: 2 of 2"):
        apart.create_handle("one more", ECHO)
    assert hers.create_handle("hers", ECHO, identity=ALICE)


@pytest.mark.req("SEC-17-05")
def test_a_group_becomes_a_users_when_its_first_connection_logs_on() -> None:
    """A call of a stranger who shared it before uses it no longer."""
    endpoint = make_endpoint(SharedSecret())
    first, other = Talk(endpoint).bound(), Talk(endpoint)
    other.bound(group=id_of(first))
    group = first.server.group
    assert other.server.group is group
    authenticated(first, INTEGRITY, first=False, name="alice")
    other.say(request_pdu())
    used = other.server.group_of(other.calls[0])
    assert used is not None
    assert used is not group
    assert used.id == id_of(first)
    later = Talk(endpoint).bound(group=id_of(first))
    assert later.server.group is not group
    for talk in (first, other, later):
        talk.server.connection_lost()
    assert len(endpoint.groups) == 0


@pytest.mark.req("SEC-17-05")
def test_the_id_of_a_group_tells_nothing_about_the_next() -> None:
    groups = AssociationGroups(SystemEntropy())
    ids = [groups.create("a").id for _ in range(64)]
    assert len(set(ids)) == 64
    steps = {second - first for first, second in pairwise(ids)}
    assert len(steps) == 63
    assert max(ids) - min(ids) > 1 << 24
