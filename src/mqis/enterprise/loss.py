"""Servers of a run directory that cannot start, because files are missing or wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mqis.config.file import ConfigError, load
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.sections import ConfiguredRole
from mqis.config.stores import StoreUrlError, file_of
from mqis.enterprise.plan import ServerRole
from mqis.enterprise.roles import replaced_by
from mqis.server.loss import ways_back


def fault_of(place: NodePlace) -> str | None:
    """The reason for which a server cannot start, and what to do; None if its files are there."""
    home, config = Path(place.home), Path(place.config)
    for path, what in ((home, "the server's directory"), (config, "the server's configuration")):
        if not path.exists():
            return f"{path}: {what} is gone; {_ways_back(place)}"
    try:
        store = file_of(load(config).store.url)
    except (ConfigError, StoreUrlError) as error:
        return str(error)
    if store is not None and not store.exists():
        return f"{store}: the server's store is gone; {_ways_back(place)}"
    if store is not None and not store.stat().st_size:
        return f"{store}: the server's store is empty (0 bytes); {_ways_back(place)}"
    return None


def replacement_of(place: NodePlace, nodes: Nodes) -> str | None:
    """The reason for which a PSC that was replaced does not start, and what to do; else None."""
    psc = replaced_by(place, nodes)
    if psc is None:
        return None
    now = f"{psc.name} is the PSC of {place.site} now"
    fault = fault_of(replace(place, role=ServerRole.BSC))
    if fault is not None and Path(place.home).exists():
        return f"{now}; {fault}"
    how = "follow it as a backup" if fault is None else "join again as a backup"
    return f"{now}; 'mqis up' lets {place.name} {how}"


def _ways_back(place: NodePlace) -> str:
    """The ways back of a server of ``mqis up``, which lets a backup without a directory join."""
    role = ConfiguredRole(place.role)
    ways = ways_back(role, place.name, place.config)
    if role is not ConfiguredRole.BSC:
        return f"{ways}; then 'mqis start {place.name}'"
    again = "'mqis down' and 'mqis up'"
    if Path(place.home).exists():
        again = f"move {place.home} away, then {again}"
    restore = ways.partition("; ")[0]
    return f"{restore}, then 'mqis start {place.name}'; or let it join again: {again}"
