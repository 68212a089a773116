"""The directory that 'mqis route', 'map' and 'send' read, and the ends of routes in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import opened, store_url
from mqis.files import is_sqlite_file
from mqis.protocol.directory.object_sources import NoSuchObject, Source, StoreSource
from mqis.protocol.ports import View
from mqis.protocol.queueing.queued_message import PublicQueue
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.routes.exported_snapshots import queue_of_export, snapshot_of_export
from mqis.views.routes.looking_up import RouteError, find_end, find_machine, snapshot_of_server
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

T = TypeVar("T")

_PRIVATE = "private$\\"


@dataclass(frozen=True, slots=True)
class RoutedDirectory:
    """A snapshot for routing, and the public queues of the same directory."""

    snapshot: Snapshot
    #: Returns the identifiers of a queue and of its machine; None if there is no such queue.
    _find: Callable[[str], tuple[Guid, object] | None]

    def queue(self, path: str) -> PublicQueue:
        """Finds a public queue by its path, MACHINE\\QUEUE."""
        identifier, owner = self._find(path) or (None, None)
        if identifier is None or not isinstance(owner, Guid):
            raise RouteError(f"there is no queue {path!r} in the directory")
        return PublicQueue(owner, identifier)

    def end(self, text: str) -> Guid:
        """Finds an end of a route: a machine, a site, or the machine of a queue."""
        return self._find_end(text, find_end)

    def machine(self, text: str) -> Guid:
        """Finds a machine: by its name, that of its site (the gate), or the path of a queue."""
        return self._find_end(text, find_machine)

    def _find_end(self, text: str, find: Callable[[Snapshot, str], Guid]) -> Guid:
        """A directory does not know private queues; their path names the machine."""
        machine, separator, queue = text.partition("\\")
        if separator and not queue.lower().startswith(_PRIVATE):
            return self.queue(text).queue_manager
        return find(self.snapshot, machine)


@dataclass(frozen=True, slots=True)
class DirectoryReaders(Generic[T]):
    """The functions that read the wanted facts from each kind of directory."""

    of_export: Callable[[Path], T]
    of_server: Callable[[Source], T]
    of_view: Callable[[View], T]


@contextmanager
def opened_as(
    readers: DirectoryReaders[T],
    directory: Path | None,
    store: str | None,
    config: Path | None,
    access: OptionalLogonOptions,
) -> Iterator[T]:
    """Opens the file, server or store that the options name, else the configured store."""
    if sum(given is not None for given in (directory, store, access.is_given or None)) > 1:
        raise typer.BadParameter("--directory, --store and --server exclude each other")
    if directory is not None and is_sqlite_file(directory):
        directory, store = None, str(directory)
    if directory is not None:
        yield readers.of_export(directory)
    elif access.is_wanted(store, config):
        with connected(access.login()) as remote:
            yield readers.of_server(remote)
    else:
        with opened(store_url(store, config)) as found, found.read() as view:
            yield readers.of_view(view)


_ROUTED = DirectoryReaders(
    lambda path: RoutedDirectory(snapshot_of_export(path), _in_export(path)),
    lambda remote: RoutedDirectory(snapshot_of_server(remote), _in_source(remote)),
    lambda view: RoutedDirectory(Snapshot.read(view), _in_source(StoreSource(view))),
)


def opened_directory(
    directory: Path | None, store: str | None, config: Path | None, access: OptionalLogonOptions
) -> AbstractContextManager[RoutedDirectory]:
    return opened_as(_ROUTED, directory, store, config, access)


def read_directory(
    directory: Path | None, store: str | None, config: Path | None, access: OptionalLogonOptions
) -> Snapshot:
    """Reads the snapshot alone."""
    with opened_directory(directory, store, config, access) as found:
        return found.snapshot


def _in_export(path: Path) -> Callable[[str], tuple[Guid, object] | None]:
    def find(name: str) -> tuple[Guid, object] | None:
        found = queue_of_export(path, name)
        return None if found is None else (found.id, found.value(PropId.Q_QMID))

    return find


def _in_source(source: Source) -> Callable[[str], tuple[Guid, object] | None]:
    def find(name: str) -> tuple[Guid, object] | None:
        try:
            found = source.get(ObjectType.QUEUE, name, [PropId.Q_QMID])
        except NoSuchObject:
            return None
        owner = found.values[PropId.Q_QMID]
        return found.id, None if owner is None else owner.value

    return find
