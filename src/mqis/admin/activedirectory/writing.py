"""Connects to a domain controller for ``mqis publish``, and explains a connection that breaks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.publishing import Publishing, PublishStep
from mqis.admin.transfer import Progress, silent
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError
from mqis.protocol.ports import Store
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.wire.errors import MqisError


async def publish_store(
    domains: Sequence[ConnectingOptions],
    store: Store,
    *,
    write: bool,
    sites: bool = False,
    progress: Progress = silent,
) -> tuple[list[PublishStep], int, TransferNotes]:
    """Returns the plan, the number of objects written, and the remarks.

    An object goes into the domain that has its computer.
    """
    notes = TransferNotes()
    async with AsyncExitStack() as stack:
        clients = []
        for options in domains:
            client, _ = await connect(options)
            stack.push_async_callback(client.close)
            clients.append(client)
        try:
            estate = EstateReader.of([await ForestReader.open(client) for client in clients])
            with store.read() as view:
                publishing = Publishing(estate, view, notes, sites=sites)
                steps = await publishing.plan()
                written = await publishing.write(steps, progress) if write else 0
        except LdapConnectionLost as error:
            reason = f"{error}; run the command again: what was written is found, and it goes on"
            raise MqisError(reason) from error
        except LdapError as error:
            raise explained(error) from error
    return steps, written, notes
