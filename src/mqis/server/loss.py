"""The ways back of a server that has lost its files."""

from __future__ import annotations

from mqis.config.sections import ConfiguredRole

#: The options that a way back needs if the configuration is not the default one.
_RESTORE = "restore a backup of it: mqis restore FILE"


def ways_back(role: ConfiguredRole, name: str, config: str = "") -> str:
    """What the operator of a server without its store or directory can do.

    ``config`` is the path of its configuration, if that has to be named.
    """
    restore = f"{_RESTORE} --config {config}" if config else _RESTORE
    if role is ConfiguredRole.NONE:
        return f"{restore}; or make a new store: mqis import"
    if role is ConfiguredRole.BSC:
        return f"{restore}; or let it join again under its name: mqis join --role bsc"
    rebuild = f"mqis promote --rebuild {name} --to DIRECTORY"
    ways = f"{restore}; or rebuild it from the copy of another server: {rebuild}"
    if role is ConfiguredRole.PSC:
        return f"{ways}; or put a backup of its site in its place: mqis promote"
    return ways
