"""What kind of refusal a reason tells of. Reasons name servers and numbers, kinds are few."""

from __future__ import annotations

#: The first whose words are in a reason; they are the words of this package.
_KINDS = (
    ("not a replication message", "malformed"),
    ("changes without identity", "malformed"),
    ("changes without a type", "malformed"),
    ("nothing can be sent there", "unreachable"),
    ("in the name of", "impersonation"),
    (" answers for ", "impersonation"),
    ("acknowledges for", "impersonation"),
    ("is no directory server", "stranger"),
    ("is no server of this enterprise", "stranger"),
    ("is no neighbour that acknowledges", "stranger"),
    ("is no backup controller of this site", "stranger"),
    ("that is too old, or by a clock", "replayed"),
    ("without the time that", "replayed"),
    ("from before this server was the authority", "replayed"),
    ("seconds ahead of ours", "clock"),
    ("is the authority of the partition", "own_partition"),
    ("is not who this server takes the partition from", "wrong_source"),
    ("a backup controller serves nobody", "wrong_source"),
    ("an acknowledgement of a partition that is not ours", "wrong_source"),
    ("unknown here", "unknown_partition"),
    ("nobody asked", "unsolicited"),
    ("nobody waits for", "unsolicited"),
    ("was not asked for this", "unsolicited"),
    ("to an earlier request", "unsolicited"),
    ("out of all proportion", "inconsistent"),
    ("more is purged than there is", "inconsistent"),
    ("which was never given out", "inconsistent"),
    ("leaves a gap", "inconsistent"),
    ("ends before it starts", "inconsistent"),
    ("with changes of another partition", "inconsistent"),
    ("that ends before its changes do", "inconsistent"),
    ("is behind this replica", "inconsistent"),
    ("from before the purge", "outdated"),
    ("a purge that this replica is past", "outdated"),
)
#: What the directory said when a change was to be made; the words are its own.
NOT_APPLIED = "not_applied"
#: Kinds that come up among servers that mean well: messages cross each other, or come late.
HARMLESS = frozenset({"unsolicited", "outdated", "unknown_partition", "unreachable", NOT_APPLIED})
KINDS = (*dict.fromkeys(kind for _, kind in _KINDS), NOT_APPLIED)


def kind_of(reason: str) -> str:
    """One of ``KINDS``."""
    return next((kind for words, kind in _KINDS if words in reason), NOT_APPLIED)
