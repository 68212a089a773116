"""NegotiateResources and SendReceive in every state, held calls, and calls made again."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.protocol.cmpo.partner_session import CmpoSession, SessionState
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, TeardownType
from mqis.wire.ndr import ContextHandle
from tests.protocol.cmpo.net import OK, Call, Net, Node, active_pair, pair

BOXCAR = bytes(40)
NULL = ContextHandle.NULL


def negotiate(
    node: Node, session: CmpoSession, requested: int, resource: int = 0
) -> tuple[int, int]:
    request = idl.NegotiateResources(NULL, resource, requested)
    answer = node.partner.negotiate_resources(session, request, object(), 0.0)
    assert answer is not None
    return answer.accepted, answer.result


def in_state(state: SessionState) -> tuple[Node, CmpoSession]:
    """A node whose session is in a state that allows no traffic."""
    if state is SessionState.CONNECTING:
        _, primary, secondary = pair()
        return primary, primary.want(secondary)
    _net, primary, secondary = active_pair()
    session = secondary.session
    if state is SessionState.REQUESTING_TEARDOWN:
        secondary.tear_down(TeardownType.FORCE)
    elif state is SessionState.TEARDOWN:
        secondary.tear_down(TeardownType.PROBLEM)
    else:
        secondary.partner.rundown(session, 0.0)
    return secondary, session


@pytest.mark.parametrize(
    ("requested", "resource", "expected"),
    [
        (1, 0, (1, OK)),
        (100, 0, (100, OK)),
        (999, 0, (999, OK)),
        (1000, 0, (1000, OK)),
        (0, 0, (0, CmResult.INVALID_ARGUMENT)),
        (1001, 0, (0, CmResult.INVALID_ARGUMENT)),
        (1, 1, (0, CmResult.INVALID_ARGUMENT)),
    ],
)
def test_resources(requested: int, resource: int, expected: tuple[int, int]) -> None:
    _net, primary, _secondary = active_pair()
    assert negotiate(primary, primary.session, requested, resource) == expected


def test_the_level_above_may_grant_less_or_nothing() -> None:
    net, primary, secondary = active_pair()
    primary.above.grant_at_most = 7
    secondary.partner.allocate(secondary.session, 100)
    secondary.act()
    net.run()
    primary.above.grant_at_most = 0
    secondary.partner.allocate(secondary.session, 100)
    secondary.act()
    net.run()
    assert secondary.above.heard[1:] == [
        ("granted", (7, OK)),
        ("granted", (0, CmResult.OUT_OF_RESOURCES)),
    ]
    (request,) = {r for r in net.requests if isinstance(r, idl.NegotiateResources)}
    assert (request.resource, request.requested, request.accepted) == (0, 100, 0)


@pytest.mark.parametrize("count", [0, 1000])
def test_more_than_999_are_not_asked_for(count: int) -> None:
    _net, primary, _secondary = active_pair()
    with pytest.raises(ValueError, match="999"):
        primary.partner.allocate(primary.session, count)


@pytest.mark.parametrize(
    ("state", "result"),
    [
        (SessionState.CONNECTING, CmResult.SERVER_NOT_READY),
        (SessionState.REQUESTING_TEARDOWN, CmResult.TEARING_DOWN),
        (SessionState.TEARDOWN, CmResult.TEARING_DOWN),
        (SessionState.CLOSED, CmResult.SERVER_NOT_READY),
    ],
)
def test_no_traffic_unless_active(state: SessionState, result: CmResult) -> None:
    node, session = in_state(state)
    assert session.state is state
    assert negotiate(node, session, 1) == (0, CmResult.SERVER_NOT_READY)
    request = idl.SendReceive(NULL, 1, BOXCAR)
    assert node.partner.send_receive(session, request, object(), 0.0) == result
    assert node.above.boxcars == []
    with pytest.raises(ValueError, match="not active"):
        node.partner.send(session, 1, BOXCAR)
    with pytest.raises(ValueError, match="not active"):
        node.partner.allocate(session, 1)


@pytest.mark.parametrize("sender", [0, 1])
def test_boxcars_both_ways(sender: int) -> None:
    net, *nodes = active_pair()
    source, target = nodes[sender], nodes[1 - sender]
    for n in range(3):
        source.partner.send(source.session, n + 1, bytes([n]) * 40)
        source.act()
        net.run()
    assert target.above.boxcars == [bytes([n]) * 40 for n in range(3)]
    assert source.above.words == ["up", "sent", "sent", "sent"]


def confirming() -> tuple[Net, Node, Node]:
    """The secondary is active, the primary not yet."""
    net, primary, secondary = pair()
    primary.want(secondary)
    while secondary.state is not SessionState.ACTIVE:
        net.step()
    assert primary.state is SessionState.CONFIRMING
    return net, primary, secondary


def test_calls_of_an_early_secondary_are_held_and_answered_in_order() -> None:
    net, primary, secondary = confirming()
    secondary.partner.allocate(secondary.session, 5)
    secondary.act()
    secondary.partner.send(secondary.session, 1, b"a" * 40)
    secondary.act()
    late = net.pending.pop(0)  # the answer to the primary's call
    net.run()
    assert primary.above.boxcars == []
    assert secondary.above.words == ["up"]
    late()
    net.run()
    assert primary.above.boxcars == [b"a" * 40]
    assert secondary.above.words == ["up", "granted", "sent"]


def test_only_so_many_calls_are_held() -> None:
    _net, primary, _secondary = confirming()
    session = primary.session
    request = idl.SendReceive(NULL, 1, BOXCAR)
    answers = [primary.partner.send_receive(session, request, object(), 0.0) for _ in range(10)]
    assert answers == [None] * 8 + [CmResult.SERVER_NOT_READY] * 2


def test_held_calls_end_with_the_session() -> None:
    net, primary, secondary = confirming()
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    net.pending.pop(0)
    net.run()
    primary.partner.rundown(primary.session, 0.0)
    primary.act()
    net.run()
    assert secondary.above.heard[-1] == ("down", TeardownType.PROBLEM)


def test_not_ready_is_tried_again() -> None:
    net, primary, secondary = active_pair()
    method, times = primary.method, 2

    def busy(call: Call) -> Any:
        nonlocal times
        if times and isinstance(call.request, idl.SendReceive | idl.NegotiateResources):
            times -= 1
            if isinstance(call.request, idl.SendReceive):
                return idl.RemoteResult(CmResult.SERVER_NOT_READY)
            return idl.ResourcesNegotiated(0, CmResult.SERVER_NOT_READY)
        return method(call)

    primary.method = busy  # type: ignore[method-assign]
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    net.wait(1)
    assert primary.above.boxcars == [BOXCAR]
    times = 2
    secondary.partner.allocate(secondary.session, 3)
    secondary.act()
    net.wait(1)
    assert secondary.above.heard[1:] == [("sent", secondary.session), ("granted", (3, OK))]


@pytest.mark.parametrize("result", [CmResult.INVALID_ARGUMENT, CmResult.SERVER_NOT_READY, 0x6BB])
def test_a_boxcar_that_is_not_taken_ends_the_session(result: int) -> None:
    net, primary, secondary = active_pair()
    primary.above.result = result
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    net.wait(10)
    assert secondary.above.heard[1:] == [("down", TeardownType.PROBLEM)]
    assert primary.above.heard[1:] == [("down", TeardownType.PROBLEM)]
    assert primary.partner.sessions == secondary.partner.sessions == ()
    assert ("Machine_2", "TearDownContext") in net.log


def test_a_negotiation_that_fails_leaves_the_session() -> None:
    net, _primary, secondary = active_pair()
    net.silent = lambda call: isinstance(call.request, idl.NegotiateResources)
    secondary.partner.allocate(secondary.session, 3)
    secondary.act()
    net.run()
    (call,) = secondary.calls.values()
    secondary.ended(call, int(CmResult.CALL_CANCELLED))
    assert secondary.above.heard[1:] == [("granted", (0, CmResult.CALL_CANCELLED))]
    assert secondary.state is SessionState.ACTIVE


# --- a level above without room -------------------------------------------------------------------


def test_a_call_returns_when_there_is_room() -> None:
    net, primary, secondary = active_pair()
    primary.above.result = None
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    net.run()
    assert primary.above.boxcars == [BOXCAR]
    assert secondary.above.words == ["up"]
    primary.partner.release(primary.session, 0.0)
    primary.act()
    net.run()
    assert secondary.above.words == ["up", "sent"]


def test_boxcars_behind_it_wait_in_their_order() -> None:
    _net, primary, _secondary = active_pair()
    session, partner = primary.session, primary.partner
    primary.above.result = None
    cars = [bytes([n]) * 40 for n in range(3)]
    tokens = [Call(primary, n, session, None, None, wanted=False) for n in range(3)]
    for token, car in zip(tokens, cars, strict=True):
        request = idl.SendReceive(NULL, 1, car)
        assert partner.send_receive(session, request, token, 0.0) is None
    assert primary.above.boxcars == cars[:1]
    partner.release(session, 0.0)
    assert primary.above.boxcars == cars[:2]
    primary.above.result = OK
    partner.release(session, 0.0)
    assert primary.above.boxcars == cars
    answers = [effect.token for effect in partner.effects()]  # type: ignore[union-attr]
    assert answers == tokens


def test_a_call_that_was_kept_ends_with_the_session() -> None:
    net, primary, secondary = active_pair()
    primary.above.result = None
    secondary.partner.send(secondary.session, 1, BOXCAR)
    secondary.act()
    net.run()
    primary.tear_down(TeardownType.PROBLEM)
    net.run()
    assert secondary.above.heard[1:] == [("down", TeardownType.PROBLEM)]
    assert primary.partner.sessions == secondary.partner.sessions == ()


def test_settings() -> None:
    pauses = [CmpoSettings().pause_s(n) for n in range(1, 13)]
    assert pauses[:5] == [0.05, 0.1, 0.2, 0.4, 0.5]
    assert sum(pauses) < CmpoSettings().setup_s
