"""Consoles over made-up networks, for tests of the map."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mqis.config.stores import open_store
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.runtime.entropy import SystemEntropy
from mqis.views.console.server_places import Places
from mqis.views.console.visitor_rights import Guest
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.web.network import EstatePlan, fill_estate

#: A name that would be markup, were it ever taken for that.
HOSTILE = '<img src=x onerror="document.title=1">\u202e{{7*7}}'


def make_estate(path: Path, plan: EstatePlan, hostile: bool = False) -> Path:
    """Makes a store; ``hostile`` renames its first site."""
    with closing(open_store(str(path), create=True)) as store:
        fill_estate(store, plan)
        if hostile:
            with store.write() as tx:
                site = tx.find(ObjectType.SITE, plan.name(0))
                assert site is not None
                events = DirectoryEvents(tx, 1_709_280_000, SystemEntropy())
                events.update_directory_object(site, props({PropId.S_PATHNAME: HOSTILE}))
    return path


@contextmanager
def console_of(
    store: Path, tables: Path | None = None, guest: str = "administrator"
) -> Iterator[str]:
    settings = ConsoleSettings(
        Places(stores=(str(store),)), tables, port=0, guest=Guest.parse(guest)
    )
    with running_console(settings) as url:
        yield url
