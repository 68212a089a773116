"""Mutations that put a plausible bug into replication: each one is what a slip would leave.

Each function takes the right one and returns the wrong one. Storage has ``damage``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

from mqis.protocol.clock import Instant
from mqis.protocol.directory.objects import DirectoryObject, Partition, PurgeState
from mqis.protocol.ports import Change, Transaction, View
from mqis.protocol.replication import (
    acknowledging,
    applying,
    change_requests,
    incoming_changes,
    machine,
    number_recovery,
    quarantine,
    replays,
    rounds,
    survivors,
    sync0,
    sync_answers,
    synchronization,
    topology_changes,
)
from mqis.protocol.replication.acknowledging import Acks
from mqis.protocol.replication.admission import owns_state
from mqis.protocol.replication.applying import Applied
from mqis.protocol.replication.effects import Objection, RefusalReason
from mqis.protocol.replication.keeping import stored
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.memory import Progress, Recovery
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import Sync0, SyncReply
from mqis.wire.seqnum import SequenceNumber

_Any = Callable[..., Any]


def _nothing(_function: _Any) -> _Any:
    return lambda *_arguments, **_options: None


def _false(_function: _Any) -> _Any:
    return lambda *_arguments: False


# --- circular waits -------------------------------------------------------------------------------


def _pec_alone(_may_finish: _Any) -> _Any:
    def may_finish(work: Work, partition: Guid, running: Recovery) -> bool:
        state = work.partition(partition)
        return state is None or not survivors._needs_pec(work, state, running)

    return may_finish


B01 = ((survivors, "_may_finish", _pec_alone),)

# --- requests and their answers -------------------------------------------------------------------


def _always_ok(decide: _Any) -> _Any:
    def decided(*arguments: Any) -> int:
        decide(*arguments)
        return HResult.MQ_OK

    return decided


def _never_ok(decide: _Any) -> _Any:
    def decided(*arguments: Any) -> int:
        result: int = decide(*arguments)
        return HResult.MQ_ERROR_ACCESS_DENIED if result == HResult.MQ_OK else result

    return decided


def _lowered(forget: _Any) -> _Any:
    def forgotten(work: Work, key: bytes) -> None:
        requester = key.partition(b"\0")[0]
        if work.tx.state("horizon", requester) is not None:
            work.tx.drop_state("horizon", requester)
        forget(work, key)

    return forgotten


def _unremembered(_remember: _Any) -> _Any:
    return lambda work, request, result: None


B03 = ((replays, "remember", _unremembered),)
B23 = ((change_requests, "_decide", _always_ok),)
B24 = ((change_requests, "_decide", _never_ok),)
B32 = ((replays, "_forget", _lowered),)
B25 = ((number_recovery, "raise_floor", _nothing),)

# --- changes that come in -------------------------------------------------------------------------


def _from_anybody(_refusal: _Any) -> _Any:
    def refusal_of_change(work: Work, _sender: Sender, state: Partition) -> Objection | None:
        if owns_state(work.tx, work.me, state):
            return Objection(RefusalReason.OWN_PARTITION, "this server is the authority")
        return None

    return refusal_of_change


B05 = ((rounds, "begin", _nothing),)
B10 = (
    (incoming_changes, "refusal_of_change", _from_anybody),
    (synchronization, "refusal_of_change", _from_anybody),
)
B17 = ((incoming_changes, "receive_numbers", _nothing),)
B20 = ((incoming_changes, "is_ahead", _false),)

# --- changes that are applied ---------------------------------------------------------------------


def _stays(_emptied: _Any) -> _Any:
    return lambda properties: []


def _deletes_any(delete: _Any) -> _Any:
    def applied(
        tx: Transaction, object_type: ObjectType, change: DirectoryChange, keep: bool
    ) -> Applied:
        obj = applying.find(tx, object_type, change)
        if obj is None or obj.partition == change.partition:
            result: Applied = delete(tx, object_type, change, keep)
            return result
        tx.delete(obj)
        return Applied(obj, None)

    return applied


def _updates_any(update: _Any) -> _Any:
    def applied(tx: Transaction, object_type: ObjectType, change: DirectoryChange) -> Applied:
        old = applying.find(tx, object_type, change)
        if old is None or old.partition == change.partition:
            result: Applied = update(tx, object_type, change)
            return result
        properties = {**old.properties, **stored(change.properties)}
        new = DirectoryObject(object_type, old.id, change.partition, change.seq, properties)
        tx.update(old, new)
        return Applied(old, new)

    return applied


def _all_of_it(update: _Any) -> _Any:
    def applied(tx: Transaction, object_type: ObjectType, change: DirectoryChange) -> Applied:
        result: Applied = update(tx, object_type, change)
        given = stored(change.properties)
        assert result.after is not None
        name = {
            key: v for key, v in result.after.properties.items() if v.value == result.after.path
        }
        new = replace(result.after, properties={**name, **given})
        tx.update(result.after, new)
        return replace(result, after=new)

    return applied


B07 = ((applying, "emptied", _stays),)
B09 = ((applying, "_delete", _deletes_any),)
B14 = ((applying, "_update", _updates_any),)
B02 = ((applying, "_update", _all_of_it),)

# --- replies --------------------------------------------------------------------------------------


def _first_part(go_on: _Any) -> _Any:
    def first_part_is_all(work: Work, progress: Progress, reply: SyncReply) -> None:
        state = work.partition(reply.partition)
        if state is not None and state.purge_state is PurgeState.IN_SYNC0:
            reply = replace(reply, complete_sync0=Sync0.COMPLETE)
        go_on(work, progress, reply)

    return first_part_is_all


def _but_the_last(arranged: _Any) -> _Any:
    return lambda reply: arranged(reply)[:-1]


def _any_reply(_unusable: _Any) -> _Any:
    return lambda work, state, reply: None


def _none_marked(_objects_of: _Any) -> _Any:
    return lambda view, partition: iter(())


def _everything(_visible: _Any) -> _Any:
    def visible(changes: Iterable[Change], _scope: int) -> Iterator[Change]:
        return iter(changes)

    return visible


B06 = ((synchronization, "_go_on", _first_part),)
B11 = ((sync_answers, "visible", _everything),)
B15 = ((Work, "back_to", _nothing),)
B18 = ((synchronization, "arranged", _but_the_last),)
B21 = ((synchronization, "_unusable", _any_reply),)
B22 = ((sync0, "objects_of", _none_marked),)

# --- neighbours, quarantine, tombstones -----------------------------------------------------------


def _in_memory_alone(_take_back: _Any) -> _Any:
    def take_back(work: Work, partition: Guid, guid: Guid) -> None:
        work.memory.progress(partition).quarantine.pop(guid, None)

    return take_back


def _in_one_field(acks_of: _Any) -> _Any:
    def acks(view: View, name: str) -> Acks:
        known: Acks = acks_of(view, name)
        highest = max(known.site, known.enterprise)
        return replace(known, site=highest, enterprise=highest)

    return acks


def _mark_stays(drop_site: _Any) -> _Any:
    def dropped(work: Work, site: Guid) -> None:
        mark = work.tx.state(rounds.FAMILY, site.raw)
        drop_site(work, site)
        if mark is not None:
            work.tx.put_state(rounds.FAMILY, site.raw, mark)

    return dropped


def _without_acks(_purgeable: _Any) -> _Any:
    def purgeable(work: Work, state: Partition) -> SequenceNumber:
        return state.last_seq.saturating_sub(work.settings.purge_buffer)

    return purgeable


B04 = ((topology_changes, "_remove_neighbor", _nothing),)
B13 = ((incoming_changes, "take_back", _in_memory_alone),)
B31 = ((acknowledging, "acks_of", _in_one_field),)
B33 = ((topology_changes, "drop_site", _mark_stays),)
B16 = ((acknowledging, "purgeable", _without_acks),)
B27 = ((quarantine, "load", _nothing),)

# --- restored servers, refused commits ------------------------------------------------------------


def _remembers(start: _Any) -> _Any:
    def started(
        self: Replication, tx: Transaction, at: Instant, *, restored: bool = False
    ) -> list[Any]:
        if not self.memory.neighbors and not self.memory.partitions:
            first: list[Any] = start(self, tx, at, restored=restored)
            return first
        return self._run(tx, at, lambda work: self._initialize(work, restored))

    return started


def _no_jump(_behind: _Any) -> _Any:
    return lambda work, own, others: max([own.last_seq, *(copy.last_seq for copy in others)])


def _fixed_jump(_behind: _Any) -> _Any:
    return lambda work, own, others: survivors._highest(own, others) + work.settings.restore_jump


def _copies_unread(finish: _Any) -> _Any:
    def finished(work: Work, partition: Guid, running: Recovery) -> None:
        for survivor in running.survivors.values():
            survivor.holds, survivor.last_seq = {}, SequenceNumber.MIN
        finish(work, partition, running)

    return finished


B08 = ((survivors, "_is_gone", _false),)
B12 = ((Replication, "start", _remembers),)
B19 = ((survivors, "_behind_used_numbers", _no_jump),)
B34 = ((survivors, "_behind_used_numbers", _fixed_jump),)
B35 = ((machine, "_forget_tombstones", _nothing),)
B26 = ((survivors, "finish", _copies_unread),)


BUGS: dict[str, tuple[str, tuple[tuple[ModuleType | type, str, _Any], ...]]] = {
    "B01": ("an empty authority waits for the PEC's copy, whoever else has one", B01),
    "B02": ("an update takes away all properties that it does not name", B02),
    "B03": ("answers to forwarded changes are not remembered", B03),
    "B04": ("a neighbour is kept after its site is gone", B04),
    "B05": ("a copy counts as complete between the parts of a reply, and takes changes", B05),
    "B06": ("a full synchronisation ends with its first part", B06),
    "B07": ("cleared properties stay", B07),
    "B08": ("a restored authority revives deletions whose tombstones are gone", B08),
    "B09": ("a deletion reaches another authority's object", B09),
    "B10": ("changes are believed from any server", B10),
    "B11": ("queues that one site alone knows are synchronised to others", B11),
    "B12": ("memory is kept after a refused commit", B12),
    "B13": ("an entry taken back from quarantine stays in the store", B13),
    "B14": ("an update of an object of another partition is applied", B14),
    "B15": ("effects of a rolled-back reply stay", B15),
    "B16": ("tombstones are purged without acknowledgements", B16),
    "B17": ("the numbers in heartbeats are ignored", B17),
    "B18": ("the last change of a reply is not applied", B18),
    "B19": ("a restored authority skips no numbers", B19),
    "B20": ("a change is applied although others before it are missing", B20),
    "B21": ("replies are believed that nobody asked for, or that are late", B21),
    "B22": ("a full synchronisation keeps what the authority has no more", B22),
    "B23": ("a refused request is answered with success", B23),
    "B24": ("an executed request is answered with an error", B24),
    "B25": ("a restored authority executes requests from before its loss again", B25),
    "B26": ("a restored authority does not use the copies that it collected", B26),
    "B27": ("quarantine is forgotten at a restart", B27),
    "B31": ("acknowledgements of both partitions of the PEC are in one field", B31),
    "B32": ("a forgotten answer lowers the horizon of its requester", B32),
    "B33": ("the mark of an open round outlives the partition", B33),
    "B34": ("a restored authority always skips the same count of numbers", B34),
    "B35": ("a promoted BSC claims to have the tombstones that it never kept", B35),
}
