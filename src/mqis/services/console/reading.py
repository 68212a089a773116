"""Stores that stay open while the console runs, and what was computed of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from mqis.protocol.directory.query import SortKey
from mqis.protocol.directory.restrictions import Restriction
from mqis.protocol.directory.service import Service
from mqis.protocol.directory.sources import Record, Source, StoreSource
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.protocol.routing.snapshot import Snapshot
from mqis.services.console.places import Place, PlacesError
from mqis.services.routefinding import snapshot_of_server
from mqis.services.stores import open_store
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

__all__ = ["Chart", "OpenStores", "Source", "chart_of", "source_of", "version_of"]

#: What a store holds: the last number of each partition.
Version = tuple[tuple[str, int], ...]


#: Lists of one store, one for each type and then some.
_REMEMBERED = 8


def version_of(view: View) -> Version:
    return tuple((str(p.id), p.last_seq.value) for p in view.partitions())


@dataclass(frozen=True, slots=True)
class Chart:
    """What the map is made of: routing's picture, and which machines are directory servers."""

    snapshot: Snapshot
    roles: Mapping[Guid, str]


class RememberedSource(StoreSource):
    """Gives a list that it has given before, while nothing has changed: pages of it are asked for
    one by one, and searches in it."""

    def __init__(self, view: View, known: dict[object, tuple[Version, list[Record]]]) -> None:
        super().__init__(view)
        self._version = version_of(view)
        self._known = known

    def lookup(
        self,
        object_type: ObjectType,
        columns: Sequence[PropId],
        restrictions: Sequence[Restriction],
        sort: Sequence[SortKey],
    ) -> list[Record]:
        key = object_type, tuple(columns), tuple(restrictions), tuple(sort)
        version, found = self._known.get(key, ((), []))
        if version != self._version:
            found = super().lookup(object_type, columns, restrictions, sort)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = self._version, found
        return found


class OpenStores:
    """Each store once, for whichever thread asks."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}
        self._charts: dict[str, tuple[Version, Chart]] = {}
        self._lists: dict[str, dict[object, tuple[Version, list[Record]]]] = {}
        self._lock = Lock()

    def source(self, url: str, view: View) -> Source:
        return RememberedSource(view, self._lists.setdefault(url, {}))

    def get(self, url: str) -> Store:
        with self._lock:
            found = self._stores.get(url)
            if found is None:
                found = self._stores[url] = open_store(url)
            return found

    @contextmanager
    def view(self, url: str) -> Iterator[View]:
        """``StorageError`` for a store that cannot be read; the next time it is opened anew."""
        store = self.get(url)
        try:
            with store.read() as view:
                yield view
        except StorageError:
            self._forget(url, store)
            raise

    def chart(self, url: str) -> Chart:
        """What routing knows; the same object until the store changes."""
        with self.view(url) as view:
            version = version_of(view)
            known = self._charts.get(url)
            if known is not None and known[0] == version:
                return known[1]
            found = Chart(Snapshot.read(view), _roles(StoreSource(view)))
            self._charts[url] = version, found
            return found

    def _forget(self, url: str, store: Store) -> None:
        with self._lock:
            if self._stores.get(url) is store:
                del self._stores[url]

    def close(self) -> None:
        with self._lock:
            stores, self._stores = self._stores, {}
        for store in stores.values():
            store.close()


@contextmanager
def source_of(place: Place, stores: OpenStores, remote: Source | None) -> Iterator[Source]:
    """The server's store, else what the server shows over RPC."""
    if place.store is not None:
        with stores.view(place.store) as view:
            yield stores.source(place.store, view)
    elif remote is not None:
        yield remote
    else:
        raise PlacesError(f"{place.name} shows its directory to those who log in")


def chart_of(place: Place, stores: OpenStores, remote: Source | None) -> Chart:
    if place.store is not None:
        return stores.chart(place.store)
    with source_of(place, stores, remote) as source:
        return Chart(snapshot_of_server(source), _roles(source))


def _roles(source: Source) -> dict[Guid, str]:
    """PEC, PSC or BSC of the machines that are one."""
    found = {}
    for record in source.lookup(ObjectType.MACHINE, (PropId.QM_SERVICE,), (), ()):
        bits = record.values[PropId.QM_SERVICE]
        value = None if bits is None else bits.value
        role = Service.from_bits(value).role if isinstance(value, int) else None
        if role is not None:
            found[record.id] = str(role.name)
    return found
