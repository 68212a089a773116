"""The replication machine of one server: everything that can happen to it.

    with store.write() as tx:
        effects = replication.receive(tx, message, at)
    for effect in effects: ...                        # once the transaction is committed

Each call is one operation in one transaction, and no two run at a time. If the commit fails
nothing of what was decided may happen, and the memory may be ahead of the store: ``start`` again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from mqis.protocol.clock import Instant
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.ports import Entropy, Transaction
from mqis.protocol.replication import (
    acknowledging,
    admission,
    change_requests,
    delivery_reports,
    incoming_changes,
    number_recovery,
    propagation,
    quarantine,
    rounds,
    standing_in,
    survivors,
    sync0,
    sync_answers,
    sync_requests,
    synchronization,
    topology_changes,
)
from mqis.protocol.replication.delivery_reports import TransportEvent
from mqis.protocol.replication.effects import Effect, RefusalReason
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.outgoing_changes import local_record, propagated
from mqis.protocol.replication.server_identity import Sender, Server
from mqis.protocol.replication.settings import DEFAULTS, ReplicationSettings
from mqis.protocol.replication.work import Counters, Work
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Message,
    PscAck,
    SyncReply,
    SyncRequest,
    decode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier


@dataclass(frozen=True, slots=True)
class Received:
    """A message that the transport delivered."""

    body: bytes
    identifier: MessageIdentifier
    #: The queue manager at the other end of the session.
    source: Guid
    authenticated: bool
    session: int = 0


class Replication:
    """The replication machine of one server."""

    def __init__(
        self,
        me: Server,
        entropy: Entropy,
        settings: ReplicationSettings = DEFAULTS,
        *,
        journaled: bool = True,
    ) -> None:
        self.me = me
        self.settings = settings
        self._entropy = entropy
        self._journaled = journaled
        self._memory = Memory()
        self.counters = Counters()
        #: Whether effects tell of each change that came; nothing else depends on it.
        self.watched = False
        self._wake: float | None = None

    @property
    def memory(self) -> Memory:
        """The machine's memory, for monitoring: read it, do not change it."""
        return self._memory

    # --- life -------------------------------------------------------------------------------------

    def start(self, tx: Transaction, at: Instant, *, restored: bool = False) -> list[Effect]:
        """Initialization (3.1.3, 3.3.3), also after a failed commit.

        ``restored``: the store is a backup, or this server takes the place of another.
        """
        self._memory = Memory(psc=self.me.psc)
        # A number that no earlier life of this server has used (E46).
        self._memory.last_request = int.from_bytes(self._entropy.guid().raw[:4], "little")
        return self._run(tx, at, lambda work: self._initialize(work, restored))

    def _initialize(self, work: Work, restored: bool) -> None:
        me, memory = self.me, self._memory
        if me.is_bsc:
            number_recovery.leave_offices(work)
        elif not me.is_pec and not number_recovery.has_served(work.tx, me.site):
            _forget_tombstones(work)
        if work.partition(ENTERPRISE_PARTITION) is None:
            work.put(Partition(ENTERPRISE_PARTITION, me.name if me.is_pec else me.pec))
        for site in list(work.tx.objects(ObjectType.SITE)):
            topology_changes.put_site(work, site)
        topology_changes.read_neighbors(work)
        quarantine.load(work)
        rounds.load(work)
        for state in work.tx.partitions():
            memory.progress(state.id)
            if admission.owns(work.tx, me, state.id):
                self._take_office(work, state, restored)
            else:
                sync0.resume_sync0(work, state)
                sync_requests.ask(work, state.id)
        if me.is_bsc:
            memory.bsc_ack_at = work.now + self.settings.first_bsc_ack_s

    def _take_office(self, work: Work, state: Partition, restored: bool) -> None:
        """An owned partition: its last number is at least that of its last change (E27)."""
        for change in work.tx.changes(state.id, state.last_seq):
            state = replace(state, last_seq=change.seq)
        work.put(state)
        if restored:
            number_recovery.begin(work, state.id)
        elif not standing_in.is_another_site(work, state.id) or number_recovery.is_running(
            work, state.id
        ):
            number_recovery.begin_if_new(work, state)

    # --- what happens -----------------------------------------------------------------------------

    def receive(self, tx: Transaction, received: Received, at: Instant) -> list[Effect]:
        """Receiving Replication Messages (3.1.5.1)."""
        return self._run(tx, at, lambda work: self._receive(work, received))

    def changed(self, tx: Transaction, changes: Iterable[OwnChange], at: Instant) -> list[Effect]:
        """Propagate Directory Change (3.1.7.1.2): what this server has changed, in this ``tx``."""
        return self._run(tx, at, lambda work: _changed(work, changes))

    def request(self, tx: Transaction, change: OwnChange, local: int, at: Instant) -> list[Effect]:
        """Change Remote Object (3.1.7.1.1): another server decides, ``Answered`` says how."""
        return self._run(
            tx, at, lambda work: change_requests.change_remote_object(work, change, local)
        )

    def transported(
        self, tx: Transaction, events: Iterable[TransportEvent], at: Instant
    ) -> list[Effect]:
        """Records the fate of sent messages, and reacts to those that did not arrive."""
        return self._run(tx, at, lambda work: delivery_reports.transported(work, events))

    def may_change(self, tx: Transaction, at: Instant) -> Callable[[Guid], bool]:
        """The answer to ``DirectoryEvents.owns`` in this transaction."""
        work = self._work(tx, at)
        return lambda partition: admission.may_change(work, partition)

    def permit(self, tx: Transaction, at: Instant) -> Callable[[OwnChange], None]:
        """What refuses changes in this transaction, for ``DirectoryEvents.permit``."""
        work = self._work(tx, at)
        return lambda change: standing_in.check(work, change)

    # --- time -------------------------------------------------------------------------------------

    def next_timer(self) -> float | None:
        return self._wake

    def handle_timer(self, tx: Transaction, at: Instant) -> list[Effect]:
        return self._run(tx, at, self._run_due_work)

    def _run_due_work(self, work: Work) -> None:
        synchronization.apply_held(work)
        sync_requests.repeat_due(work)
        change_requests.repeat_or_give_up(work)
        memory = self._memory
        if memory.bsc_ack_at is not None and memory.bsc_ack_at <= work.now:
            acknowledging.send_bsc_ack(work)
            memory.bsc_ack_at = work.now + self.settings.bsc_ack_s

    # --- inside -----------------------------------------------------------------------------------

    def _work(self, tx: Transaction, at: Instant) -> Work:
        return Work(
            tx,
            at,
            self.me,
            self.settings,
            self._memory,
            self._entropy,
            journaled=self._journaled,
            counters=self.counters,
            watched=self.watched,
        )

    def _run(self, tx: Transaction, at: Instant, operation: Callable[[Work], None]) -> list[Effect]:
        work = self._work(tx, at)
        operation(work)
        survivors.advance(work)
        propagation.propagate_due(work)
        self._wake = self._next_wake(work)
        return work.finish()

    def _next_wake(self, work: Work) -> float | None:
        memory = self._memory
        if any(progress.held is not None for progress in memory.partitions.values()):
            return work.now
        times = [
            propagation.due_at(n, work) if n.available else n.heartbeat_at
            for n in memory.neighbors.values()
        ]
        times += [p.asked.retry_at for p in memory.partitions.values() if p.asked is not None]
        times += [min(w.deadline, w.repeat_at) for w in memory.waiting.values()]
        retry_s = self.settings.recovery_retry_s
        times += [survivors.next_step(r, retry_s) for r in memory.recoveries.values()]
        if memory.bsc_ack_at is not None:
            times.append(memory.bsc_ack_at)
        return min(times, default=None)

    def _receive(self, work: Work, received: Received) -> None:
        synchronization.apply_held(work)
        name = admission.name_of(work.tx, self.me, received.source)
        sender = Sender(
            received.source, name, received.authenticated, received.identifier, received.session
        )
        work.sender = sender
        try:
            message = decode_message(received.body)
        except WireError as error:
            return work.refuse(RefusalReason.MALFORMED, f"not a replication message: {error}")
        work.record(
            JournalRecord(
                work.at.unix_us,
                RecordKind.MESSAGE,
                RecordState.RECEIVED,
                peer=sender.label,
                message=received.identifier,
                session=received.session,
                operation=message.OPERATION,
                body=received.body,
            )
        )
        return _dispatch(work, sender, message)


def _dispatch(work: Work, sender: Sender, message: Message) -> None:
    """3.1.5.1: what each operation is about."""
    match message:
        case ChangePropagation():
            incoming_changes.receive_change_propagation(work, sender, message)
        case ChangeRequest():
            change_requests.receive_change_request(work, sender, message, _changed)
        case SyncRequest():
            sync_answers.receive_sync_request(work, sender, message)
        case SyncReply():
            synchronization.receive_sync_reply(work, sender, message)
        case ChangeReply():
            change_requests.receive_change_reply(work, sender, message)
        case AlreadyPurged():
            synchronization.receive_already_purged(work, sender, message)
        case PscAck():
            acknowledging.receive_psc_ack(work, sender, message)
        case BscAck():
            acknowledging.receive_bsc_ack(work, sender, message)
        case _:  # so that the type checker names a message without a handler
            assert_never(message)


def _forget_tombstones(work: Work) -> None:
    """The store may be that of a backup controller, which keeps no tombstones (E75).

    So whoever asks this server for changes below its numbers is told to start anew.
    """
    for state in work.tx.partitions():
        work.tx.purge(state.id, state.last_seq)
        work.put(replace(state, purged_seq=max(state.purged_seq, state.last_seq)))


def _changed(work: Work, changes: Iterable[OwnChange]) -> None:
    """Changes of ours: written down, told to neighbours, and heeded ourselves (E30)."""
    for change in changes:
        partition = change.obj.partition
        state = work.partition(partition)
        purged = change.obj.seq if state is None else state.purged_seq
        outgoing = propagated(change, purged)
        if work.journaled:
            work.record(local_record(change, outgoing, work.at.unix_us))
        propagation.offer(work, outgoing, to_pscs=True)
        after = None if change.kind is ChangeKind.DELETE else change.obj
        topology_changes.after_change(work, change.before, after)
        work.changed(change.obj.type)
        work.counters.made += 1
        acknowledging.purge_if_due(work, partition)
