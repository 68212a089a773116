"""The comparison of two copies of a partition by their digests."""

from __future__ import annotations

from enum import StrEnum

from mqis.protocol.directory.objects import Partition, PartitionDigest, PurgeState
from mqis.protocol.ports import View
from mqis.protocol.replication import quarantine, recovery, rounds


class Contents(StrEnum):
    """The contents of a copy beside those of another one that has the same last number."""

    EQUAL = "equal"
    DIFFERENT = "different"
    #: The digests differ, but queues of scope site could be the only reason (E58).
    UNPROVED = "unproved"
    #: There is no digest of another copy at the same number.
    UNKNOWN = "unknown"


def comparable_digest(view: View, state: Partition) -> PartitionDigest | None:
    """The digest of a copy that has everything up to its last number; None if it has not.

    A copy is not complete during a full synchronisation or a recovery, between the parts of a
    reply (E73), and while an object is in quarantine (E56).
    """
    if (
        state.purge_state is not PurgeState.NORMAL
        or recovery.is_restoring(view, state.id)
        or rounds.is_open(view, state.id)
        or quarantine.count(view, state.id)
    ):
        return None
    return view.digest(state.id)


def compare_digests(
    one: PartitionDigest,
    other: PartitionDigest,
    *,
    within_site: bool,
    authority: PartitionDigest | None,
) -> Contents:
    """Compares two complete copies with the same last number.

    ``within_site``: both servers belong to the site of the partition, or it is the enterprise's.
    ``authority``: the digest of the authority, if it is one of them. A server of another site may
    hold a queue that only its site knows, and even an old copy from before it became such a queue
    (E58). So there a difference is proved only if the authority has no such queue.
    """
    if one.shared == other.shared:
        equal = not within_site or one == other
        return Contents.EQUAL if equal else Contents.DIFFERENT
    proved = within_site or (authority is not None and not authority.site_only)
    return Contents.DIFFERENT if proved else Contents.UNPROVED
