"""Lag, gaps and duplicates against a plain computation and the manifest."""

from __future__ import annotations

from statistics import median

import pytest

from mqis.pipeline.runs import Progressed, lag
from mqis.pipeline.tables import TableDirectory
from mqis.wire.journal import RecordState
from mqis.wire.mqdsrp.messages import MessageOperation
from tests.pipeline.conftest import Enterprise
from tests.pipeline.test_sources import whole_records


@pytest.fixture(scope="module")
def progressed(tables: TableDirectory) -> Progressed:
    return lag(tables)


def test_gaps_and_duplicates_are_the_planted(
    progressed: Progressed, tables: TableDirectory, enterprise: Enterprise
) -> None:
    rows = tables.read("gaps").filter("certain").collect()
    gaps = {(r.server, r.partition, r.first_seq, r.last_seq) for r in rows if r.kind == "gap"}
    planted = enterprise.manifest["gaps"]
    assert gaps == {(g["server"], g["partition"], g["first"], g["last"]) for g in planted}
    twice = {(r.server, r.partition, r.first_seq, r.times) for r in rows if r.kind != "gap"}
    duplicates = enterprise.manifest["duplicates"]
    assert twice == {(d["server"], d["partition"], d["seq"], 2) for d in duplicates}
    damaged = {d["server"] for d in enterprise.manifest["damage"] if d["file"].endswith(".mqj")}
    uncertain = tables.read("gaps").filter("not certain").collect()
    assert {row.server for row in uncertain} <= damaged


def test_lag_is_the_time_between_the_records(
    progressed: Progressed, tables: TableDirectory, enterprise: Enterprise
) -> None:
    made: dict[tuple[object, int], tuple[str, int]] = {}
    had: dict[tuple[str, object, int], int] = {}
    # No lag can be computed from the times of a wrong clock, or of a server that nobody knows.
    (wrong,) = (e["server"] for e in enterprise.manifest["evidence"] if e["kind"] == "clock_ahead")
    for server, entry in whole_records(enterprise):
        if server in (wrong, "stranger"):
            continue
        record = entry.record
        key = (record.partition, record.seq.value)
        if record.state is RecordState.LOCAL:
            made[key] = (server, record.time_us)
        elif record.state is RecordState.APPLIED:
            had.setdefault((server, *key), record.time_us)
    lags: dict[tuple[str, str], list[float]] = {}
    for (server, *rest), time in had.items():
        if tuple(rest) not in made:
            continue
        origin, start = made[rest[0], rest[1]]  # type: ignore[index]
        lags.setdefault((origin, server), []).append((time - start) / 1000)
    rows = {(row.origin, row.server): row for row in tables.read("lag").collect()}
    assert len(rows) == 6  # two authorities with three replicas each
    assert rows.keys() == lags.keys()
    for way, values in lags.items():
        assert rows[way].changes == len(values)
        assert rows[way].p50_ms == pytest.approx(median(values))
        assert rows[way].max_ms == pytest.approx(max(values))
        assert rows[way].p50_ms <= rows[way].p95_ms <= rows[way].p99_ms <= rows[way].max_ms


def test_messages_are_counted(progressed: Progressed, tables: TableDirectory) -> None:
    rounds = tables.read("rounds").collect()
    queued = tables.read("records").filter("kind = 1 and state = 2").groupBy("operation").count()
    counted = {row["operation"]: row["count"] for row in queued.collect()}
    told = {
        MessageOperation.CHANGE_PROPAGATION: sum(row.change_propagation for row in rounds),
        MessageOperation.SYNC_REQUEST: sum(row.sync_request for row in rounds),
        MessageOperation.SYNC_REPLY: sum(row.sync_reply for row in rounds),
    }
    assert told == counted
    assert sum(row.sync_rounds for row in rounds) == counted[MessageOperation.SYNC_REPLY]
    assert {row.sync0_request for row in rounds} == {0}  # all ask from a number on
