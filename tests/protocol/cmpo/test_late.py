"""Calls and answers that arrive twice, too late, or for a session that is ending."""

from __future__ import annotations

import pytest

from mqis.protocol.cmpo.events import Release
from mqis.protocol.cmpo.partner import Partner
from mqis.protocol.cmpo.partner_session import CmpoSession, SessionState
from mqis.protocol.cmpo.session_table import SessionTable
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, SessionRank, TeardownType
from mqis.wire.ndr import ContextHandle
from tests.protocol.cmpo.net import OK, PRIMARY, SECONDARY, Above, Net, Node, active_pair, pair

FORCE, PROBLEM = TeardownType.FORCE, TeardownType.PROBLEM
ACTIVE, CLOSED = SessionState.ACTIVE, SessionState.CLOSED
BOXCAR = bytes(40)


def confirming() -> tuple[Net, Node, Node]:
    """The secondary is active; the primary is not, for its call is not answered yet."""
    net, primary, secondary = pair()
    primary.want(secondary)
    while secondary.state is not ACTIVE:
        net.step()
    assert primary.state is SessionState.CONFIRMING
    return net, primary, secondary


def renewed() -> tuple[Net, Node, Node, CmpoSession]:
    """Both have a session, and the primary remembers the one before."""
    net, primary, secondary = active_pair()
    old = primary.session
    primary.tear_down(FORCE)
    net.run()
    primary.want(secondary)
    net.run()
    assert old.state is CLOSED
    assert primary.session is not old
    return net, primary, secondary, old


# --- sessions that are gone -----------------------------------------------------------------------


def test_a_problem_with_a_session_that_is_gone_is_none() -> None:
    """The level above may notice late; the session that came after is not to suffer."""
    _net, primary, secondary, old = renewed()
    heard = list(primary.above.heard)
    primary.partner.tear_down(old, PROBLEM, 0.0)
    assert primary.partner.effects() == []
    assert primary.above.heard == heard
    assert old.state is CLOSED
    assert primary.state is secondary.state is ACTIVE


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", TeardownType)
def test_tear_down_context_for_a_session_that_is_gone_is_answered_and_changes_nothing(
    which: int, kind: TeardownType
) -> None:
    net, *nodes = active_pair()
    node = nodes[which]
    session = node.session
    node.partner.rundown(session, net.now)
    node.act()
    heard = list(node.above.heard)
    (other,) = set(SessionRank) - {session.rank}
    request = idl.TearDownContext(ContextHandle.NULL, other, kind)
    assert node.partner.tear_down_context(session, request, net.now) == OK
    assert node.partner.effects() == []
    assert node.above.heard == heard
    assert session.state is CLOSED


def test_the_loss_of_an_association_after_a_failed_set_up_is_no_news() -> None:
    """The level above was told that the session failed: one that was never up cannot go down."""
    net, primary, secondary = pair()
    session = primary.want(secondary)
    net.silent = lambda _call: True
    net.wait(7)
    assert primary.above.heard == [("failed", CmResult.TIMED_OUT)]
    primary.partner.rundown(session, net.now)
    assert primary.above.heard == [("failed", CmResult.TIMED_OUT)]
    assert primary.partner.effects() == []


def test_a_session_is_removed_once_and_never_the_one_after_it() -> None:
    table = SessionTable(PRIMARY, CmpoSettings())
    old = table.create(SECONDARY, initiated_here=True)
    table.remove(old, CmResult.SESSION_DOWN)
    new = table.create(SECONDARY, initiated_here=True)
    table.remove(old, CmResult.SESSION_DOWN)
    assert table.sessions == {SECONDARY.cid: new}
    assert table.effects == [Release(old)]


# --- answers that nobody waits for ----------------------------------------------------------------


def asking() -> tuple[Node, int, idl.NegotiateResources]:
    """A secondary that has asked for five connections: its call has a number, and no answer."""
    net, _primary, secondary = active_pair()
    net.silent = lambda _call: True
    secondary.partner.allocate(secondary.session, 5)
    secondary.act()
    (call,) = secondary.calls.values()
    assert isinstance(call.request, idl.NegotiateResources)
    return secondary, call.number, call.request


def test_an_answer_that_comes_twice_counts_once() -> None:
    node, number, request = asking()
    for _ in range(2):
        node.partner.returned(number, request, idl.ResourcesNegotiated(5, OK), 0.0)
    node.partner.failed(number, request, CmResult.CALL_CANCELLED, 0.0)
    assert node.above.heard[1:] == [("granted", (5, OK))]
    assert node.state is ACTIVE


def test_an_answer_after_the_end_of_the_session_is_not_passed_on() -> None:
    node, number, request = asking()
    node.partner.rundown(node.session, 0.0)
    node.act()
    assert node.calls == {}
    node.partner.returned(number, request, idl.ResourcesNegotiated(5, OK), 0.0)
    node.partner.failed(number, request, CmResult.CALL_CANCELLED, 0.0)
    assert node.above.heard[1:] == [("down", PROBLEM)]
    assert node.partner.effects() == []


# --- a session that ends before it has begun ------------------------------------------------------


def test_a_primary_that_is_not_active_yet_cannot_be_asked_to_end() -> None:
    """The secondary is told so, and ends the session by itself without waiting for a callback."""
    net, primary, secondary = confirming()
    answered = net.pending.pop(0)  # to the primary's call, for later
    assert primary.partner.begin_tear_down(primary.session, net.now) == CmResult.SERVER_NOT_READY
    secondary.tear_down(FORCE)
    net.run()
    assert ("Machine_2", "BeginTearDown") in net.log
    assert ("Machine_1", "TearDownContext") not in net.log
    assert secondary.above.heard[1:] == [("down", FORCE)]
    assert primary.above.heard == [("failed", CmResult.SESSION_DOWN)]
    answered()
    assert primary.partner.sessions == secondary.partner.sessions == ()
    assert primary.above.words == ["failed"]


class Ending(Above):
    """Wants no session: ends each as soon as it is up."""

    partner: Partner

    def session_up(self, session: CmpoSession, now: float) -> None:
        super().session_up(session, now)
        self.partner.tear_down(session, FORCE, now)


def test_held_calls_are_refused_when_the_level_above_ends_the_session_at_once() -> None:
    net = Net()
    primary, secondary = net.node(PRIMARY), net.node(SECONDARY)
    above = primary.above = Ending()
    above.partner = primary.partner = Partner(PRIMARY, above, net.numbers)
    primary.want(secondary)
    while secondary.state is not ACTIVE:
        net.step()
    secondary.partner.allocate(secondary.session, 5)
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    answered = net.pending.pop(0)
    net.run()
    assert len(primary.session.held) == 2
    answered()
    net.run()
    assert above.boxcars == []
    assert above.heard[1:] == [("down", FORCE)]
    assert secondary.above.heard[1:] == [
        ("granted", (0, CmResult.TEARING_DOWN)),
        ("down", FORCE),
    ]
    assert primary.partner.sessions == secondary.partner.sessions == ()


def test_a_held_negotiation_is_refused_when_the_session_is_lost() -> None:
    net, primary, secondary = confirming()
    secondary.partner.allocate(secondary.session, 5)
    secondary.act()
    net.pending.pop(0)
    net.run()
    assert len(primary.session.held) == 1
    primary.partner.rundown(primary.session, net.now)
    primary.act()
    net.run()
    assert secondary.above.heard[1:] == [
        ("granted", (0, CmResult.SESSION_DOWN)),
        ("down", PROBLEM),
    ]


# --- a boxcar that crosses the end ----------------------------------------------------------------


def orderly(net: Net) -> bool:
    torn = [request for request in net.requests if isinstance(request, idl.TearDownContext)]
    return [request.teardown for request in torn] == [FORCE, FORCE]


def test_a_boxcar_that_is_refused_because_of_the_end_is_no_problem() -> None:
    net, primary, secondary = active_pair()
    primary.tear_down(FORCE)
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    net.step()
    assert secondary.state is SessionState.TEARDOWN
    net.run()
    assert primary.above.boxcars == []
    assert primary.above.heard[1:] == secondary.above.heard[1:] == [("down", FORCE)]
    assert orderly(net)


def test_a_boxcar_whose_call_fails_during_the_end_is_no_problem() -> None:
    net, primary, secondary = active_pair()
    net.silent = lambda call: isinstance(call.request, idl.SendReceive)
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    (call,) = secondary.calls.values()
    secondary.tear_down(FORCE)
    secondary.ended(call, int(CmResult.CALL_CANCELLED))
    assert secondary.state is SessionState.REQUESTING_TEARDOWN
    net.run()
    assert primary.above.heard[1:] == secondary.above.heard[1:] == [("down", FORCE)]
    assert orderly(net)
