"""The client of MS-MQSD 3.1: every run on one to three networks, and what stands around a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.discovery.announced import DiscoveryQueueManager, NetworkAddress
from mqis.protocol.discovery.discovery_client import DiscoveryClient, Responder
from mqis.protocol.discovery.events import (
    Discarded,
    Passed,
    RequestBroadcast,
    ServerAnswered,
    ServerListComplete,
)
from mqis.wire.guid import Guid
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest
from tests.protocol.discovery.runs import (
    ENTERPRISE,
    OLD_NAMES,
    OLD_NETWORKS,
    OTHER_SITE,
    OWN_SITE,
    REQUEST_ID,
    RUNS,
    Played,
    Reply,
    client,
    expected,
    literal,
    network,
    noises,
    play,
)
from tests.wire.mqsd.vectors import OTHER_SITE_BYTES, OWN_SITE_BYTES, REQUEST_BYTES

O0, F0, F0B = Reply(0, 0, own_site=True), Reply(0, 0, own_site=False), Reply(0, 1, own_site=False)
O1, F1 = Reply(1, 0, own_site=True), Reply(1, 0, own_site=False)


def started(count: int, **options: bool) -> Played:
    played = Played(client(**options))
    played.begin(count)
    return played


def succeeded(played: Played) -> bool:
    """The result in the last event, which is the only one of its kind."""
    (finished,) = (e for e in played.events if isinstance(e, ServerListComplete))
    assert played.events[-1] is finished
    return finished.success


# --- all runs -------------------------------------------------------------------------------------


def test_there_are_as_many_runs_as_the_errata_count() -> None:
    """155, of which the text ends 59 in success with nothing to fill the lists from."""
    assert len(RUNS) == len(set(RUNS)) == 155
    empty = [run for run in RUNS if literal(run) is None and expected(run).reply is not None]
    assert len(empty) == 59
    assert sum(expected(run).reply is None for run in RUNS) == 3


@pytest.mark.parametrize("prefer_own_site", [False, True], ids=["rules", "prefer own site"])
@pytest.mark.parametrize("noisy", [False, True], ids=["quiet", "noisy"])
@pytest.mark.parametrize("run", RUNS, ids="-".join)
@pytest.mark.req("MQSD-3.1.5.1-05", "MQSD-3.1.4.1-01")
def test_every_run(run: tuple[str, ...], noisy: bool, prefer_own_site: bool) -> None:
    played = play(run, prefer_own_site=prefer_own_site, noise=noises if noisy else None)
    wanted = expected(run, prefer_own_site=prefer_own_site)

    assert [sent.network for sent in played.sent] == [network(i) for i in range(len(run))]
    assert {sent.data for sent in played.sent} == {
        TopologyClientRequest(ENTERPRISE, REQUEST_ID, OWN_SITE).to_bytes()
    }
    assert succeeded(played) == (wanted.reply is not None)
    own = played.client.queue_manager
    assert (own.directory_servers, own.connected_networks) == (wanted.names, wanted.networks)
    assert own.connected_networks
    assert played.client.last_successful_network_address == wanted.last_successful
    assert played.client.valid_last_successful_network_address == (wanted.reply is not None)
    assert played.client.next_timer() is None
    assert not played.client.running


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_what_the_text_defines_stays_as_it_is(run: tuple[str, ...]) -> None:
    stored = literal(run)
    if stored is None:
        return
    own = play(run).client.queue_manager
    assert (own.directory_servers, own.connected_networks) == (stored.names, stored.networks)


@pytest.mark.parametrize("run", RUNS, ids="-".join)
@pytest.mark.req("MQSD-3.1.2.1-01", "MQSD-3.1.5.1-03")
def test_every_wait_is_fifteen_seconds(run: tuple[str, ...]) -> None:
    """Three seconds to each reply, fifteen from the last thing that counts to a timer."""
    played = play(run)
    lasting = {"O": 3.0, "T": 15.0, "FO": 6.0, "FF": 6.0, "FT": 18.0}
    starts = [1000.0]
    for word in run:
        starts.append(starts[-1] + lasting[word])
    assert played.sent_at == starts[:-1]
    assert played.now == starts[-1]


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_who_answered_is_remembered(run: tuple[str, ...]) -> None:
    """A server of the own site tells no name, so its address is what can be used (E-MQSD-06)."""
    played = play(run)
    told = [e for e in played.events if isinstance(e, ServerAnswered)]
    assert played.client.responders == [
        Responder(e.network, e.source, e.reply.own_site) for e in told
    ]
    assert len(told) == sum(len(word.replace("T", "")) for word in run)


# --- branch by branch -----------------------------------------------------------------------------


@pytest.mark.req("MQSD-3.1.5.2-04")
def test_own_site_before_the_last_network() -> None:
    played = started(2)
    played.reply(O0)
    machine = played.client
    assert [sent.network for sent in played.sent] == [network(0), network(1)]
    assert machine.reply_received
    assert machine.last_successful_network_address == network(0)
    assert machine.valid_last_successful_network_address
    assert machine.next_timer() == played.now + 15
    played.timer()  # nobody on the second: what was stored on the first fills the lists
    assert machine.queue_manager.connected_networks == O0.networks
    third = started(3)
    third.timer()
    third.reply(O1)
    assert third.client.last_successful_network_address == network(1)


@pytest.mark.req("MQSD-3.1.5.2-05")
def test_a_second_foreign_reply_before_the_last_network() -> None:
    played = started(2)
    played.reply(F0)
    assert len(played.sent) == 1
    played.now += 5
    played.reply(F0B)
    assert [sent.network for sent in played.sent] == [network(0), network(1)]
    played.timer()
    assert played.client.queue_manager.directory_servers == F0.names  # not those of the second


@pytest.mark.departs("MQSD-3.1.5.2-06")
def test_own_site_on_the_last_network() -> None:
    alone = started(1)
    alone.reply(O0)
    own = alone.client.queue_manager
    assert (own.directory_servers, own.connected_networks) == (OLD_NAMES, O0.networks)

    behind = started(1)
    behind.reply(F0)
    behind.reply(Reply(0, 1, own_site=True))
    own = behind.client.queue_manager
    assert (own.directory_servers, own.connected_networks) == (F0.names, F0.networks)
    for played in (alone, behind):
        assert played.events[-1] == ServerListComplete(success=True)
        assert played.client.next_timer() is None
        assert played.client.last_successful_network_address == network(0)


@pytest.mark.req("MQSD-3.1.5.2-07")
@pytest.mark.parametrize("count", [1, 2], ids=["last", "not last"])
def test_a_first_foreign_reply_restarts_the_wait(count: int) -> None:
    played = started(count)
    played.now += 14
    played.reply(F0)
    machine = played.client
    assert machine.next_timer() == played.now + 15
    assert machine.last_reply == F0.packet()
    assert machine.reply_received
    assert machine.last_successful_network_address == network(0)
    assert (len(played.sent), machine.running) == (1, True)
    second = started(count + 1)
    second.timer()
    second.reply(F1)
    assert second.client.last_reply == F1.packet()
    assert second.client.last_successful_network_address == network(1)


@pytest.mark.req("MQSD-3.1.5.2-08")
def test_a_second_foreign_reply_on_the_last_network() -> None:
    played = started(1)
    played.reply(F0)
    played.reply(F0B)
    own = played.client.queue_manager
    assert (own.directory_servers, own.connected_networks) == (F0.names, F0.networks)
    assert played.events[-1] == ServerListComplete(success=True)
    assert played.client.next_timer() is None


@pytest.mark.req("MQSD-3.1.6.1-01")
def test_the_timer_before_the_last_network_keeps_what_was_stored() -> None:
    played = started(2)
    played.reply(F0)
    played.timer()
    assert [sent.network for sent in played.sent] == [network(0), network(1)]
    assert played.client.last_reply is None
    played.timer()
    assert played.client.queue_manager.directory_servers == F0.names


@pytest.mark.req("MQSD-3.1.6.1-02")
def test_nobody_answers_at_all() -> None:
    played = started(1)
    played.reply(O0)
    assert played.client.valid_last_successful_network_address
    played.begin(2, force=True)
    played.timer()
    assert played.client.valid_last_successful_network_address
    played.timer()
    assert played.events[-1] == ServerListComplete(
        success=False, reason="no directory server answered"
    )
    assert not played.client.valid_last_successful_network_address
    assert played.client.queue_manager.connected_networks == O0.networks  # of the first run


@pytest.mark.departs("MQSD-3.1.6.1-03")
def test_the_timer_on_the_last_network_with_something_stored() -> None:
    here, before = started(1), started(2)
    here.reply(F0)
    here.timer()
    before.reply(O0)
    before.timer()
    for played, names, networks in (
        (here, F0.names, F0.networks),
        (before, OLD_NAMES, O0.networks),
    ):
        own = played.client.queue_manager
        assert played.events[-1] == ServerListComplete(success=True)
        assert (own.directory_servers, own.connected_networks) == (names, networks)


@pytest.mark.req("MQSD-3.1.5.2-01")
def test_a_reply_on_another_network_is_dropped() -> None:
    played = started(2)
    played.timer()
    due = played.client.next_timer()
    played.reply(O0)  # late: its network had its turn
    assert played.client.next_timer() == due
    assert not played.client.reply_received
    assert isinstance(played.events[-1], Discarded)
    played.reply(O1)
    assert played.client.queue_manager.connected_networks == O1.networks


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(REQUEST_BYTES, id="type 1"),
        pytest.param(b"\0\3" + OWN_SITE_BYTES[2:], id="type 3"),
        pytest.param(OWN_SITE_BYTES[:20] + bytes(4) + OWN_SITE_BYTES[24:], id="no network"),
        pytest.param(OWN_SITE_BYTES[:20] + b"\x21" + OWN_SITE_BYTES[21:], id="33 networks"),
        pytest.param(OWN_SITE_BYTES + b"\0", id="too long"),
        pytest.param(OWN_SITE_BYTES[:-1], id="too short"),
        pytest.param(OTHER_SITE_BYTES[:28] + b"\x11" + OTHER_SITE_BYTES[29:-1], id="odd size"),
        pytest.param(OTHER_SITE_BYTES[:-2] + b"x\0", id="no NUL"),
        pytest.param(OTHER_SITE_BYTES[:64] + b"2" + OTHER_SITE_BYTES[65:], id="flag"),
    ],
)
@pytest.mark.req("MQSD-3.1.5.2-02")
def test_a_malformed_reply_is_dropped_and_the_timer_runs_on(data: bytes) -> None:
    played = started(1)
    played.now += 5
    due = played.client.next_timer()
    played.client.receive(network(0), "x", data, played.now)
    played.take()
    assert isinstance(played.events[-1], Discarded)
    assert played.client.next_timer() == due == 1015.0
    assert played.client.last_reply is None
    assert not played.client.reply_received


@pytest.mark.req("MQSD-3.1.5.2-03")
def test_a_reply_to_another_request_is_dropped() -> None:
    played = started(1)
    data = replace(O0.packet(), correlation_id=ENTERPRISE).to_bytes()
    played.client.receive(network(0), "x", data, played.now)
    played.take()
    assert played.events[-1] == Discarded(network(0), "x", "it answers another request")
    assert played.client.running


@pytest.mark.req("MQSD-4-02")
def test_section_4_one_network_own_site_first() -> None:
    """Its own packets: the second reply changes nothing, because the run is over."""
    played = started(1)
    for data in (OWN_SITE_BYTES, OTHER_SITE_BYTES):
        played.client.receive(network(0), "psc", data, played.now)
        played.take()
    own = played.client.queue_manager
    assert own.directory_servers == OLD_NAMES
    assert (
        own.connected_networks == TopologyServerReply.from_bytes(OWN_SITE_BYTES).connected_networks
    )
    assert [type(event) for event in played.events] == [
        RequestBroadcast,
        ServerAnswered,
        ServerListComplete,
    ]


@pytest.mark.req("MQSD-4-02")
def test_several_networks_follow_the_rules_unless_told_otherwise() -> None:
    """A foreign list behind an own-site reply counts by 3.1.5.2, and not by section 4."""
    for prefer, names, networks in (
        (False, F1.names, F1.networks),
        (True, OLD_NAMES, O0.networks),
    ):
        played = started(2, prefer_own_site=prefer)
        played.reply(O0)
        played.reply(F1)
        played.timer()
        own = played.client.queue_manager
        assert (own.directory_servers, own.connected_networks) == (names, networks)


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.req("MQSD-3.1.5.1-04", "MQSD-2.2.2-02", "MQSD-2.2.2-03", "MQSD-2.2.2-04")
def test_what_a_request_carries() -> None:
    played = play(("T", "O", "FF"))
    assert [sent.data for sent in played.sent] == [REQUEST_BYTES] * 3


@pytest.mark.req("MQSD-1.3-02")
def test_a_client_in_no_site_sends_nil() -> None:
    machine = DiscoveryClient(DiscoveryQueueManager(ENTERPRISE))
    machine.get_directory_server_list([NetworkAddress("10.0.0.1")], REQUEST_ID, 0.0)
    (sent,) = machine.effects()
    assert TopologyClientRequest.from_bytes(sent.data).site_id == Guid.NULL


@pytest.mark.req("MQSD-3.1.1.1-01")
def test_of_several_sites_the_first_counts() -> None:
    own = DiscoveryQueueManager(ENTERPRISE, (OWN_SITE, OTHER_SITE))
    machine = DiscoveryClient(own)
    machine.get_directory_server_list([NetworkAddress("10.0.0.1")], REQUEST_ID, 0.0)
    (sent,) = machine.effects()
    assert TopologyClientRequest.from_bytes(sent.data).site_id == OWN_SITE
    machine.receive("10.0.0.1", "x", F0.packet().to_bytes(), 1.0)
    machine.handle_timer(16.0)
    assert machine.queue_manager == DiscoveryQueueManager(
        ENTERPRISE, (OWN_SITE, OTHER_SITE), F0.names, F0.networks
    )


@pytest.mark.req("MQSD-3.1.5.1-01", "MQSD-3.1.5.1-02")
def test_sending_counts_from_one_and_empties_the_stored_reply() -> None:
    played = started(2)
    assert [sent.network for sent in played.sent] == [network(0)]
    assert (played.client.current_network_index, played.client.current_network) == (1, network(0))
    played.reply(F0)
    assert played.client.last_reply == F0.packet()
    played.timer()
    assert (played.client.current_network_index, played.client.current_network) == (2, network(1))
    assert played.client.last_reply is None


def test_a_request_that_cannot_be_sent_is_not_waited_for() -> None:
    played = started(2)
    played.client.broadcast_failed(network(0), "no route", played.now)
    played.take()
    assert Passed(network(0), "the request could not be sent: no route") in played.events
    assert [sent.network for sent in played.sent] == [network(0), network(1)]
    played.client.broadcast_failed(network(0), "no route", played.now)  # not its turn any more
    assert played.client.current_network == network(1)
    played.client.broadcast_failed(network(1), "no route", played.now)
    played.take()
    assert succeeded(played) is False


# --- around a run ---------------------------------------------------------------------------------


@pytest.mark.req("MQSD-3.1.3-01", "MQSD-3.1.1.2-01")
def test_a_new_client() -> None:
    machine = client()
    assert machine.queue_manager.enterprise_id == ENTERPRISE
    assert not machine.valid_last_successful_network_address
    assert machine.last_successful_network_address is None
    assert (machine.network_addresses, machine.current_network_index) == ((), 0)
    assert (machine.last_reply, machine.reply_received) == (None, False)
    assert machine.next_timer() is None
    assert machine.effects() == []
    assert machine.next_event() is None
    machine.receive(network(0), "x", O0.packet(Guid.NULL).to_bytes(), 0.0)
    machine.handle_timer(1e9)
    assert machine.next_event() is None


@pytest.mark.req("MQSD-3.1.4.1-02", "MQSD-3.1.4.1-04")
def test_a_run_starts_afresh() -> None:
    played = started(2)
    assert played.client.network_addresses == (network(0), network(1))
    assert played.client.request_id == REQUEST_ID
    played.reply(F0)
    played.timer()
    played.timer()
    again = Guid(b"the second round")
    played.client.get_directory_server_list(
        [NetworkAddress(network(0)), NetworkAddress(network(1))], again, played.now, force=True
    )
    played.take()
    assert played.client.network_addresses == (network(0), network(1))  # not twice each
    assert (played.client.request_id, played.client.current_network_index) == (again, 1)
    assert not played.client.reply_received
    played.timer()
    played.timer()
    assert played.events[-1] == ServerListComplete(
        success=False, reason="no directory server answered"
    )


@pytest.mark.req("MQSD-3.1.4.1-02")
def test_without_networks_it_fails_at_once() -> None:
    played = Played(client())
    played.begin(0)
    reason = "this computer has no network to send the request on"
    assert played.events == [ServerListComplete(success=False, reason=reason)]
    assert played.sent == []
    assert not played.client.running


def test_a_result_that_stands_is_not_looked_for_again() -> None:
    played = started(2)
    played.reply(O0)
    played.reply(O1)
    sent = len(played.sent)
    played.begin(2)
    assert played.events[-1] == ServerListComplete(success=True, skipped=True)
    assert len(played.sent) == sent


@pytest.mark.departs("MQSD-3.1.4.1-03")
@pytest.mark.parametrize(
    ("count", "options"),
    [(2, {"dial_up": True}), (2, {"force": True}), (1, {})],
    ids=["dial-up", "forced", "the address is gone"],
)
def test_a_result_that_does_not_stand_is(count: int, options: dict[str, bool]) -> None:
    played = started(2)
    played.reply(O0)
    played.reply(O1)  # found on the second network
    sent = len(played.sent)
    played.begin(count, **options)
    assert len(played.sent) == sent + 1
    assert played.client.running


def test_one_run_at_a_time() -> None:
    played = started(1)
    with pytest.raises(ValueError, match="under way"):
        played.begin(1)


@pytest.mark.req("MQSD-3.1.7.1-01")
def test_names_replace_those_before_in_order() -> None:
    """Flags go, whatever they say; what the closing NUL leaves behind is no name."""
    played = started(1)
    data = bytearray(OTHER_SITE_BYTES[:64])
    array = "10PSC1,01X,00y\0".encode("utf-16-le")
    data[28:32] = len(array).to_bytes(4, "little")
    played.client.receive(network(0), "x", bytes(data) + array, played.now)
    played.timer()
    assert played.client.queue_manager.directory_servers == ("PSC1", "X", "y")


@pytest.mark.req("MQSD-3.1.7.2-01")
def test_networks_replace_those_before() -> None:
    assert client().queue_manager.connected_networks == OLD_NETWORKS
    played = started(1)
    many = tuple(Guid(bytes([n]) * 16) for n in range(32))
    reply = TopologyServerReply(REQUEST_ID, many)
    played.client.receive(network(0), "x", reply.to_bytes(), played.now)
    assert played.client.queue_manager.connected_networks == many


@pytest.mark.req("MQSD-5.1-01")
def test_anybody_on_the_network_can_answer() -> None:
    """Nothing but the request's number is checked: names are hints, told with their source."""
    played = started(1)
    played.client.receive(network(0), "203.0.113.66", F0.packet().to_bytes(), played.now)
    played.timer()
    assert played.client.queue_manager.directory_servers == F0.names
    assert played.client.responders == [Responder(network(0), "203.0.113.66", own_site=False)]
