"""Lets an account send to every queue of a machine, beside what others may do.

Usage: python -m examples.client.permissions --server HOST MACHINE SID [--dry-run]
"""

from __future__ import annotations

from dataclasses import replace

from examples.client.connecting import connect, parser, run
from mqis.client import (
    Acl,
    DirectoryClient,
    ObjectType,
    Queue,
    QueueRights,
    SecurityDescriptor,
    SecurityInformation,
    Sid,
    allow,
)

_DACL = SecurityInformation.DACL


async def allow_sending(
    directory: DirectoryClient, machine: str, account: Sid, *, dry_run: bool = False
) -> list[str]:
    """Adds one entry to each list that lacks it; returns the paths of those queues."""
    entry = allow(account, QueueRights.WRITE_MESSAGE)
    known, changed = 0, []
    async for queue in directory.search(Queue, attributes=["pathname"], order_by=["pathname"]):
        path = queue.pathname or ""
        if path.partition("\\")[0].lower() != machine.lower():
            continue
        known += 1
        data = await directory.get_security(ObjectType.QUEUE, _DACL, path=path)
        descriptor = SecurityDescriptor.from_bytes(data)
        entries = descriptor.dacl.aces if descriptor.dacl else ()
        if entry in entries or descriptor.has_null_dacl:  # without a list everybody may
            continue
        changed.append(path)
        if not dry_run:
            new = replace(descriptor, dacl=Acl((*entries, entry)))
            await directory.set_security(ObjectType.QUEUE, _DACL, new.to_bytes(), path=path)
    if not known:
        raise ValueError(f"{machine} has no queue in the directory")
    return changed


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("machine")
    options.add_argument("sid")
    options.add_argument("--dry-run", action="store_true")
    given = options.parse_args()
    account = Sid.parse(given.sid)
    async with await connect(given.server) as directory:
        changed = await allow_sending(directory, given.machine, account, dry_run=given.dry_run)
        for path in changed:
            print(f"{account} may send to {path}")


if __name__ == "__main__":
    run(main())
