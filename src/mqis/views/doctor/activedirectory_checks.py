"""Checks of a server whose store is an Active Directory: the connection, the account, its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from mqis.config.errors import ConfigError
from mqis.config.sections import Config
from mqis.findings import Area, Finding
from mqis.protocol.authentication import AuthenticationError
from mqis.protocol.errors import DirectoryError
from mqis.runtime.activedirectory.callers import CallerConnections
from mqis.runtime.activedirectory.store import ActiveDirectoryStore
from mqis.server.directory_server import find_place
from mqis.server.pass_through import open_directory, service_tickets
from mqis.texts import counted
from mqis.wire.mqds.objecttype import ObjectType

_DIRECTORY = Area("active directory")


def check(config: Config) -> Iterator[Finding]:
    """Connects as the server does, and reads what it needs when it starts."""
    try:
        store = open_directory(config)
    except ConfigError as error:
        yield _DIRECTORY.error(str(error), "docs/pass-through.md explains the settings")
        return
    with closing(store):
        yield from _connection(config, store)


def _connection(config: Config, store: ActiveDirectoryStore) -> Iterator[Finding]:
    faults = store.check()
    if faults:
        todo = "check store.url, store.user and the network; then run this again"
        yield _DIRECTORY.error(faults[0], todo)
        return
    yield _DIRECTORY.ok(f"{store.connection.where} answers")
    for defect in store.schema_defects():
        yield _DIRECTORY.error(defect, "docs/pass-through.md has the rights of the account")
    try:
        place = find_place(config, store)
        with store.read() as view:
            machines, queues = (view.count(t) for t in (ObjectType.MACHINE, ObjectType.QUEUE))
    except (ConfigError, DirectoryError) as error:
        yield _DIRECTORY.error(str(error), "set server.name or server.site")
        return
    yield _DIRECTORY.ok(
        f"the account reads {counted(machines, 'machine')} and {counted(queues, 'queue')}; "
        f"this server is in {place.site.path}"
    )
    yield from _delegation(config, store)


def _delegation(config: Config, store: ActiveDirectoryStore) -> Iterator[Finding]:
    """Acts as the server's own account with a ticket of it, as the server does with callers'."""
    try:
        service = service_tickets(config)
        if service is None:
            return
        connections = CallerConnections(store.connection, 1)
        with closing(connections), connections.read(service.of_itself(), "this computer") as view:
            next(view.objects(ObjectType.SITE), None)
    except (ConfigError, AuthenticationError, DirectoryError) as error:
        told = error.detail if isinstance(error, DirectoryError) else str(error)
        yield _DIRECTORY.error(told, "docs/pass-through.md has the steps of constrained delegation")
        return
    yield _DIRECTORY.ok("the server may act as its callers: Active Directory judges each of them")
