"""Acknowledgements and what they allow: forgetting tombstones (3.3.7.4, 3.2.7.4, 3.1.7.2.9)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    Partition,
    PurgeState,
    name_key,
)
from mqis.protocol.ports import View
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.effects import RefusalReason
from mqis.protocol.replication.memory import Neighbor
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import BscAck, PscAck
from mqis.wire.seqnum import SequenceNumber

_FAMILY = "neighbor"
_LAYOUT = struct.Struct(">QQd")


@dataclass(frozen=True, slots=True)
class Acks:
    """The numbers that a neighbour has acknowledged, kept in the store."""

    site: SequenceNumber = SequenceNumber.MIN
    enterprise: SequenceNumber = SequenceNumber.MIN
    #: When a BSC last said that it is there; nothing depends on it (E70).
    seen_unix: float = 0.0


def acks_of(view: View, name: str) -> Acks:
    stored = view.state(_FAMILY, name_key(name).encode())
    if stored is None:
        return Acks()
    site, enterprise, seen = _LAYOUT.unpack(stored)
    return Acks(SequenceNumber(site), SequenceNumber(enterprise), seen)


def _put(work: Work, name: str, acks: Acks) -> None:
    data = _LAYOUT.pack(acks.site.value, acks.enterprise.value, acks.seen_unix)
    work.tx.put_state(_FAMILY, name_key(name).encode(), data)


def forget(work: Work, name: str) -> None:
    """Drops what a former neighbour has acknowledged, so that purging goes on (E35)."""
    work.tx.drop_state(_FAMILY, name_key(name).encode())


def acknowledge(work: Work, state: Partition, *, always: bool = False) -> None:
    """Send PSC Ack, when enough has come or a synchronisation is done (E24)."""
    if not work.me.is_psc or not state.owner or state.purge_state is not PurgeState.NORMAL:
        return
    progress = work.memory.progress(state.id)
    step = work.settings.ack_step
    stepped = state.last_seq.value // step != progress.acked.value // step
    if stepped or (always and state.last_seq != progress.acked):
        progress.acked = state.last_seq
        ack = PscAck(work.me.site, work.me.site, state.id, state.last_seq, work.me.name)
        work.send(state.owner, ack, acknowledge=True)


def receive_psc_ack(work: Work, sender: Sender, ack: PscAck) -> None:
    """Receive PSC Ack (3.2.7.4). Numbers only rise, and never above our own (E25)."""
    neighbor = work.memory.neighbor(ack.psc)
    if not work.me.is_psc or neighbor is None or not neighbor.intersite:
        return work.refuse(RefusalReason.STRANGER, f"{ack.psc} is no neighbour that acknowledges")
    if not _is(sender, neighbor) or ack.psc_site != neighbor.site:
        return work.refuse(
            RefusalReason.IMPERSONATION, f"{sender.label} acknowledges for {ack.psc}"
        )
    state = work.partition(ack.partition)
    if state is None or not owns(work.tx, work.me, state.id):
        return work.refuse(
            RefusalReason.WRONG_SOURCE, "an acknowledgement of a partition that is not ours"
        )
    if ack.seq > state.last_seq:
        return work.refuse(
            RefusalReason.INCONSISTENT,
            f"number {ack.seq} is acknowledged, which was never given out",
        )
    acks = acks_of(work.tx, neighbor.name)
    if state.id == ENTERPRISE_PARTITION:
        acks = replace(acks, enterprise=max(acks.enterprise, ack.seq))
    else:
        acks = replace(acks, site=max(acks.site, ack.seq))
    _put(work, neighbor.name, acks)
    return None


def receive_bsc_ack(work: Work, sender: Sender, ack: BscAck) -> None:
    """Receive BSC Ack (3.2.7.5)."""
    neighbor = work.memory.neighbor(ack.name)
    if not work.me.is_psc or neighbor is None or neighbor.intersite:
        return work.refuse(
            RefusalReason.STRANGER, f"{ack.name} is no backup controller of this site"
        )
    if not _is(sender, neighbor):
        return work.refuse(
            RefusalReason.IMPERSONATION, f"{sender.label} acknowledges for {ack.name}"
        )
    acks = acks_of(work.tx, neighbor.name)
    _put(work, neighbor.name, replace(acks, seen_unix=work.at.unix))
    return None


def _is(sender: Sender, neighbor: Neighbor) -> bool:
    return sender.name is not None and name_key(sender.name) == name_key(neighbor.name)


def send_bsc_ack(work: Work) -> None:
    """BSC Ack Timer Event (3.3.6.2)."""
    ack = BscAck(work.me.site, work.me.id, work.me.name)
    work.send(work.memory.psc, ack, acknowledge=True)


# --- purging --------------------------------------------------------------------------------------


def purge_if_due(work: Work, partition: Guid) -> None:
    """After a change, ours or replicated: every 256 numbers old tombstones go (E21)."""
    state = work.partition(partition)
    if state is None:
        return
    progress = work.memory.progress(partition)
    if state.last_seq.value > progress.purge_looked_at.value + work.settings.purge_step:
        progress.purge_looked_at = state.last_seq
        purge(work, state)


def purge(work: Work, state: Partition) -> None:
    """Purge Deleted Objects (3.1.7.2.9); the purged number rises with it (E20)."""
    if state.purge_state is not PurgeState.NORMAL:
        return
    through = purgeable(work, state)
    if through <= state.purged_seq:
        return
    work.tx.purge(state.id, through)
    if not work.me.is_bsc:  # a BSC must not overtake its PSC (E23)
        work.put(replace(state, purged_seq=through))


def purgeable(work: Work, state: Partition) -> SequenceNumber:
    """Up to where nobody needs tombstones: a buffer is kept, whatever is acknowledged (E22)."""
    buffered = state.last_seq.saturating_sub(work.settings.purge_buffer)
    if not owns(work.tx, work.me, state.id):
        return min(buffered, state.allowed_purge_seq)
    pscs = [n.name for n in work.memory.neighbors.values() if n.intersite]
    acked = [acks_of(work.tx, name) for name in pscs]
    if state.id == ENTERPRISE_PARTITION:
        return min([buffered, *(acks.enterprise for acks in acked)])
    return min([buffered, *(acks.site for acks in acked)])
