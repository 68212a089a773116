"""The stores that the console keeps open, with cached lists and charts; one may be a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from mqis.config.stores import open_store
from mqis.protocol.activedirectory.mirror.cursor import is_mirror, read_cursor, state_of
from mqis.protocol.activedirectory.mirror.leftout import read_left_out
from mqis.protocol.directory.object_sources import Source
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.protocol.routing.snapshot import ROUTED
from mqis.views.console.guarded import Found, GuardedSource, Remembered, version_of
from mqis.views.console.journal_sight import Judge, ObjectJudge, see_everything
from mqis.views.console.recordednames import RecordedNames
from mqis.views.console.server_places import Places, ServerPlace
from mqis.views.console.visitor_rights import VisitorRights
from mqis.views.sitemap.charting import Chart, chart_of_objects, chart_of_server
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

__all__ = ["Chart", "LoginNeeded", "OpenStores", "Secured", "VisitorReader"]

#: The most cached lists and charts of all stores together, to limit the memory.
_LISTS = 8
_CHARTS = 4


class LoginNeeded(MqisError):
    """The visitor has to log in: only the server knows what they may read."""


class Secured(Source, Protocol):
    """A source that also reads permissions."""

    def security(self, object_type: ObjectType, name: str, information: int) -> bytes: ...


class OpenStores:
    """Opens each store once, for all threads."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}
        self._charts: Remembered[Chart] = Remembered(_CHARTS)
        self._lists: Remembered[Found] = Remembered(_LISTS)
        self._lock = Lock()

    def get(self, url: str) -> Store:
        with self._lock:
            found = self._stores.get(url)
            if found is None:
                found = self._stores[url] = open_store(url)
            return found

    @contextmanager
    def view(self, url: str) -> Iterator[View]:
        """Opens a view; after a ``StorageError`` the store is opened again the next time."""
        store = self.get(url)
        try:
            with store.read() as view:
                yield view
        except StorageError:
            self._forget(url, store)
            raise

    @contextmanager
    def source(self, url: str, rights: VisitorRights) -> Iterator[GuardedSource]:
        """A source of the objects that a visitor may read."""
        with self.view(url) as view:
            yield GuardedSource(view, url, rights, self._lists)

    def chart(self, url: str, rights: VisitorRights) -> Chart:
        """The chart of the objects that a visitor may read; cached until the store changes."""
        with self.view(url) as view:
            source = GuardedSource(view, url, rights, self._lists)
            return self._charts.get((url, rights), version_of(view), lambda: _chart(source))

    def _forget(self, url: str, store: Store) -> None:
        with self._lock:
            if self._stores.get(url) is store:
                del self._stores[url]

    def close(self) -> None:
        with self._lock:
            stores, self._stores = self._stores, {}
        for store in stores.values():
            store.close()


@dataclass(frozen=True, slots=True)
class VisitorReader:
    """One visitor at one server."""

    place: ServerPlace
    stores: OpenStores
    #: The visitor's rights; None: only the server itself knows them.
    rights: VisitorRights | None
    #: The visitor's own connection to the server.
    remote: Secured | None

    @contextmanager
    def source(self) -> Iterator[Secured]:
        """The server's store if it can be read, else the server over RPC."""
        if self.place.store is not None and self.rights is not None:
            with self.stores.source(self.place.store, self.rights) as source:
                yield source
        elif self.remote is not None:
            yield self.remote
        else:
            raise LoginNeeded(f"{self.place.name} shows its directory to those who log in")

    def chart(self) -> Chart:
        if self.place.store is not None and self.rights is not None:
            return self.stores.chart(self.place.store, self.rights)
        with self.source() as source:
            return chart_of_server(source)

    @contextmanager
    def judge(self) -> Iterator[Judge]:
        """The function that decides how much of a journal record the visitor sees."""
        if self.everything:
            yield see_everything
        elif self.place.store is None or self.rights is None:
            yield ObjectJudge(None)
        else:
            with self.stores.source(self.place.store, self.rights) as source:
                yield ObjectJudge(source)

    @contextmanager
    def names(self) -> Iterator[RecordedNames]:
        """The names of objects in the server's store, if that can be read."""
        with ExitStack() as stack:
            source = None
            if self.place.store is not None and self.rights is not None:
                with suppress(StorageError):
                    source = stack.enter_context(self.stores.source(self.place.store, self.rights))
            yield RecordedNames(source)

    @property
    def everything(self) -> bool:
        """True if the visitor may read everything."""
        return self.rights is not None and self.rights.everything


def _chart(source: GuardedSource) -> Chart:
    return chart_of_objects(obj for kind in ROUTED for obj in source.objects(kind))


def mirror_sentence(places: Places, stores: OpenStores) -> str:
    """The position of the mirror; empty if the console shows a server, or a store that is none."""
    if places.take_calls:
        return ""
    for place in places.all():
        if place.store:
            try:
                with stores.view(place.store) as view:
                    if is_mirror(view):
                        cursor, left_out = read_cursor(view), read_left_out(view)
                        break
            except MqisError:
                continue  # the page itself says what is wrong with the store
    else:
        return ""
    about = "This is a mirror of an Active Directory"
    if cursor is None:
        return f"{about} that is not complete yet."
    return f"{about}, {state_of(cursor, left_out)}. Make changes there."
