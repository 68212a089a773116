"""Creates the queues of a list, one "PATH LABEL" a line; those that exist are left as they are.

Usage: python -m examples.client.create_queues --server HOST queues.txt
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from examples.client.connecting import connect, parser
from mqis.client import DirectoryClient, DirectoryError, HResult, Queue


async def create_queues(directory: DirectoryClient, lines: Iterable[str]) -> dict[str, str]:
    """Creates them; returns what became of each path."""
    found = {}
    for line in filter(None, (line.strip() for line in lines)):
        path, _, label = line.partition(" ")
        try:
            await directory.add(Queue(pathname=path, label=label.strip() or None))
            found[path] = "created"
        except DirectoryError as error:
            if error.hresult != HResult.MQ_ERROR_QUEUE_EXISTS:
                raise
            found[path] = "is there already"
    return found


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("list", type=Path)
    given = options.parse_args()
    async with await connect(given.server) as directory:
        for path, outcome in (
            await create_queues(directory, given.list.read_text("utf-8").splitlines())
        ).items():
            print(f"{path}: {outcome}")


if __name__ == "__main__":
    asyncio.run(main())
