"""Exchanges the roles of a site's PSC and one of its backups, both of which are there.

The PSC is stopped only while the backup holds all that it has, and the backup takes its place as
after a loss. So nothing is lost, and changes wait only for the few seconds between. The other
servers of the site follow the new PSC, as after every promotion.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.stores import open_store
from mqis.enterprise.difference import Step
from mqis.enterprise.plan import ServerRole
from mqis.enterprise.setup import Administrator, Connect
from mqis.enterprise.supervisor import Supervisor
from mqis.protocol.directory.objects import PartitionDigest, name_key
from mqis.wire.mqds.objecttype import ObjectType

#: How long the backup may take to have all that the PSC has, and the pause between two looks.
_CATCH_UP_S, _LOOK_S = 60.0, 0.2


@dataclass(frozen=True, slots=True)
class Exchange:
    """The PSC that becomes a backup, and the backup that becomes the PSC."""

    old: NodePlace
    new: NodePlace
    pec: NodePlace
    others: tuple[str, ...]

    @classmethod
    def among(cls, steps: Sequence[Step], nodes: Nodes) -> Exchange | None:
        """The exchange of roles among the steps of a plan, if there is one."""
        changed = {str(s.entry.attributes["role"]): s.name for s in steps if "role" in s.before}
        if not changed:
            return None
        old, new = nodes.named(changed["bsc"]), nodes.named(changed["psc"])
        pec = next(node for node in nodes if node.role == ServerRole.PEC)
        others = others_of_site(nodes, old.site, old.name, new.name)
        return cls(old, new, pec, tuple(node.name for node in others))

    async def carry_out(
        self, supervisor: Supervisor, administrator: Administrator, connect: Connect
    ) -> None:
        """Returns when all servers of the site are ready in their new roles.

        Raises ``MqisError`` if it cannot be done; both servers are then started as they were.
        """
        await self._until_equal()
        await supervisor.stop(self.old.name)
        if not await asyncio.to_thread(self._are_equal):
            supervisor.start(self.old.name)
            raise NodesError(
                f"{self.new.name} lacks changes that {self.old.name} made in the last moment; "
                "nothing was changed: try again"
            )
        await supervisor.stop(self.new.name)
        try:
            await asyncio.to_thread(self._take_over, administrator, connect)
        except BaseException:
            supervisor.start(self.new.name)
            supervisor.start(self.old.name)
            raise
        supervisor.start(self.new.name)
        await supervisor.settled([self.new.name])
        await let_follow(supervisor, (self.old.name, *self.others), self.new.name)

    def _take_over(self, administrator: Administrator, connect: Connect) -> None:
        from mqis.admin.promote.takeover import plan_takeover  # noqa: PLC0415 -- slow

        with connect(self.pec, administrator) as directory:
            plan_takeover(Path(self.new.config), directory, stopped=True).carry_out(directory)

    async def _until_equal(self) -> None:
        until = time.monotonic() + _CATCH_UP_S
        while not await asyncio.to_thread(self._are_equal):
            if time.monotonic() > until:
                raise NodesError(
                    f"{self.new.name} does not have all that {self.old.name} has; 'mqis status' "
                    "shows what is missing"
                )
            await asyncio.sleep(_LOOK_S)

    def _are_equal(self) -> bool:
        held = [_digest(place, self.old.site) for place in (self.old, self.new)]
        return held[0] is not None and held[0] == held[1]


def _digest(place: NodePlace, site: str) -> PartitionDigest | None:
    """The digest of a site's objects in the store of a server."""
    with closing(open_store(place.store)) as store, store.read() as view:
        wanted = name_key(site)
        for found in view.objects(ObjectType.SITE):
            if name_key(found.path or "") == wanted:
                return view.digest(found.id)
    return None


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
