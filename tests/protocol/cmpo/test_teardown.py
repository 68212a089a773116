"""Ending sessions: forced from either side, by a problem, by silence, by death."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.cmpo.partner_session import SessionState
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, SessionRank, TeardownType
from mqis.wire.ndr import ContextHandle
from tests.protocol.cmpo.net import OK, Net, Node, active_pair, pair

FORCE, PROBLEM = TeardownType.FORCE, TeardownType.PROBLEM
TEARDOWN = SessionState.TEARDOWN


def gone(*nodes: Node) -> bool:
    return not any(node.partner.sessions or node.handles or node.calls for node in nodes)


def test_the_primary_tears_down() -> None:
    net, primary, secondary = active_pair()
    handles = (primary.session.handle, secondary.session.handle)
    net.log.clear()
    net.requests.clear()
    primary.tear_down(FORCE)
    assert primary.state is TEARDOWN
    net.run()

    assert gone(primary, secondary)
    assert net.log == [("Machine_1", "TearDownContext"), ("Machine_2", "TearDownContext")]
    assert net.requests == [
        idl.TearDownContext(handles[0], SessionRank.PRIMARY, FORCE),
        idl.TearDownContext(handles[1], SessionRank.SECONDARY, FORCE),
    ]
    assert primary.above.heard[1:] == secondary.above.heard[1:] == [("down", FORCE)]


def test_the_secondary_asks_the_primary() -> None:
    net, primary, secondary = active_pair()
    net.log.clear()
    secondary.tear_down(FORCE)
    assert secondary.state is SessionState.REQUESTING_TEARDOWN
    net.run()

    assert gone(primary, secondary)
    assert net.log == [
        ("Machine_2", "BeginTearDown"),
        ("Machine_1", "TearDownContext"),
        ("Machine_2", "TearDownContext"),
    ]
    assert primary.above.heard[1:] == secondary.above.heard[1:] == [("down", FORCE)]


@given(order=st.lists(st.integers(0, 5), max_size=16))
def test_both_at_once_in_any_order(order: list[int]) -> None:
    net, primary, secondary = active_pair()
    primary.tear_down(FORCE)
    secondary.tear_down(FORCE)
    for index in order:
        net.step(index)
    net.wait(30)
    assert gone(primary, secondary)
    assert primary.above.words == secondary.above.words == ["up", "down"]


@given(
    kinds=st.tuples(st.sampled_from(TeardownType), st.sampled_from(TeardownType)),
    order=st.lists(st.integers(0, 5), max_size=16),
)
def test_any_two_ends_in_any_order(
    kinds: tuple[TeardownType, TeardownType], order: list[int]
) -> None:
    net, primary, secondary = active_pair()
    primary.tear_down(kinds[0])
    secondary.tear_down(kinds[1])
    for index in order:
        net.step(index)
    net.wait(30)
    assert gone(primary, secondary)
    assert primary.above.words == secondary.above.words == ["up", "down"]


@pytest.mark.parametrize("which", [0, 1])
def test_a_problem(which: int) -> None:
    net, *nodes = active_pair()
    net.log.clear()
    one, other = nodes[which], nodes[1 - which]
    rank = one.session.rank
    one.tear_down(PROBLEM)
    assert one.above.heard[1:] == [("down", PROBLEM)]  # at once
    net.run()
    assert gone(one, other)
    assert net.log == [(one.name.host_name, "TearDownContext")]
    assert net.requests[-1].rank == rank
    assert net.requests[-1].teardown == PROBLEM
    assert other.above.heard[1:] == [("down", PROBLEM)]
    assert one.above.words == ["up", "down"]


def test_a_new_session_after_the_old() -> None:
    net, primary, secondary = active_pair()
    primary.tear_down(FORCE)
    net.run()
    secondary.want(primary)
    net.run()
    assert primary.state is secondary.state is SessionState.ACTIVE
    assert primary.above.words == secondary.above.words == ["up", "down", "up"]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", TeardownType)
def test_silence_ends_by_the_timer(which: int, kind: TeardownType) -> None:
    net, *nodes = active_pair()
    net.silent = lambda _call: True
    nodes[which].tear_down(kind)
    net.wait(9.9)
    assert nodes[which].partner.sessions
    net.wait(0.2)
    assert not nodes[which].partner.sessions
    assert nodes[which].calls == {}
    assert nodes[which].above.words == ["up", "down"]
    # The other side learns of it by the loss of the association.
    assert gone(*nodes)


@pytest.mark.parametrize("which", [0, 1])
def test_a_partner_that_is_killed(which: int) -> None:
    net, *nodes = active_pair()
    net.kill(nodes[which])
    net.run()
    left = nodes[1 - which]
    assert gone(left)
    assert left.above.heard[1:] == [("down", PROBLEM)]


@pytest.mark.parametrize("which", [0, 1])
def test_a_partner_that_is_killed_while_it_is_torn_down(which: int) -> None:
    net, *nodes = active_pair()
    left = nodes[1 - which]
    left.tear_down(FORCE)
    net.kill(nodes[which])
    net.run()
    assert gone(left)
    assert left.above.words == ["up", "down"]


def test_a_failed_call_is_the_end_too() -> None:
    """There can be no callback any more; errors are ignored otherwise."""
    net, primary, secondary = active_pair()
    secondary.handles.clear()
    primary.tear_down(FORCE)
    net.run()
    assert gone(primary)
    assert primary.above.heard[1:] == [("down", FORCE)]


def test_begin_tear_down_is_for_primaries() -> None:
    _net, primary, secondary = active_pair()
    assert secondary.partner.begin_tear_down(secondary.session, 0.0) == CmResult.INVALID_ARGUMENT
    assert secondary.state is SessionState.ACTIVE
    assert primary.partner.begin_tear_down(primary.session, 0.0) == OK
    assert primary.partner.begin_tear_down(primary.session, 0.0) == OK
    calls = list(primary.partner.effects())
    assert len(calls) == 1  # the second one changes nothing


def test_the_callers_claim_of_rank_does_not_matter() -> None:
    net, primary, secondary = active_pair()
    session = secondary.session
    wrong = idl.TearDownContext(ContextHandle.NULL, SessionRank.SECONDARY, FORCE)
    assert secondary.partner.tear_down_context(session, wrong, 0.0) == OK
    assert secondary.state is TEARDOWN
    secondary.act()
    net.run()
    assert gone(primary, secondary)


def test_a_forced_end_needs_an_active_session() -> None:
    _net, primary, secondary = pair()
    primary.want(secondary)
    with pytest.raises(ValueError, match="not active"):
        primary.tear_down(FORCE)
    primary.tear_down(PROBLEM)
    assert primary.partner.sessions == ()
    assert primary.above.heard == [("failed", CmResult.SESSION_DOWN)]


@pytest.mark.parametrize("which", [0, 1])
def test_a_rundown_during_the_set_up(which: int) -> None:
    net, *nodes = pair()
    nodes[0].want(nodes[1])
    while nodes[which].state is not SessionState.CONFIRMING:
        net.step()
    nodes[which].partner.rundown(nodes[which].session, 0.0)
    assert nodes[which].partner.sessions == ()
    assert nodes[which].above.heard == [("failed", CmResult.SESSION_DOWN)]


def test_nothing_is_left_of_many_sessions() -> None:
    net = Net()
    net, primary, secondary = active_pair()
    for _ in range(50):
        primary.tear_down(FORCE)
        net.run()
        primary.want(secondary)
        net.run()
    primary.tear_down(FORCE)
    net.wait(60)
    assert gone(primary, secondary)
    assert primary.partner.next_timer() is None
