"""History: the tables ``changes`` and ``versions``."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.history import changes, versions
from mqis.pipeline.transforms.rebuild import local_changes
from mqis.pipeline.trusted import records_of


@dataclass(frozen=True, slots=True)
class Recorded:
    changes: int
    versions: int


def history(tables: TableDirectory) -> Recorded:
    """Writes both tables from ``records``."""
    records = records_of(tables)
    made = tables.write("changes", changes(local_changes(records), records))
    resulting = tables.write("versions", versions(made))
    return Recorded(made.count(), resulting.count())
