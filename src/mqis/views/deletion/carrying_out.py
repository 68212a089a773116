"""Carries out the plan of a delete through a server, dependents first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import DirectoryError
from mqis.texts import counted
from mqis.views.deletion.plan import DeletePlan, Dependent
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType

#: Answers for an object that somebody else has deleted meanwhile.
_GONE = frozenset(
    {
        HResult.MQ_ERROR_QUEUE_NOT_FOUND,
        HResult.MQ_ERROR_MACHINE_NOT_FOUND,
        HResult.MQDS_OBJECT_NOT_FOUND,
    }
)


class DeletionRefused(MqisError):
    """A delete that no operator can mean, without the name typed."""


class Deleting(Protocol):
    """A server that deletes objects for a user (``client.remote.Remote``)."""

    def delete(self, object_type: ObjectType, name: str) -> None: ...


def check_typed(plan: DeletePlan, typed: str | None) -> None:
    """Raises ``DeletionRefused`` unless nothing speaks against it or its name was typed."""
    if plan.danger is None:
        return
    label, name = plan.target.type.label, plan.target.name
    if typed is None:
        raise DeletionRefused(f"{label} {name} is not deleted: {plan.danger}")
    if name_key(typed.strip()) != name_key(name):
        raise DeletionRefused(f"{label} {name} is not deleted: {typed!r} is not its name")


def carry_out(
    server: Deleting, plan: DeletePlan, progress: Callable[[Dependent], None] = lambda _one: None
) -> None:
    """Deletes the dependents that would be orphaned, then the object itself."""
    done: list[Dependent] = []
    for one in (*plan.first, plan.target):
        try:
            _delete(server, one, plan.target)
        except MqisError as error:
            if not done:
                raise
            raise MqisError(_interrupted(plan, done, one, error)) from error
        done.append(one)
        progress(one)
    if plan.danger is None:
        _delete_left_over(server, plan)


def _delete_left_over(server: Deleting, plan: DeletePlan) -> None:
    """Deletes what still lies in the partition of a deleted site.

    A server that replicates has dropped it. One that does not replicate keeps it, and decides
    about it; any other server that still has it will drop it and refuses to decide.
    """
    with suppress(DirectoryError):
        for one in reversed(plan.along):
            _delete(server, one, plan.target)


def _delete(server: Deleting, one: Dependent, target: Dependent) -> None:
    try:
        server.delete(one.type, str(one.id))
    except DirectoryError as error:
        if one is target or error.hresult not in _GONE:
            raise


def _interrupted(plan: DeletePlan, done: list[Dependent], at: Dependent, error: MqisError) -> str:
    return (
        f"{at.type.label} {at.name}: {error}; {len(done)} of "
        f"{counted(len(plan.first) + 1, 'object')} are deleted already: repeat the command, or "
        "bring them back with 'mqis undelete'"
    )
