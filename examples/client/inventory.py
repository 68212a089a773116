"""Writes all queues as CSV: path, label, machine, site, quota, transactional.

Usage: python -m examples.client.inventory --server HOST > queues.csv
"""

from __future__ import annotations

import csv
import sys
from typing import TextIO

from examples.client.connecting import connect, parser, run
from mqis.client import DirectoryClient, Queue, QueueManager, Site


async def inventory(directory: DirectoryClient, out: TextIO) -> int:
    """Writes the rows; returns their number."""
    sites = {site.identifier: site.name async for site in directory.search(Site)}
    homes = {
        (machine.computer_name or "").lower(): machine.site_identifier_list or ()
        async for machine in directory.search(QueueManager)
    }
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["path", "label", "machine", "site", "quota", "transactional"])
    count = 0
    async for queue in directory.search(Queue, order_by=["pathname"]):
        machine = (queue.pathname or "").partition("\\")[0]
        named = " ".join(sites.get(site) or "?" for site in homes.get(machine.lower(), ()))
        rows.writerow(
            [queue.pathname, queue.label, machine, named, queue.quota, bool(queue.transactional)]
        )
        count += 1
    return count


async def main() -> None:
    options = parser(__doc__).parse_args()
    async with await connect(options.server) as directory:
        count = await inventory(directory, sys.stdout)
    print(f"{count} queues", file=sys.stderr)


if __name__ == "__main__":
    run(main())
