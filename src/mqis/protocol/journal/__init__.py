"""The evidence of a journal: judges the chain of its segments."""

from mqis.protocol.journal.chain import (
    ChainLink,
    ChainState,
    chain_finding,
    judge_chain,
    seal_difference,
)

__all__ = ["ChainLink", "ChainState", "chain_finding", "judge_chain", "seal_difference"]
