"""Journal records of every kind that the layout can hold."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

guids = st.one_of(st.just(Guid.NULL), st.binary(min_size=16, max_size=16).map(Guid))
seqs = st.integers(0, 2**64 - 1).map(SequenceNumber)
lsns = st.integers(0, 2**63 - 1)
#: Windows names may hold lone surrogates.
texts = st.text(st.characters(exclude_categories=[]), max_size=30)


def records() -> st.SearchStrategy[JournalRecord]:
    return st.builds(
        JournalRecord,
        time_us=st.integers(-(2**63), 2**63 - 1),
        kind=st.sampled_from(RecordKind),
        state=st.sampled_from(RecordState),
        peer=texts,
        message=st.none() | st.builds(MessageIdentifier, guids, st.integers(0, 2**32 - 1)),
        session=st.integers(0, 2**64 - 1),
        operation=st.integers(0, 2**16 - 1),
        partition=guids,
        seq=seqs,
        previous_seq=seqs,
        object_type=st.integers(0, 2**16 - 1),
        object_id=guids,
        reason=texts,
        body=st.binary(max_size=200),
    )
