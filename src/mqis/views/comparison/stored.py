"""A side of a comparison from a store, as one view shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mqis.config.stores import open_store, without_passwords
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.views.comparison.side import DirectorySide


@contextmanager
def stored_side(url: str, label: str = "") -> Iterator[DirectorySide]:
    """Opens a store; a server may use it meanwhile. ``label`` names it instead of the URL."""
    with closing(open_store(url)) as store, store.read() as view:
        yield DirectorySide(label or without_passwords(url), objects_in_order(view))


def objects_in_order(view: View) -> Iterator[DirectoryObject]:
    """Yields all objects in the order of exports."""
    for object_type in ORDER:
        yield from view.objects(object_type)
