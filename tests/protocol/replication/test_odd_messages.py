"""Messages that a server does not expect from their sender, twice, or about that object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Scope
from mqis.protocol.queueing.events import Nacked
from mqis.protocol.queueing.queued_message import QueuedMessage as Envelope
from mqis.protocol.replication.delivery_reports import MAX_RESENDS
from mqis.protocol.replication.machine import _dispatch
from mqis.protocol.replication.outgoing_changes import deletion
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    PartitionSeqNumbers,
    PscAck,
    SyncReply,
    SyncRequest,
    encode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.properties import MessageClass
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    guid_of,
    machine_properties,
    number,
    site_properties,
)

SITE_A, SITE_B, SITE_C, SITE_N = (guid_of(name) for name in "ABCN")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX


@pytest.fixture
def enterprise(built: Enterprise) -> Enterprise:
    return built.clone()


@pytest.fixture(scope="module")
def built() -> Enterprise:
    made = Enterprise()
    pec = made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    far = made.add_psc("far", "C")
    made.add_bsc("farbsc", "far")
    made.run(130)
    made.create_queue(pec, "pec\\q")
    made.create_queue(far, "far\\q")
    made.run(5)
    return made


def about(
    node: Node,
    command: Command,
    name: str,
    *properties: tuple[int, PropVariant],
    partition: Guid = SITE_A,
) -> DirectoryChange:
    """The next change of a partition, as ``node`` has it."""
    last = node.partition(partition).last_seq
    return DirectoryChange(
        command, None, guid_of(name), partition, last, last.increment(), MIN, properties
    )


# --- changes --------------------------------------------------------------------------------------


def test_changes_that_are_refused_for_one_reason_are_refused_once(enterprise: Enterprise) -> None:
    """Whoever sends thousands does not fill the journal."""
    psc = enterprise.nodes["psc"]
    label = pair(PropId.Q_LABEL, "x")
    change = about(psc, Command.UPDATE, "pec\\q", label)
    lost = replace(change, partition=guid_of("nowhere"))
    before = len(psc.refusals())
    enterprise.inject("far", "psc", ChangePropagation(SITE_C, (change, lost, change, lost)))
    assert psc.refusals()[before:] == [
        "far is not who this server takes the partition from",
        "the partition is unknown here",
    ]


def test_a_deletion_does_not_reach_an_object_that_another_authority_has(
    enterprise: Enterprise,
) -> None:
    """It has moved there; the number counts all the same, for those who have it here still."""
    psc = enterprise.nodes["psc"]
    properties = deletion(ObjectType.QUEUE, Scope.ENTERPRISE)
    change = about(psc, Command.DELETE, "far\\q", *properties)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (change,)))
    assert psc.partition(SITE_A).last_seq == change.seq
    assert psc.find(ObjectType.QUEUE, "far\\q") is not None
    assert change.seq.value in psc.tombstones(SITE_A)
    assert psc.tombstones(SITE_C) == []


def test_an_object_that_another_authority_has_is_not_taken_over(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    before = psc.find(ObjectType.QUEUE, "far\\q")
    path = pair(PropId.Q_PATHNAME, "pec\\mine")
    change = about(psc, Command.SYNC, "far\\q", path)
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (change,)))
    assert psc.find(ObjectType.QUEUE, "far\\q") == before
    assert psc.find(ObjectType.QUEUE, "pec\\mine") is None
    assert psc.partition(SITE_A).last_seq == change.previous_seq
    assert f"is one of partition {SITE_C} still" in psc.refusals()[-1]


# --- who tells the numbers ------------------------------------------------------------------------


def beat(enterprise: Enterprise, sender: str, machine: str, partition: Guid, more: int = 1) -> None:
    """Signed numbers of a partition, from who says that it is the authority now."""
    last = enterprise.nodes[machine].partition(partition).last_seq
    records = (PartitionSeqNumbers(partition, last + more, MIN),)
    message = ChangePropagation(partition, (), Heartbeat(sender, records))
    enterprise.inject(sender, machine, message, authenticated=True)


def test_a_backup_controller_that_tells_numbers_is_no_new_authority(
    enterprise: Enterprise,
) -> None:
    far = enterprise.nodes["far"]
    beat(enterprise, "bsc", "far", SITE_B)
    assert far.partition(SITE_B).owner == "psc"
    assert far.refusals()[-1] == "a heartbeat: bsc is not who this server takes the partition from"


def second_psc(enterprise: Enterprise, site: str, authority: str) -> None:
    """Makes another machine that has the role of a PSC."""
    second = machine_properties("second", site, ServiceBits.PSC)
    enterprise.create(enterprise.nodes[authority], ObjectType.MACHINE, second)
    enterprise.run(5)


@pytest.mark.parametrize(("name", "follows"), [("far", True), ("pec", False), ("bsc", False)])
def test_who_follows_a_second_psc_of_a_site(
    enterprise: Enterprise, name: str, follows: bool
) -> None:
    """The PSCs of other sites do, if the site names none; the authority does not, nor do other
    sites' backups."""
    second_psc(enterprise, "A", "pec")
    node = enterprise.nodes[name]
    with node.store.write() as tx:
        site = tx.get(ObjectType.SITE, SITE_A)
        assert site is not None
        named = {p: value for p, value in site.properties.items() if p != PropId.S_PSC}
        tx.update(site, replace(site, properties=named))
    beat(enterprise, "second", name, SITE_A, more=0)
    assert node.partition(SITE_A).owner == "pec"
    beat(enterprise, "second", name, SITE_A)
    assert node.partition(SITE_A).owner == ("second" if follows else "pec")
    assert node.machine.memory.psc == ("psc" if name == "bsc" else "")


@pytest.mark.parametrize("name", ["pec", "far"])
def test_a_psc_follows_nobody_in_the_place_of_the_one_that_the_site_names(
    enterprise: Enterprise, name: str
) -> None:
    """The heartbeat may be an old one, of a PSC that was replaced."""
    second_psc(enterprise, "B", "psc")
    node = enterprise.nodes[name]
    beat(enterprise, "second", name, SITE_B)
    assert node.partition(SITE_B).owner == "psc"
    text = "a heartbeat: second is not who this server takes the partition from"
    assert node.refusals()[-1] == text


def test_a_backup_does_not_follow_a_second_psc_that_has_nothing_new(
    enterprise: Enterprise,
) -> None:
    second_psc(enterprise, "B", "psc")
    bsc = enterprise.nodes["bsc"]
    beat(enterprise, "second", "bsc", SITE_B, more=0)
    assert bsc.machine.memory.psc == "psc"
    beat(enterprise, "second", "bsc", SITE_B)
    assert bsc.machine.memory.psc == "second"


# --- requests -------------------------------------------------------------------------------------


def label_of(node: Node, path: str) -> object:
    found = node.find(ObjectType.QUEUE, path)
    assert found is not None
    return found.value(PropId.Q_LABEL)


def relabelled(path: str, partition: Guid) -> DirectoryChange:
    label = pair(PropId.Q_LABEL, "new")
    return DirectoryChange(Command.UPDATE, None, guid_of(path), partition, MIN, MIN, MIN, (label,))


def test_an_answer_from_another_than_was_asked_does_not_count(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    local = enterprise.create_queue(pec, "psc\\r")
    assert local is not None
    [request] = enterprise.messages(ChangeRequest, to="psc")
    enterprise.inject("far", "pec", ChangeReply(SITE_C, request.request_id, 0, "pec"))
    assert pec.answers() == {}
    assert pec.refusals()[-1] == "far answers for psc"
    enterprise.inject("psc", "pec", ChangeReply(SITE_B, request.request_id, 0, "pec"))
    assert pec.answers() == {local: HResult.MQ_OK}


def test_a_request_about_an_object_of_another_authority_is_not_decided(
    enterprise: Enterprise,
) -> None:
    """The request names our partition, the object lies in another: its authority is not us."""
    psc = enterprise.nodes["psc"]
    before, last = label_of(psc, "pec\\q"), psc.last(SITE_B)
    wanted = relabelled("pec\\q", SITE_B)
    enterprise.inject("bsc", "psc", ChangeRequest(SITE_B, SITE_B, 77, "bsc", "psc", wanted))
    [reply] = enterprise.messages(ChangeReply, to="bsc")
    assert (reply.request_id, reply.result) == (77, HResult.MQDS_UNKNOWN_SOURCE)
    assert label_of(psc, "pec\\q") == before
    assert psc.last(SITE_B) == last


def test_who_names_us_as_his_psc_and_is_no_neighbour_is_answered_himself(
    enterprise: Enterprise,
) -> None:
    """The answer goes through the requester's PSC else, which would be ourselves (E47)."""
    pec = enterprise.nodes["pec"]
    wanted = relabelled("pec\\q", SITE_A)
    enterprise.inject("farbsc", "pec", ChangeRequest(SITE_C, SITE_A, 78, "farbsc", "pec", wanted))
    replies = [p for p in enterprise.sent if isinstance(p.message, ChangeReply)]
    assert [p.machine for p in replies] == ["farbsc"]
    assert label_of(pec, "pec\\q") == "new"


def test_a_request_that_comes_again_while_it_is_on_its_way_is_not_passed_on_again(
    enterprise: Enterprise,
) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.crash("pec")
    request = ChangeRequest(SITE_B, SITE_A, 79, "bsc", "psc", relabelled("pec\\q", SITE_A))
    for _ in range(3):
        enterprise.inject("bsc", "psc", request)
    assert enterprise.messages(ChangeRequest, to="pec") == [request]
    assert psc.machine.counters.relayed_requests == 1


def test_a_site_of_the_null_guid_does_not_take_the_enterprise(enterprise: Enterprise) -> None:
    """That is the name of the enterprise's own partition."""
    psc = enterprise.nodes["psc"]
    before = psc.partition(ENTERPRISE_PARTITION)
    last = before.last_seq
    names = (pair(PropId.S_PATHNAME, "Null"), pair(PropId.S_PSC, "psc"))
    odd = DirectoryChange(
        Command.SYNC, None, Guid.NULL, ENTERPRISE_PARTITION, last, last + 1, MIN, names
    )
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (odd,), Heartbeat()))
    assert any("has no GUID" in reason for reason in psc.refusals())
    assert psc.partition(ENTERPRISE_PARTITION).owner == before.owner


# --- who is a server ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "answered"), [("bare", True), ("plain", False)])
def test_the_psc_of_a_site_is_a_server_whatever_its_machine_says(
    enterprise: Enterprise, name: str, answered: bool
) -> None:
    """A machine object need not have the bits yet; one that no site names gets nothing."""
    pec = enterprise.nodes["pec"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "bare"))
    for machine, site in (("plain", "A"), ("bare", "N")):
        enterprise.create(pec, ObjectType.MACHINE, machine_properties(machine, site, 0))
    asks = SyncRequest(SITE_N, SITE_A, MIN, MAX, MIN, False, 1, name)
    enterprise.inject(name, "pec", asks)
    assert len(enterprise.messages(SyncReply, to=name)) == answered
    refused = [reason for reason in pec.refusals() if "is no directory server" in reason]
    assert len(refused) == (not answered)


# --- messages that were refused for their signature -----------------------------------------------


def test_what_is_remembered_of_refused_messages_has_an_end(enterprise: Enterprise) -> None:
    """256 others later, the first is sent again as if it were new."""
    pec = enterprise.nodes["pec"]

    def refused(*ordinals: int) -> int:
        events = [
            Nacked(
                MessageIdentifier(guid_of("pec"), ordinal),
                "psc",
                Envelope(encode_message(PscAck(SITE_A, SITE_A, SITE_B, number(ordinal), "pec"))),
                MessageClass.NACK_BAD_SIGNATURE,
                local=False,
            )
            for ordinal in ordinals
        ]
        before = len(enterprise.messages(PscAck, to="psc"))
        with pec.store.write() as tx:
            effects = pec.machine.transported(tx, events, enterprise.at)
        enterprise.carry_out(pec, effects)
        return len(enterprise.messages(PscAck, to="psc")) - before

    assert refused(*[1] * 5) == MAX_RESENDS
    assert refused(*range(2, 257)) == 255
    assert refused(1) == 0, "it is known still"
    assert refused(*range(1000, 1256)) == 256
    assert refused(1) == 1
    assert len(pec.machine.memory.resent) == 256


def test_a_message_without_a_handler_is_not_dropped_in_silence() -> None:
    nothing: Any = None
    with pytest.raises(AssertionError):
        _dispatch(nothing, nothing, nothing)
