"""Servers of a run directory that cannot start, because files are missing or wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from shlex import quote

from mqis.config.errors import ConfigError
from mqis.config.file import load
from mqis.config.nodes import NodePlace, Nodes, load_nodes, supervised_place
from mqis.config.sections import ConfiguredRole
from mqis.config.stores import file_of, open_store
from mqis.enterprise.plan import ServerRole
from mqis.enterprise.roles import replaced_by
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.server.loss import restore_way
from mqis.server.restoremark import mark_of
from mqis.storage.sqlite import fault_at
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

_KEY = "signing.key"


def fault_of(place: NodePlace) -> str | None:
    """The reason for which a server cannot start, and what to do; None if its files are there."""
    fault = _fault_for_up(place)
    key = None if fault is not None else lost_key(place)
    if key is None:
        return fault
    return (
        f"{key}: the server's signing key is gone: bring it back, or 'mqis up' makes a new one and "
        "lets the other servers trust it"
    )


def _fault_for_up(place: NodePlace) -> str | None:
    """The reason for which not even 'mqis up' can start a server; it can make a key."""
    try:
        fault = _loss(place)
    except ConfigError as error:
        return str(error)
    return None if fault is None else f"{fault}; {_ways_back(place)}"


def lost_key(place: NodePlace) -> Path | None:
    """The key file that a server has lost; it would make a key that no other server knows."""
    section = load(Path(place.config)).replication
    key = Path(section.key)
    return None if key.exists() or section.signing is SigningPolicy.NONE else key


def loss_at(config: Path) -> tuple[str, str] | None:
    """What the server of a configuration has lost, and its ways back.

    None if it has lost nothing, or is not in a run directory.
    """
    found = supervised_place(config)
    try:
        fault = None if found is None else _loss(found[1])
    except ConfigError:
        return None
    return None if found is None or fault is None else (fault, _ways_back(found[1]))


def _loss(place: NodePlace) -> str | None:
    home, config = Path(place.home), Path(place.config)
    for path, what in ((home, "the server's directory"), (config, "the server's configuration")):
        if not path.exists():
            return f"{path}: {what} is gone"
    store = file_of(load(config).store.url)
    if store is None:
        return None
    if not store.exists():
        return f"{store}: the server's store is gone"
    if not store.stat().st_size:
        return f"{store}: the server's store is empty (0 bytes)"
    return fault_at(store)


def why_not_started(place: NodePlace, nodes: Nodes) -> str | None:
    """The reason for which the supervisor does not start a server, and what to do; else None."""
    return replacement_of(place, nodes) or fault_of(place) or _expulsion(place, nodes)


def why_not_brought_up(place: NodePlace, nodes: Nodes) -> str | None:
    """The reason for which 'mqis up' does not start a server, unless it joins again; else None."""
    return _fault_for_up(place) or _expulsion(place, nodes)


def _expulsion(place: NodePlace, nodes: Nodes) -> str | None:
    """Tells of a server whose site was deleted: it would wait for its site for ever."""
    pec = next((node for node in nodes if node.role == ServerRole.PEC), None)
    if pec is None or pec.name == place.name or not Path(pec.store).is_file():
        return None
    with (
        suppress(MqisError),  # the PEC's own start tells what its store has
        closing(open_store(pec.store)) as store,
        store.read() as view,
    ):
        # A PEC that was restored may learn of the site by this server.
        known = enterprise(view) is None or mark_of(view) is not None
        if not known and view.find(ObjectType.SITE, place.site) is None:
            return (
                f"its site {place.site} was deleted: take it out of the enterprise file with all "
                f"that is in it, then 'mqis up --remove' takes {place.name} out"
            )
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
    """The ways back of a server of ``mqis up``, as commands that can be given."""
    return "; or ".join(_ways(place))


def _ways(place: NodePlace) -> Iterator[str]:
    home, role = Path(place.home), ConfiguredRole(place.role)
    others = home.is_dir() and any(home.iterdir())
    aside = next(p for n in count(1) if not (p := Path(f"{home}.lost{n}")).exists())
    move = f"mv {quote(str(home))} {quote(str(aside))} && " if others else ""
    yield f"{restore_way(Path(place.config), others=others)}, then 'mqis start {place.name}'"
    if role is ConfiguredRole.BSC:
        yield f"let it join again: {move}mqis up"
        return
    others_there = _others(place)
    if others_there:
        other = others_there[0]
        key = f" --key {quote(str(aside / _KEY))}" if (home / _KEY).exists() else ""
        yield (
            f"rebuild it from the copy of {other.name}: {move}mqis promote --rebuild {place.name} "
            f"--to {quote(str(home))} --config {quote(other.config)}{key} && mqis up"
        )
    backup = next((o for o in others_there if (o.role, o.site) == ("bsc", place.site)), None)
    if role is ConfiguredRole.PSC and backup is not None:
        yield f"put a backup of its site in its place: mqis promote {backup.name}"


def _others(place: NodePlace) -> list[NodePlace]:
    """The other servers of the run directory that have a store, those of the same site first."""
    found = supervised_place(Path(place.config))
    others = () if found is None else load_nodes(found[0])
    there = [o for o in others if o.name != place.name and Path(o.store).exists()]
    return sorted(there, key=lambda other: other.site != place.site)
