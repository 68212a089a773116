"""Creates the queues of a list, one "PATH LABEL" a line; those that exist are left as they are.

Usage: python -m examples.client.create_queues --server HOST queues.txt
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from examples.client.connecting import connect, parser, run
from mqis.client import DirectoryClient, DirectoryError, HResult, Queue


async def create_queues(
    directory: DirectoryClient, lines: Iterable[str]
) -> AsyncIterator[tuple[str, str]]:
    """Creates them; yields each path with what became of it."""
    for line in filter(None, (line.strip() for line in lines)):
        path, _, label = line.partition(" ")
        try:
            await directory.add(Queue(pathname=path, label=label.strip() or None))
        except DirectoryError as error:
            if error.hresult != HResult.MQ_ERROR_QUEUE_EXISTS:
                raise ValueError(f"{path}: {error}") from error
            yield path, "is there already"
        else:
            yield path, "created"


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("list", type=Path)
    given = options.parse_args()
    lines = given.list.read_text("utf-8").splitlines()
    async with await connect(given.server) as directory:
        async for path, outcome in create_queues(directory, lines):
            print(f"{path}: {outcome}", flush=True)


if __name__ == "__main__":
    run(main())
