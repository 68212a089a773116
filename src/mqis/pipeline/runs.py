"""The runs of ``mqis pipeline``: each builds some tables of the graph and counts their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.building import FilesRead, TableBuilder
from mqis.pipeline.failures import raised_as
from mqis.pipeline.graph import TABLES, TableKind
from mqis.pipeline.inputs import FileSource, PipelineInputs, sources_of
from mqis.pipeline.tables import TableDirectory, TableStore
from mqis.pipeline.transforms.expressions import guid_text
from mqis.pipeline.transforms.network import unpacked
from mqis.texts import some
from mqis.wire.errors import MqisError

#: The tables that each kind of input gives.
_OF_SNAPSHOTS = ("snapshot_digests", "snapshots", "snapshot_partitions", "snapshot_errors")
_OF_JOURNALS = ("read_segments", *_OF_SNAPSHOTS, "segments", "records", "repeats")
_OF_EXPORTS = ("objects", "partitions")
_OF_CAPTURES = ("packets",)
_INGESTED = (*_OF_JOURNALS, *_OF_EXPORTS, *_OF_CAPTURES, "errors", "journals", "evidence")
#: The kinds of input files, and the table that tells how many of them were read.
_FILES_OF = {"segment": "read_segments", "export": "objects", "capture": "packets"}
#: They depend on input that the user gives with their own commands, so only these write them.
_ASKED_FOR = ("traffic", "estate")


@contextmanager
def _built(
    tables: TableStore, shared: TableBuilder | None, needs: str, *names: str
) -> Iterator[TableBuilder]:
    """Writes tables with the builder that several runs share, or with one for this run."""
    tables.read(needs)  # raises if it is missing
    with nullcontext(shared) if shared is not None else TableBuilder(tables) as builder:
        builder.write(names)
        yield builder


def _counts(frame: DataFrame, column: str) -> dict[str, int]:
    """The number of rows by the values of a column."""
    return {row[column]: row["count"] for row in frame.groupBy(column).count().collect()}


@dataclass(frozen=True, slots=True)
class Ingested:
    records: int
    objects: int
    servers: int
    errors: int
    packets: int = 0
    #: Findings about the input itself.
    evidence: int = 0
    #: How many of the segments, exports and captures were read now, and how many there are.
    files: dict[str, FilesRead] = field(default_factory=dict)
    #: True if an earlier run's tables could not be continued: other code made them.
    began_anew: bool = False


def ingest(
    tables: TableStore,
    journals: str = "",
    exports: str = "",
    captures: str = "",
    *,
    anew: bool = False,
) -> Ingested:
    """Reads what is given into tables; tables of other inputs stay as they are.

    Files that an earlier run has read, and that are as they were, are not read again; with
    ``anew`` they are.
    """
    inputs = PipelineInputs(journals, exports, captures)
    if not (journals or exports or captures):
        raise MqisError("nothing to read: give --journals, --exports or --captures")
    inputs.check()
    with raised_as(MqisError):
        return _ingest(tables, inputs, anew=anew)


def _ingest(tables: TableStore, inputs: PipelineInputs, *, anew: bool) -> Ingested:
    sources = sources_of(tables.session, inputs)
    names = [*_OF_JOURNALS * bool(inputs.journals), *_OF_EXPORTS * bool(inputs.exports)]
    names += _OF_CAPTURES * bool(inputs.captures)
    if isinstance(tables, TableDirectory) and not anew and tables.has("sealed_segments"):
        # It is in itself no reason to make a table anew.
        sources["earlier_segments"] = FileSource(lambda _: tables.read("sealed_segments"), dict)
    if inputs.journals and "snapshot_lines" not in sources:
        for name in _OF_SNAPSHOTS:
            tables.drop(name)
    with TableBuilder(tables, sources, anew=anew) as builder:
        builder.write([*names, "errors"])
        if inputs.journals or inputs.exports:
            builder.write(["sealed_segments", "journals", "evidence"])
        return _ingested(tables, builder)


def _ingested(tables: TableStore, builder: TableBuilder) -> Ingested:
    objects = _counts(builder.frame("objects").filter("error is null"), "server")
    extents = builder.frame("file_extents")
    read = extents.groupBy("server").agg(F.sum("records").alias("n")).collect()
    records = {row["server"]: row["n"] for row in read}
    files = builder.files_read
    return Ingested(
        records=sum(records.values()),
        objects=sum(objects.values()),
        servers=len(records.keys() | objects.keys()),
        errors=tables.count("errors"),
        packets=tables.count("packets"),
        evidence=tables.count("evidence"),
        files={kind: files[name] for kind, name in _FILES_OF.items() if name in files},
        began_anew=builder.began_anew,
    )


@dataclass(frozen=True, slots=True)
class Audited:
    differences: int
    objects: int
    servers: int
    #: Partitions that were not audited, because their authority was not exported.
    unaudited: tuple[str, ...]


def audit(tables: TableStore, shared: TableBuilder | None = None) -> Audited:
    """Writes ``divergence``."""
    with _built(tables, shared, "objects", "divergence") as builder:
        partitions = builder.frame("used_partitions")
        owners = builder.frame("authorities").select("partition")
        unknown = partitions.join(F.broadcast(owners), "partition", "left_anti")
        texts = unknown.select(guid_text("partition").alias("id")).distinct()
        return Audited(
            tables.count("divergence"),
            builder.frame("used_objects").count(),
            partitions.select("server").distinct().count(),
            tuple(sorted(row["id"] for row in texts.collect())),
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    changes: int
    versions: int


def history(tables: TableStore, shared: TableBuilder | None = None) -> Recorded:
    """Writes ``changes`` and ``versions``."""
    with _built(tables, shared, "records", "changes", "versions"):
        return Recorded(tables.count("changes"), tables.count("versions"))


@dataclass(frozen=True, slots=True)
class Progressed:
    ways: int
    gaps: int
    duplicates: int


def lag(tables: TableStore, shared: TableBuilder | None = None) -> Progressed:
    """Writes ``lag``, ``lag_by_minute``, ``gaps``, ``rounds`` and, of exports, ``margins``."""
    with _built(tables, shared, "records") as builder:
        builder.frame("arrivals").persist()
        builder.write(["lag", "lag_by_minute", "gaps", "rounds", "margins"])
    kinds = _counts(tables.read("gaps"), "kind")
    return Progressed(tables.count("lag"), kinds.get("gap", 0), kinds.get("duplicate", 0))


def hygiene(tables: TableStore, shared: TableBuilder | None = None) -> dict[str, int]:
    """Writes ``directory``, ``hygiene`` and ``hygiene_limits``; counts the findings by check."""
    with _built(tables, shared, "objects", "directory", "hygiene", "hygiene_limits"):
        return _counts(tables.read("hygiene"), "check")


@dataclass(frozen=True, slots=True)
class Routed:
    sites: int
    pairs: int
    unreachable: int


@dataclass(frozen=True, slots=True)
class Failed:
    failures: int
    #: Failures that cut off at least one pair of sites.
    cutting: int


def routes(tables: TableStore, shared: TableBuilder | None = None) -> Routed:
    """Writes ``routes``."""
    with _built(tables, shared, "objects", "routes") as builder:
        sites = sum(row["sites"] for row in builder.frame("network").collect())
    unreachable = tables.read("routes").filter("cost is null").count()
    return Routed(sites, tables.count("routes"), unreachable)


def what_if(tables: TableStore, shared: TableBuilder | None = None) -> Failed:
    """Writes ``what_if``."""
    with _built(tables, shared, "objects", "what_if"):
        cutting = tables.read("what_if").filter("cut_off > 0").count()
        return Failed(tables.count("what_if"), cutting)


@dataclass(frozen=True, slots=True)
class Carried:
    messages: float
    links: int
    undeliverable: float


def traffic(tables: TableStore, messages: str = "", *, failed: str = "", seed: int = 1) -> Carried:
    """Writes ``traffic``; the arguments are those of ``PipelineInputs``."""
    inputs = PipelineInputs(messages=messages, failed=failed, seed=seed)
    inputs.check()
    tables.read("objects")
    with TableBuilder(tables, sources_of(tables.session, inputs)) as builder:
        # Without a usable export there is no network.
        networks = builder.frame("network").collect()
        links = [link for row in networks for link in unpacked(row["packed"]).links]
        if failed and failed not in links:
            known = some(sorted(set(links)), 10) or "none"
            raise MqisError(f"there is no link {failed!r}; links are {known}")
        builder.write(["traffic"])
        total = builder.frame("site_demand").agg(F.sum("messages")).collect()[0][0] or 0.0
    rows = tables.read("traffic").collect()
    lost = sum(row["messages_after"] for row in rows if row["kind"] == "undeliverable")
    return Carried(total, sum(row["kind"] == "link" for row in rows), lost)


def estate(tables: TableStore, findings: str) -> dict[str, int]:
    """Writes ``estate`` from results of ``mqis estate check``; counts the faults by their state."""
    sources = sources_of(tables.session, PipelineInputs(findings=findings))
    with TableBuilder(tables, sources) as builder:
        builder.write(["estate"])
    return _counts(tables.read("estate"), "state")


def conversations(tables: TableStore, shared: TableBuilder | None = None) -> dict[str, int]:
    """Writes ``conversations``; returns the number of messages of each protocol."""
    with _built(tables, shared, "packets", "conversations"):
        made = tables.read("conversations").groupBy("protocol").agg(F.sum("messages").alias("n"))
        return {row["protocol"]: row["n"] for row in made.orderBy("protocol").collect()}


def others(shared: TableBuilder) -> None:
    """Writes the tables that no other run of the same builder has written."""
    known = {*_INGESTED, *_ASKED_FOR, *shared.written}
    shared.write(
        name
        for name, table in TABLES.items()
        if table.kind is TableKind.TABLE and name not in known
    )
