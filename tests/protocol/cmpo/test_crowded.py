"""The set-up among others: full tables, callers with a wrong host, callers that go away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.cmpo.events import AnswerCall
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import SessionState
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, TeardownType
from mqis.wire.cmpo.ixnremote import BindVersionSet
from mqis.wire.guid import Guid
from tests.protocol.cmpo.net import PRIMARY, SECONDARY, Net, Node, pair

ACTIVE, CONNECTING = SessionState.ACTIVE, SessionState.CONNECTING
CONFIRMING = SessionState.CONFIRMING
#: Of a higher rank than either of the two.
THIRD = NameObject("Machine_3", Guid.parse("c0ffee00-0000-4000-8000-000000000003"))


def crowd(most: int) -> tuple[Net, Node, Node, Node]:
    """A primary, another one, and the secondary of both with room for so many sessions."""
    net = Net()
    nodes = net.node(PRIMARY), net.node(THIRD)
    return net, *nodes, net.node(SECONDARY, settings=CmpoSettings(max_sessions=most))


def built(net: Net) -> idl.BuildContext:
    """The last call, which is a BuildContextW."""
    request = net.requests[-1]
    assert isinstance(request, idl.BuildContext)
    return request


# --- no room --------------------------------------------------------------------------------------


def test_a_full_side_begins_no_session_but_gives_out_those_it_has() -> None:
    net, primary, third, secondary = crowd(1)
    first = secondary.want(primary)
    with pytest.raises(SessionError, match="too many sessions") as refused:
        secondary.want(third)
    assert refused.value.result == CmResult.SERVER_TOO_BUSY
    assert secondary.want(primary) is first
    net.run()
    assert net.log.count(("Machine_2", "PokeW")) == 1
    secondary.tear_down(TeardownType.FORCE)
    net.run()
    secondary.want(third)
    net.run()
    assert secondary.state is third.state is ACTIVE


def test_a_full_secondary_refuses_until_it_has_room() -> None:
    """Too busy is not final: the primary tries again, and its new attempt finds the room."""
    net, primary, third, secondary = crowd(1)
    third.want(secondary)
    net.run()
    primary.want(secondary)
    answer = secondary.partner.build_context(built(net), object(), net.now)
    assert answer is not None
    assert (answer.result, answer.session) == (CmResult.SERVER_TOO_BUSY, None)
    net.run()
    assert secondary.session.name == THIRD
    assert primary.state is CONNECTING
    third.tear_down(TeardownType.FORCE)
    net.wait(3)
    assert primary.state is secondary.state is ACTIVE
    assert secondary.session.name == PRIMARY
    assert primary.above.words == ["up"]


# --- not what was asked for -----------------------------------------------------------------------


def test_a_primary_of_another_host_does_not_get_the_session_that_waits_for_it() -> None:
    net, primary, secondary = pair()
    secondary.want(primary)
    net.step()  # the poke; the primary calls
    stolen = replace(built(net), host_name="OTHER")
    answer = secondary.partner.build_context(stolen, object(), net.now)
    assert answer is not None
    assert (answer.result, answer.session) == (CmResult.INVALID_ARGUMENT, None)
    assert secondary.state is CONNECTING
    assert secondary.partner.effects() == []
    net.run()
    assert primary.state is secondary.state is ACTIVE


def test_a_callback_with_no_common_version_ends_the_attempt() -> None:
    """The secondary has taken the versions that it was offered, then offers others itself."""
    net, primary, secondary = pair()
    primary.want(secondary)
    net.step()
    strange = replace(built(net), versions=BindVersionSet(1, 2, 1, 1, 9, 9))
    answer = primary.partner.build_context(strange, object(), net.now)
    assert answer is not None
    assert (answer.result, answer.session) == (CmResult.VERSION_SET_NOT_SUPPORTED, None)
    primary.act()
    assert primary.above.heard == [("failed", CmResult.VERSION_SET_NOT_SUPPORTED)]
    assert primary.partner.sessions == ()
    assert primary.calls == {}  # its own call is given up
    assert primary.partner.next_timer() is None


# --- overtaken ------------------------------------------------------------------------------------


def test_a_poke_that_was_overtaken_is_not_made_without_w() -> None:
    """The primary has no PokeW, but it has called by itself before it says so."""
    net, primary, secondary = pair()
    primary.lacks = {"PokeW"}
    primary.want(secondary)
    secondary.want(primary)
    net.step()
    assert secondary.state is CONFIRMING
    net.run()
    assert primary.state is secondary.state is ACTIVE
    assert ("Machine_2", "PokeW") in net.log
    assert ("Machine_2", "Poke") not in net.log


def test_a_pause_that_was_overtaken_ends_without_a_call() -> None:
    """The poke found nobody and is to be made again; the primary is up and calls before."""
    net, primary, secondary = pair()
    del net.nodes[PRIMARY.cid]
    secondary.want(primary)
    net.run()
    assert secondary.partner.next_timer() == CmpoSettings().retry_s
    net.nodes[PRIMARY.cid] = primary
    net.silent = lambda call: call.caller is secondary
    primary.want(secondary)
    net.run()
    assert secondary.state is CONFIRMING
    called = list(net.log)
    net.wait(1)
    assert net.log == called
    assert secondary.state is CONFIRMING
    assert secondary.partner.next_timer() == CmpoSettings().setup_s / 2  # the others go on


# --- gone -----------------------------------------------------------------------------------------


def test_a_primary_that_goes_away_ends_its_own_session_alone() -> None:
    net, primary, third, secondary = crowd(2)
    net.silent = lambda call: call.caller is secondary
    for node in (primary, third):
        node.want(secondary)
    net.run()
    stays, goes = secondary.partner.sessions
    assert stays.state is goes.state is CONFIRMING
    secondary.partner.abandoned(goes.outer, net.now)
    assert secondary.partner.sessions == (stays,)
    assert stays.state is CONFIRMING
    assert secondary.above.heard == [("failed", CmResult.SESSION_DOWN)]
    # Nobody is there to be answered.
    assert not [effect for effect in secondary.partner.effects() if isinstance(effect, AnswerCall)]


def test_a_caller_that_goes_away_after_its_answer_ends_nothing() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.step()
    token = secondary.session.outer
    net.run()
    secondary.partner.abandoned(token, net.now)
    assert secondary.partner.effects() == []
    assert primary.state is secondary.state is ACTIVE
    assert secondary.above.words == ["up"]
