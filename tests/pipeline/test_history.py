"""Changes and versions of the generated enterprise against its journals."""

from __future__ import annotations

from mqis.pipeline.runs import history
from mqis.pipeline.tables import TableDirectory
from mqis.wire.journal import JournalRecord, RecordState
from mqis.wire.journal.record import decode_body
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from tests.pipeline.conftest import Enterprise
from tests.pipeline.test_sources import whole_records


def test_changes_and_versions(tables: TableDirectory, enterprise: Enterprise) -> None:
    done = history(tables)
    local: dict[tuple[str, int], tuple[str, JournalRecord]] = {}
    had: dict[tuple[str, int], set[str]] = {}
    for server, entry in whole_records(enterprise):
        if server == "stranger":  # no directory knows it
            continue
        key = str(entry.record.partition), entry.record.seq.value
        if entry.record.state is RecordState.LOCAL:
            local[key] = server, entry.record
        elif entry.record.state is RecordState.APPLIED:
            had.setdefault(key, set()).add(server)
    rows = {(row.partition, row.seq): row for row in tables.read("changes").collect()}
    assert rows.keys() == local.keys()
    for key, (server, record) in local.items():
        row = rows[key]
        change = decode_body(record)
        assert isinstance(change, DirectoryChange)
        assert (row.origin, row.id) == (server, str(record.object_id))
        assert row.operation == change.command.name.lower()
        assert [(p.propid, bytes(p.raw)) for p in row.properties] == [
            (propid, variant.packed()) for propid, variant in change.properties
        ]
        assert set(row.had or {}) == had.get(key, set())
    made = [record for _, record in local.values()]
    deleted = sum(record.operation == Command.DELETE for record in made)
    assert done.changes == len(made)
    assert done.versions == len(made) - deleted
    open_ = tables.read("versions").filter("valid_to_seq is null").count()
    assert open_ == len({record.object_id for record in made}) - deleted
