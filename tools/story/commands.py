"""The commands of each job, as docs/story.md shows them: two at most, and none that is secret.

``$SLIP``, ``$MONDAY`` and ``$FRIDAY`` are times that the script notes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.story.estate import StoryEstate

RUN = "mqis-run"


@dataclass(frozen=True, slots=True)
class StoryJob:
    """A job, its commands, and the exit status that each has to have."""

    name: str
    commands: tuple[str, ...]
    statuses: tuple[int, ...]


def jobs(estate: StoryEstate) -> tuple[StoryJob, ...]:
    """All jobs in the order of the day."""
    pec, gateless = _at(estate.pec), estate.gateless
    doubled, clone = estate.cloned[1], estate.clones[1]
    slip = f'mqis undelete --deleted-by bob --at "$SLIP.." {_at(estate.slipped.psc)}'
    backup = estate.lost.servers[1]
    orphans = _at(estate.orphaned.psc)
    past = f"{RUN}/servers/{estate.pec}"
    return (
        StoryJob(
            "stuck",
            (
                f"mqis routes --stuck {pec}",
                f"mqis set site {gateless.name} gates={gateless.psc} {pec}",
            ),
            (1, 0),
        ),
        StoryJob("check", (f"mqis check --run {RUN}",), (1,)),
        StoryJob(
            "doubled",
            (
                f"mqis delete machine {clone} --yes {_at(doubled.psc)}",
                f"mqis create machine {clone} site_id={doubled.name} {_at(doubled.psc)}",
            ),
            (0, 0),
        ),
        StoryJob(
            "orphaned", (f"mqis undelete machine {estate.orphaned_machine} --yes {orphans}",), (0,)
        ),
        StoryJob("slip", (f"{slip} --dry-run", f"{slip} --yes"), (0, 0)),
        StoryJob("lost", (f"mqis promote {backup} --dry-run", f"mqis promote {backup}"), (0, 0)),
        StoryJob("report", (f"mqis pipeline --run {RUN}",), (0,)),
        StoryJob("diff", (f'mqis diff "{past}@$MONDAY" "{past}@$FRIDAY"',), (1,)),
    )


def _at(server: str) -> str:
    return f"--server {server}"
