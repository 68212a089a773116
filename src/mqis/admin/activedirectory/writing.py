"""Connects to a domain controller for ``mqis publish``, and explains a connection that breaks."""

from __future__ import annotations

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect, explained
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.publishing import Publishing, PublishStep
from mqis.admin.transfer import Progress, silent
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError
from mqis.protocol.ports import Store
from mqis.runtime.activedirectory.reading import ForestReader
from mqis.wire.errors import MqisError


async def publish_store(
    options: ConnectingOptions,
    store: Store,
    *,
    write: bool,
    sites: bool = False,
    progress: Progress = silent,
) -> tuple[list[PublishStep], int, TransferNotes]:
    """Returns the plan, the number of objects written, and the remarks."""
    client, _ = await connect(options)
    notes = TransferNotes()
    try:
        with store.read() as view:
            publishing = Publishing(await ForestReader.open(client), view, notes, sites=sites)
            steps = await publishing.plan()
            written = await publishing.write(steps, progress) if write else 0
    except LdapConnectionLost as error:
        reason = f"{error}; run the command again: what was written is found, and it goes on"
        raise MqisError(reason) from error
    except LdapError as error:
        raise explained(error) from error
    finally:
        await client.close()
    return steps, written, notes
