"""3.1.7.1.1, 3.2.7.2, 3.2.7.6, 3.3.7.1, 3.3.7.6, 3.3.7.8: changes for another authority."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.queueing.events import Acknowledged, Nacked
from mqis.protocol.queueing.queued_message import QueuedMessage as Envelope
from mqis.protocol.queueing.queued_message import build_packet
from mqis.protocol.queueing.replication_queue import MQIS_QUEUE_ID
from mqis.protocol.replication.effects import RequestAnswered
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair, prop, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeReply, ChangeRequest, encode_message
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import Acknowledge, MessageClass, is_nack
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    Parcel,
    guid_of,
    machine_properties,
    number,
    text,
)

SITE_A, SITE_B = guid_of("A"), guid_of("B")
MIN = SequenceNumber.MIN


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.create_queue(made.nodes["psc"], "psc\\q")
    made.run(70)
    made.sent.clear()
    return made


def only_request(enterprise: Enterprise) -> tuple[Parcel, ChangeRequest]:
    [parcel] = [p for p in enterprise.sent if isinstance(p.message, ChangeRequest)]
    assert isinstance(parcel.message, ChangeRequest)
    return parcel, parcel.message


@pytest.mark.req(
    "MQDSRP-3.1.7.1.1-02", "MQDSRP-3.1.7.1.1-03", "MQDSRP-3.3.7.1-01", "MQDSRP-3.1.7.1.1-01"
)
@pytest.mark.parametrize(
    ("asker", "host", "hop", "psc"),
    [
        ("pec", "psc", "psc", None),
        ("bsc", "psc", "psc", "psc"),
        ("bsc", "pec", "psc", "psc"),
        ("psc", "pec", "pec", None),
    ],
)
def test_the_header_of_a_request(
    enterprise: Enterprise, asker: str, host: str, hop: str, psc: str | None
) -> None:
    node = enterprise.nodes[asker]
    path, partition = ("pec\\new", SITE_A) if host == "pec" else ("psc\\new", SITE_B)
    enterprise.create_queue(node, path)
    parcel, request = only_request(enterprise)
    assert parcel.machine == hop
    assert (request.site, request.partition) == (node.server.site, partition)
    assert (request.requester, request.psc) == (asker, psc)
    assert request.change.partition == partition
    enterprise.sent.clear()
    enterprise.create_queue(node, f"{path}2")
    assert only_request(enterprise)[1].request_id == (request.request_id + 1) % (1 << 32)


@pytest.mark.departs("MQDSRP-3.1.7.1.1-04")
@pytest.mark.req("MQDSRP-3.1.7.1.1-05", "MQDSRP-3.1.7.1.1-06", "MQDSRP-3.1.7.1.1-07")
@pytest.mark.parametrize("what", ["create", "update", "delete"])
def test_the_change_in_a_request_has_no_numbers_but_its_time(
    enterprise: Enterprise, what: str
) -> None:
    """A create goes by path, the others by GUID (E16); a deletion says what it deletes (E14)."""
    bsc = enterprise.nodes["bsc"]
    if what == "create":
        local = enterprise.create_queue(bsc, "psc\\r", label=text("l"))
    elif what == "update":
        local = enterprise.label(bsc, "psc\\q", "m")
    else:
        local = enterprise.delete(bsc, ObjectType.QUEUE, "psc\\q")
    change = only_request(enterprise)[1].change
    assert (change.previous_seq, change.purged_seq) == (MIN, MIN)
    assert change.seq == number(enterprise.at.unix_us), "which ages (replays)"
    properties = dict(change.properties)
    if what == "create":
        assert (change.command, change.path, change.guid) == (Command.CREATE, "psc\\r", None)
        assert properties[PropId.Q_LABEL] == prop(PropId.Q_LABEL, "l")
        assert properties[PropId.Q_INSTANCE].value == guid_of("psc\\r")
    elif what == "update":
        assert (change.command, change.guid) == (Command.UPDATE, guid_of("psc\\q"))
        assert properties == props({PropId.Q_LABEL: "m"})
    else:
        assert (change.command, change.guid) == (Command.DELETE, guid_of("psc\\q"))
        assert [propid for propid, _ in change.properties] == [PropId.D_SCOPE, PropId.D_OBJTYPE]
        assert properties[PropId.D_OBJTYPE].value == ObjectType.QUEUE
    enterprise.run(1)
    assert bsc.answers() == {local: HResult.MQ_OK}
    enterprise.check_converged()


def change(
    command: Command, path: str | None, guid: Guid | None, *props: tuple[int, PropVariant]
) -> DirectoryChange:
    return DirectoryChange(command, path, guid, SITE_B, MIN, MIN, MIN, props)


def decide(enterprise: Enterprise, wanted: DirectoryChange, partition: Guid = SITE_B) -> int:
    """The answer of the PSC to a request of its BSC."""
    enterprise.sent.clear()
    asked = ChangeRequest(
        SITE_B, partition, len(enterprise.nodes["bsc"].told) + 5000, "bsc", "psc", wanted
    )
    enterprise.inject("bsc", "psc", asked)
    [reply] = [p for p in enterprise.sent if isinstance(p.message, ChangeReply)]
    assert reply.machine == "bsc"
    assert isinstance(reply.message, ChangeReply)
    assert reply.message.request_id == asked.request_id
    assert (reply.message.requester, reply.message.site) == ("bsc", SITE_B)
    enterprise.nodes["bsc"].told.append(reply)  # type: ignore[arg-type]
    return reply.message.result


@pytest.mark.req(
    "MQDSRP-3.2.7.2-02", "MQDSRP-3.2.7.2-03", "MQDSRP-3.2.7.2-05", "MQDSRP-3.1.7.2.6-05"
)
@pytest.mark.parametrize("by", ["path", "GUID"])
def test_the_authority_decides(enterprise: Enterprise, by: str) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_B)
    named = ("psc\\q", None) if by == "path" else (None, guid_of("psc\\q"))
    assert decide(enterprise, change(Command.UPDATE, *named, pair(PropId.Q_LABEL, "n"))) == 0
    found = psc.find(ObjectType.QUEUE, "psc\\q")
    assert found is not None
    assert (found.seq, found.value(PropId.Q_LABEL)) == (number(last + 1), "n")
    assert psc.last(SITE_B) == last + 1
    new = pair(PropId.Q_INSTANCE, guid_of("made"))
    assert decide(enterprise, change(Command.CREATE, "psc\\made", None, new)) == 0
    made = psc.find(ObjectType.QUEUE, "psc\\made")
    assert made is not None
    assert (made.id, made.seq) == (guid_of("made"), number(last + 2))
    wanted = change(
        Command.DELETE,
        *named,
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, 1),
    )
    assert decide(enterprise, wanted) == 0
    assert psc.find(ObjectType.QUEUE, "psc\\q") is None
    assert psc.tombstones(SITE_B)[-1] == last + 3
    enterprise.run(5)
    enterprise.check_converged()


@pytest.mark.req(
    "MQDSRP-3.2.7.2-08",
    "MQDSRP-3.1.7.2.6-01",
    "MQDSRP-3.1.7.2.6-05",
    "MQDSRP-3.1.7.2.7-01",
    "MQDSRP-3.2.7.6-01",
)
def test_what_cannot_be_done_is_answered_and_takes_no_number(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_B)
    label = pair(PropId.Q_LABEL, "n")
    missing = change(Command.UPDATE, None, guid_of("nobody"), label)
    assert decide(enterprise, missing) == HResult.MQDS_OBJECT_NOT_FOUND
    assert decide(enterprise, change(Command.DELETE, "psc\\q", None)) == HResult.MQ_ERROR
    assert decide(enterprise, change(Command.UPDATE, "psc\\q", None)) == HResult.MQ_ERROR
    taken = pair(PropId.Q_INSTANCE, guid_of("psc\\q"))
    assert decide(enterprise, change(Command.CREATE, "psc\\q", None, taken)) not in (0, last)
    assert psc.last(SITE_B) == last


@pytest.mark.req("MQDSRP-3.2.7.2-02")
def test_a_sync_as_a_request_creates_or_overwrites(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    host = pair(PropId.Q_QMID, guid_of("psc"))
    for label in ("one", "two"):
        wanted = change(
            Command.SYNC,
            None,
            guid_of("synced"),
            host,
            pair(PropId.Q_PATHNAME, "psc\\synced"),
            pair(PropId.Q_LABEL, label),
        )
        assert decide(enterprise, wanted) == 0
        found = psc.find(ObjectType.QUEUE, "psc\\synced")
        assert found is not None
        assert (found.id, found.value(PropId.Q_LABEL)) == (guid_of("synced"), label)


@pytest.mark.req("MQDSRP-3.2.7.6-01", "MQDSRP-3.2.7.6-02")
@pytest.mark.parametrize(
    ("requester", "psc", "destination"),
    [
        ("pec", None, "pec"),
        ("pec", "other", "pec"),
        ("bsc", "psc", "bsc"),
        ("farbsc", "pec", "pec"),
        ("psc9", None, "psc9"),
    ],
)
def test_where_a_reply_goes(
    enterprise: Enterprise, requester: str, psc: str | None, destination: str
) -> None:
    """To a neighbour, through the PSC of somebody else's BSC, else to whoever asked (E47)."""
    node = enterprise.nodes["psc"]
    if requester == "psc9":
        node.server.seeds[guid_of("psc9")] = "psc9"
    sender = psc if requester == "farbsc" else requester
    if requester == "farbsc":
        pec = enterprise.nodes["pec"]
        properties = machine_properties("farbsc", "A", ServiceBits.BSC)
        enterprise.create(pec, ObjectType.MACHINE, properties)
        enterprise.run(1)
    label = pair(PropId.Q_LABEL, requester)
    asked = ChangeRequest(
        SITE_A, SITE_B, 4711, requester, psc, change(Command.UPDATE, "psc\\q", None, label)
    )
    enterprise.sent.clear()
    enterprise.inject(sender or requester, "psc", asked)
    [reply] = [p for p in enterprise.sent if isinstance(p.message, ChangeReply)]
    assert reply.machine == destination
    assert reply.message == ChangeReply(SITE_B, 4711, 0, requester)


@pytest.mark.req("MQDSRP-1.3.1.1-02")
def test_a_bsc_never_makes_a_change_itself(enterprise: Enterprise) -> None:
    bsc = enterprise.nodes["bsc"]
    before = bsc.copy_of(SITE_B)
    label = pair(PropId.Q_LABEL, "x")
    asked = ChangeRequest(
        SITE_B, SITE_B, 1, "psc", None, change(Command.UPDATE, "psc\\q", None, label)
    )
    enterprise.sent.clear()
    enterprise.inject("psc", "bsc", asked)
    [reply] = enterprise.messages(ChangeReply, sender="bsc")
    assert reply.result == HResult.MQ_ERROR
    assert bsc.copy_of(SITE_B) == before


def nack(enterprise: Enterprise, node: Node, parcel: Parcel, code: int) -> None:
    assert parcel.envelope is not None
    event = Nacked(parcel.identifier, parcel.machine, parcel.envelope, code, local=False)
    with node.store.write() as tx:
        effects = node.machine.transported(tx, [event], enterprise.at)
    enterprise.carry_out(node, effects)


@pytest.mark.req("MQDSRP-3.3.7.8-01", "MQDSRP-3.1.5.1-04", "MQDSRP-3.3.7.1-04")
def test_a_nack_ends_the_wait(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    local = enterprise.create_queue(pec, "psc\\r")
    parcel, _ = only_request(enterprise)
    nack(enterprise, pec, parcel, MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    assert pec.answers() == {local: HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE}
    other = enterprise.create_queue(pec, "psc\\s")
    nack(enterprise, pec, parcel, MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    assert len(pec.answers()) == 1
    assert other not in pec.answers()


def test_a_nack_of_another_request_with_the_same_number_does_not_end_the_wait(
    enterprise: Enterprise,
) -> None:
    """As the requester's numbers begin again when it restarts."""
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    local = enterprise.create_queue(pec, "psc\\r")
    parcel, request = only_request(enterprise)
    assert parcel.envelope is not None
    older = replace(request, change=change(Command.CREATE, "psc\\older", None))
    envelope = replace(parcel.envelope, body=encode_message(older))
    nack(enterprise, pec, replace(parcel, envelope=envelope), MessageClass.NACK_BAD_DST_Q)
    assert pec.answers() == {}
    nack(enterprise, pec, parcel, MessageClass.NACK_BAD_DST_Q)
    assert pec.answers() == {local: HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE}


@pytest.mark.req("MQDSRP-3.3.7.8-01", "MQDSRP-3.1.5.1-04", "MQDSRP-3.3.7.1-04")
@pytest.mark.parametrize("code", [c for c in MessageClass if is_nack(c)], ids=lambda c: c.name)
def test_a_nack_of_any_class_ends_the_wait_at_once(
    enterprise: Enterprise, code: MessageClass
) -> None:
    """A request that was refused for its signature is not sent again either."""
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    first, second = (enterprise.create_queue(pec, f"psc\\{name}") for name in "rs")
    parcels = [p for p in enterprise.sent if isinstance(p.message, ChangeRequest)]
    enterprise.sent.clear()
    nack(enterprise, pec, parcels[1], code)
    assert pec.answers() == {second: HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE}
    assert first not in pec.answers()
    assert enterprise.sent == []
    enterprise.run(30)
    answered = [e.request for e in pec.told if isinstance(e, RequestAnswered)]
    assert answered == [second, first], "each ends once, the other when its time is over"


@pytest.mark.req(
    "MQDSRP-3.3.7.6-01", "MQDSRP-3.1.7.1.1-01", "MQDSRP-3.1.7.1.1-07", "MQDSRP-3.3.7.1-04"
)
def test_a_reply_ends_just_its_own_wait(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    first = enterprise.create_queue(pec, "psc\\a")
    second = enterprise.create_queue(pec, "psc\\b")
    requests = enterprise.messages(ChangeRequest)
    wrong = ChangeReply(SITE_B, requests[1].request_id + 1, 0, "pec")
    enterprise.inject("psc", "pec", wrong)
    enterprise.inject(
        "psc", "pec", replace(wrong, request_id=requests[0].request_id, requester="x")
    )
    assert pec.answers() == {}
    done = ChangeReply(SITE_B, requests[1].request_id, HResult.MQ_ERROR_QUEUE_EXISTS, "pec")
    enterprise.inject("psc", "pec", done)
    assert pec.answers() == {second: HResult.MQ_ERROR_QUEUE_EXISTS}
    assert first not in pec.answers()


@pytest.mark.req("MQDSRP-3.3.7.9-01", "MQDSRP-3.3.7.9-02", "MQDSRP-3.1.5.1-04")
def test_a_bad_signature_is_answered_by_sending_again_three_times(
    enterprise: Enterprise,
) -> None:
    """Our own message, to where it went (E50); no other class does that."""
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    enterprise.create_queue(pec, "pec\\x")
    parcel = next(p for p in enterprise.sent if isinstance(p.message, ChangePropagation))
    enterprise.sent.clear()
    nack(enterprise, pec, parcel, MessageClass.NACK_BAD_DST_Q)
    assert enterprise.sent == []
    for _ in range(5):
        nack(enterprise, pec, parcel, MessageClass.NACK_BAD_SIGNATURE)
    assert [(p.machine, p.body) for p in enterprise.sent] == [("psc", parcel.body)] * 3


def again(enterprise: Enterprise, node: Node, parcel: Parcel) -> Parcel:
    """What follows when a message was refused for its signature."""
    enterprise.sent.clear()
    nack(enterprise, node, parcel, MessageClass.NACK_BAD_SIGNATURE)
    [sent] = enterprise.sent
    assert (sent.machine, sent.body) == (parcel.machine, parcel.body)
    return sent


@pytest.mark.req("MQDSRP-3.3.7.9-03")
@pytest.mark.parametrize("kind", [ChangePropagation, ChangeReply], ids=lambda kind: kind.__name__)
def test_what_is_sent_again_has_ten_seconds(enterprise: Enterprise, kind: type) -> None:
    """One had 1,200 seconds and no acknowledgement before, the other the highest priority."""
    enterprise.create_queue(enterprise.nodes["psc"], "pec\\x")
    enterprise.run(5)
    parcel = next(p for p in enterprise.sent if isinstance(p.message, kind) and p.sender == "pec")
    pec = enterprise.nodes["pec"]
    sent = again(enterprise, pec, parcel)
    assert sent.envelope == Envelope(sent.body, priority=3, lifetime_s=10, acknowledge=True)
    packet = build_packet(sent.envelope, sent.identifier, sent.machine, 0, None)
    message = decode_packet(packet)
    assert isinstance(message, UserMessage)
    assert (message.priority, message.time_to_reach_queue) == (3, 10)
    assert message.properties.acknowledge == Acknowledge.NEGATIVE_ARRIVAL
    assert message.header.admin == QueueName.at_source(MQIS_QUEUE_ID)
    assert message.header.response == QueueName.SAME_AS_ADMIN


@pytest.mark.req("MQDSRP-3.1.5.1-06")
def test_a_positive_acknowledgement_does_nothing_to_replication(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    local = enterprise.create_queue(pec, "psc\\r")
    parcel, _ = only_request(enterprise)
    with pec.store.write() as tx:
        told = [Acknowledged((parcel.identifier,), "psc", 1)]
        assert pec.machine.transported(tx, told, enterprise.at) == []
    assert local not in pec.answers()


@pytest.mark.req("MQDSRP-3.1.5.1-07")
def test_waiting_for_an_answer_does_not_stop_the_rest(enterprise: Enterprise) -> None:
    """While the PEC is silent its BSC's request waits at the PSC, which goes on (E45)."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    enterprise.crash("pec")
    enterprise.create_queue(bsc, "pec\\r")
    enterprise.run(1)
    enterprise.create_queue(psc, "psc\\meanwhile")
    other = enterprise.label(bsc, "psc\\q", "meanwhile")
    enterprise.run(1)
    assert bsc.find(ObjectType.QUEUE, "psc\\meanwhile") is not None
    assert bsc.answers() == {other: HResult.MQ_OK}


def test_a_request_whose_answer_is_remembered_too_long_ago_is_new(
    enterprise: Enterprise,
) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_B)
    wanted = change(Command.UPDATE, "psc\\q", None, pair(PropId.Q_LABEL, "x"))
    asked = ChangeRequest(SITE_B, SITE_B, 9, "bsc", "psc", wanted)
    for _ in range(3):
        enterprise.inject("bsc", "psc", asked)
    assert psc.last(SITE_B) == last + 1
    enterprise.run(90_000)
    enterprise.inject("bsc", "psc", asked)
    assert psc.last(SITE_B) == last + 2


@pytest.mark.untraced
def test_the_authority_does_not_keep_answers_for_ever() -> None:
    """Beyond the limit the oldest go, and with their day all others."""
    made = Enterprise(ReplicationSettings(max_replies=300))
    made.add_pec("pec", "A")
    psc = made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.create_queue(psc, "psc\\q")
    made.run(70)
    label = pair(PropId.Q_LABEL, "x")

    def ask(numbers: range) -> int:
        for number_ in numbers:
            wanted = change(Command.UPDATE, "psc\\q", None, label)
            made.inject("bsc", "psc", ChangeRequest(SITE_B, SITE_B, number_, "bsc", "psc", wanted))
        with psc.store.read() as view:
            return len(view.states("reply"))

    assert ask(range(512)) == 300
    made.run(90_000)
    assert ask(range(1000, 1256)) == 256


@pytest.mark.req("SEC-2-06")
def test_a_request_does_not_rename_an_object(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    renamed = change(Command.UPDATE, None, guid_of("psc\\q"), pair(PropId.Q_PATHNAME, "psc\\other"))
    assert decide(enterprise, renamed) == HResult.MQ_ERROR_ACCESS_DENIED
    assert psc.find(ObjectType.QUEUE, "psc\\q") is not None
