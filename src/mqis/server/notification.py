"""Change notifications of a server that does not replicate (MS-MQDS 3.1.1.16, MS-MQCN).

A replicating server has a queue manager, whose name, address book and key its notifier shares
(``replication.py``). A server on its own has none, so this builds the little that a notifier needs.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from mqis.config.replication import ReplicationSection
from mqis.config.sections import Config
from mqis.protocol.directory.change_notification import LocalQueueManager
from mqis.protocol.ports import Store
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.members import Members
from mqis.runtime.node.notifier import ChangeNotifier
from mqis.runtime.node.signer import MachineKey, MachineSigner
from mqis.server.hosts import HostResolver
from mqis.wire.mqds.objecttype import ObjectType


async def start_notifier(
    config: Config, store: Store, name: str, resolver: HostResolver, stack: AsyncExitStack
) -> ChangeNotifier | None:
    """Starts the notifier of the server ``name``; None if notifications are switched off."""
    section = config.replication
    if not section.notify:
        return None
    members = Members(store, {})
    local = await asyncio.to_thread(local_queue_manager, section, store, name)
    notifier = ChangeNotifier(
        local,
        resolver,
        peers=members,
        signer=_signer(section, members),
    )
    stack.push_async_callback(notifier.close)
    return notifier


def local_queue_manager(section: ReplicationSection, store: Store, name: str) -> LocalQueueManager:
    """The queue manager on this computer; one that no directory knows gets a new identifier."""
    with store.read() as view:
        machine = view.find(ObjectType.MACHINE, name)
    known = section.id if machine is None else machine.id
    return LocalQueueManager(name, known or SystemEntropy().guid())


def _signer(section: ReplicationSection, members: Members) -> MachineSigner | None:
    """Signs with the key of an earlier role; no key is made for notifications alone."""
    path = Path(section.key)
    if section.signing is SigningPolicy.NONE or not path.exists():
        return None
    return MachineSigner(MachineKey.open(path, create=False), members.keys_of)
