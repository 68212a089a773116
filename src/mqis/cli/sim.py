"""``mqis sim``: simulates enterprises under faults, one per seed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, NamedTuple

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mqis import __version__
from mqis.cli.options import JsonOption, make_writable
from mqis.cli.output import cell, console, error_console, print_error, print_json, table
from mqis.cli.version import commit
from mqis.sim.coverage import missing
from mqis.sim.large_enterprise import PHASES, LargeEnterprise, Messages, Phase, Size
from mqis.sim.mutations import MUTATIONS
from mqis.sim.run_trace import Violation
from mqis.sim.runner import (
    Options,
    RunResult,
    find_all,
    minimised,
    run_many,
    run_seed,
    scenario_of,
)
from mqis.sim.worlds import WORLDS, WorldName, world_of
from mqis.texts import counted, duration
from mqis.wire.mqdsrp.describing import operation_name

_TAIL = 40
_SEEDS, _MOST = 20, 100
#: The name that stands for every mutation.
_ALL = "all"


class _Summary(NamedTuple):
    """The results of many runs."""

    results: int
    failed: list[RunResult]
    counts: Counter[str]
    seconds: float
    healed: list[float]
    messages: int
    #: Processor time of each run.
    each: list[float]


def sim(
    *,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Run only this seed; the run is the same every time."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            help="Run this many seeds. Default: 20, and with --mutate all up to 100 each.",
        ),
    ] = None,
    start: Annotated[int, typer.Option("--start", help="The first seed.")] = 0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Do not stop at the first violation.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, help="Processes. Default: one for each processor.")
    ] = os.cpu_count() or 1,
    mutate: Annotated[
        str | None,
        typer.Option(
            "--mutate",
            metavar="E01",
            help="Disable one rule: E.. follows the specification without its erratum, S.. drops a "
            "safeguard, B.. puts a bug in. With 'all', count the seeds that find each of them.",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="N,N,...", help="Run only these steps of the seed."),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="With --seed: print the whole trace.")
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="DIR", help="With --seed: write the servers' journals."),
    ] = None,
    world: Annotated[
        WorldName | None,
        typer.Option(
            "--world",
            help="What is simulated. Default: the world of the mutation, else replication.",
        ),
    ] = None,
    servers: Annotated[
        int | None,
        typer.Option(
            "--servers",
            min=2,
            metavar="N",
            help="Simulate one enterprise of N servers without faults, and compare the messages "
            "with what docs/replication.md predicts.",
        ),
    ] = None,
    sites: Annotated[
        int | None,
        typer.Option(
            "--sites",
            min=2,
            metavar="N",
            help="With --servers: its sites. Default: three for each ten servers.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Simulate enterprises with lost messages, cut links and crashes, and check them.

    Every seed is one enterprise with its workload and its faults; it runs the same everywhere. The
    exit status is 1 if a rule is violated; the seed and a command that repeats it are printed.
    """
    if servers is not None:
        _large(servers, sites, json=json)
        return
    if sites is not None:
        raise typer.BadParameter("this goes with --servers only", param_hint="--sites")
    if journal is not None:
        make_writable(journal)
    if mutate == _ALL:
        if seed is not None or steps is not None or journal is not None:
            raise typer.BadParameter(
                "'all' goes with --seeds, --start and --jobs only", param_hint="--mutate"
            )
        _find_all(range(start, start + (seeds or _MOST)), jobs, json=json)
        return
    if world is not None and mutate is not None and world is not world_of(_known(mutate)):
        raise typer.BadParameter(
            f"{mutate} is a mutation of the world {world_of(mutate)}", param_hint="--world"
        )
    options = Options(_known(mutate), _numbers(steps), journal, world=world)
    if seed is not None:
        _one(seed, replace(options, keep_lines=True), trace=trace, json=json)
    else:
        _many(
            range(start, start + (seeds or _SEEDS)), options, jobs, keep_going=keep_going, json=json
        )


def _known(mutation: str | None) -> str | None:
    if mutation is not None and mutation not in MUTATIONS:
        known = "; ".join(f"{name}: {text}" for name, (text, _) in MUTATIONS.items())
        raise typer.BadParameter(
            f"there is no mutation {mutation!r}; there are {known}", param_hint="--mutate"
        )
    return mutation


def _numbers(steps: str | None) -> tuple[int, ...] | None:
    try:
        return None if steps is None else tuple(int(part) for part in steps.split(",") if part)
    except ValueError:
        raise typer.BadParameter(
            "write step numbers separated by commas", param_hint="--steps"
        ) from None


# --- all mutations --------------------------------------------------------------------------------


def _find_all(seeds: range, jobs: int, *, json: bool) -> None:
    """Runs seeds with each mutation until one finds it; the status is 1 if none finds one."""
    found = []
    with _bar(len(MUTATIONS), "mutations") as advance:
        for count in find_all(seeds, jobs=jobs):
            found.append(count)
            advance()
    # A mutation that no seed found took more than all of them.
    middle = median(len(seeds) + 1 if count.seeds is None else count.seeds for count in found)
    missed = [count.name for count in found if count.seeds is None]
    if json:
        listed = [{"name": c.name, "seeds": c.seeds, "rule": c.rule or None} for c in found]
        print_json({"mutations": listed, "median": middle, "missed": missed})
    else:
        rows = table("mutation", "seeds", "what breaks", "the rule that is disabled, or the bug")
        for count in found:
            about = MUTATIONS[count.name][0]
            rows.add_row(cell(count.name), count.shown, cell(count.rule), cell(about))
        console().print(rows)
        told = f"{counted(len(found), 'mutation')}, {middle:g} seeds each (median)"
        console().print(cell(f"{told}; not found: {', '.join(missed) or 'none'}"), soft_wrap=True)
    if missed:
        raise typer.Exit(1)


# --- a large enterprise ---------------------------------------------------------------------------


def _large(servers: int, sites: int | None, *, json: bool) -> None:
    """Runs an enterprise of this size; status 1 if replicas or numbers of messages differ."""
    try:
        size = Size.usual(servers) if sites is None else Size(servers, sites)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--sites") from None
    done: list[Phase] = []
    violation = None
    with _bar(PHASES, "phases") as advance:
        try:
            for phase in LargeEnterprise(size).phases():
                done.append(phase)
                advance()
        except Violation as found:
            violation = found
    if json:
        print_json(
            {
                "servers": size.servers,
                "sites": size.sites,
                "phases": [_phase_json(phase) for phase in done],
                "violation": None if violation is None else str(violation),
            }
        )
    else:
        told = f"{counted(size.servers, 'server')} in {counted(size.sites, 'site')}"
        console().print(cell(f"{told}, all equal after each of these phases"), soft_wrap=True)
        rows = table("phase", "messages", "predicted", "KB", "equal after")
        for phase in done:
            spread = "" if phase.spread_s is None else duration(phase.spread_s)
            sent, expected = f"{phase.messages:,}", f"{phase.predicted.total():,}"
            rows.add_row(cell(phase.name), sent, expected, f"{phase.bytes / 1000:,.1f}", spread)
        console().print(rows)
    if violation is not None:
        print_error(str(violation))
    unexpected = [phase for phase in done if phase.sent != phase.predicted]
    for phase in unexpected:
        sent, expected = (_in_words(found) for found in (phase.sent, phase.predicted))
        print_error(f"{phase.name}: {sent} were sent, and {expected} predicted")
    if unexpected or violation is not None:
        raise typer.Exit(1)


def _phase_json(phase: Phase) -> dict[str, object]:
    return {
        "name": phase.name,
        "sent": _by_name(phase.sent),
        "predicted": _by_name(phase.predicted),
        "bytes": phase.bytes,
        "spread_s": phase.spread_s,
    }


def _by_name(messages: Messages) -> dict[str, int]:
    return {operation_name(kind): number for kind, number in sorted(messages.items())}


def _in_words(messages: Messages) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in _by_name(messages).items())


# --- one seed -------------------------------------------------------------------------------------


def _one(seed: int, options: Options, *, trace: bool, json: bool) -> None:
    try:
        scenario = scenario_of(seed, options)
    except IndexError:
        raise typer.BadParameter(
            f"seed {seed} has not so many steps; without --steps it shows them",
            param_hint="--steps",
        ) from None
    result = run_seed(seed, options)
    if json:
        print_json(_as_json(result))
    else:
        out = console()
        if trace:
            for line in result.lines:
                out.print(cell(line), soft_wrap=True)
        steps = counted(len(scenario.steps), "step")
        out.print(cell(f"seed {seed}: {scenario.cast}; {steps}"), soft_wrap=True)
        out.print(cell(_facts(result)), soft_wrap=True)
    if result.violation is not None:
        if not json and options.steps is None:
            _explain(result, options)
        raise typer.Exit(1)


def _facts(result: RunResult) -> str:
    return (
        f"{result.simulated_s:.0f} simulated seconds, {result.messages} messages, agreement "
        f"{duration(result.healed_s)} after the last fault, digest {result.digest}"
    )


def _explain(result: RunResult, options: Options) -> None:
    """Prints a violation, reduced to few steps, and the commands that repeat it."""
    violation = result.violation
    assert violation is not None
    print_error(f"seed {result.seed}: {violation}")
    chosen = minimised(result.seed, violation.rule, options)
    fewer = replace(options, steps=chosen, keep_lines=True)
    again = run_seed(result.seed, fewer)
    out = console()
    name = options.mutation
    mutated = f"{name} ({MUTATIONS[name][0]})" if name else "none"
    out.print(cell(f"commit {_commit()}, mutation {mutated}"), soft_wrap=True)
    scenario = scenario_of(result.seed, fewer)
    for line in scenario.conditions:
        out.print(cell(line), soft_wrap=True)
    for step in scenario.steps:
        out.print(cell(f"  {step}"), soft_wrap=True)
    skipped = max(0, len(again.lines) - _TAIL)
    out.print(cell(f"{counted(skipped, 'line')} before these:"), soft_wrap=True)
    for line in again.lines[-_TAIL:]:
        out.print(cell(line), soft_wrap=True)
    mutation = f" --mutate {options.mutation}" if options.mutation else ""
    mutation += f" --world {options.world}" if options.world else ""
    listed = ",".join(str(index) for index in chosen) or ","
    out.print(cell(f"again: mqis sim --seed {result.seed}{mutation}"), soft_wrap=True)
    out.print(
        cell(f"less:  mqis sim --seed {result.seed}{mutation} --steps {listed} --trace"),
        soft_wrap=True,
    )


def _commit() -> str:
    """The commit that this was built from, else the version."""
    return commit() or f"of version {__version__}"


# --- many -----------------------------------------------------------------------------------------


def _many(seeds: range, options: Options, jobs: int, *, keep_going: bool, json: bool) -> None:
    summary = _run(seeds, options, jobs, keep_going)
    if json:
        print_json(
            {
                "seeds": summary.results,
                "start": seeds.start,
                "seconds": round(summary.seconds, 3),
                "median_s": round(median(summary.each), 3),
                "messages": summary.messages,
                "failed": [_as_json(result) for result in summary.failed],
                "counts": dict(sorted(summary.counts.items())),
            }
        )
    else:
        _show(summary, options.world_name)
    if summary.failed:
        if not json:
            _explain(summary.failed[0], options)
        raise typer.Exit(1)


def _run(seeds: range, options: Options, jobs: int, keep_going: bool) -> _Summary:
    began = perf_counter()
    counts: Counter[str] = Counter()
    failed, healed, each, messages, done = [], [], [], 0, 0
    with _bar(len(seeds)) as advance:
        for result in run_many(seeds, options, jobs=jobs):
            done += 1
            counts.update(result.counts)
            messages += result.messages
            healed.append(result.healed_s)
            each.append(result.seconds)
            advance()
            if result.violation is not None:
                failed.append(result)
                if not keep_going:
                    break
    return _Summary(done, failed, counts, perf_counter() - began, healed, messages, each)


@contextmanager
def _bar(total: int, what: str = "seeds") -> Iterator[Callable[[], None]]:
    target = error_console()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def _show(summary: _Summary, world: WorldName) -> None:
    out = console()
    about = WORLDS[world]
    for title, kinds in (("faults", about.faults), ("decisions", about.decisions)):
        rows = table(title, "seen")
        for kind, words in kinds.items():
            rows.add_row(cell(words), str(summary.counts[kind]))
        out.print(rows)
    unseen = missing(summary.counts, {**about.faults, **about.decisions})
    out.print(cell(f"never happened: {', '.join(unseen) or 'nothing'}"), soft_wrap=True)
    out.print(
        cell(
            f"{counted(summary.results, 'seed')} in {duration(summary.seconds)} "
            f"({duration(median(summary.each))} of processor time per seed, median), "
            f"{summary.messages} messages, agreement after {median(summary.healed):.0f} simulated "
            f"seconds (median), {counted(len(summary.failed), 'violation')}"
        ),
        soft_wrap=True,
    )
    for result in summary.failed:
        out.print(cell(f"  seed {result.seed}: {result.violation}"), soft_wrap=True)


def _as_json(result: RunResult) -> dict[str, object]:
    violation = result.violation
    return {
        "seed": result.seed,
        "digest": result.digest,
        "violation": None if violation is None else str(violation),
        "rule": None if violation is None else violation.rule,
        "healed_s": result.healed_s,
        "simulated_s": result.simulated_s,
        "messages": result.messages,
    }
