"""Checks that the pipeline finds all faults planted in a large enterprise, and nothing else.

Usage: python tools/pipeline_proof.py [--servers 200] [--changes 1000000] [--faults 10] [--seed 1]
                                      [--segments 1] [--outage 0] [--growth] [--directory DIR]
                                      [--place URI] [--memory 4g] [--json]

Journals and exports of so many servers are generated with known faults; then the pipeline ingests
them, audits the replicas, looks for gaps, and for faults of the directory itself. Every fault has
to be in its tables with its cause, and nothing else: precision and recall 1. If not, it prints the
missing and wrong findings, and the exit status is 1.

A million changes that are each sent to 200 servers would be 200 million records, so only the last
ones are (``--live``). Most servers get the earlier ones by synchronisation, as final objects. All
changes are in the journals of their authorities.

More than 200 servers have a few changes each, and 30 segments, if nothing else is given. With
``--growth`` a quarter and half of the servers come before them, and a table shows what each table
costs in each size; if one costs more than its input explains, the exit status is 1.

With ``--place`` the inputs are copied to a store of objects, and the pipeline reads them there. Its
credential comes from the environment.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.runs import audit, hygiene, ingest, lag
from mqis.pipeline.session import Amount, Engine, amount_of, session
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.watching import watched
from mqis.places import Place, listed, parse_place, put_at
from mqis.views.hygiene.copies import check_export
from tools.growth_of_tables import MOST, RunCost, costed, growth, growth_table
from tools.memory import watched_memory

_FAULT = ("server", "difference", "cause", "type", "id", "partition", "seq", "source", "target")

_HYGIENE = ("check", "type", "id")

Key = tuple[object, ...]
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """One kind of findings, compared with the planted faults."""

    what: str
    planted: int
    missed: list[Key]
    surplus: list[Key]

    @classmethod
    def of(cls, what: str, planted: Iterable[Key], found: Sequence[Key]) -> Judged:
        wanted = set(planted)
        surplus = [key for key in set(found) if key not in wanted]
        surplus += [key for key in set(found) if found.count(key) > 1]
        return cls(
            what, len(wanted), sorted(wanted - set(found), key=str), sorted(surplus, key=str)
        )

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.planted if self.planted else 1.0

    @property
    def precision(self) -> float:
        right = self.planted - len(self.missed)
        return right / (right + len(self.surplus)) if right + len(self.surplus) else 1.0


@dataclass
class Proof:
    """The result: times, memory and judged findings."""

    seconds: dict[str, float] = field(default_factory=dict)
    judged: list[Judged] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    peak_mib: int = 0
    cost: RunCost | None = None

    @property
    def holds(self) -> bool:
        return not any(j.missed or j.surplus for j in self.judged)


# --- the steps ------------------------------------------------------------------------------------


def stored(directory: Path, place: Place) -> None:
    """Copies all files below a directory to a place."""
    for file, _ in listed(directory, recursive=True):
        assert isinstance(file, Path)
        put_at(file, place_of(file, directory, place))


def place_of(file: Path, directory: Path, place: Place) -> Place:
    """The place of the copy of a file below a directory."""
    for part in file.relative_to(directory).parts:
        place = place / part
    return place


def moved(made: Manifest, directory: Path, place: Place) -> Manifest:
    """The manifest of the copies: the planted faults have the names of their files in it."""
    changed = dict(made)
    for kind in ("damage", "evidence"):
        changed[kind] = [
            row | {"file": row["file"] and str(place_of(Path(row["file"]), directory, place))}
            for row in made[kind]
        ]
    return changed


def _of_jobs(progress: Callable[[int, int], None]) -> Callable[[str, int, int], None]:
    return lambda _table, done, total: progress(done, total)


def prove(
    plan: GeneratePlan, directory: Path, memory: str, console: Console, uri: str = ""
) -> Proof:
    proof = Proof()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    hidden = not console.is_terminal
    with (
        watched_memory() as peak,
        Progress(*columns, TimeElapsedColumn(), console=console, disable=hidden) as bar,
    ):

        @contextmanager
        def step(name: str) -> Iterator[Callable[[int, int], None]]:
            task, start = bar.add_task(name, total=None), time.monotonic()
            yield lambda done, total: bar.update(task, completed=done, total=total)
            proof.seconds[name] = time.monotonic() - start
            bar.update(task, completed=1, total=1)
            if hidden:
                console.print(f"{name}: {proof.seconds[name]:.1f} s", highlight=False)

        with step("generating") as progress:
            made = planted(plan, directory / "made", progress)
        inputs: Place = directory / "made"
        if uri:
            inputs = parse_place(uri)
            with step("copying to the store"):
                for kind in ("journals", "exports"):
                    stored(directory / "made" / kind, inputs / kind)
        with ExitStack() as stack:
            # Never ``LITTLE``: sizes would not compare.
            much = amount_of(directory / "made") is Amount.MUCH
            amount = Amount.MUCH if much else Amount.SOME
            engine = Engine(master="local[2]", memory=memory, amount=amount)
            with step("starting Spark"):
                spark = stack.enter_context(session(engine))
            tables = TableDirectory(spark, directory / "tables")
            proof.cost = RunCost(len(made["servers"]))
            with costed(spark, proof.cost):
                with step("ingesting") as progress, watched(spark, _of_jobs(progress)):
                    done = ingest(tables, str(inputs / "journals"), str(inputs / "exports"))
                with step("auditing") as progress, watched(spark, _of_jobs(progress)):
                    audit(tables)
                with step("lag and gaps") as progress, watched(spark, _of_jobs(progress)):
                    lag(tables)
                with step("hygiene") as progress, watched(spark, _of_jobs(progress)):
                    hygiene(tables)
            proof.cost.read = done.records + done.objects
            proof.cost.sized(tables)
            _judge(proof, moved(made, directory / "made", inputs), tables)
        with step("hygiene of one export"):
            proof.judged.append(_judged_alone(made, directory / "made/exports"))
    proof.peak_mib = peak.mib
    proof.numbers = {
        "servers": len(made["servers"]),
        "changes": made["changes"],
        "records": done.records,
        "objects": done.objects,
        "synchronisations": made["rounds"],
    }
    return proof


def planted(plan: GeneratePlan, directory: Path, progress: Callable[[int, int], None]) -> Manifest:
    """Generates the enterprise, unless the directory has it already; returns its manifest."""
    manifest = directory / "manifest.json"
    if not manifest.exists():
        generate(plan, directory, progress)
    found: Manifest = json.loads(manifest.read_text(encoding="ascii"))
    if found["plan"] != asdict(plan):
        raise SystemExit(f"{directory} was made with other options; name another directory")
    return found


def _judge(proof: Proof, made: Manifest, tables: TableDirectory) -> None:
    found = [row.asDict() for row in tables.read("divergence").collect()]
    rows = [row.asDict() for row in tables.read("gaps").filter("certain").collect()]
    gaps = [row for row in rows if row["kind"] == "gap"]
    twice = [row for row in rows if row["kind"] != "gap"]
    errors = [
        row.asDict() | {"kind": row["reason"].partition(":")[0]}
        for row in tables.read("errors").collect()
    ]

    def keys(rows: Iterable[dict[str, Any]], *names: str) -> list[Key]:
        return [tuple(row[name] for name in names) for row in rows]

    where = ("server", "partition")
    proof.judged = [
        *(
            Judged.of(
                f"divergence, {cause}",
                keys((row for row in made["faults"] if row["cause"] == cause), *_FAULT),
                keys((row for row in found if row["cause"] == cause), *_FAULT),
            )
            for cause in sorted({row["cause"] for row in (*made["faults"], *found)})
        ),
        Judged.of(
            "gaps",
            keys(made["gaps"], *where, "first", "last"),
            keys(gaps, *where, "first_seq", "last_seq"),
        ),
        Judged.of(
            "duplicates", keys(made["duplicates"], *where, "seq"), keys(twice, *where, "first_seq")
        ),
        *(
            Judged.of(
                f"damage, {kind}",
                keys((row for row in made["damage"] if row["kind"] == kind), "file", "offset"),
                keys((row for row in errors if row["kind"] == kind), "file", "offset"),
            )
            for kind in sorted({row["kind"] for row in (*made["damage"], *errors)})
        ),
        *_judged_evidence(made, tables),
        Judged.of(
            "hygiene, all exports",
            keys(made["hygiene"], *_HYGIENE),
            keys((row.asDict() for row in tables.read("hygiene").collect()), *_HYGIENE),
        ),
    ]


def _judged_alone(made: Manifest, exports: Path) -> Judged:
    """Compares the faults of the directory with those that one server's export shows: a PSC's,
    whose copy of most partitions is a replica's."""
    spoiled = {
        Path(row["file"]).name for row in (*made["damage"], *made["evidence"]) if row["file"]
    }
    servers = [row for row in made["servers"] if row["role"] == "psc"]
    names = [f"{row['name']}.jsonl" for row in servers]
    name = next(name for name in names if name not in spoiled)
    found = check_export(exports / name).findings
    return Judged.of(
        f"hygiene, {name} alone",
        [tuple(row[key] for key in _HYGIENE) for row in made["hygiene"]],
        [(one.check, one.objects[0].type, one.objects[0].id) for one in found],
    )


def _judged_evidence(made: Manifest, tables: TableDirectory) -> Iterator[Judged]:
    """Compares what was planted in the files themselves, kind by kind."""
    rows = [row.asDict() for row in tables.read("evidence").collect()]
    names = ("server", "file", "partition", "first", "last")

    def keys(rows: Iterable[dict[str, Any]], kind: str) -> list[Key]:
        return [tuple(row[name] for name in names) for row in rows if row["kind"] == kind]

    for kind in sorted({row["kind"] for row in (*made["evidence"], *rows)}):
        yield Judged.of(kind, keys(made["evidence"], kind), keys(rows, kind))


# --- for people -----------------------------------------------------------------------------------


def show(proof: Proof, console: Console) -> None:
    sizes = ", ".join(f"{count:,} {what}" for what, count in proof.numbers.items())
    console.print(sizes, highlight=False)
    times = Table("step", "seconds", box=None)
    for name, seconds in proof.seconds.items():
        times.add_row(name, f"{seconds:,.1f}")
    console.print(times)
    judged = Table("", "planted", "missed", "too much", "precision", "recall", box=None)
    for one in proof.judged:
        numbers = (one.planted, len(one.missed), len(one.surplus))
        judged.add_row(one.what, *map(str, numbers), f"{one.precision:.4f}", f"{one.recall:.4f}")
    console.print(judged)
    console.print(f"at most {proof.peak_mib:,} MiB of memory in all processes", highlight=False)
    for one in proof.judged:
        for word, keys in (("missed", one.missed), ("too much", one.surplus)):
            for key in keys[:10]:
                console.print(f"{one.what}, {word}: {key}", style="red", highlight=False)


def as_json(proof: Proof) -> str:
    return json.dumps(
        {
            "holds": proof.holds,
            "numbers": proof.numbers,
            "seconds": {name: round(value, 1) for name, value in proof.seconds.items()},
            "peak_mib": proof.peak_mib,
            "judged": {
                one.what: {
                    "planted": one.planted,
                    "missed": len(one.missed),
                    "surplus": len(one.surplus),
                    "precision": one.precision,
                    "recall": one.recall,
                }
                for one in proof.judged
            },
        },
        indent=2,
    )


#: A larger enterprise has a few changes for each server, and more segments.
_MANY_SERVERS, _MANY_MACHINES = 200, 360


def plan_of(arguments: argparse.Namespace) -> GeneratePlan:
    """The plan: three of five servers are PSCs, one a site; two of three sites have a BSC.

    Every server has every object, so the machines of many sites are fewer.
    """
    sites = -(-arguments.servers * 3 // 5)
    machines = max(min(3 * sites, max(sites, _MANY_MACHINES)), 12)
    changes = arguments.changes
    return GeneratePlan(
        sites=sites,
        backups=arguments.servers - sites,
        machines=machines,
        queues=max(60, changes // 250),
        changes=changes,
        seed=arguments.seed,
        faults=arguments.faults,
        hygiene=min(arguments.faults, machines // 3),
        churn=arguments.churn,
        live=arguments.live if arguments.live is not None else max(2000, changes // 100),
        outage=arguments.outage,
        segments=arguments.segments,
    )


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--changes", type=int, default=0)
    parser.add_argument("--segments", type=int, default=0, help="of each journal, roughly")
    parser.add_argument("--outage", type=int, default=0, help="objects that a replica lacks")
    parser.add_argument("--growth", action="store_true", help="in three sizes, table by table")
    parser.add_argument("--faults", type=int, default=10, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--churn", type=float, default=0.01, help="share of changes that create")
    parser.add_argument("--live", type=int, help="changes that each go to all servers")
    parser.add_argument("--memory", default="3g", help="for Spark")
    parser.add_argument("--directory", type=Path, help="keep everything there; else it is removed")
    parser.add_argument("--place", default="", help="a URI to copy the inputs to and read from")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(given)
    console = Console(stderr=arguments.json, width=None if sys.stdout.isatty() else 200)
    kept = arguments.directory is not None
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="mqis-proof-"))
    few = arguments.servers > _MANY_SERVERS
    arguments.changes = arguments.changes or (arguments.servers if few else 1_000_000)
    arguments.segments = arguments.segments or (30 if few else 1)
    proofs = []
    try:
        for plan in plans_of(arguments):
            place = directory / str(plan.sites) if arguments.growth else directory
            proofs.append(prove(plan, place, arguments.memory, console, arguments.place))
            if not arguments.json:
                show(proofs[-1], console)
    finally:
        if not kept:
            shutil.rmtree(directory, ignore_errors=True)
    if arguments.json:
        print(as_json(proofs[-1]))
    costs = [proof.cost for proof in proofs if proof.cost is not None]
    if not arguments.json:
        console.print(growth_table(costs))
    linear = max(growth(costs).values(), default=0.0) <= MOST
    return 0 if linear and all(proof.holds for proof in proofs) else 1


def plans_of(arguments: argparse.Namespace) -> Iterator[GeneratePlan]:
    """The plan or, with ``--growth``, three. Twice the servers read four times as many records."""
    servers, changes = arguments.servers, arguments.changes
    for part in (4, 2, 1) if arguments.growth else (1,):
        arguments.servers, arguments.changes = servers // part, changes // part
        yield plan_of(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
