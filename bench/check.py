"""Measures ``mqis check`` on a directory of 100,000 queues, as an export and as a store."""

from __future__ import annotations

from bench.large import Large, large_sqlite
from bench.measure import Sample, once
from bench.results import Aim, Results, Row
from bench.run import Bench, Run
from mqis.admin.transfer import export_file
from mqis.findings import CheckReport
from mqis.views.hygiene.copies import check_export, check_view

#: The aim: an administrator waits at most so long.
PATIENCE_S = 20


def _run(run: Run) -> Results:
    large = large_sqlite(run)
    file = run.directory / "check.jsonl"
    export_file(large.backend.store, file)
    run.say("check: the export")
    exported = once(lambda: _objects(check_export(file)))
    run.say("check: the store")
    stored = once(lambda: _objects(_checked(large)))
    queues = f"{len(large.queues):,} queues"
    table = f"mqis check, {queues} and their machines"
    rows = [_row(table, "an export", exported), _row(table, "an SQLite store", stored)]
    return Results(rows, [_aim(f"check an export of {queues}", exported)])


BENCH = Bench("check", "the hygiene of 100,000 queues", _run)


def _checked(large: Large) -> CheckReport:
    with large.backend.store.read() as view:
        return check_view(view)


def _objects(report: CheckReport) -> int:
    return sum(report.counts.values())


def _row(table: str, name: str, sample: Sample) -> Row:
    return Row(table, name, sample.per_second, seconds=sample.elapsed_ns / 1e9)


def _aim(what: str, sample: Sample) -> Aim:
    seconds = sample.elapsed_ns / 1e9
    return Aim(f"{what} < {PATIENCE_S} s", f"{seconds:.1f} s", seconds < PATIENCE_S)
