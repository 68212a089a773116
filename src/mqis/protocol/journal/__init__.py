"""The evidence of a journal: judges the chain of its segments."""

from mqis.protocol.journal.chain import ChainLink, judge_chain, seal_difference
from mqis.protocol.journal.findings import ChainState, chain_finding

__all__ = ["ChainLink", "ChainState", "chain_finding", "judge_chain", "seal_difference"]
