"""The part of the tour about an Active Directory: its LDIF into a store, and back. No server."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import mqis.lab
from mqis.admin.activedirectory.exporting import LdifOptions, export_ldif
from mqis.admin.activedirectory.ldif import import_ldif
from mqis.admin.activedirectory.notes import TransferNotes
from mqis.cli.tour.guide import Guide
from mqis.config.stores import open_store
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store
from mqis.texts import counted
from mqis.wire.mqds.objecttype import ObjectType

#: An estate as ldapsearch shows it.
EXAMPLE = Path(mqis.lab.__file__).with_name("estate.ldif")
_EXPECTED = {"enterprise": 1, "site": 3, "network": 3, "link": 2, "machine": 4, "queue": 6}
_COMPARED = (ObjectType.SITE, ObjectType.ROUTINGLINK, ObjectType.MACHINE, ObjectType.QUEUE)


def from_ldif(guide: Guide) -> None:
    """Imports the example into a store, writes it as LDIF again, and compares the objects."""
    guide.step("Active Directory", f"an estate as ldapsearch shows it ({EXAMPLE.name})")
    with TemporaryDirectory(prefix="mqis-tour-") as place:
        first = open_store(f"{place}/first.db", create=True)
        second = open_store(f"{place}/second.db", create=True)
        try:
            _compare(guide, first, second, Path(place) / "again.ldif")
        finally:
            first.close()
            second.close()


def _compare(guide: Guide, first: Store, second: Store, again: Path) -> None:
    imported = import_ldif(first, [EXAMPLE]).imported.objects
    counts = ", ".join(counted(number, kind.label) for kind, number in imported.items())
    guide.confirm_equal(counts, {kind.label: n for kind, n in imported.items()}, _EXPECTED)
    with first.read() as view, again.open("wb") as out:
        export_ldif(view, out, LdifOptions(), TransferNotes())
    import_ldif(second, [again])
    here, there = _objects(first), _objects(second)
    changed = [old[:2] for old in here if old not in there]
    guide.confirm(
        "written as LDIF and imported again, the objects are the same",
        here == there and len(here) > 0,
        saw=f"{counted(len(here), 'object')} and {len(there)} again, of which {changed} differ",
        expected="the same objects",
    )
    guide.line("   try it with yours: mqis import ldaps://DC --store estate.db", "dim")


def _objects(store: Store) -> list[tuple[object, ...]]:
    with store.read() as view:
        return [_content(obj) for kind in _COMPARED for obj in view.objects(kind)]


def _content(obj: DirectoryObject) -> tuple[object, ...]:
    """The object without its number, which every store gives itself."""
    return obj.type, obj.id, obj.partition, dict(obj.properties)
