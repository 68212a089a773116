"""Findings: the faults and facts that checks tell somebody, of one type and on one scale.

A check is a function that yields a ``Finding`` for each fault, and nothing, or one that is ``OK``,
if there is none. It decides how grave a fault is, says what to do, and prints nothing: commands,
the console, the report and ``/health`` show what they get. The words that some of them have for
gravity (green, amber and red; in order, needs attention, action needed) are derived from
``Gravity``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # few findings have repairs in LDAP
    from mqis.wire.ldap.changes import EntryChange


class Gravity(IntEnum):
    """The scale: the gravest is the greatest."""

    #: It was looked at, and is in order.
    OK = 0
    #: For information; nothing has to be done.
    NOTE = 1
    #: It usually passes by itself, or may be intended: somebody should look.
    WARNING = 2
    #: Somebody has to do something.
    ERROR = 3

    @property
    def label(self) -> str:
        """The name in tables and JSON."""
        return self.name.lower()

    @property
    def colour(self) -> str:
        """The word of the health verdict: green, amber or red."""
        return _COLOURS.get(self, "green")


_COLOURS = {Gravity.WARNING: "amber", Gravity.ERROR: "red"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A thing that a finding is about: a server, a queue, a partition."""

    type: str
    #: None if such things have no names.
    name: str | None
    id: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.name or self.id}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, or one fact worth telling."""

    #: The name of the check, or of the kind of fault that it found.
    check: str
    gravity: Gravity
    #: The fault, in a sentence.
    what: str
    #: The remedy; empty if nothing has to be done, or if it usually passes by itself.
    todo: str = ""
    #: The file, entry or object that it was found at; empty if ``what`` says it.
    where: str = ""
    #: The particulars, where ``what`` is one sentence for all findings of the check.
    detail: str = ""
    #: The reason why it hurts: the symptom that users see.
    why: str = ""
    objects: tuple[Subject, ...] = ()
    #: The number of all objects, where ``objects`` has only some of them.
    count: int = 0
    #: The first and the last of the segments, records or changes that it is about.
    first: int | None = None
    last: int | None = None
    #: The changes of LDAP entries that mend it; empty if mending it takes a decision.
    repair: tuple[EntryChange, ...] = ()

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.where, self.what, self.detail)))

    @property
    def is_fault(self) -> bool:
        return self.gravity is Gravity.ERROR

    @property
    def length(self) -> int:
        """The number of segments, records or changes that it is about; 0 if that is not known."""
        return 0 if self.first is None or self.last is None else self.last - self.first + 1

    def covers(self, number: int) -> bool:
        """Returns whether the segment, record or change is among them."""
        return self.first is not None and 0 <= number - self.first < self.length

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the objects."""
        return tuple(each.name or each.id for each in self.objects)

    @property
    def place(self) -> tuple[str, str, tuple[str, ...], str]:
        """The sort key of a list of findings, which brings those of one check together."""
        return self.check, self.where, tuple(each.id for each in self.objects), self.detail


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that the input of a check cannot show, and the input that would show it."""

    #: The check that it limits; empty if it limits several.
    check: str
    reason: str
    advice: str
    #: Possible findings that are left out because of this.
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The findings of some checks, and the limits of what they looked at."""

    findings: tuple[Finding, ...]
    limits: tuple[Limit, ...] = ()
    #: The number of objects of each type that were looked at.
    counts: dict[str, int] = field(default_factory=dict)
    #: The entries that could not be read, and why.
    unreadable: tuple[str, ...] = ()
    #: The server that it is about; empty if there is only one, or for all together.
    server: str = ""

    @property
    def failed(self) -> bool:
        return worst(self.findings) is Gravity.ERROR


def worst(findings: Iterable[Finding]) -> Gravity:
    """The gravity of the gravest."""
    return max((finding.gravity for finding in findings), default=Gravity.OK)


class Area:
    """Makes the findings of one check."""

    def __init__(self, check: str) -> None:
        self._check = check

    def ok(self, what: str) -> Finding:
        return Finding(self._check, Gravity.OK, what)

    def note(self, what: str, todo: str = "") -> Finding:
        return Finding(self._check, Gravity.NOTE, what, todo)

    def warning(self, what: str, todo: str) -> Finding:
        return Finding(self._check, Gravity.WARNING, what, todo)

    def error(self, what: str, todo: str) -> Finding:
        return Finding(self._check, Gravity.ERROR, what, todo)
