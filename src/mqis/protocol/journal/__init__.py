"""The evidence of a journal: judges the chain of its segments."""

from mqis.protocol.journal.chain import ChainLink, judge_chain, seal_difference
from mqis.protocol.journal.findings import ChainFinding, ChainState

__all__ = ["ChainFinding", "ChainLink", "ChainState", "judge_chain", "seal_difference"]
