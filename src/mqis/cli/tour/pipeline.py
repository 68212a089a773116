"""The step of the live tour about the pipeline, run on five journals and five exports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mqis.admin.transfer import export_file
from mqis.cli.pipeline.report import write_report
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.healing import Episode
from mqis.cli.tour.reading import ShownPage, read_page
from mqis.cli.tour.site import Tour
from mqis.cli.tour.slip import UndoneSlip
from mqis.config.stores import open_store
from mqis.enterprise.plan import RunPlan
from mqis.extras import PIPELINE
from mqis.storage.journal.journal_reader import records
from mqis.texts import counted, duration, moment
from mqis.wire.errors import MqisError
from mqis.wire.journal import RecordState

T = TypeVar("T")

_JOBS = 6
#: Headings of the report's tables, and its sentence about a server that was healed.
_DELAYS, _ROUNDS = "Delay by authority and server", "Messages and synchronisations"
_HEALED = "{} missed changes that {} had purged, and has copied everything since ({})."


def pipeline(guide: Guide, tour: Tour, slip: UndoneSlip, episode: Episode) -> None:
    guide.step(
        "Pipeline", "Spark reads the journals and copies of all five servers and audits them"
    )
    lacking = _lacking()
    if lacking:
        guide.line(f"   left out: {lacking}", "yellow")
        return
    exports = tour.run / "exports"
    exports.mkdir(exist_ok=True)
    lines = 0
    for node in tour.nodes:
        with closing(open_store(node.store)) as store:
            lines += export_file(store, exports / f"{node.name}.jsonl")
    found = _jobs(guide, tour, episode, exports)
    guide.confirm_equal(
        f"ingested {counted(found.records, 'journal record')} and "
        f"{counted(found.objects, 'object')} of "
        f"{counted(found.servers, 'server')}; all of it could be read",
        {"objects": found.objects, "servers": found.servers, "errors": found.errors},
        {"objects": lines, "servers": len(tour.nodes.nodes), "errors": 0},
    )
    guide.confirm_equal(
        "audit: every copy agrees with its authority; the enterprise has converged",
        {"differences": found.differences, "not audited": found.unaudited},
        {"differences": 0, "not audited": ()},
    )
    passing = sum('"Passing by"' in line for line in _lines(found.rebuilt))
    left = sum('"Passing by"' in line for line in _lines(exports / "ber-dir1.jsonl"))
    guide.confirm_equal(
        f"rebuilt as of {moment(episode.moment.timestamp())}, before the deletes: {passing} queues "
        f"that are deleted now, in {found.rebuilt.relative_to(tour.directory.absolute())}",
        {"rebuilt": passing, "there now": left},
        {"rebuilt": episode.queues, "there now": 0},
    )
    guide.confirm_equal(
        f"history: the slip is {counted(found.undone, 'object')} deleted and made again",
        found.undone,
        slip.objects,
    )
    _report(guide, tour, slip, episode, found)


def _report(guide: Guide, tour: Tour, slip: UndoneSlip, episode: Episode, found: _Found) -> None:
    """Reads the report as a person does."""
    page = read_page(found.report.read_text(encoding="utf-8"))
    guide.confirm_equal(
        f"report: {found.report}",
        page.heading,
        f"{tour.plan.enterprise.name}: state of the directory",
    )
    for sentence in page.sentences:
        guide.line(f"     {sentence}", "dim")
    guide.confirm_equal(
        f"its verdict: {page.verdict}", (page.verdict, page.tone), ("In order", "good")
    )
    made = sum(_changes_made(Path(node.journal)) for node in tour.nodes)
    told = dict(page.tiles)
    delay = told.pop("longest delay (95 %)", "none")
    guide.confirm_equal(
        "its numbers are what was done to the enterprise: "
        + ", ".join(f"{value} {name}" for name, value in told.items()),
        told,
        expected_tiles(tour.plan, made),
    )
    slowest = max(number(row["95 % within, ms"]) for row in page.tables[_DELAYS])
    guide.confirm_equal(
        f"its longest delay is that of its table: {delay}", delay, duration(slowest / 1000)
    )
    copies = full_copies(page)
    pair = episode.away, episode.source
    # A server that waits too long on a slow computer asks again, and copies twice.
    times = counted(copies.get(pair, 0), "full synchronisation")
    guide.confirm_equal(
        f"it tells that {episode.away} copied everything from {episode.source}, and calls it no "
        "fault",
        ({*copies}, [row for row in page.sentences if row.startswith(episode.away)]),
        ({pair}, [_HEALED.format(*pair, times)]),
    )


def expected_tiles(plan: RunPlan, changes: int) -> dict[str, str]:
    """The numbers of the report's tiles for an enterprise in which every step was carried out."""
    counts = {
        "directory servers": len(plan.servers),
        "sites": len(plan.sites),
        "links": len(plan.links),
        "machines": len(plan.servers) + len(plan.machines),
        "queues": len(plan.queues) + 1,  # the one that was created far away
        "user": 1,  # the certificate of the clerk
        "network": 1,
        "changes": changes,
        "differences": 0,
        "skipped or repeated": 0,
        "doubts about the input": 0,
        "read errors": 0,
    }
    return {name: f"{count:,}" for name, count in counts.items()}


def full_copies(page: ShownPage) -> dict[tuple[str, str], int]:
    """The full synchronisations of servers that had been told that changes are purged."""
    rows = page.tables[_ROUNDS]
    told = {(row["peer"], row["server"]) for row in rows if row["already purged"] != "0"}
    found = {(row["server"], row["peer"]): row["full resynchronisations"] for row in rows}
    return {way: int(number(found[way])) for way in told}


def undone(changes: Iterable[tuple[str, str, int]]) -> int:
    """Counts the objects that were changed after they were deleted: (id, operation, seq)."""
    listed = list(changes)
    gone = {id_: seq for id_, operation, seq in listed if operation == "delete"}
    return len({id_ for id_, _, seq in listed if seq > gone.get(id_, seq)})


def number(text: str) -> float:
    return float(text.replace(",", ""))


def _changes_made(journal: Path) -> int:
    return sum(entry.record.state is RecordState.LOCAL for entry in records(journal))


def _lacking() -> str:
    """The reason why the pipeline cannot run here; empty if it can."""
    if not PIPELINE.installed:
        return f"Spark is not installed: {PIPELINE.command}"
    from mqis.pipeline.session import java_home  # noqa: PLC0415

    try:
        java_home()
    except MqisError:
        return "there is no Java 17 or newer"
    return ""


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="ascii").splitlines()[1:]


@dataclass(frozen=True, slots=True)
class _Found:
    records: int
    objects: int
    servers: int
    errors: int
    differences: int
    unaudited: tuple[str, ...]
    #: Objects that were deleted and made again.
    undone: int
    rebuilt: Path
    report: Path


@contextmanager
def _redirected_stderr(path: Path) -> Iterator[None]:
    """Redirects the standard error, to which Java writes, into a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _jobs(guide: Guide, tour: Tour, episode: Episode, exports: Path) -> _Found:
    from mqis.pipeline.rebuilding import rebuild  # noqa: PLC0415
    from mqis.pipeline.runs import audit, history, ingest, lag  # noqa: PLC0415
    from mqis.pipeline.session import Engine, session  # noqa: PLC0415
    from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415

    rebuilt, page = tour.run / "before-deletes.jsonl", tour.run / "tables" / "report.html"
    noise = tour.run / "spark.log"
    with (
        guide.waiting("Spark works", _JOBS) as bar,
        _redirected_stderr(noise),
        session(Engine()) as spark,
    ):
        done = 0

        def job(work: Callable[[], T]) -> T:
            nonlocal done
            result = work()
            done += 1
            bar(done)
            return result

        tables = TableDirectory(spark, tour.run / "tables")
        journals = ",".join(node.journal for node in tour.nodes)
        read = job(lambda: ingest(tables, journals, str(exports)))
        found = job(lambda: audit(tables))
        job(lambda: lag(tables))
        job(lambda: history(tables))
        changes = tables.read("changes").select("id", "operation", "seq").collect()
        job(lambda: rebuild(tables, rebuilt, at_time=episode.moment))
        job(lambda: write_report(tables, page))
    return _Found(
        read.records,
        read.objects,
        read.servers,
        read.errors,
        found.differences,
        found.unaudited,
        undone((row["id"], row["operation"], row["seq"]) for row in changes),
        rebuilt,
        page,
    )
