"""Runs the benchmarks: ``python -m bench [NAME ...]``.

Results do not change the exit code, as a shared machine is too noisy. To add an entry, write a
module with a ``BENCH`` and add a line to ``ENTRIES``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from bench import (
    activedirectory,
    beside,
    boxcars,
    capture,
    check,
    codecs,
    digests,
    directory,
    discovery,
    growth,
    journal,
    lookup100k,
    ndr,
    oletx,
    pipeline,
    processor,
    replication,
    routing,
    rpc,
    servers,
    signed,
    stores,
    transfer,
)
from bench.environment import environment, load
from bench.render import as_json, show
from bench.run import Bench, Run

ENTRIES: dict[str, Bench] = {
    entry.BENCH.name: entry.BENCH
    for entry in (
        stores,
        digests,
        lookup100k,
        transfer,
        check,
        codecs,
        ndr,
        boxcars,
        oletx,
        rpc,
        signed,
        processor,
        directory,
        growth,
        beside,
        replication,
        servers,
        activedirectory,
        journal,
        discovery,
        routing,
        pipeline,
        capture,
    )
}
#: Not /tmp, which is often in memory, where a flush costs nothing.
DIRECTORY = Path("/var/tmp")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="runs the benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries to run; default: all")
    parser.add_argument("--list", action="store_true", help="list the entries")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--directory",
        type=Path,
        default=DIRECTORY,
        help="directory for the stores, on the disk to be measured (%(default)s)",
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in ENTRIES]
    if unknown:
        parser.error(f"there is no entry {', '.join(unknown)}; there are {', '.join(ENTRIES)}")
    if not arguments.directory.is_dir():
        parser.error(f"{arguments.directory} is not a directory; name one with --directory")
    return arguments


@contextmanager
def _run(arguments: argparse.Namespace, say: Callable[[str], None]) -> Iterator[Run]:
    prefix, below = "mqis-bench-", arguments.directory
    with TemporaryDirectory(prefix=prefix, dir=below) as name, ExitStack() as resources:
        place = Path(name)
        place.chmod(0o711)  # the PostgreSQL server may run as another user and needs access
        yield Run(arguments.quick, place, say, resources)


def main() -> int:
    arguments = _arguments()
    console = Console()
    if arguments.list:
        for bench in ENTRIES.values():
            console.print(f"{bench.name:17}{bench.what}")
        return 0
    done = []
    watched = Console(stderr=True)
    with watched.status("starting") as status, _run(arguments, status.update) as run:
        where = environment(run.directory, run.sample_s)
        if not arguments.json:
            console.print(str(where), highlight=False)
            if run.quick:
                console.print("quick: this shows that everything runs; the numbers mean little")
        for bench in (ENTRIES[name] for name in arguments.names or ENTRIES):
            results = bench.run(run)
            done.append((bench, results))
            if not arguments.json:
                show(console, bench, results)
    if arguments.json:
        json.dump(as_json(where, load(), arguments.quick, done), sys.stdout, indent=2)
        print()
    else:
        console.print(
            f"\nload {load():.1f} at the end, one or two of it from the benchmark", highlight=False
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
