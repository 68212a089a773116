"""The state of an authority that may not give out numbers yet.

A server that was restored from a backup, or took the place of another, does not know which numbers
its predecessor gave out last. Until it has asked the others (``survivors``) it changes nothing. The
mark is in the store, so that a crash on the way does not put it into service.
"""

from __future__ import annotations

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.ports import Transaction, View
from mqis.protocol.replication.memory import Recovery
from mqis.protocol.replication.replays import raise_floor
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid

_FAMILY = "authority"
_SERVING = b"serving"
_RESTORING = b"restoring"


def begin(work: Work, partition: Guid) -> None:
    """Stop changing a partition until the others have been asked."""
    raise_floor(work, partition, served=is_serving(work.tx, partition))
    work.tx.put_state(_FAMILY, partition.raw, _RESTORING)
    deadline = work.now + work.settings.recovery_wait_s
    work.memory.recoveries.setdefault(partition, Recovery(deadline))


def begin_if_new(work: Work, state: Partition) -> None:
    """An authority that has never served this partition has to ask first.

    The PEC is where an enterprise begins: before it there is nobody to ask, unless it is told that
    it was restored.
    """
    mark = work.tx.state(_FAMILY, state.id.raw)
    first = work.me.is_pec and state.id in (ENTERPRISE_PARTITION, work.me.site)
    if mark == _RESTORING or (mark is None and not first):
        begin(work, state.id)
    elif mark is None:
        serve(work, state.id)


def is_running(work: Work, partition: Guid) -> bool:
    return is_restoring(work.tx, partition)


def is_restoring(view: View, partition: Guid) -> bool:
    """``is_running``, by the store alone."""
    return view.state(_FAMILY, partition.raw) == _RESTORING


def has_served(view: View, partition: Guid) -> bool:
    """Returns whether the server of this store decides about the partition, or is to."""
    return view.state(_FAMILY, partition.raw) is not None


def is_serving(view: View, partition: Guid) -> bool:
    """Returns whether this server gives out the numbers of a partition."""
    return view.state(_FAMILY, partition.raw) == _SERVING


def serve(work: Work, partition: Guid) -> None:
    mark_served(work.tx, partition)
    work.memory.recoveries.pop(partition, None)


def mark_served(tx: Transaction, partition: Guid) -> None:
    """Notes in a store that its server gives out the numbers of a partition."""
    tx.put_state(_FAMILY, partition.raw, _SERVING)


def leave_offices(work: Work) -> None:
    """This server is a backup controller now: if it is promoted again, it has to ask first."""
    for key, _ in list(work.tx.states(_FAMILY)):
        work.tx.drop_state(_FAMILY, key)


def resign(work: Work, partition: Guid) -> None:
    """Another server is the authority after all."""
    work.tx.drop_state(_FAMILY, partition.raw)
    work.memory.recoveries.pop(partition, None)
