"""The processor time of ``mqis pipeline run`` again: with nothing new, some new, and all of it new.

Each run is a process of its own, as the command is. It counts all processes, Java and the tasks
included, from the moment when Spark has started to the end of the run.

``python -m bench.pipelineagain JOURNALS EXPORTS TABLES`` is one run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.results import Results, Row
from bench.run import Run
from mqis.lab.generate import GeneratePlan, generate
from tools.memory import cpu_seconds

_TABLE = "a run again"


def main(journals: str, exports: str, tables: str) -> None:
    """Runs all jobs; prints the processor seconds, and how many segments were read."""
    from mqis.cli.pipeline.options import InputOptions  # noqa: PLC0415
    from mqis.cli.pipeline.output import everything  # noqa: PLC0415
    from mqis.pipeline.session import Engine, session  # noqa: PLC0415
    from mqis.pipeline.tables import TableDirectory  # noqa: PLC0415

    with session(Engine(master="local[2]")) as spark:
        start = cpu_seconds()
        inputs = InputOptions(journals, exports)
        done = everything(TableDirectory(spark, Path(tables)), inputs)["ingest"]
        took = cpu_seconds() - start
    print(json.dumps({"cpu_s": took, "records": done["records"], **done["files"]["segment"]}))


def measure(run: Run, results: Results) -> None:
    """Adds a row for each kind of run."""
    run.say("pipeline: generating journals in many segments")
    whole = run.directory / "pipeline-again" / "whole"
    segments = run.scaled(100, 10)
    plan = GeneratePlan(changes=run.scaled(2_000, 300), faults=0, seed=1, segments=segments)
    generate(plan, whole)
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(run.rounds):
        run.say(f"pipeline: running again, round {number + 1}")
        for name, told in _round(whole, run.directory / "pipeline-again" / str(number)).items():
            found.setdefault(name, []).append(told)
    for name, rounds in found.items():
        seconds = median(told["cpu_s"] for told in rounds)
        results.rows.append(Row(_TABLE, name, 1 / seconds, cpu_us=seconds * 1e6))
        last = rounds[-1]
        results.notes.append(
            f"{_TABLE}, {name}: read {last['read']:,} of {last['files']:,} segments with "
            f"{last['records']:,} records; CPU seconds "
            + ", ".join(f"{told['cpu_s']:.1f}" for told in rounds)
        )


def _round(whole: Path, directory: Path) -> dict[str, dict[str, float]]:
    """All kinds of runs, one after the other, on journals that get their end later."""
    journals, tables = directory / "journals", directory / "tables"
    shutil.copytree(whole / "journals", journals)
    ends = _ends(journals)
    kept = {path: path.read_bytes() for path in ends}
    for path in ends:
        path.unlink()
    exports = whole / "exports"
    told = {"all of it new": _one_run(journals, exports, tables)}
    told["nothing new"] = _one_run(journals, exports, tables)
    for path, data in kept.items():
        path.write_bytes(data)
    told["some segments new"] = _one_run(journals, exports, tables)
    shutil.rmtree(directory)
    return told


def _ends(journals: Path) -> list[Path]:
    """The last segments of journals: a hundredth of all, one for each journal at most."""
    places = sorted({path.parent for path in journals.rglob("*.mqj")})
    count = sum(1 for _ in journals.rglob("*.mqj"))
    return [max(place.glob("*.mqj")) for place in places[: max(1, count // 100)]]


def _one_run(journals: Path, exports: Path, tables: Path) -> dict[str, float]:
    given = map(str, (journals, exports, tables))
    command = [sys.executable, "-m", "bench.pipelineagain", *given]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
