"""``mqis publish``: puts the objects of a store into a running Active Directory."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.findings import notes_json, show_notes
from mqis.cli.ldap_login import LdapLogonOptions
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, opened, spread, store_url
from mqis.cli.output import print_json, say
from mqis.cli.transfer import progress_bar
from mqis.texts import counted

if TYPE_CHECKING:
    from mqis.admin.activedirectory.connecting import ConnectingOptions
    from mqis.admin.activedirectory.notes import TransferNotes
    from mqis.admin.activedirectory.publishing import PublishStep
    from mqis.protocol.ports import Store


@spread
def publish(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="LDAPS://HOST...",
            help="The URL of a domain controller; of a forest, of one of each domain.",
            show_default=False,
        ),
    ],
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    write: Annotated[
        bool, typer.Option("--write/--dry-run", help="Write; without it, only show the plan.")
    ] = False,
    sites: Annotated[
        bool,
        typer.Option("--sites", help="Make missing sites, which Active Directory replicates by."),
    ] = False,
    json: JsonOption = False,
    directory: LdapLogonOptions,
) -> None:
    """Put the objects of a store into an Active Directory: new ones, and deleted ones back.

    It shows a plan and writes nothing without --write. Nothing that exists is changed or deleted.
    A deleted object comes back with its identifier; any other gets a new one from the directory.
    Exit status 1: the directory refused something, which the line of the object says.
    """
    with opened(store_url(store, config)) as source:
        steps, written, notes = asyncio.run(
            _published(
                [directory.connecting(target) for target in targets],
                source,
                write=write,
                sites=sites,
            )
        )
    if json:
        print_json(_as_json(steps, written, write=write) | notes_json(notes))
    else:
        for step in steps:
            say(str(step))
        counts = Counter(step.action for step in steps)
        say("; ".join(f"{counted(n, 'object')}: {action.value}" for action, n in counts.items()))
        say(f"wrote {counted(written, 'object')}" if write else "nothing was written: add --write")
        show_notes(notes)
    if any(step.reason for step in steps):
        raise typer.Exit(1)


async def _published(
    domains: list[ConnectingOptions], source: Store, *, write: bool, sites: bool
) -> tuple[list[PublishStep], int, TransferNotes]:
    from mqis.admin.activedirectory.publishing import publish_store  # noqa: PLC0415 -- it is slow

    with progress_bar("writing") as progress:
        return await publish_store(domains, source, write=write, sites=sites, progress=progress)


def _as_json(steps: list[PublishStep], written: int, *, write: bool) -> dict[str, object]:
    rows = [
        {
            "type": step.obj.type.label,
            "path": step.obj.path,
            "id": str(step.obj.id),
            "action": step.action.name.lower(),
        }
        | ({"reason": step.reason} if step.reason else {})
        for step in steps
    ]
    return {"steps": rows, "written": written, "dry_run": not write}
