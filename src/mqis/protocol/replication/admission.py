"""Whom a server believes what (E57).

The text believes everybody who can reach the queue. Here a message counts as coming from the
queue manager that opened the session; its machine object in the directory gives the name, and the
name decides: changes come from the authority, to a BSC from its PSC, requests from controllers.
"""

from __future__ import annotations

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition, name_key
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.replication.effects import Objection, RefusalReason
from mqis.protocol.replication.server_identity import Sender, Server
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.messages import ChangeRequest


def name_of(view: View, me: Server, source: Guid) -> str | None:
    """The machine name of a queue manager; None for a stranger."""
    machine = view.get(ObjectType.MACHINE, source)
    if machine is not None:
        return machine.path
    return me.seeds.get(source)


def owns(view: View, me: Server, partition: Guid) -> bool:
    """Returns whether this server is the authority of a partition.

    Its role says what it may own, the directory says whether it does: a PSC whose site names
    another one has been replaced.
    """
    state = view.partition(partition)
    # A new server has yet to hear of its site, and of what was made there.
    return state is not None and owns_state(view, me, state)


def owns_state(view: View, me: Server, state: Partition) -> bool:
    """``owns``, for who has the partition's state at hand."""
    if me.is_bsc:
        return False
    if state.id == ENTERPRISE_PARTITION:
        return me.is_pec and _is_mine(me, state)
    if state.id == me.site:
        return _is_mine(me, state)
    return me.is_pec and _stands_in(view, state)


def _is_mine(me: Server, state: Partition) -> bool:
    return not state.owner or me.is_called(state.owner)


def _stands_in(view: View, state: Partition) -> bool:
    """The PEC creates the machine of a new site's PSC, which could not do so without it (E84)."""
    return bool(state.owner) and view.find(ObjectType.MACHINE, state.owner) is None


def authority_of(view: View, state: Partition) -> str:
    """The server that decides about a partition: its owner; the PEC until that has a machine."""
    if state.id == ENTERPRISE_PARTITION or not _stands_in(view, state):
        return state.owner
    enterprise = view.partition(ENTERPRISE_PARTITION)
    return "" if enterprise is None else enterprise.owner


def may_change(work: Work, partition: Guid) -> bool:
    """``owns``, for a change to be made now; an authority that is being restored makes none."""
    if not owns(work.tx, work.me, partition):
        return False
    if partition in work.memory.recoveries:
        raise DirectoryError(
            HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
            "this server's copy of the partition is being restored; try again in a few minutes",
        )
    return True


def refusal_of_change(work: Work, sender: Sender, state: Partition) -> Objection | None:
    """The reason to refuse a partition's changes and numbers from a sender; None to accept them."""
    if owns_state(work.tx, work.me, state):
        return Objection(
            RefusalReason.OWN_PARTITION, "this server is the authority of the partition"
        )
    if sender.name is None:
        return Objection(RefusalReason.STRANGER, f"{sender.id} is no server of this enterprise")
    source = work.memory.psc if work.me.is_bsc else authority_of(work.tx, state)
    if name_key(sender.name) != name_key(source):
        return Objection(
            RefusalReason.WRONG_SOURCE,
            f"{sender.name} is not who this server takes the partition from",
        )
    return None


def speaks_for(work: Work, sender: str, request: ChangeRequest) -> bool:
    """Returns whether a server may deliver a request: its author, or the PSC of its author.

    Which site the author stands in, and who is the PSC there, the directory says.
    """
    if name_key(sender) == name_key(request.requester):
        return True
    if request.psc is None or name_key(sender) != name_key(request.psc):
        return False
    author = work.tx.find(ObjectType.MACHINE, request.requester)
    site = None if author is None else work.partition(author.partition)
    return site is not None and name_key(site.owner) == name_key(sender)


def is_controller(work: Work, sender: Sender) -> bool:
    """Returns whether the sender is a directory server; requests of others get no answer."""
    if sender.id in work.me.seeds:
        return True
    machine = work.tx.get(ObjectType.MACHINE, sender.id)
    if machine is None:
        return False
    if ServiceAttributes.of(machine).role is not None:
        return True
    name = name_key(machine.path or "")
    return any(name_key(state.owner) == name for state in work.tx.partitions())
