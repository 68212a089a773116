"""The step of the live tour about an operator's slip: a machine deleted, and brought back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from mqis.cli import remote
from mqis.cli.credentials import Login
from mqis.cli.tour.directory import MADE
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.site import WAIT_S, Tour
from mqis.client.remote import Remote
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace
from mqis.enterprise.setup import administrator
from mqis.protocol.undeletion.messages import EntryState, UndeleteRequest, Verb
from mqis.texts import counted, duration
from mqis.views.deletion.carrying_out import carry_out as delete
from mqis.views.deletion.delete_text import sections
from mqis.views.deletion.plan import plan_delete
from mqis.views.deletion.undelete_steps import carry_out as bring_back
from mqis.views.deletion.undelete_steps import make_plan
from mqis.wire.mqds.objecttype import ObjectType

#: The machine, its site, and the authority for both.
_MACHINE, _SITE, _AUTHORITY = "C14", "Chicago", "chi-dir1"


@dataclass(frozen=True, slots=True)
class UndoneSlip:
    """The objects that were deleted and brought back."""

    objects: int


async def slip(guide: Guide, tour: Tour) -> UndoneSlip:
    guide.step(
        "A slip undone",
        f"an administrator deletes the machine {_MACHINE} by mistake, and brings it back from the "
        "journal of its authority",
    )
    await tour.converged()
    before = await _digests(tour)
    deleted = await asyncio.to_thread(_delete, guide, tour)
    await tour.converged()
    without = await _digests(tour)
    guide.confirm(
        f"{counted(deleted, 'object')} deleted: the digest of {_SITE} is another one, and the same "
        "at all servers",
        len(without) == 1 and without.isdisjoint(before),
        saw=f"{before} before, {without} now",
        expected="one digest of all servers, and another one than before",
    )
    began = monotonic()
    restored = await asyncio.to_thread(_undelete, tour)
    await tour.converged()
    guide.confirm_equal(
        f"{counted(restored, 'object')} brought back in {duration(monotonic() - began)}, as new "
        "changes of the authority",
        restored,
        deleted,
    )
    now = await _digests(tour)
    guide.confirm(
        f"identifiers, properties and permissions are as before: the digest of {_SITE} is the old "
        f"one at all {counted(len(tour.nodes.nodes), 'server')}",
        len(before) == 1 and now == before,
        saw=now,
        expected=before,
    )
    return UndoneSlip(restored)


async def _digests(tour: Tour) -> set[str]:
    """The digests of the site's contents at all servers: one, if they agree."""
    statuses = [await tour.status(node.name) for node in tour.nodes]
    return {part.digest for each in statuses for part in each.partitions if part.name == _SITE}


def _delete(guide: Guide, tour: Tour) -> int:
    """Deletes the machine as 'mqis delete' does; returns the number of deleted objects."""
    with _authority(tour) as server:
        plan = plan_delete(server, ObjectType.MACHINE, _MACHINE)
        shown = [f"{title}: {', '.join(lines)}" for title, lines in sections(plan)]
        for text in shown:
            guide.line(f"   {text}", "yellow")
        guide.confirm_equal(
            "the plan names the queues of the machine, which go first",
            named_queues(shown),
            _queues(tour),
        )
        delete(server, plan)
    return len(plan.first) + 1


def _queues(tour: Tour) -> list[str]:
    """The queues of the machine: those of the enterprise file, and the one that was created."""
    planned = [queue.path for queue in tour.plan.queues]
    return sorted(path for path in [*planned, MADE] if path.startswith(f"{_MACHINE}\\"))


def named_queues(lines: Sequence[str]) -> list[str]:
    """The queues that the sentences about a deletion name as those that go first."""
    first = (line.partition(": ")[2] for line in lines if "will be deleted first" in line)
    return sorted(name.removeprefix("queue ") for text in first for name in text.split(", "))


def _undelete(tour: Tour) -> int:
    """Brings it back as 'mqis undelete machine' does; returns the number of objects."""
    with _authority(tour) as server:
        request = UndeleteRequest(Verb.PLAN, type=ObjectType.MACHINE.label, name=_MACHINE)
        plan = make_plan(server, request)
        return bring_back(server, plan, wait_s=WAIT_S).count(EntryState.RESTORED)


@contextmanager
def _authority(tour: Tour) -> Iterator[Remote]:
    node: NodePlace = tour.node(_AUTHORITY)
    account = administrator(Path(tour.run), tour.plan, tour.directory)
    address = ServerAddress(node.address, node.rpc_port)
    login = Login((str(address),), domain=account.domain, name=account.name)
    with remote.connected(login, [address], account.password) as found:
        yield found
