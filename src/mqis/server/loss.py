"""The ways back of a server that has lost its files."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from mqis.config.sections import ConfiguredRole


def ways_back(role: ConfiguredRole, name: str, config: Path | None = None) -> str:
    """What the operator of a server without its store can do.

    ``config`` is its configuration; None if it has none that the store belongs to.
    """
    place = _place(config)
    restore = restore_way(config, others=True)
    if role is ConfiguredRole.NONE:
        return f"{restore}; or make a new store: mqis import SOURCE{place}"
    if role is ConfiguredRole.BSC:
        return f"{restore}; or let it join again under its name: mqis join --role bsc{place}"
    rebuild = f"mqis promote --rebuild {name} --to DIRECTORY"
    ways = f"{restore}; or rebuild it in the directory of another controller: {rebuild}"
    if role is ConfiguredRole.PSC:
        return f"{ways}; or put a backup of its site in its place, in its directory: mqis promote"
    return ways


def restore_way(config: Path | None, *, others: bool) -> str:
    """The command that restores a backup; ``others``: there are files that it has to move aside."""
    force = " --force" if others else ""
    return f"restore a backup of it: mqis restore FILE{_place(config)}{force}"


def _place(config: Path | None) -> str:
    """The option that names the configuration; without it a command takes that of the present
    directory, or a run directory."""
    return f" --config {'DIRECTORY/mqis.toml' if config is None else quote(str(config))}"
