"""Synchronises servers that were away: they get current objects instead of every change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mqis.lab.generate.delivery import ChangeUnderWay, Delivery, DeliveryHop
from mqis.lab.generate.plan import PlannedServer
from mqis.protocol.directory.objects import DeletedObject, Partition, Scope
from mqis.protocol.ports import Change, View
from mqis.protocol.replication.remains import fitting
from mqis.protocol.replication.server_identity import Role
from mqis.protocol.replication.settings import DEFAULTS
from mqis.protocol.replication.sync_answers import visible
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import Sync0, SyncReply, SyncRequest
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class _Part:
    """The content of one sync reply."""

    from_seq: SequenceNumber
    to_seq: SequenceNumber
    is_last: bool
    batch: tuple[ChangeUnderWay, ...]


def catch_up(delivery: Delivery, view: View) -> int:
    """Synchronises all servers, BSCs after their PSCs; returns the number of replies."""
    rounds = 0
    known: dict[tuple[Guid, SequenceNumber, int], list[_Part]] = {}
    for role_is_bsc in (False, True):
        for state in view.partitions():
            for member in delivery.members.values():
                authority = delivery.authorities[state.id]
                if (member.role is Role.BSC) is not role_is_bsc or member.name == authority:
                    continue
                begin = delivery.reached.get((member.name, state.id), SequenceNumber.MIN)
                if begin >= state.last_seq:
                    continue
                scope = Scope.SITE if member.site == state.id else Scope.ENTERPRISE
                key = state.id, begin, int(scope)
                if key not in known:
                    known[key] = list(_parts(state, view.changes(state.id, begin), begin, scope))
                source = member.psc if role_is_bsc else authority
                rounds += _synchronize(delivery, member, source, state, known[key])
    return rounds


def ask_in_vain(delivery: Delivery, hop: DeliveryHop, state: Partition) -> None:
    """Lets a server ask its source for later changes; the reply has none.

    Such a reply does not bring what the server missed before the number that it asks from.
    """
    member = delivery.members[hop.target]
    reached = delivery.reached[hop.target, state.id]
    _synchronize(delivery, member, hop.source, state, [_Part(reached, reached, True, ())])
    delivery.reached[hop.target, state.id] = reached


def _synchronize(
    delivery: Delivery, member: PlannedServer, source: str, state: Partition, parts: Sequence[_Part]
) -> int:
    site = delivery.members[source].site
    for part in parts:
        request = SyncRequest(
            member.site,
            state.id,
            part.from_seq,
            SequenceNumber.MAX,
            state.purged_seq,
            False,
            0 if member.role is Role.BSC else 1,
            member.name,
        )
        delivery.send_message(DeliveryHop(member.name, source), request)
        reply = SyncReply(
            site,
            state.id,
            part.from_seq,
            part.to_seq,
            state.purged_seq,
            Sync0.NONE if part.is_last else Sync0.MORE,
            tuple(sent.change for sent in part.batch),
        )
        delivery.send_message(DeliveryHop(source, member.name), reply, part.batch)
    delivery.reached[member.name, state.id] = state.last_seq
    return len(parts)


def _parts(
    state: Partition, changes: Iterator[Change], begin: SequenceNumber, scope: int
) -> Iterator[_Part]:
    """Divides the changes after ``begin`` into replies."""
    rest = list(visible(changes, scope))
    complete = False
    while not complete:
        chosen, complete = fitting(DEFAULTS, rest, begin, state.purged_seq)
        batch = tuple(map(_under_way, chosen, rest))
        to_seq = state.last_seq if complete else chosen[-1].seq
        yield _Part(begin, to_seq, complete, batch)
        begin, rest = to_seq, rest[len(chosen) :]


def _under_way(change: DirectoryChange, found: Change) -> ChangeUnderWay:
    kind = found.object_type if isinstance(found, DeletedObject) else found.type
    return ChangeUnderWay.of(change, kind, found.id)
