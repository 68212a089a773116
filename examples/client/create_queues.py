"""Creates the queues of a list, one "PATH LABEL" a line; those that exist are left as they are.

Lines that begin with # are comments. A queue that is refused stops no other one: the refusals are
counted and listed at the end, and the exit status is 1.

Usage: python -m examples.client.create_queues --server HOST queues.txt
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from examples.client.connecting import connect, parser, run
from mqis.client import DirectoryClient, DirectoryError, HResult, Queue


async def create_queues(
    directory: DirectoryClient, lines: Iterable[str]
) -> AsyncIterator[tuple[str, str, str]]:
    """Creates them; yields each path with what became of it, and the reason if it is refused."""
    for line in filter(None, (line.strip() for line in lines)):
        if line.startswith("#"):
            continue
        path, _, label = line.partition(" ")
        try:
            await directory.add(Queue(pathname=path, label=label.strip() or None))
        except (DirectoryError, ValueError) as error:
            there = getattr(error, "hresult", None) == HResult.MQ_ERROR_QUEUE_EXISTS
            yield (path, "is there already", "") if there else (path, "refused", str(error))
        else:
            yield path, "created", ""


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("list", type=Path)
    given = options.parse_args()
    lines = given.list.read_text("utf-8").splitlines()
    outcomes, refused = Counter[str](), list[str]()
    async with await connect(given.server) as directory:
        async for path, outcome, reason in create_queues(directory, lines):
            print(f"{path}: {outcome}", flush=True)
            outcomes[outcome] += 1
            refused += [f"{path}: {reason}"] if reason else []
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    for line in refused:
        print(f"create_queues: {line}", file=sys.stderr)
    if refused:
        sys.exit(1)


if __name__ == "__main__":
    run(main())
