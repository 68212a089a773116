"""The present roles of servers, which a promotion changes while the replaced PSC is down.

Each configuration holds the role of its server. A PSC that was down when a backup took its place
still has its old role there. Where two servers of a site have the role of PSC, the directory
decides: the site object names one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from mqis.config.errors import ConfigError
from mqis.config.file import read
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.stores import open_store
from mqis.enterprise.plan import ServerRole
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def configured_role(config: Path) -> ServerRole | None:
    """The role in a configuration; None if it cannot be read, which its server reports."""
    with suppress(ConfigError, ValueError):
        return ServerRole(read(config).server.role.value)
    return None


def present_psc(site: str, claims: Sequence[str], stores: Iterable[Path]) -> str | None:
    """The PSC of a site among the servers whose configurations have that role; None: unknown.

    ``stores`` are asked if there are several; of copies that are equally new the first counts.
    """
    if len(claims) < 2:
        return claims[0] if claims else None
    held = _newest_copy(site, stores)
    named = "" if held is None else held.value(PropId.S_PSC)
    key = name_key(named) if isinstance(named, str) else ""
    return next((name for name in claims if name_key(name) == key), None)


def _newest_copy(site: str, stores: Iterable[Path]) -> DirectoryObject | None:
    newest: DirectoryObject | None = None
    for path in stores:
        if not path.is_file() or not path.stat().st_size:
            continue
        with (
            suppress(MqisError),  # a damaged store: others have copies
            closing(open_store(str(path))) as store,
            store.read() as view,
        ):
            found = view.find(ObjectType.SITE, site)
            if found is not None and (newest is None or found.seq > newest.seq):
                newest = found
    return newest


def replaced_by(place: NodePlace, nodes: Nodes) -> NodePlace | None:
    """The server that has taken the place of this PSC, which does not know it yet; else None."""
    held = configured_role(Path(place.config)) or ServerRole(place.role)
    if held is not ServerRole.PSC:
        return None
    of_site = [node for node in nodes if name_key(node.site) == name_key(place.site)]
    claims = [node.name for node in of_site if configured_role(Path(node.config)) is ServerRole.PSC]
    authority_first = sorted(nodes, key=lambda node: node.role != ServerRole.PEC)
    psc = present_psc(place.site, claims, (Path(node.store) for node in authority_first))
    return None if psc in (None, place.name) else nodes.named(str(psc))
