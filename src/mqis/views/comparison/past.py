"""A side of a comparison from the journal of a server, at a moment of the past."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqis.storage.journal.past import PastMoment, past_directory
from mqis.views.comparison.side import DirectorySide
from mqis.views.comparison.stored import objects_in_order


@contextmanager
def past_side(directory: Path, moment: PastMoment) -> Iterator[DirectorySide]:
    """Rebuilds the directory that the server held then."""
    store, lsn = past_directory(directory, moment)
    label = f"{directory}@{moment.text}" if moment.text else str(directory)
    with store.read() as view:
        yield DirectorySide(label, objects_in_order(view), notes=(f"{label}: record {lsn}",))
