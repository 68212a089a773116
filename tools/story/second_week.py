"""The second week: the plan changes, a controller is lost, keys are rotated, servers are restored
and upgraded, while clients of the other servers work all the time without an error.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mqis.storage import schema
from tools.story import judging
from tools.story.clients import ClientWork
from tools.story.commands import RUN, StoryJob
from tools.story.estate import StoryEstate
from tools.story.telling import Story

BACKUPS = "backups"


@dataclass(frozen=True, slots=True)
class SecondWeekParts:
    """The servers that play the parts of the second week."""

    estate: StoryEstate

    def __post_init__(self) -> None:
        if self.estate.sites < 4:
            raise ValueError(f"sites: the second week needs 4, not {self.estate.sites}")

    @property
    def grown(self) -> str:
        """The backup that the plan gets, in the site of the third city."""
        return f"{self.estate.slipped.code}-dir2"

    @property
    def restored(self) -> str:
        """The controller that is restored from its backup."""
        return self.estate.all_sites[3].psc

    @property
    def upgraded(self) -> str:
        """The backup that stops, and comes back with a newer version of mqis."""
        return self.estate.lost.servers[2]

    @property
    def rotated(self) -> tuple[str, ...]:
        """A controller of every role."""
        return self.estate.pec, self.restored, self.grown

    def jobs(self) -> tuple[StoryJob, ...]:
        """All jobs in the order of the week, as docs/second-week.md shows them."""
        _, backup, _ = self.estate.lost.servers
        archive = f"{BACKUPS}/$BACKUP"
        return (
            StoryJob("backup", (f"mqis backup {BACKUPS}/ --run {RUN}",), (0,)),
            StoryJob("plan", ("mqis up --dry-run", "mqis up --yes"), (0, 0)),
            StoryJob("lost", (f"mqis promote {backup}",), (0,)),
            StoryJob("adopt", ("mqis up --adopt", "mqis up --remove --yes"), (0, 0)),
            StoryJob(
                "rotate",
                (*(f"mqis key rotate {name}" for name in self.rotated), "mqis key list"),
                (0,) * (len(self.rotated) + 1),
            ),
            StoryJob(
                "restore",
                (
                    f"mqis restore {archive} --run {RUN} --force",
                    f"mqis start {self.restored}",
                ),
                (0, 0),
            ),
            StoryJob("upgrade", (f"mqis start {self.upgraded}",), (0,)),
            StoryJob("end", ("mqis status",), (0,)),
        )


@dataclass
class SecondWeek(Story):
    """One run of the second week."""

    @property
    def parts(self) -> SecondWeekParts:
        return SecondWeekParts(self.estate)

    @property
    def jobs(self) -> tuple[StoryJob, ...]:
        return self.parts.jobs()

    def tell(self) -> None:
        """The whole week; raises ``StoryError`` at the first thing that is not as wanted."""
        with self._enterprise():
            self._say("Monday: the servers are up")
            self._converge()
            self._work = work = ClientWork(self._run, self._places())
            with work.going_on():
                for step in (
                    self._backup,
                    self._plan,
                    self._lost_again,
                    self._adopt,
                    self._rotate,
                    self._killed,
                    self._restore,
                    self._upgrade,
                ):
                    before = work.changes
                    step()
                    self._undisturbed(before)
            self._end()

    def _places(self) -> tuple[tuple[str, str], ...]:
        """Clients of servers that nothing happens to, with queues of their own and other sites."""
        estate = self.estate
        here, there = estate.all_sites[0].machines[0], estate.slipped.machines[0]
        return (estate.pec, here), (estate.slipped.psc, there), (estate.pec, there)

    def _undisturbed(self, before: int) -> None:
        """Clients have gone on working since, without an error."""
        work = self._work
        judging.wait_until(
            lambda: "" if work.failures or work.changes > before else "no change", "clients work"
        )
        self._holds(
            f"{len(work.places)} clients have made {work.changes} changes without an error "
            f"{work.failures[:1] or ''}",
            not work.failures,
        )

    def _edit(self, old: str, new: str) -> None:
        path = self.shell.directory / "enterprise.toml"
        text = path.read_text("utf-8")
        self._holds(f"enterprise.toml has {old.splitlines()[-1]!r}", old in text)
        path.write_text(text.replace(old, new, 1), "utf-8")

    def _processes(self) -> dict[str, int | None]:
        return {node.name: node.pid for node in judging.live(self._run)}

    # --- the week ---------------------------------------------------------------------------------

    def _backup(self) -> None:
        self._say("all servers are backed up while they run")
        self._do("backup")
        taken = {path.name.rsplit("-", 1)[0] for path in self._archives()}
        self._holds(f"{len(taken)} backups", len(taken) == len(judging.live(self._run)))

    def _archives(self) -> list[Path]:
        return sorted((self.shell.directory / BACKUPS).iterdir())

    def _plan(self) -> None:
        site = self.estate.slipped
        self._say(f"the plan gets a backup for {site.name}, and a link another cost")
        before = self._processes()
        self._edit(
            f'[[server]]\nname = "{site.psc}"',
            f'[[server]]\nname = "{self.parts.grown}"\nsite = "{site.name}"\nrole = "bsc"\n'
            f'[[server]]\nname = "{site.psc}"',
        )
        self._edit("cost = 20", "cost = 21")
        self._do("plan")
        after = self._processes()
        kept = {name: after.get(name) for name in before}
        self._holds("every other server runs on in its process", kept == before)
        self._holds(f"{self.parts.grown} runs", after.get(self.parts.grown))
        self._converge()

    def _lost_again(self) -> None:
        lost, backup, other = self.estate.lost.servers
        self._say(f"{lost} is killed, and its disk is gone")
        self.shell.run(f"mqis kill {lost} --stay-down")
        shutil.rmtree(self._node(lost).home)
        self._do("lost")
        self._holds(f"{other} follows {backup}", self._psc_of(other) == backup)
        judging.wait_until(self._unpublished_roles, "the directory says who is PSC now")
        self._converge()

    def _adopt(self) -> None:
        lost, site = self.estate.lost.servers[0], self.estate.lost.name
        self._say(f"the plan learns of the new PSC; {lost} goes out of it, and a link changes")
        job = self._job("adopt")
        self._command(job.name, job.commands[0], 0)
        self._edit("cost = 21", "cost = 22")
        for role in ("bsc", "psc"):
            path = self.shell.directory / "enterprise.toml"
            entry = f'[[server]]\nname = "{lost}"\nsite = "{site}"\nrole = "{role}"\nrouting = true'
            path.write_text(path.read_text("utf-8").replace(entry, ""), "utf-8")
        self._command(job.name, job.commands[1], 0)
        names = [node["name"] for node in self._json("mqis status", None)["servers"]]
        self._holds(f"{lost} is gone, {len(names)} servers are left", lost not in names)
        self._converge()

    def _rotate(self) -> None:
        self._say("every role gets a new signing key")
        before = self._keys()
        self._do("rotate")
        after = self._keys()
        changed = {name for name in before if before[name] != after[name]}
        self._holds(f"exactly {', '.join(sorted(changed))}", changed == set(self.parts.rotated))

    def _keys(self) -> dict[str, str]:
        return {held["server"]: held["key"] for held in self._json("mqis key list", 0)}

    def _killed(self) -> None:
        """A rotation whose server is killed after every look at it ends all the same."""
        server = self.parts.restored
        self._say(f"{server} gets a new key once more, and is killed at every step of it")
        stages = []

        def rotated() -> str:
            text = self.shell.output(f"mqis key rotate {server} --wait 0 --json").text
            found = json.loads(text)
            if found["stage"] not in stages:
                stages.append(found["stage"])
                self.shell.run(f"mqis kill {server}")
            return "" if found["done"] else f"{found['stage']}: {found['waiting']}"

        judging.wait_until(rotated, "the rotation")
        self._holds(f"killed at {', '.join(stages)}", len(stages) > 1)
        others = [h["accepted_otherwise_by"] for h in self._json("mqis key list", 0)]
        self._holds("every server accepts exactly the new keys", not any(others))
        judging.wait_until(lambda: self._not_ready(server), f"{server} is back")
        self._converge()

    def _not_ready(self, server: str) -> str:
        states = {s["name"]: s["state"] for s in self._json("mqis status", None)["servers"]}
        return "" if states[server] == "ready" else str(states[server])

    def _restore(self) -> None:
        server = self.parts.restored
        self._say(f"the store of {server} is lost; its backup is older than three new keys")
        self.shell.run(f"mqis stop {server}")
        for path in Path(self._node(server).home).glob("directory.db*"):
            path.unlink()
        archive = next(path for path in self._archives() if path.name.startswith(f"{server}-"))
        self.shell.variables["BACKUP"] = archive.name
        self._do("restore")
        self._converge()

    def _upgrade(self) -> None:
        server = self.parts.upgraded
        self._say(f"{server} stops, and comes back with a newer mqis, which knows another schema")
        self.shell.run(f"mqis stop {server}")
        store = Path(self._node(server).store)
        with closing(sqlite3.connect(store)) as database:
            database.execute("DROP TABLE creators")
            database.execute(f"PRAGMA user_version={schema.VERSION - 1}")
        self._do("upgrade")
        with closing(sqlite3.connect(store)) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
        self._holds(f"its store has schema {version}", version == schema.VERSION)
        self._converge()

    def _end(self) -> None:
        self._say("the week is over")
        work = self._work
        judging.wait_until(
            lambda: judging.missing_work(self._run, work.expected, work.deleted), "changes"
        )
        self._converge()
        self._do("end")
        self._holds(
            f"{work.changes} changes of clients are at every server, and none got an error",
            not work.failures,
        )
