"""Lets the backups of a site follow another PSC, one after the other, under their supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from mqis.config.nodes import NodePlace
from mqis.enterprise.supervisor import Supervisor
from mqis.protocol.directory.objects import name_key


def others_of_site(nodes: Iterable[NodePlace], site: str, *but: str) -> list[NodePlace]:
    """The servers of a site but for some."""
    left_out = {name_key(name) for name in but}
    found = (node for node in nodes if name_key(node.site) == name_key(site))
    return [node for node in found if name_key(node.name) not in left_out]


async def let_follow(supervisor: Supervisor, names: Iterable[str], psc: str) -> None:
    """Stops each server, makes it follow ``psc``, and starts it again, whatever happens."""
    for name in names:
        place = supervisor.child(name).place
        await supervisor.stop(place.name)
        try:
            await asyncio.to_thread(follow, place, psc)
        finally:
            supervisor.start(place.name)
        await supervisor.settled([place.name])


def follow(place: NodePlace, psc: str) -> None:
    """Makes a server that is stopped a backup which follows ``psc``."""
    from mqis.admin.promote.following import plan_follow  # noqa: PLC0415 -- slow

    plan_follow(Path(place.config), psc).carry_out()
