"""The evidence of a journal.

``chain`` judges the chain of its segments, ``folding`` tells the past of objects from its records.
"""

from mqis.protocol.journal.chain import (
    ChainLink,
    ChainState,
    chain_finding,
    judge_chain,
    seal_difference,
)

__all__ = ["ChainLink", "ChainState", "chain_finding", "judge_chain", "seal_difference"]
