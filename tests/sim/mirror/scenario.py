"""The scenario of one run: changes of the domain, faults, and the rounds of the mirror."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from tests.sim.mirror.edits import Edit


class MirrorFault(StrEnum):
    DIE = "controller dies"
    DROP = "connection lost"
    REVIVE = "controllers start"
    EXCHANGE = "controllers that are down take over from those that are not"
    BACKUP = "controller backed up"
    RESTORE = "controller restored"
    DIRSYNC = "right to replicate lost or gained"
    DELETED = "right to see deleted objects lost or gained"
    BLIND = "right to read lost"
    SIGHTED = "right to read regained"
    BARE = "right to read an object lost"
    SHOWN = "right to read these objects regained"
    RESTART = "mirror restarted"
    COPY = "mirror's store backed up"
    REPLACE = "mirror's store restored"
    DAY = "a day passes"
    MISSED = "a change without a number, and a day passes"
    ROLLBACK = "controller put back from a copy and past its number, and a day passes"


@dataclass(frozen=True, slots=True)
class Happening:
    """Edits, or a fault. ``heard`` are the controllers that hear of the changes at once."""

    what: tuple[Edit, ...] | MirrorFault
    salt: int
    heard: tuple[int, ...] = (0, 1)


@dataclass(frozen=True, slots=True)
class Round:
    """A round of the mirror, and what happens before its searches, by their number.

    With ``writes`` the mirror is killed at the write after so many others: after its commit, or
    before it.
    """

    during: tuple[tuple[int, Happening], ...] = ()
    writes: int | None = None
    committed: bool = False


MirrorStep = Happening | Round


@dataclass(frozen=True, slots=True)
class MirrorScenario:
    """Everything that determines a run."""

    seed: int
    dirsync: bool
    deleted: bool
    sqlite: bool = False
    #: Objects of one transaction of a full reading.
    batch: int = 200
    steps: tuple[MirrorStep, ...] = ()

    def with_steps(self, steps: tuple[MirrorStep, ...]) -> MirrorScenario:
        return replace(self, steps=steps)


def draw_mirror(seed: int) -> MirrorScenario:
    random = Random(f"{seed}/mirror")
    dirsync, deleted = random.random() < 0.5, random.random() < 0.6
    batch = random.choice((3, 10, 200))
    steps: list[MirrorStep] = [_first_round(random)]
    for _ in range(random.randint(5, 10)):
        steps += (_happening(random) for _ in range(random.choice((0, 1, 1, 1, 2))))
        steps.append(_round(random))
        if random.random() < 0.4:
            steps += random.choice((_lagging, _unreadable, _routers, _twins, _missed))(random)
    return MirrorScenario(seed, dirsync, deleted, random.random() < 0.2, batch, tuple(steps))


def _happening(random: Random) -> Happening:
    if random.random() < 0.4:
        fault = random.choice((*MirrorFault, MirrorFault.REVIVE, MirrorFault.REVIVE))
        return _fault(random, fault)
    edits = tuple(random.choices(tuple(Edit), k=random.choice((1, 1, 2, 4))))
    return _edits(random, edits, random.choice(((0, 1), (0, 1), (0,), (1,), ())))


def _fault(random: Random, fault: MirrorFault) -> Happening:
    return Happening(fault, random.randrange(1 << 30))


def _edits(random: Random, edits: tuple[Edit, ...], heard: tuple[int, ...] = (0, 1)) -> Happening:
    return Happening(edits, random.randrange(1 << 30), heard)


def _round(random: Random) -> Round:
    if random.random() < 0.5:
        return Round()
    during = tuple(
        (_search(random), _cut(random) if random.random() < 0.4 else _happening(random))
        for _ in range(random.choice((0, 1, 1, 2)))
    )
    writes = random.randrange(3) if random.random() < 0.3 else None
    return Round(during, writes, random.random() < 0.5)


def _first_round(random: Random) -> Round:
    """Everything is read while administrators change things that were read already."""
    edits = Edit.RENAME_SITE, Edit.CHANGE_LINK, Edit.RESITE, Edit.ROUTE
    return Round(((random.randrange(10, 40), _edits(random, edits)),))


def _search(random: Random) -> int:
    """The number of a search: a round for some changes has few of them."""
    return random.randrange(random.choice((16, 60)))


def _cut(random: Random) -> Happening:
    """The controller that answers is lost in the middle of an answer."""
    return _fault(random, random.choice((MirrorFault.DIE, MirrorFault.DIE, MirrorFault.DROP)))


# --- sequences that chance rarely brings ----------------------------------------------------------


def _lagging(random: Random) -> list[MirrorStep]:
    """The other controller, which has heard less, answers for a part of a round."""
    edits = tuple(random.choices((Edit.ADD_QUEUE, Edit.LABEL, Edit.CHANGE_LINK, Edit.CERTIFY), k=4))
    return [
        _fault(random, MirrorFault.REVIVE),
        Round(),
        _edits(random, edits, random.choice(((0,), (1,)))),
        Round(((random.randrange(6, 16), _fault(random, MirrorFault.DIE)),)),
        _fault(random, MirrorFault.EXCHANGE),
        Round(),
    ]


def _unreadable(random: Random) -> list[MirrorStep]:
    """Objects change while the account cannot read them, and it gets its right back."""
    lost, again = random.choice(
        ((MirrorFault.BARE, MirrorFault.SHOWN), (MirrorFault.BLIND, MirrorFault.SIGHTED))
    )
    edits = Edit.LABEL, Edit.CHANGE_LINK, Edit.RENAME_QUEUE
    return [
        _fault(random, lost),
        _edits(random, edits),
        _round(random),
        _fault(random, again),
        Round(),
    ]


def _routers(random: Random) -> list[MirrorStep]:
    """A computer goes that others name, whose numbers stay."""
    named = Edit.ADD_COMPUTER, Edit.ROUTE, Edit.ROUTE, Edit.CHANGE_LINK
    gone = random.choice((Edit.DELETE_COMPUTER, Edit.REMAKE_COMPUTER, Edit.DELETE_MACHINE))
    return [_edits(random, named), Round(), _edits(random, (gone,)), _round(random)]


def _twins(random: Random) -> list[MirrorStep]:
    """What is left out hangs on something that changes: a name, or a queue manager."""
    again = random.choice(
        ((Edit.DELETE_COMPUTER,), (Edit.RENAME_COMPUTER, Edit.RENAME_COMPUTER), (Edit.MEND,))
    )
    spoiled = random.choice((Edit.ADD_TWIN, Edit.SPOIL_RIGHTS))
    return [
        _edits(random, (Edit.ADD_COMPUTER, spoiled, Edit.ADD_QUEUE, Edit.ADD_QUEUE)),
        _round(random),
        _edits(random, again),
        Round(),
    ]


def _missed(random: Random) -> list[MirrorStep]:
    """Nothing tells of a change; the comparison of the next day finds it."""
    fault = random.choice((MirrorFault.MISSED, MirrorFault.ROLLBACK, MirrorFault.DAY))
    edits = tuple(random.choices((Edit.ADD_QUEUE, Edit.LABEL, Edit.DELETE_QUEUE), k=3))
    return [Round(), _edits(random, edits), Round(), _fault(random, fault), _round(random), Round()]
