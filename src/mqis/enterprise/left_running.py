"""Ends servers that a killed supervisor has left running."""

from __future__ import annotations

from pathlib import Path

from mqis.config.nodes import is_run, load_nodes
from mqis.config.processlocks import end, holder
from mqis.enterprise.supervisor import GRACE_S, lock_of


def recover(run: Path) -> list[str]:
    """Ends servers that outlived their supervisor; returns a line for each."""
    if not is_run(run):
        return []
    messages = []
    for node in load_nodes(run):
        pid = holder(lock_of(node))
        if end(lock_of(node), GRACE_S):
            messages.append(f"{node.name}: process {pid} outlived its supervisor and was ended")
    return messages
