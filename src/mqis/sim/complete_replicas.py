"""Checks that a replica that shows a number has everything that the authority had under it.

``history`` compares what a replica holds; this finds what it lacks, and what should be deleted.
"""

from __future__ import annotations

from mqis.protocol.directory.objects import DirectoryObject, Partition, PurgeState
from mqis.protocol.ports import View
from mqis.protocol.replication.admission import owns
from mqis.sim.history import NumberHistory, Version
from mqis.sim.run_trace import Violation
from mqis.sim.simulated_server import SimServer
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

_RULE = "a copy is complete at its number"
#: Of the steps of one number, every fourth is examined; all others are.
_EVERY = 4


class CompletenessCheck:
    """Compares replicas with the history of their partition as they move."""

    def __init__(self, history: NumberHistory) -> None:
        self._history = history
        self._steps = 0
        #: The last computed content of each partition, with its number and base.
        self._known: dict[Guid, tuple[SequenceNumber, SequenceNumber, dict[Guid, Version]]] = {}

    def check(self, view: View, server: SimServer) -> None:
        """Checks the replicas that an operation of the server has moved."""
        for before, state in self._history.moved:
            if self._is_due(before, state) and self._is_complete(view, server, state):
                self._compare(view, server, state)

    def _is_due(self, before: Partition | None, state: Partition) -> bool:
        """True for every fourth single step, and for all longer ones."""
        if before is not None and before.last_seq == state.last_seq.saturating_sub(1):
            self._steps += 1
            return self._steps % _EVERY == 0
        return True

    def _is_complete(self, view: View, server: SimServer, state: Partition) -> bool:
        """Returns whether the replica claims to be complete: it is not between parts of a reply."""
        assert server.node is not None
        progress = server.node.replication.memory.progress(state.id)
        if state.purge_state is not PurgeState.NORMAL or progress.quarantine:
            return False
        if progress.incomplete:
            return False
        known = self._history.of(state.id)
        return state.last_seq >= known.base_seq and not owns(view, server.me, state.id)

    def _content(self, state: Partition) -> dict[Guid, Version]:
        history = self._history.of(state.id)
        found = self._known.get(state.id)
        if found is None or found[:2] != (state.last_seq, history.base_seq):
            content = history.at(state.last_seq)
            found = self._known[state.id] = state.last_seq, history.base_seq, content
        return found[2]

    def _compare(self, view: View, server: SimServer, state: Partition) -> None:
        held = {
            change.id: change.seq
            for change in view.changes(state.id, SequenceNumber.MIN)
            if isinstance(change, DirectoryObject)
        }
        true, where = self._content(state), f"{server.name} at {state.last_seq.value}"
        same_site = server.me.site == state.id
        for id_, version in true.items():
            assert version.held is not None
            if not same_site and version.held.site_only:
                continue
            if held.get(id_) != version.seq:
                raise Violation(_RULE, f"{where} lacks {version}")
        for id_, seq in held.items():
            if id_ not in true:
                raise Violation(_RULE, f"{where} still has {id_} at {seq.value}")
