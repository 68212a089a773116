"""Checks that queues which one site alone knows are not synchronised to other sites (E58)."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.protocol.directory.objects import Scope, name_key
from mqis.protocol.replication.server import Server
from mqis.sim.violation import Violation
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import (
    MessageOperation,
    SyncReply,
    SyncRequest,
    decode_message,
)


class QueueScopes:
    """The sync requests that asked for everything, and a check of all replies.

    A server may get the queues of its own site from anyone, however it asks. It gets those of
    another site only in reply to a request that replication made, not a hostile party: a backup
    controller's to its PSC, or that of an authority that is being restored.
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        self._sites = {name_key(server.name): server.site for server in servers}
        #: The requester, the server that it asked, and the partition: for all of its queues.
        self._entitled: set[tuple[str, str, Guid]] = set()

    def settle(self, server: Server) -> None:
        """Records that a server belongs to another site now."""
        self._sites[name_key(server.name)] = server.site

    def sent(self, sender: str, machine: str, body: bytes) -> None:
        operation = operation_in(body)
        if operation == MessageOperation.SYNC_REQUEST:
            request = decode_message(body)
            assert isinstance(request, SyncRequest)
            if request.scope == Scope.SITE:
                self._entitled.add((name_key(sender), name_key(machine), request.partition))
        elif operation == MessageOperation.SYNC_REPLY:
            reply = decode_message(body)
            assert isinstance(reply, SyncReply)
            self._check(sender, machine, reply)

    def _check(self, sender: str, machine: str, reply: SyncReply) -> None:
        if (name_key(machine), name_key(sender), reply.partition) in self._entitled:
            return
        if self._sites.get(name_key(machine)) == reply.partition:
            return
        for change in reply.changes:
            if _is_site_only(change):
                raise Violation(
                    "site-only queues stay in their site",
                    f"{sender} sends {change.guid} of {change.partition} to {machine}",
                )


def _is_site_only(change: DirectoryChange) -> bool:
    if change.command is not Command.SYNC:
        return False
    scope = dict(change.properties).get(PropId.Q_SCOPE)
    return scope is not None and scope.value == Scope.SITE
