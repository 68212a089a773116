"""The scenario of one run with an archive: commits, copies, and faults of disk and place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from mqis.sim.archive.disk import DiskFault


class ServerTask(StrEnum):
    """What the server does."""

    COPY = "copy"
    FLUSH = "flush"
    SEAL = "seal"
    ARCHIVE = "archive"
    RESTART = "restart"
    #: An archive is set up, for a server that had none.
    CONFIGURE = "configure"


class ArchiveMishap(StrEnum):
    """What happens to the server's files, or to its archive."""

    LOST_LIST = "list of archived files lost"
    SPOILT_LIST = "list of archived files spoilt"
    #: The journal's directory is moved away; the store goes on.
    MOVED = "journal moved away"
    #: The store is restored from its backup, which begins a new journal.
    RESTORED = "store restored"
    BACKUP = "backup"
    PLACE_AWAY = "archive out of reach"
    #: The archive keeps a part of a copy under its name.
    PLACE_TORN = "copy torn"


@dataclass(frozen=True, slots=True)
class Committed:
    """The store commits so many records."""

    at: float
    count: int


@dataclass(frozen=True, slots=True)
class Do:
    at: float
    work: ServerTask


@dataclass(frozen=True, slots=True)
class Fail:
    """The disk goes wrong after so many calls; an error repeats ``failing`` times."""

    at: float
    fault: DiskFault
    calls: int
    failing: int


@dataclass(frozen=True, slots=True)
class Happen:
    """An archive out of reach does not answer ``calls`` questions, after some that it does."""

    at: float
    mishap: ArchiveMishap
    calls: int = 0
    after: int = 0


ArchiveStep = Committed | Do | Fail | Happen


@dataclass(frozen=True, slots=True)
class ArchiveScenario:
    """Everything that determines a run."""

    seed: int
    #: Snapshots to keep, and records from one to the next.
    keep: int = 1
    every: int = 10
    segment_bytes: int = 1000
    steps: tuple[ArchiveStep, ...] = ()

    def with_steps(self, steps: tuple[ArchiveStep, ...]) -> ArchiveScenario:
        return replace(self, steps=steps)

    @property
    def cast(self) -> str:
        return "one server"

    @property
    def conditions(self) -> tuple[str, ...]:
        kept = f"keeps {self.keep} snapshots, one for {self.every} records"
        return (f"{kept}, segments of {self.segment_bytes} bytes",)


_WORK = (
    (ServerTask.COPY, 4),
    (ServerTask.FLUSH, 12),
    (ServerTask.SEAL, 1),
    (ServerTask.ARCHIVE, 8),
    (ServerTask.RESTART, 2),
)
_MISHAPS = (
    (ArchiveMishap.LOST_LIST, 3),
    (ArchiveMishap.SPOILT_LIST, 1),
    (ArchiveMishap.MOVED, 2),
    (ArchiveMishap.RESTORED, 2),
    (ArchiveMishap.BACKUP, 3),
    (ArchiveMishap.PLACE_AWAY, 12),
    (ArchiveMishap.PLACE_TORN, 4),
)


def draw_archive(seed: int) -> ArchiveScenario:
    """Draws a scenario; in half of them the archive comes when history has been deleted.

    Some of these then begin a new journal while the archive has little of the first one.
    """
    random = Random(f"{seed}/archive")
    length = random.randint(30, 90)
    configured = 0 if random.random() < 0.5 else random.randrange(length // 2)
    steps: list[ArchiveStep] = []
    for number in range(length):
        if number == configured:
            if number and random.random() < 0.6:
                steps += _early_change(random, float(number))
            steps.append(Do(float(number), ServerTask.CONFIGURE))
        steps += _trouble(random, float(number)) if random.random() < 0.05 else ()
        steps.append(_step(random, float(number)))
    return ArchiveScenario(
        seed,
        random.randint(1, 3),
        random.choice((5, 10, 25)),
        random.choice((600, 1500, 4000)),
        tuple(steps),
    )


def _early_change(random: Random, at: float) -> list[ArchiveStep]:
    work: list[ArchiveStep] = [Committed(at, 20), Do(at, ServerTask.FLUSH)]
    mishap = random.choice((ArchiveMishap.MOVED, ArchiveMishap.RESTORED))
    archived = Do(at, ServerTask.CONFIGURE), Do(at, ServerTask.ARCHIVE)
    return [
        Happen(at, ArchiveMishap.BACKUP),
        *work * 10,
        *archived,
        Happen(at, mishap),
        *work * 2,
        *archived,
    ]


def _trouble(random: Random, at: float) -> list[ArchiveStep]:
    """A disk or an archive fails in the middle of much work."""
    work: list[ArchiveStep] = [Committed(at, 3), Do(at, ServerTask.COPY), Committed(at, 20)]
    if random.random() < 0.5:
        fault = random.choice((DiskFault.FULL, DiskFault.BROKEN))
        return [*work, Fail(at, fault, random.randrange(6), 1), Do(at, ServerTask.FLUSH)]
    away = Happen(at, ArchiveMishap.PLACE_AWAY, 3, random.randrange(6, 40))
    flushed = Do(at, ServerTask.FLUSH)
    return [*work, flushed, *work, flushed, away, Do(at, ServerTask.ARCHIVE), *work, flushed]


def _step(random: Random, at: float) -> ArchiveStep:
    kind = random.random()
    if kind < 0.35:
        return Committed(at, random.choice((1, 3, 10, 20)))
    if kind < 0.78:
        (work,) = random.choices([w for w, _ in _WORK], [weight for _, weight in _WORK])
        return Do(at, work)
    if kind < 0.9:
        fault = random.choice([*DiskFault, DiskFault.POWER, DiskFault.POWER])
        return Fail(at, fault, random.choice((0, 1, 3, 8, 20)), random.choice((1, 1, 3, 10)))
    (mishap,) = random.choices([m for m, _ in _MISHAPS], [weight for _, weight in _MISHAPS])
    return Happen(at, mishap, random.choice((1, 2, 3, 5, 8, 13)), random.choice((0, 0, 6, 15, 30)))
