"""The rows of a segment file: a row for each record, and one for each damaged place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqis.pipeline import arrays
from mqis.pipeline.sources.segments import NO_GUID, Damage, Scan, joined
from mqis.wire.journal import SegmentHeader, Torn
from mqis.wire.journal.layout import HAS_MESSAGE

#: Columns that are fields of the record's header, which filters can be pushed down to.
FIELDS = {
    "lsn": "lsn",
    "time": "time_us",
    "kind": "kind",
    "state": "state",
    "operation": "operation",
    "object_type": "object_type",
    "session": "session",
    "partition": "partition",
    "seq": "seq",
    "previous_seq": "previous_seq",
}
_FILE_COLUMNS = ("server", "server_id", "file")


class SegmentFault(NamedTuple):
    """A damaged place of a segment file."""

    offset: int
    length: int
    reason: str

    @classmethod
    def of(cls, entry: Damage, base: int) -> SegmentFault:
        kind = "torn" if isinstance(entry, Torn) else "corrupt"
        return cls(base + entry.offset, entry.length, f"{kind}: {entry.reason}")


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """Makes rows from what was found in a segment; ``header`` is None if it cannot be read."""

    file: str
    header: SegmentHeader | None

    def errors(self, faults: list[SegmentFault], arrow: pa.Schema) -> pa.RecordBatch:
        """A row for each damaged place; without a column for the place, ``error`` has it."""
        rows = [
            self._of_file | {"offset": at, "length": length, "error": reason}
            if "offset" in arrow.names
            else self._of_file | {"error": f"{self.file} at byte {at}: {reason}"}
            for at, length, reason in faults
        ]
        return pa.RecordBatch.from_pylist(rows, schema=arrow)

    def records(self, found: Scan, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
        """A row for each record."""
        for batch in found.batches():
            if len(batch):
                yield self.record_batch(batch, arrow)

    def record_batch(self, found: Scan, arrow: pa.Schema) -> pa.RecordBatch:
        made = [self.column(field, found) for field in arrow]
        return pa.RecordBatch.from_arrays(made, schema=arrow)

    def column(self, field: pa.Field, found: Scan) -> pa.Array:
        """A column of the records."""
        if field.name in _MADE:
            return _MADE[field.name](found, field.type)
        if field.name in _FILE_COLUMNS:
            return pa.repeat(pa.scalar(self._of_file[field.name], field.type), len(found))
        if field.name == "error":
            return pa.nulls(len(found), field.type)
        return arrays.numbers(found.headers[FIELDS[field.name]], field.type)

    @property
    def _of_file(self) -> dict[str, Any]:
        """The columns that all rows of the file share."""
        if self.header is None:
            return {"file": self.file}
        server = arrays.text(self.header.server)
        return {"file": self.file, "server": server, "server_id": self.header.server_id.raw}


def _texts(data: bytes, starts: Any, lengths: Any, kind: pa.DataType) -> pa.Array:
    octets = joined(data, starts, lengths)
    try:
        octets.decode("utf-8")
    except UnicodeDecodeError:
        cuts = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        return pa.array(
            [arrays.text(data[a:b].decode("utf-8", "surrogatepass")) for a, b in cuts], kind
        )
    return arrays.pieces(octets, lengths, kind)


def _unnamed(found: Scan) -> npt.NDArray[np.bool_]:
    unnamed: npt.NDArray[np.bool_] = (found.headers["flags"] & HAS_MESSAGE) == 0
    return unnamed


#: Columns that take more than a copy of a header field.
_MADE: dict[str, Callable[[Scan, pa.DataType], pa.Array]] = {
    "partition": lambda found, kind: arrays.guids(found.headers["partition"]),
    "object_id": lambda found, kind: arrays.guids(
        found.headers["object_id"], found.headers["object_id"] == NO_GUID
    ),
    "message_source": lambda found, kind: arrays.guids(
        found.headers["message_source"], _unnamed(found)
    ),
    "message_ordinal": lambda found, kind: arrays.numbers(
        found.headers["message_ordinal"], kind, _unnamed(found)
    ),
    "peer": lambda found, kind: _texts(found.data, found.peer_at, found.peer_length, kind),
    "reason": lambda found, kind: _texts(found.data, found.reason_at, found.reason_length, kind),
    "body": lambda found, kind: arrays.pieces(
        joined(found.data, found.body_at, found.body_length), found.body_length, kind
    ),
    "offset": lambda found, kind: arrays.numbers(found.starts + found.base, kind),
    "length": lambda found, kind: arrays.numbers(found.headers["length"], kind),
}
