"""The PEC in the place of a new site's PSC, which could not create its own machine (3.1.3.1).

It makes that machine and nothing else. Then the PSC decides, which numbers on from there.

A PEC that was restored may not know that a PSC is in office long since: it has lost the machine, or
never had it. So it asks around before it makes anything in the site's partition, and whoever knows
the machine has a copy of the partition that serves until the PSC sends its own.
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition, name_key
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.ownership import objects_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication import number_recovery, rounds, topology_changes
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.applying import type_of
from mqis.protocol.replication.incoming_changes import apply_one
from mqis.protocol.replication.memory import Recovery, Survivor
from mqis.protocol.replication.quarantine import set_aside
from mqis.protocol.replication.sync0 import start_sync0
from mqis.protocol.replication.sync_requests import ask
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.seqnum import SequenceNumber


def is_another_site(work: Work, partition: Guid) -> bool:
    return partition not in (ENTERPRISE_PARTITION, work.me.site)


def check(work: Work, change: OwnChange) -> None:
    """Refuses a change that this server would make in another's place and may not.

    It is called before the change: a refusal behind it would undo the changes of other callers
    that share the transaction.
    """
    partition = change.obj.partition
    if not is_another_site(work, partition) or not owns(work.tx, work.me, partition):
        return
    state = work.partition(partition)
    if state is None or (change.kind is ChangeKind.CREATE and _is_machine_of(state, change)):
        return
    raise DirectoryError(
        HResult.MQ_ERROR_DS_ERROR,
        f"{state.owner} decides about this site, and its machine is not known here; "
        f"create machine {state.owner} first",
    )


def _is_machine_of(state: Partition, change: OwnChange) -> bool:
    obj = change.obj
    return obj.type is ObjectType.MACHINE and name_key(obj.path or "") == name_key(state.owner)


def ended(work: Work, partition: Guid, running: Recovery) -> bool:
    """Returns whether a server knows the machine of the site's PSC, which then decides itself."""
    state = work.partition(partition)
    if state is None or not is_another_site(work, partition):
        return False
    # A copy that is behind ours may show a machine that was deleted since.
    known = [s for s in running.survivors.values() if s.complete and s.last_seq >= state.last_seq]
    best = max(
        (s for s in known if any(_names(change, state.owner) for change in s.holds.values())),
        key=lambda survivor: survivor.last_seq,
        default=None,
    )
    if best is None:
        return False
    _hand_over(work, state, best)
    return True


def _names(change: DirectoryChange, machine: str) -> bool:
    if change.command is Command.DELETE or type_of(change) is not ObjectType.MACHINE:
        return False
    path = dict(change.properties).get(PropId.QM_PATHNAME)
    return path is not None and name_key(str(path.value)) == name_key(machine)


def _hand_over(work: Work, state: Partition, survivor: Survivor) -> None:
    """Hold what the survivor holds, and ask the PSC for what came after."""
    number_recovery.resign(work, state.id)
    if not _tells_deletions(survivor):
        machine = next(c for c in survivor.holds.values() if _names(c, state.owner))
        apply_one(work, machine)
        start_sync0(work, state)
        return
    for obj in list(objects_of(work.tx, state.id)):
        if obj.id not in survivor.holds:
            topology_changes.forget_object(work, obj)
    work.tx.purge(state.id, SequenceNumber.MAX)
    for change in sorted(survivor.holds.values(), key=lambda change: change.seq):
        if not apply_one(work, change) and change.guid is not None:
            set_aside(work, state.id, change.guid, change.seq)
    purged = max(state.purged_seq, survivor.purged_seq)
    current = work.partition(state.id) or state
    work.put(replace(current, last_seq=survivor.last_seq, purged_seq=purged))
    rounds.end(work, state.id)
    ask(work, state.id)


def _tells_deletions(survivor: Survivor) -> bool:
    """BSCs keep no tombstones; where every number has its object there are none."""
    purged = survivor.purged_seq
    numbers = {change.seq for change in survivor.holds.values() if change.seq > purged}
    if survivor.incomplete:
        return False
    return not survivor.is_bsc or len(numbers) == survivor.last_seq.value - purged.value
