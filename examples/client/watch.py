"""Prints queues that appear, change or disappear, until it is interrupted.

Usage: python -m examples.client.watch --server HOST [--every 5] [--rounds N]

MS-MQDS has no call that waits for a change, so this asks again and compares. A server of mqis also
keeps a journal of every change: 'mqis journal tail'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from examples.client.connecting import connect, parser, run
from mqis.client import DirectoryClient, Guid, Queue

Known = dict[Guid | None, Queue]


async def queues(directory: DirectoryClient) -> Known:
    """All queues by their identifiers."""
    return {queue.identifier: queue async for queue in directory.search(Queue)}


def changes(before: Known, after: Known) -> Iterator[str]:
    """Yields a sentence for each difference."""
    for key in after.keys() - before.keys():
        yield f"created {after[key].pathname}"
    for key in before.keys() - after.keys():
        yield f"deleted {before[key].pathname}"
    for key in before.keys() & after.keys():
        if before[key] != after[key]:
            yield f"changed {after[key].pathname}"


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("--every", type=float, default=5.0, help="seconds")
    options.add_argument("--rounds", type=int, default=0, help="0: for ever")
    given = options.parse_args()
    async with await connect(given.server) as directory:
        known = await queues(directory)
        print(f"watching {len(known)} queues", flush=True)
        done = 0
        while not given.rounds or done < given.rounds:
            await asyncio.sleep(given.every)
            now = await queues(directory)
            for text in sorted(changes(known, now)):
                print(text, flush=True)
            known, done = now, done + 1


if __name__ == "__main__":
    run(main())
