"""The ways back of a server that has lost its files."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from mqis.config.sections import ConfiguredRole


def ways_back(role: ConfiguredRole, name: str, config: Path | None = None) -> str:
    """What the operator of a server without its store can do.

    ``config`` is the path of its configuration, if that has to be named.
    """
    restore = restore_way(config, others=True)
    if role is ConfiguredRole.NONE:
        return f"{restore}; or make a new store: mqis import"
    if role is ConfiguredRole.BSC:
        return f"{restore}; or let it join again under its name: mqis join --role bsc"
    rebuild = f"mqis promote --rebuild {name} --to DIRECTORY"
    ways = f"{restore}; or rebuild it in the directory of another controller: {rebuild}"
    if role is ConfiguredRole.PSC:
        return f"{ways}; or put a backup of its site in its place, in its directory: mqis promote"
    return ways


def restore_way(config: Path | None, *, others: bool) -> str:
    """The command that restores a backup; ``others``: there are files that it has to move aside."""
    place = "" if config is None else f" --config {quote(str(config))}"
    return f"restore a backup of it: mqis restore FILE{place}{' --force' if others else ''}"
