"""Replication messages, for any test that needs some."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    Message,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.strategies.propvariant import _VALUES, guids, texts

u32 = st.integers(0, 0xFFFFFFFF)
seqs = st.integers(0, (1 << 64) - 1).map(SequenceNumber)


def _property(propid: int) -> st.SearchStrategy[tuple[int, PropVariant]]:
    vt = PROPERTIES[propid].vt
    return st.builds(PropVariant, st.just(vt), _VALUES[vt]).map(lambda value: (propid, value))


def properties() -> st.SearchStrategy[tuple[tuple[int, PropVariant], ...]]:
    one = st.sampled_from([int(propid) for propid in PROPERTIES]).flatmap(_property)
    return st.lists(one, max_size=5).map(tuple)


def changes() -> st.SearchStrategy[DirectoryChange]:
    commands, rest = st.sampled_from(Command), (guids, seqs, seqs, seqs, properties())
    by_path = st.builds(DirectoryChange, commands, texts, st.none(), *rest)
    by_guid = st.builds(DirectoryChange, commands, st.none(), guids, *rest)
    return by_path | by_guid


def _several_changes() -> st.SearchStrategy[tuple[DirectoryChange, ...]]:
    return st.lists(changes(), max_size=3).map(tuple)


def heartbeats() -> st.SearchStrategy[Heartbeat]:
    records = st.lists(st.builds(PartitionSeqNumbers, guids, seqs, seqs), min_size=1, max_size=3)
    return st.just(Heartbeat()) | st.builds(Heartbeat, texts, records.map(tuple))


def messages() -> st.SearchStrategy[Message]:
    flags = st.booleans()
    propagated = (guids, _several_changes(), heartbeats(), st.integers(0, 1))
    replied = (guids, guids, seqs, seqs, seqs, st.sampled_from(Sync0), _several_changes())
    return st.one_of(
        st.builds(ChangePropagation, *propagated),
        st.builds(ChangeRequest, guids, guids, u32, texts, st.none() | texts, changes()),
        st.builds(SyncRequest, guids, guids, seqs, seqs, seqs, flags, st.integers(0, 1), texts),
        st.builds(SyncReply, *replied),
        st.builds(ChangeReply, guids, u32, u32, texts),
        st.builds(AlreadyPurged, guids, guids, seqs),
        st.builds(PscAck, guids, guids, guids, seqs, texts),
        st.builds(BscAck, guids, guids, texts),
    )
