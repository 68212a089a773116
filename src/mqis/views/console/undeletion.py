"""Undelete for visitors of the console, through the server that they are logged in to.

The page keeps no plan at the server. The form says which objects its visitor has seen, and only if
a new search finds the same ones are they brought back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus

from mqis.protocol.errors import DirectoryError
from mqis.protocol.undeletion.messages import UndeleteEntry, UndeleteRequest, Verb
from mqis.views.console.visitor_changes import FormError
from mqis.views.deletion.undelete_steps import (
    UndeleteOutcome,
    UndeletePlan,
    Undeleting,
    carry_out,
    forget_plan,
    make_plan,
)
from mqis.views.presentation.periods import parse_period
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType

#: The fields of the form.
CONDITIONS = ("type", "name", "at", "by", "under")
#: The most objects that a page shows, and that it brings back: more take minutes.
MOST_SHOWN = 200
MOST_AT_ONCE = 1_000
#: Seconds for the servers of a deleted site to send its objects, and for a search.
WAIT_S = 15.0
SEARCH_S = 45.0


class SeenOtherwise(DirectoryError):
    """What a visitor confirmed is not what the server finds now."""


@dataclass(frozen=True, slots=True)
class UndeletePage:
    """The deleted objects that match, and the proof of having seen them."""

    plan: UndeletePlan

    @property
    def shown(self) -> tuple[UndeleteEntry, ...]:
        return self.plan.entries[:MOST_SHOWN]

    @property
    def too_many(self) -> bool:
        return len(self.plan.ready) > MOST_AT_ONCE

    @property
    def seen(self) -> str:
        """A digest over the objects that would come back, in any order."""
        ids = sorted(f"{entry.id} {entry.time_us}" for entry in self.plan.ready)
        return sha256("\n".join(ids).encode()).hexdigest()


def request_of(given: Mapping[str, str]) -> UndeleteRequest:
    """The search that a form describes; raises ``FormError`` if a field is wrong."""
    kind, at = given.get("type", ""), given.get("at", "")
    try:
        since_us, until_us = parse_period(at) if at else (None, None)
    except MqisError as error:
        raise FormError({"at": str(error)}) from None
    try:
        label = ObjectType.parse(kind).label if kind else ""
    except ValueError as error:
        raise FormError({"type": str(error)}) from None
    name, by, under = (given.get(word, "") for word in ("name", "by", "under"))
    return UndeleteRequest(
        Verb.PLAN, label, name, since_us=since_us, until_us=until_us, by=by, under=under
    )


def find(server: Undeleting, request: UndeleteRequest) -> UndeletePage:
    """Shows what matches, and has the server forget the plan."""
    try:
        plan = make_plan(server, request, search_s=SEARCH_S)
    except DirectoryError as error:
        if error.hresult != HResult.MQDS_OBJECT_NOT_FOUND:
            raise
        raise FormError({"": error.detail}, HTTPStatus.NOT_FOUND) from error
    forget_plan(server, plan)
    return UndeletePage(plan)


def restore(server: Undeleting, request: UndeleteRequest, seen: str) -> UndeleteOutcome:
    """Brings back what a visitor has seen; raises ``SeenOtherwise`` if it is not the same now."""
    page = UndeletePage(make_plan(server, request, search_s=SEARCH_S))
    reason = _objection(page, request, seen)
    if reason:
        forget_plan(server, page.plan)
        raise SeenOtherwise(HResult.MQ_ERROR_INVALID_PARAMETER, reason)
    return carry_out(server, page.plan, wait_s=WAIT_S)


def _objection(page: UndeletePage, request: UndeleteRequest, seen: str) -> str:
    if request == UndeleteRequest(Verb.PLAN):
        return "say which objects are to come back"
    if page.too_many:
        return f"more than {MOST_AT_ONCE} objects: use 'mqis undelete', which takes its time"
    if page.seen != seen:
        return "other objects match now than when this page was shown; look at them again"
    return ""
