"""The step of the live tour about the pipeline, run on five journals and five exports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from mqis.admin.transfer import export_file
from mqis.cli.output import counted
from mqis.cli.pipeline.report import write_report
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.healing import Episode
from mqis.cli.tour.site import Tour
from mqis.config.stores import open_store
from mqis.wire.errors import MqisError

T = TypeVar("T")

_JOBS = 5


def pipeline(guide: Guide, tour: Tour, episode: Episode) -> None:
    guide.step(
        "Pipeline", "Spark reads the journals and copies of all five servers and audits them"
    )
    lacking = _lacking()
    if lacking:
        guide.line(f"   left out, {lacking}: 'make pipeline' installs what it needs", "yellow")
        return
    exports = tour.run / "exports"
    exports.mkdir(exist_ok=True)
    for node in tour.nodes:
        with closing(open_store(node.store)) as store:
            export_file(store, exports / f"{node.name}.jsonl")
    found = _jobs(guide, tour, episode, exports)
    guide.confirm(
        f"ingested {found.records:,} journal records and {found.objects:,} objects of "
        f"{counted(found.servers, 'server')}; all of it could be read",
        found.errors == 0 and found.servers == len(tour.nodes.nodes),
    )
    guide.confirm(
        "audit: every copy agrees with its authority; the enterprise has converged",
        found.differences == 0 and not found.unaudited,
    )
    passing = sum('"Passing by"' in line for line in _lines(found.rebuilt))
    left = sum('"Passing by"' in line for line in _lines(exports / "ber-dir1.jsonl"))
    guide.confirm(
        f"rebuilt as of {episode.moment:%H:%M:%S.%f}, before the deletes: {passing} queues that "
        f"are deleted now, in {found.rebuilt.relative_to(tour.directory.absolute())}",
        passing == episode.queues and left == 0,
    )
    guide.confirm(
        f"report: {found.report}", found.report.exists() and found.report.stat().st_size > 0
    )


def _lacking() -> str:
    """The reason why the pipeline cannot run here; empty if it can."""
    if find_spec("pyspark") is None:
        return "Spark is not installed"
    from mqis.pipeline.java import java_home  # noqa: PLC0415

    try:
        java_home()
    except MqisError:
        return "there is no Java"
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
    from mqis.pipeline.runs import audit, ingest, lag  # noqa: PLC0415
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
        job(lambda: rebuild(tables, rebuilt, at_time=episode.moment))
        job(lambda: write_report(tables, page))
    return _Found(
        read.records,
        read.objects,
        read.servers,
        read.errors,
        found.differences,
        found.unaudited,
        rebuilt,
        page,
    )
