"""Undeletes through a running server: asks for a plan, and has it carried out step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from mqis.protocol.errors import ProtocolError
from mqis.protocol.undeletion.messages import (
    MOST_PLANNED,
    MOST_RESTORED,
    EntryResult,
    EntryState,
    UndeleteEntry,
    UndeleteReply,
    UndeleteRequest,
    Verb,
)

#: Seconds between two looks for the objects that a site's own servers send.
_LOOK_S = 0.5

_THERE = (EntryState.RESTORED, EntryState.PRESENT)


class Undeleting(Protocol):
    """A server of mqis on which an administrator is logged on (``client.remote.Remote``)."""

    def undelete(self, request: UndeleteRequest) -> UndeleteReply: ...


@dataclass(frozen=True, slots=True)
class UndeletePlan:
    """The deleted objects that a server found, in the order in which they come back."""

    token: str
    entries: tuple[UndeleteEntry, ...]

    @property
    def ready(self) -> list[UndeleteEntry]:
        return [entry for entry in self.entries if entry.state == EntryState.READY]

    @property
    def conflicts(self) -> list[UndeleteEntry]:
        return [entry for entry in self.entries if entry.state == EntryState.CONFLICT]


@dataclass(frozen=True, slots=True)
class UndeleteOutcome:
    """The result for each object of a plan, by identifier."""

    results: dict[str, EntryResult]

    def count(self, state: EntryState) -> int:
        return sum(result.state == state for result in self.results.values())

    @property
    def there(self) -> int:
        """The number of objects that are in the directory now."""
        return len(self.results) - len(self.failed)

    @property
    def failed(self) -> list[EntryResult]:
        return [result for result in self.results.values() if result.state not in _THERE]


Report = Callable[[EntryResult], None]


def make_plan(
    server: Undeleting, request: UndeleteRequest, *, search_s: float = inf
) -> UndeletePlan:
    """Has the server search its journal; returns when the search is complete.

    Raises ``TimeoutError`` if that takes longer than ``search_s`` seconds.
    """
    end = time.monotonic() + search_s
    reply = server.undelete(replace(request, verb=Verb.PLAN))
    while not reply.ready:
        if time.monotonic() > end:
            raise TimeoutError
        reply = server.undelete(UndeleteRequest(Verb.PAGE, token=reply.token))
    token, total, entries = reply.token, reply.total, list(reply.entries)
    while reply.entries and len(entries) < total:
        _refuse_endless(total)
        reply = server.undelete(UndeleteRequest(Verb.PAGE, token=token, first=len(entries)))
        entries += reply.entries
    return UndeletePlan(token, tuple(entries[:total]))


def forget_plan(server: Undeleting, plan: UndeletePlan) -> None:
    """Tells the server that nobody needs a plan any more."""
    server.undelete(UndeleteRequest(Verb.FORGET, token=plan.token))


def _refuse_endless(total: int) -> None:
    """Refuses the plan of a server that is not ours, and sends entries without end."""
    if total > MOST_PLANNED:
        raise ProtocolError(f"the server sends a plan of {total} objects; {MOST_PLANNED} are most")


def carry_out(
    server: Undeleting,
    plan: UndeletePlan,
    *,
    wait_s: float,
    report: Report = lambda _result: None,
) -> UndeleteOutcome:
    """Brings the objects of a plan back.

    The servers of a site that was deleted still have its objects, and send them when the site and
    its PSC are back. They get ``wait_s`` seconds for that; then what is missing is created.
    """
    steps = _Steps(server, plan, report)
    first = sum(not entry.follows for entry in plan.entries)
    steps.restore(0, first)
    if first < len(plan.entries):
        steps.wait(first, wait_s)
        steps.restore(first, len(plan.entries))
    forget_plan(server, plan)
    return UndeleteOutcome(steps.results)


class _Steps:
    def __init__(self, server: Undeleting, plan: UndeletePlan, report: Report) -> None:
        self._server = server
        self._plan = plan
        self._report = report
        self.results: dict[str, EntryResult] = {}
        #: Authorities that did not answer: waiting for each object again would take for ever.
        self._silent: set[str] = set()

    def restore(self, first: int, end: int) -> None:
        """Restores the entries from ``first`` up to ``end``."""
        while first < end:
            entry = self._plan.entries[first]
            if entry.authority in self._silent:
                results: tuple[EntryResult, ...] = (_not_tried(entry),)
            else:
                results = self._ask(Verb.RESTORE, first, self._reachable(first, end))
            if not results:
                return
            for result in results:
                self._note(result, self._plan.entries[first])
                first += 1

    def _reachable(self, first: int, end: int) -> int:
        """The end of the entries whose authorities have answered so far."""
        entries = self._plan.entries
        while first < end and entries[first].authority not in self._silent:
            first += 1
        return first

    def _note(self, result: EntryResult, entry: UndeleteEntry) -> None:
        if result.state == EntryState.UNREACHED:
            self._silent.add(entry.authority)
        self.results[result.id] = result
        self._report(result)

    def _ask(self, verb: Verb, first: int, end: int) -> tuple[EntryResult, ...]:
        count = min(MOST_RESTORED, end - first)
        request = UndeleteRequest(verb, token=self._plan.token, first=first, count=count)
        return self._server.undelete(request).results[:count]

    def wait(self, first: int, wait_s: float) -> None:
        """Waits until all entries from ``first`` on are in the directory."""
        end = time.monotonic() + wait_s
        while not self._is_there(first) and time.monotonic() < end:
            time.sleep(_LOOK_S)

    def _is_there(self, first: int) -> bool:
        while first < len(self._plan.entries):
            results = self._ask(Verb.LOOK, first, len(self._plan.entries))
            if not results or any(r.state != EntryState.PRESENT for r in results):
                return False
            first += len(results)
        return True


def _not_tried(entry: UndeleteEntry) -> EntryResult:
    reason = f"not tried: its authority {entry.authority} does not answer; start it and repeat this"
    return EntryResult(entry.id, EntryState.UNREACHED, reason)
