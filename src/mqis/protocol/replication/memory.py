"""The memory of replication between operations; losing it costs time, never data.

All of it comes back by itself: who is a neighbour from the directory, what is missing from the
numbers that neighbours tell (E26).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.protocol.directory.objects import name_key
from mqis.protocol.replication.server_identity import Sender
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeRequest, SyncReply, SyncRequest
from mqis.wire.seqnum import SequenceNumber


@dataclass(slots=True)
class OpenSyncRequest:
    """A sync request that has no answer yet (E05)."""

    machine: str
    #: Its From, which the answer repeats: answers to earlier requests would multiply later ones.
    from_seq: SequenceNumber
    retry_at: float
    delay_s: float
    #: Its KnownPurged: a purge up to here, or less, is no answer to it.
    known_purged: SequenceNumber = SequenceNumber.MIN
    #: Whether it only asks if our last number is one of the authority's.
    probe: bool = False


@dataclass(frozen=True, slots=True)
class HeldReply:
    """A part of a reply that the next operation applies."""

    sender: Sender
    reply: SyncReply
    #: The request for the next part, which is on its way, and to whom.
    machine: str
    request: SyncRequest


@dataclass(slots=True)
class Progress:
    """A replica's way through the changes of one partition."""

    #: PendingChangeCollection: what came ahead of its turn, by number.
    pending: dict[SequenceNumber, DirectoryChange] = field(default_factory=dict)
    asked: OpenSyncRequest | None = None
    #: Received, and not applied yet; ``asked`` is the request that it answers.
    held: HeldReply | None = None
    #: Requests in a row without an answer: each waits longer for one than the one before.
    requests: int = 0
    #: Between the parts of a reply: changes that come now wait for the last part (E54).
    in_round: bool = False
    #: Some parts of a reply are here, the last one is not (``rounds``, E73); this outlives a retry.
    incomplete: bool = False
    #: And where the last part ended.
    reached: SequenceNumber = SequenceNumber.MIN
    #: The purged number of the last reply; MIN before the first one of a full synchronisation.
    told_purged: SequenceNumber = SequenceNumber.MIN
    #: Whether this replica's numbers turned out not to be the authority's.
    doubted: bool = False
    #: No doubt is looked into before then.
    probe_at: float = float("-inf")
    #: The last number that the authority was told we have (E24).
    acked: SequenceNumber = SequenceNumber.MIN
    #: PreviousPurgedSeqNumber.
    purge_looked_at: SequenceNumber = SequenceNumber.MIN
    #: Objects that a reply could not be applied for, and how often.
    failures: dict[Guid, int] = field(default_factory=dict)
    #: Objects that were set aside, with the number that each was seen under (E56).
    quarantine: dict[Guid, SequenceNumber] = field(default_factory=dict)
    #: The highest number that somebody was heard of; only for those who watch.
    heard: int = 0


@dataclass(slots=True)
class Neighbor:
    """DirectoryNeighbor (3.1.1.2.4), and when it hears from us next."""

    name: str
    #: PartitionID: the site that it belongs to.
    site: Guid
    #: A PSC of another site, or a BSC of ours.
    intersite: bool
    available: list[DirectoryChange] = field(default_factory=list)
    last_sent: float = float("-inf")
    #: Changes that came with the word not to be passed on at once wait until then.
    not_before: float = float("-inf")
    #: The first message after a start carries the numbers (E52).
    heartbeat_at: float = float("-inf")
    #: Messages that the transport has not seen acknowledged.
    in_flight: int = 0


@dataclass(slots=True)
class Waiting:
    """A change request that was passed on: for a caller here, or for one of our BSCs (E45)."""

    request: ChangeRequest
    next_hop: str
    deadline: float
    repeat_at: float
    #: What the caller here calls it; None: the requester is another server.
    local: int | None


@dataclass(slots=True)
class Survivor:
    """One server's copy of a partition whose authority is being restored."""

    name: str
    is_bsc: bool
    #: The From that its next answer repeats; at first a number that no earlier request had.
    from_seq: SequenceNumber
    #: Whether that answer is still to come: behind it nothing is on its way that we did not ask
    #: for in this life.
    probing: bool = True
    asked_at: float = float("-inf")
    last_seq: SequenceNumber = SequenceNumber.MIN
    purged_seq: SequenceNumber = SequenceNumber.MIN
    complete: bool = False
    #: Whether its copy lacks parts: it tells what is there, and not what was deleted (E73).
    incomplete: bool = False
    #: Whether it holds only the remains of a copy, all of which are here (``remains``, E72).
    remains_only: bool = False
    holds: dict[Guid, DirectoryChange] = field(default_factory=dict)

    @property
    def has_answered(self) -> bool:
        return self.complete or self.remains_only


@dataclass(slots=True)
class Recovery:
    """A restored authority on its way back into service."""

    deadline: float
    survivors: dict[str, Survivor] = field(default_factory=dict)


@dataclass(slots=True)
class Memory:
    """The memory of one server."""

    partitions: dict[Guid, Progress] = field(default_factory=dict)
    neighbors: dict[str, Neighbor] = field(default_factory=dict)
    waiting: dict[tuple[str, int], Waiting] = field(default_factory=dict)
    recoveries: dict[Guid, Recovery] = field(default_factory=dict)
    #: MyPSCName of a BSC.
    psc: str = ""
    bsc_ack_at: float | None = None
    last_request: int = 0
    #: Answers to change requests given since the start.
    answers: int = 0
    last_message_id: int = 0
    message_ids_left: int = 0
    #: Messages that were refused for their signature, and how often they were sent again.
    resent: dict[bytes, int] = field(default_factory=dict)

    def progress(self, partition: Guid) -> Progress:
        found = self.partitions.get(partition)
        if found is None:
            found = self.partitions[partition] = Progress()
        return found

    def neighbor(self, name: str) -> Neighbor | None:
        return self.neighbors.get(name_key(name))
