"""Mutations that put a plausible bug into replication, queueing or storage.

Each function takes the right one and returns the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqis.protocol.directory.objects import PurgeState
from mqis.protocol.replication import serving, survivors
from mqis.protocol.replication.memory import Recovery
from mqis.protocol.replication.work import Sender, Work
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import SyncRequest

_Any = Callable[..., Any]

# --- circular waits -------------------------------------------------------------------------------


def _pec_alone(_may_finish: _Any) -> _Any:
    def may_finish(work: Work, partition: Guid, running: Recovery) -> bool:
        state = work.partition(partition)
        return state is None or not survivors._needs_pec(work, state, running)

    return may_finish


def _no_remains(receive: _Any) -> _Any:
    def receive_sync_request(work: Work, sender: Sender, request: SyncRequest) -> None:
        state = work.partition(request.partition)
        if state is None or state.purge_state is PurgeState.NORMAL:
            receive(work, sender, request)

    return receive_sync_request


B01 = ((survivors, "_may_finish", _pec_alone),)
B02 = ((serving, "receive_sync_request", _no_remains),)

BUGS = {
    "B01": ("an empty authority waits for the PEC's copy, whoever else has one", B01),
    "B02": ("a replica in a full synchronisation does not answer its restored authority", B02),
}
