"""The day itself: brings the enterprise up, plants faults, does each job, and checks its result."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from mqis.config.file import read
from mqis.config.nodes import NodePlace, load_nodes
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.wire.mqds.objecttype import ObjectType
from tools.story import judging, planting
from tools.story.clients import ClientWork
from tools.story.commands import StoryJob, jobs
from tools.story.estate import StoryEstate, enterprise_file
from tools.story.shell import StoryError, StoryShell


@dataclass
class Story:
    """One run of the story. ``outputs`` has the output of each command of a job."""

    estate: StoryEstate
    shell: StoryShell
    show: Console
    report: bool = True
    outputs: dict[str, list[str]] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def tell(self) -> None:
        """The whole story; raises ``StoryError`` at the first thing that is not as wanted."""
        with self._enterprise():
            self._monday()
            self._stuck()
            self._check()
            self._slip()
            self._lost()
            if self.report:
                self._report()
            self._diff()

    # --- the script's own words -------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self.show.print(f"{time.monotonic() - self._began:6.1f} s  {text}", highlight=False)

    def _holds(self, text: str, holds: object) -> None:
        if not holds:
            raise StoryError(f"this does not hold: {text}")
        self.show.print(f"          ✓ {text}", highlight=False, style="green")

    @property
    def jobs(self) -> tuple[StoryJob, ...]:
        """All jobs in their order."""
        return jobs(self.estate)

    def _job(self, name: str) -> StoryJob:
        return next(job for job in self.jobs if job.name == name)

    def _do(self, name: str) -> None:
        """Runs the commands of a job, and shows them with their output."""
        job = self._job(name)
        for command, status in zip(job.commands, job.statuses, strict=True):
            self._command(name, command, status)

    def _command(self, name: str, command: str, status: int) -> None:
        self.show.print(f"          $ {command}", highlight=False, style="cyan", soft_wrap=True)
        text = self.shell.run(command, wanted=status).replace(f"{self.shell.directory}/", "")
        self.outputs.setdefault(name, []).append(text)
        self.show.print(text, highlight=False, markup=False, soft_wrap=True)

    def _json(self, command: str, status: int | None) -> Any:
        """What a command tells; None: whatever its status, as that of an estate in trouble."""
        return json.loads(self.shell.run(f"{command} --json", wanted=status))

    # --- the enterprise ---------------------------------------------------------------------------

    @property
    def _run(self) -> Path:
        return self.shell.run_directory

    def _node(self, server: str) -> NodePlace:
        return load_nodes(self._run).named(server)

    def _converge(self) -> None:
        count = self.estate.sites + 1
        judging.wait_until(lambda: judging.unequal(self._run, count), "equal replicas")
        servers = len(judging.live(self._run))
        self._holds(f"the digests of all partitions are equal at {servers} servers", servers)

    def _note(self, variable: str) -> None:
        """Keeps this moment in a variable, between two changes."""
        time.sleep(0.01)
        now = datetime.now(UTC)
        self.shell.variables[variable] = f"{now:%Y-%m-%dT%H:%M:%S.%f}"
        time.sleep(0.01)

    @contextmanager
    def _enterprise(self) -> Iterator[None]:
        estate = self.estate
        (self.shell.directory / "enterprise.toml").write_text(enterprise_file(estate), "utf-8")
        self._say(f"{estate.sites} sites, {estate.machines} machines, {estate.queues} queues")
        try:
            self.shell.run("mqis up --detach --wait 3600")
            yield
        finally:
            self.shell.run("mqis down", wanted=None)

    def _monday(self) -> None:
        self._say("Monday: the servers are up")
        self._converge()
        estate = self.estate
        held = judging.counts(self._node(estate.lost.servers[1]))
        size = {"site": estate.sites, "machine": estate.machines, "queue": estate.queues}
        self._holds(f"a backup has the whole directory: {held}", held == size)
        self._holds("nothing is wrong in it", self._json(self._check_command, 0)["clean"])
        self._note("MONDAY")

    # --- faults in the directory ------------------------------------------------------------------

    def _stuck(self) -> None:
        self._say("a site has lost its gate: which pairs of sites are stuck, and why?")
        planting.remove_gate(self.shell, self.estate)
        job, site = self._job("stuck"), self.estate.gateless.name
        found = self._json(job.commands[0], 1)
        self._do("stuck")
        pairs = {
            (pair["source"], pair["destination"])
            for group in found["sites"]
            for pair in group["pairs"]
        }
        others = [other.name for other in self.estate.all_sites if other.name != site]
        wanted = {(site, other) for other in others} | {(other, site) for other in others}
        self._holds(f"exactly the {len(wanted)} pairs with {site}", pairs == wanted)
        self._holds(f"because {site} has no gate", {g["fault"] for g in found["sites"]})
        self._holds("all have a route again", not self._json(job.commands[0], 0)["pairs"])

    @property
    def _check_command(self) -> str:
        return self._job("check").commands[0]

    def _check(self) -> None:
        estate = self.estate
        self._say("two sites imported clones of one machine, an old tool deleted another")
        planting.import_clones(self.shell, estate)
        orphans = planting.delete_like_an_old_tool(self.shell, estate)
        planted = planting.planted(estate, orphans)
        judging.wait_until(
            lambda: "" if self._findings() == planted.findings else "findings", "planted faults"
        )
        self._do("check")
        self._holds(f"exactly the {len(planted.findings)} planted faults", orphans)
        self._do("doubled")
        self._do("orphaned")
        self._converge()
        self._holds("nothing is wrong any more", self._json(self._check_command, 0)["clean"])
        first, second = (
            judging.identifier(self._node(estate.pec), ObjectType.MACHINE, name)
            for name in estate.clones
        )
        self._holds("the clones have different identifiers", first and second and first != second)

    def _findings(self) -> frozenset[tuple[str, str, str]]:
        output = self.shell.output(f"{self._check_command} --json")
        findings = json.loads(output.text)["findings"] if output.status == 1 else ()
        return frozenset((one["check"], one["type"], one["path"]) for one in findings)

    # --- a slip -----------------------------------------------------------------------------------

    def _slip(self) -> None:
        estate, site = self.estate, self.estate.slipped
        node = self._node(site.psc)
        before = judging.with_queues(node, estate.deleted_machines)
        self._say(f"bob deletes {len(before)} objects of {site.name} while clients work")
        self._work = work = ClientWork(self._run, self._places())
        with work.going_on():
            self._note("SLIP")
            planting.delete_by_mistake(self.shell, estate)
            gone = judging.with_queues(node, estate.deleted_machines)
            self._holds(f"{len(before)} objects are gone", before and not gone)
            at_slip = work.changes
            self._do("slip")
        after = judging.with_queues(node, estate.deleted_machines)
        self._holds("identifiers, properties, permissions, owners are as before", after == before)
        self._holds(
            f"clients made {work.changes} changes meanwhile, {work.changes - at_slip} of them "
            f"after the slip, and got no error {work.failures[:1]}",
            work.changes > at_slip > 0 and not work.failures,
        )
        self._converge()
        complaint = judging.missing_work(self._run, work.expected, work.deleted)
        self._holds(f"every change of a client is at every server {complaint}", not complaint)

    def _places(self) -> tuple[tuple[str, str], ...]:
        """Clients of the site itself, of the PEC, and of a backup elsewhere."""
        estate = self.estate
        kept, lost = estate.slipped.machines[0], estate.lost
        return (
            (estate.slipped.psc, kept),
            (estate.pec, kept),
            (estate.pec, estate.all_sites[0].machines[0]),
            (lost.servers[1], lost.machines[0]),
        )

    # --- a lost server ----------------------------------------------------------------------------

    def _lost(self) -> None:
        lost, backup, other = self.estate.lost.servers
        self._say(f"{lost} is killed, and its disk is gone")
        self.shell.run(f"mqis kill {lost} --stay-down")
        shutil.rmtree(self._node(lost).home)
        self._do("lost")
        self._holds(f"{other} follows {backup}", self._psc_of(other) == backup)
        path = f"{self.estate.lost.machines[0]}\\after"
        create = f"mqis create queue '{path}' label=After --server"
        judging.wait_until(
            lambda: "" if self._try(f"{create} {backup}") else "refused",
            "the new PSC decides",
        )
        self._work.expected[path] = "After"
        judging.wait_until(self._unpublished_roles, "the directory says who is PSC now")
        self._converge()
        complaint = judging.missing_work(self._run, self._work.expected, self._work.deleted)
        self._holds(f"{backup} decides about {self.estate.lost.name} {complaint}", not complaint)

    def _unpublished_roles(self) -> str:
        """Names a server of the lost site whose new role the PEC does not know yet.

        A promoted server takes the site over first, and publishes both roles afterwards.
        """
        lost, backup, _ = self.estate.lost.servers
        wanted = {backup: ServiceBits.PSC, lost: ServiceBits.BSC}
        pec = self._node(self.estate.pec)
        late = [name for name, role in wanted.items() if judging.role(pec, name) is not role]
        return ", ".join(late)

    def _psc_of(self, server: str) -> str:
        return read(Path(self._node(server).config)).replication.psc

    def _try(self, command: str) -> bool:
        return self.shell.output(command).status == 0

    # --- the end of the week ----------------------------------------------------------------------

    def _report(self) -> None:
        self._say("the report for the manager")
        self._do("report")
        page = self._run / "tables" / "report.html"
        self._holds(f"{page.name} has the enterprise", "Northwind" in page.read_text("utf-8"))

    def _diff(self) -> None:
        self._say("Monday against Friday")
        self._note("FRIDAY")
        found = self._json(self._job("diff").commands[0], 1)
        self._do("diff")
        changed = {(one["change"], one["type"], one["name"].lower()) for one in found["objects"]}
        wanted = self._week()
        odd = sorted(changed ^ wanted)[:5]
        self._holds(f"exactly the {len(wanted)} changed objects {odd or ''}", not odd)
        self._say("the day is done: everything is as it was wanted")

    def _week(self) -> set[tuple[str, str, str]]:
        """The objects that differ between Monday and Friday."""
        lost = self.estate.lost
        first, second = self.estate.clones
        made = {("created", "queue", path.lower()) for path in self._work.expected}
        made |= {("created", "machine", name) for name in (first, second)}
        made.add(("created", "queue", f"{first}\\scans"))
        made |= {("changed", "machine", name) for name in lost.servers[:2]}
        return {*made, ("changed", "site", lost.name.lower())}
