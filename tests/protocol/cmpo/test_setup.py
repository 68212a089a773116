"""Setting sessions up: who calls whom, what crosses, what is refused, what is tried again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.cmpo.nameobject import NameObject, rank_of
from mqis.protocol.cmpo.partner_session import SessionState, VersionLimits
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.wire.cmpo import ixnremote as idl
from mqis.wire.cmpo.codes import CmResult, ComProtocol, SessionRank
from mqis.wire.cmpo.ixnremote import BindVersionSet, BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from tests.protocol.cmpo.net import OK, PRIMARY, SECONDARY, Call, Net, Node, pair

ACTIVE, CONNECTING = SessionState.ACTIVE, SessionState.CONNECTING
CONFIRMING = SessionState.CONFIRMING
BLOB = bytes.fromhex("08000000 01000000")
NO_TCP = bytes.fromhex("08000000 06000000")


def both_active(one: Node, other: Node) -> bool:
    usable = one.state is other.state is ACTIVE
    if usable:
        assert one.session.handle.uuid in other.handles
        assert other.session.handle.uuid in one.handles
        assert one.session.version == other.session.version == BoundVersionSet(2, 1, 5)
        assert one.session.setup_due is other.session.setup_due is None
    return usable


# --- the two ways ---------------------------------------------------------------------------------


def test_the_primary_begins() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.run()

    assert both_active(primary, secondary)
    assert net.log == [("Machine_1", "BuildContextW"), ("Machine_2", "BuildContextW")]
    outer, inner = net.requests
    assert (outer.rank, inner.rank) == (SessionRank.PRIMARY, SessionRank.SECONDARY)
    assert outer.callee == str(SECONDARY.cid)
    assert inner.callee == str(PRIMARY.cid)
    assert outer.guid_in == inner.guid_in != idl.NO_GUID
    assert outer.guid_out == inner.guid_out == idl.NO_GUID
    assert outer.bound == inner.bound == BoundVersionSet.NONE
    assert outer.versions == BindVersionSet(1, 2, 1, 1, 1, 5)
    assert (inner.host_name, inner.caller) == ("Machine_2", str(SECONDARY.cid))
    assert primary.above.words == secondary.above.words == ["up"]


def test_the_secondary_pokes() -> None:
    net, primary, secondary = pair()
    secondary.want(primary)
    net.run()

    assert both_active(primary, secondary)
    assert net.log == [
        ("Machine_2", "PokeW"),
        ("Machine_1", "BuildContextW"),
        ("Machine_2", "BuildContextW"),
    ]
    poke = net.requests[0]
    assert (poke.rank, poke.callee) == (SessionRank.SECONDARY, str(PRIMARY.cid))
    assert (poke.host_name, poke.caller) == ("Machine_2", str(SECONDARY.cid))
    assert secondary.session.initiated_here
    assert not primary.session.initiated_here


def test_states_on_the_way() -> None:
    """The secondary is active a moment before the primary."""
    net, primary, secondary = pair()
    secondary.want(primary)
    seen = [(primary.state, secondary.state)]
    while net.step():
        if (now := (primary.state, secondary.state)) != seen[-1]:
            seen.append(now)
    assert seen == [
        (None, CONNECTING),
        (CONNECTING, CONNECTING),
        (CONNECTING, CONFIRMING),
        (CONFIRMING, CONFIRMING),
        (CONFIRMING, ACTIVE),
        (ACTIVE, ACTIVE),
    ]


def test_a_second_wish_gets_the_same_session() -> None:
    net, primary, secondary = pair()
    first = primary.want(secondary)
    assert primary.want(secondary) is first
    net.run()
    assert primary.want(secondary) is first
    assert net.log.count(("Machine_1", "BuildContextW")) == 1


# --- rank -----------------------------------------------------------------------------------------

#: Text and packet bytes of these sort in opposite ways.
LOW = Guid.parse("01000002-0000-0000-0000-000000000000")
HIGH = Guid.parse("02000001-0000-0000-0000-000000000000")


def test_rank_is_by_text_and_not_by_bytes() -> None:
    assert str(LOW) < str(HIGH)
    assert LOW.raw > HIGH.raw
    assert rank_of(HIGH, LOW) is SessionRank.PRIMARY
    assert rank_of(LOW, HIGH) is SessionRank.SECONDARY
    with pytest.raises(ValueError, match="both partners"):
        rank_of(LOW, LOW)


@pytest.mark.parametrize("initiator", ["HIGH", "LOW"])
def test_partners_whose_orders_differ(initiator: str) -> None:
    net = Net()
    nodes = {"HIGH": net.node(NameObject("HIGH", HIGH)), "LOW": net.node(NameObject("LOW", LOW))}
    first = nodes.pop(initiator)
    (other,) = nodes.values()
    first.want(other)
    net.run()
    assert both_active(first, other)
    poked = ("LOW", "PokeW") in net.log
    assert poked == (initiator == "LOW")
    assert net.log[-2:] == [("HIGH", "BuildContextW"), ("LOW", "BuildContextW")]


@given(a=st.uuids(), b=st.uuids())
def test_exactly_one_of_two_is_primary(a: Any, b: Any) -> None:
    one, other = Guid.parse(str(a)), Guid.parse(str(b))
    if one != other:
        assert {rank_of(one, other), rank_of(other, one)} == set(SessionRank)
        assert (rank_of(one, other) is SessionRank.PRIMARY) == (str(one) > str(other))


# --- crossing -------------------------------------------------------------------------------------


@given(order=st.lists(st.integers(0, 5), max_size=24))
def test_both_begin_at_once_in_any_order(order: list[int]) -> None:
    """PokeW and BuildContextW cross; whatever comes first, there is one session."""
    net, primary, secondary = pair()
    primary.want(secondary)
    secondary.want(primary)
    for index in order:
        net.step(index)
    net.wait(20)
    assert both_active(primary, secondary)
    assert primary.above.words == secondary.above.words == ["up"]
    assert net.log.count(("Machine_1", "BuildContextW")) == 1  # E-CMPO-08


def test_a_poke_while_the_primary_connects_starts_nothing_more() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    secondary.want(primary)
    net.step(1)  # the poke first
    assert net.log.count(("Machine_1", "BuildContextW")) == 1
    net.run()
    assert both_active(primary, secondary)


@pytest.mark.parametrize("state", [CONFIRMING, ACTIVE])
def test_a_poke_is_refused_once_the_session_is_further(state: SessionState) -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    while primary.state is not state:
        net.step()
    assert primary.partner.poke(poke(), 0.0) == CmResult.SERVER_NOT_READY


# --- what is refused ------------------------------------------------------------------------------


def poke(**changes: Any) -> idl.Poke:
    right = idl.Poke(
        SessionRank.SECONDARY,
        str(PRIMARY.cid),
        SECONDARY.host_name,
        str(SECONDARY.cid),
        BLOB,
    )
    return replace(right, **changes)


def build(rank: SessionRank, to: NameObject, by: NameObject, **changes: Any) -> Any:
    right = idl.BuildContext(
        rank,
        BindVersionSet(1, 2, 1, 1, 1, 5),
        str(to.cid),
        by.host_name,
        str(by.cid),
        "11111111-2222-3333-4444-555555555555",
        idl.NO_GUID,
        BoundVersionSet.NONE,
        BLOB,
    )
    return replace(right, **changes)


WRONG: list[Any] = [
    pytest.param({"callee": str(LOW)}, CmResult.INVALID_ARGUMENT, id="for somebody else"),
    pytest.param({"callee": "x" * 36}, CmResult.INVALID_ARGUMENT, id="callee no GUID"),
    pytest.param({"caller": "x" * 36}, CmResult.INVALID_ARGUMENT, id="caller no GUID"),
    pytest.param({"caller": idl.NO_GUID}, CmResult.INVALID_ARGUMENT, id="caller null"),
    pytest.param({"host_name": ""}, CmResult.INVALID_ARGUMENT, id="no host"),
    pytest.param({"host_name": "a:b"}, CmResult.INVALID_ARGUMENT, id="host no name"),
    pytest.param({"blob": bytes(8)}, CmResult.INVALID_ARGUMENT, id="blob of size 0"),
    pytest.param({"blob": NO_TCP}, CmResult.PROTOCOL_NOT_SUPPORTED, id="no TCP"),
]


@pytest.mark.parametrize(("changes", "result"), WRONG)
def test_arguments_of_poke(changes: dict[str, Any], result: CmResult) -> None:
    _net, primary, _secondary = pair()
    assert primary.partner.poke(poke(**changes), 0.0) == result
    assert primary.partner.sessions == ()
    assert primary.partner.effects() == []


@pytest.mark.parametrize(("changes", "result"), WRONG)
def test_arguments_of_build_context(changes: dict[str, Any], result: CmResult) -> None:
    _net, _primary, secondary = pair()
    request = build(SessionRank.PRIMARY, SECONDARY, PRIMARY, **changes)
    answer = secondary.partner.build_context(request, object(), 0.0)
    assert answer is not None
    assert answer.result == result
    assert (answer.session, answer.guid_out, answer.bound) == (
        None,
        idl.NO_GUID,
        BoundVersionSet.NONE,
    )
    assert secondary.partner.sessions == ()


def test_guids_are_taken_in_any_letter_case() -> None:
    _net, primary, _secondary = pair()
    upper = poke(callee=str(PRIMARY.cid).upper(), caller=str(SECONDARY.cid).upper())
    assert primary.partner.poke(upper, 0.0) == OK
    assert primary.session.name == SECONDARY


def test_no_protocol_at_all_means_tcp() -> None:
    _net, primary, _secondary = pair()
    assert primary.partner.poke(poke(blob=bytes.fromhex("08000000 00000000")), 0.0) == OK


def test_nobody_pokes_a_secondary() -> None:
    _net, _primary, secondary = pair()
    request = idl.Poke(2, str(SECONDARY.cid), "Machine_1", str(PRIMARY.cid), BLOB)
    assert secondary.partner.poke(request, 0.0) == CmResult.INVALID_ARGUMENT


def test_the_claimed_rank_has_to_be_right() -> None:
    _net, primary, secondary = pair()
    for request, node in (
        (build(SessionRank.SECONDARY, SECONDARY, PRIMARY), secondary),
        (build(SessionRank.PRIMARY, PRIMARY, SECONDARY), primary),
    ):
        answer = node.partner.build_context(request, object(), 0.0)
        assert answer is not None
        assert answer.result == CmResult.INVALID_ARGUMENT


def test_a_callback_without_a_session() -> None:
    _net, primary, _secondary = pair()
    request = build(SessionRank.SECONDARY, PRIMARY, SECONDARY)
    answer = primary.partner.build_context(request, object(), 0.0)
    assert answer is not None
    assert answer.result == CmResult.SESSION_DOWN


def test_a_callback_of_another_attempt() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    request = build(SessionRank.SECONDARY, PRIMARY, SECONDARY)
    answer = primary.partner.build_context(request, object(), 0.0)
    assert answer is not None
    assert answer.result == CmResult.INVALID_ARGUMENT
    assert primary.state is CONNECTING
    net.run()
    assert both_active(primary, secondary)


def test_a_second_build_context_is_refused() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.run()
    request = build(SessionRank.PRIMARY, SECONDARY, PRIMARY)
    answer = secondary.partner.build_context(request, object(), 0.0)
    assert answer is not None
    assert answer.result == CmResult.SERVER_NOT_READY
    assert both_active(primary, secondary)


def test_an_active_session_is_not_confirmed_again() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.run()
    guid = net.requests[0].guid_in
    request = build(SessionRank.SECONDARY, PRIMARY, SECONDARY, guid_in=guid)
    answer = primary.partner.build_context(request, object(), 0.0)
    assert answer is not None
    assert answer.result == CmResult.SERVER_NOT_READY
    assert both_active(primary, secondary)


def test_one_host_per_contact_identifier() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.run()
    assert primary.partner.poke(poke(host_name="OTHER"), 0.0) == CmResult.INVALID_ARGUMENT
    moved = NameObject("OTHER", SECONDARY.cid)
    with pytest.raises(SessionError, match="Machine_2"):
        primary.partner.request_session(moved, 0.0)
    again = NameObject("MACHINE_2", SECONDARY.cid)
    assert primary.partner.request_session(again, 0.0) is primary.session


def test_a_clone_of_this_side_is_refused() -> None:
    _net, primary, _secondary = pair()
    clone = NameObject("CLONE", PRIMARY.cid)
    with pytest.raises(SessionError):
        primary.partner.request_session(clone, 0.0)
    request = poke(host_name="CLONE", caller=str(PRIMARY.cid))
    assert primary.partner.poke(request, 0.0) == CmResult.INVALID_ARGUMENT


def test_a_partner_without_tcp_cannot_be_called() -> None:
    _net, primary, _secondary = pair()
    name = NameObject("OLD", SECONDARY.cid, ComProtocol.SPX)
    with pytest.raises(SessionError) as failure:
        primary.partner.request_session(name, 0.0)
    assert failure.value.result == CmResult.PROTOCOL_NOT_SUPPORTED


def test_strangers_cannot_have_any_number_of_sessions() -> None:
    net = Net()
    node = net.node(PRIMARY, settings=CmpoSettings(max_sessions=3))
    results = [
        node.partner.poke(poke(caller=str(Guid(bytes([n + 1]) * 16))), 0.0) for n in range(5)
    ]
    assert results == [OK, OK, OK, CmResult.SERVER_TOO_BUSY, CmResult.SERVER_TOO_BUSY]


# --- versions -------------------------------------------------------------------------------------


def test_the_highest_common_version_of_each_level() -> None:
    net = Net()
    primary = net.node(PRIMARY, VersionLimits(level_three=(2, 9)))
    secondary = net.node(SECONDARY, VersionLimits(level_three=(1, 4)))
    primary.want(secondary)
    net.run()
    assert primary.session.version == secondary.session.version == BoundVersionSet(2, 1, 4)


@pytest.mark.parametrize("initiator", [0, 1])
def test_no_common_version_is_final(initiator: int) -> None:
    net = Net()
    nodes = [
        net.node(PRIMARY, VersionLimits(level_three=(4, 9))),
        net.node(SECONDARY, VersionLimits(level_three=(1, 3))),
    ]
    nodes[initiator].want(nodes[1 - initiator])
    net.run()
    net.wait(20)
    for node in nodes:
        assert node.partner.sessions == ()
    assert ("failed", CmResult.VERSION_SET_NOT_SUPPORTED) in nodes[initiator].above.heard
    assert net.log.count(("Machine_1", "BuildContextW")) == 1


@given(
    mine=st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted).map(tuple),
    theirs=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_bound_versions(mine: tuple[int, int], theirs: tuple[int, int]) -> None:
    """The largest number in both ranges, by trying all of them."""
    common = [v for v in range(10) if mine[0] <= v <= mine[1] and theirs[0] <= v <= theirs[1]]
    limits = VersionLimits(level_three=mine)
    bound = limits.bind(BindVersionSet(1, 2, 1, 1, *theirs))
    assert (bound.level_three if bound else None) == max(common, default=None)


def test_each_level_is_bound_by_its_own_limits() -> None:
    limits = VersionLimits(level_one=(1, 2), level_two=(4, 6), level_three=(8, 9))
    assert limits.bind(BindVersionSet(0, 9, 0, 9, 0, 8)) == BoundVersionSet(2, 6, 8)
    assert limits.bind(BindVersionSet(1, 2, 1, 3, 8, 9)) is None


def test_limits_have_to_hold_a_version() -> None:
    with pytest.raises(ValueError, match="no version"):
        VersionLimits(level_three=(5, 4))
    with pytest.raises(ValueError, match=r"no version lies in 3\.\.2"):
        VersionLimits(level_one=(3, 2))
    with pytest.raises(ValueError, match=r"no version lies in 7\.\.6"):
        VersionLimits(level_two=(7, 6))


# --- methods without W ----------------------------------------------------------------------------


@pytest.mark.parametrize("old", [0, 1])
@pytest.mark.parametrize("initiator", [0, 1])
def test_partners_without_w_get_the_other_methods(old: int, initiator: int) -> None:
    net, *nodes = pair()
    nodes[old].lacks = {"PokeW", "BuildContextW"}
    nodes[initiator].want(nodes[1 - initiator])
    net.run()
    assert nodes[0].state is nodes[1].state is ACTIVE
    new = nodes[1 - old].name.host_name
    called = [method for host, method in net.log if host == new]
    assert called == (
        ["PokeW", "Poke", "BuildContext"]
        if (old, initiator) == (0, 1)
        else ["BuildContextW", "BuildContext"]
    )


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("initiator", [0, 1])
def test_a_partner_that_never_answers(initiator: int) -> None:
    net, *nodes = pair()
    net.silent = lambda _call: True
    nodes[initiator].want(nodes[1 - initiator])
    net.wait(5.9)
    assert nodes[initiator].state is CONNECTING
    net.wait(0.2)
    assert nodes[initiator].partner.sessions == ()
    assert nodes[initiator].above.heard == [("failed", CmResult.TIMED_OUT)]
    assert nodes[initiator].calls == {}  # cancelled


def test_the_secondary_waits_half_as_long_for_its_own_call() -> None:
    net, primary, secondary = pair()
    net.silent = lambda call: call.caller is secondary
    primary.want(secondary)
    net.wait(2.9)
    assert secondary.state is CONFIRMING
    net.wait(0.2)
    assert primary.above.heard == [("failed", CmResult.TIMED_OUT)]
    assert secondary.above.heard == [("failed", CmResult.TIMED_OUT)]
    assert primary.partner.sessions == secondary.partner.sessions == ()


def test_an_unreachable_partner_is_tried_again_and_given_up() -> None:
    net = Net()
    primary = net.node(PRIMARY)
    primary.partner.request_session(SECONDARY, 0.0)
    primary.act()
    net.wait(10)
    assert primary.above.heard == [("failed", CmResult.SERVER_UNAVAILABLE)]
    assert len(net.log) == 1 + CmpoSettings().retries
    guids = {request.guid_in for request in net.requests}
    assert len(guids) == len(net.requests)  # each attempt has its own


@pytest.mark.parametrize("result", [CmResult.SERVER_NOT_READY, CmResult.SERVER_TOO_BUSY, 0x1234])
@pytest.mark.parametrize("initiator", [0, 1])
def test_other_errors_are_tried_again(initiator: int, result: int) -> None:
    """Positive numbers are errors too (E-CMPO-06)."""
    net, *nodes = pair()
    times = 3
    first, other = nodes[initiator], nodes[1 - initiator]
    method = other.method

    def refuse(call: Call) -> Any:
        nonlocal times
        if times and isinstance(call.request, idl.Poke | idl.BuildContext):
            times -= 1
            if isinstance(call.request, idl.Poke):
                return idl.RemoteResult(result)
            return idl.ContextBuilt(idl.NO_GUID, BoundVersionSet.NONE, ContextHandle.NULL, result)
        return method(call)

    other.method = refuse  # type: ignore[method-assign]
    first.want(other)
    net.wait(3)
    assert both_active(nodes[0], nodes[1])
    assert times == 0


def test_success_with_a_null_guid_is_a_refusal() -> None:
    """So say Windows 2003 and older (product notes 19 to 31)."""
    net, primary, secondary = pair()
    method = secondary.method
    times = 1

    def refuse(call: Call) -> Any:
        nonlocal times
        if times:
            times -= 1
            return idl.ContextBuilt(idl.NO_GUID, BoundVersionSet.NONE, ContextHandle.NULL, 0)
        return method(call)

    secondary.method = refuse  # type: ignore[method-assign]
    primary.want(secondary)
    net.run()
    assert primary.state is CONNECTING
    net.wait(1)
    assert both_active(primary, secondary)


def test_success_without_a_callback_is_a_failure() -> None:
    net, primary, secondary = pair()

    def liar(call: Call) -> Any:
        return idl.ContextBuilt(
            call.request.guid_in, BoundVersionSet(2, 1, 5), ContextHandle.NULL, 0
        )

    secondary.method = liar  # type: ignore[method-assign]
    primary.want(secondary)
    net.run()
    assert primary.above.heard == [("failed", CmResult.FAIL)]


def test_a_primary_that_goes_away_while_the_secondary_confirms() -> None:
    net, primary, secondary = pair()
    primary.want(secondary)
    net.step()
    assert secondary.state is CONFIRMING
    secondary.partner.abandoned(secondary.session.outer, 0.0)
    assert secondary.partner.sessions == ()
    assert secondary.above.heard == [("failed", CmResult.SESSION_DOWN)]


def test_a_primary_that_dies_before_the_session_is_up() -> None:
    net, primary, secondary = pair()
    secondary.want(primary)
    net.step()  # the poke
    net.kill(primary)
    net.wait(20)
    assert secondary.partner.sessions == ()
    assert secondary.above.words == ["failed"]


def test_a_lost_answer_of_the_primarys_call_is_made_good() -> None:
    """The secondary is active, the primary does not know; its handle is run down, it tries anew."""
    net, primary, secondary = pair()
    session = primary.want(secondary)
    while secondary.state is not ACTIVE:
        net.step()
    (call,) = primary.calls.values()
    net.pending.clear()
    call.wanted = True
    primary.ended(call, int(CmResult.SERVER_UNAVAILABLE))
    secondary.association_lost(session)
    assert secondary.partner.sessions == ()
    net.wait(3)
    assert both_active(primary, secondary)
