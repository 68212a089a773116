"""Replaces a lost PSC of a running enterprise by a backup of its site, under its supervisor.

The supervisor stops the backup, which takes the place of the lost PSC, and starts it again. The
other backups of the site are then made to follow it, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mqis.admin.promote.promotion_plan import PromotePlan, PromoteStep, follow_way
from mqis.admin.promote.takeover import ChangingDirectory, Takeover, plan_takeover
from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes, load_nodes
from mqis.enterprise.control import ask
from mqis.enterprise.exchanging import others_of_site
from mqis.enterprise.plan import ServerRole


class Replacing:
    """The replacement of the lost PSC of one site of a run directory."""

    def __init__(self, run: Path, server: str, *, force: bool = False) -> None:
        self._run = run
        self._nodes = load_nodes(run)
        self._place = self._nodes.named(server)
        self._force = force

    @property
    def pec(self) -> NodePlace:
        return _pec_of(self._nodes, self._run)

    def planned(self, directory: ChangingDirectory) -> PromotePlan:
        """Returns the plan; the server may run meanwhile."""
        return self._described(self._takeover(directory, stopped=False))

    def carry_out(
        self, directory: ChangingDirectory, show: Callable[[PromotePlan], None]
    ) -> PromotePlan:
        """Shows the plan and carries it out; returns when the new PSC and its backups are ready.

        What can be refused is refused before the server is stopped; if the plan is refused later,
        the server is started again as it was.
        """
        self._takeover(directory, stopped=False)
        with _stopped(self._run, self._place.name):
            takeover = self._takeover(directory, stopped=True)
            plan = self._described(takeover)
            show(plan)
            takeover.carry_out(directory)
        for other in self._followers(takeover):
            ask(self._run, "follow", other.name, psc=takeover.name)
        return plan

    def _takeover(self, directory: ChangingDirectory, *, stopped: bool) -> Takeover:
        file = Path(self._place.config)
        return plan_takeover(file, directory, force=self._force, stopped=stopped)

    def _followers(self, takeover: Takeover) -> list[NodePlace]:
        """The other servers of the site that run; one that is down follows when it is repaired."""
        nodes = load_nodes(self._run)
        found = others_of_site(nodes, takeover.site, takeover.name, takeover.lost)
        return [node for node in found if node.pid]

    def _described(self, takeover: Takeover) -> PromotePlan:
        """The plan with what is done here; servers that do not run are left to the operator."""
        nodes = load_nodes(self._run).nodes
        done = {node.name for node in self._followers(takeover)}
        text = f"is stopped, made to follow {takeover.name}, and started again"
        steps = (
            PromoteStep(step.where, text) if step.where in done else step
            for step in takeover.plan.steps
        )
        ways = {follow_way(name, takeover.name, nodes) for name in done}
        after = tuple(way for way in takeover.plan.next[1:] if way not in ways)
        return replace(takeover.plan, steps=tuple(steps), next=after)


def _pec_of(nodes: Nodes, run: Path) -> NodePlace:
    for node in nodes:
        if node.role == ServerRole.PEC:
            return node
    raise NodesError(f"{run}: no server has the role pec")


@contextmanager
def _stopped(run: Path, server: str) -> Iterator[None]:
    """Stops a server for the block, and starts it afterwards whatever happens in it."""
    ask(run, "stop", server)
    try:
        yield
    finally:
        ask(run, "start", server)
