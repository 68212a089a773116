"""``mqis promote``: replaces a lost server by another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.promote.following import plan_follow
from mqis.admin.promote.promotion_plan import PromotePlan
from mqis.admin.promote.rebuilding import RebuildRequest, plan_rebuild
from mqis.admin.promote.takeover import plan_takeover
from mqis.cli.login import LogonOptions, connected
from mqis.cli.options import DEFAULT_RUN, ConfigOption, JsonOption, ListenOption, RunOption, spread
from mqis.cli.output import cell, console, print_json, say, table
from mqis.config.file import DEFAULT_NAME
from mqis.enterprise.replacing import Replacing


@spread
def promote(
    server_name: Annotated[
        str | None,
        typer.Argument(
            metavar="[SERVER]",
            help="A backup of 'mqis up': it is stopped, promoted and started again, and the other "
            "backups of its site follow it.",
            show_default=False,
        ),
    ] = None,
    *,
    run: RunOption = DEFAULT_RUN,
    follow: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only follow NAME as the new PSC. For the other backups of the site, and for the "
            "server that was replaced.",
            show_default=False,
        ),
    ] = None,
    rebuild: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Rebuild the lost PEC or PSC NAME from this server's copy instead.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The directory of the rebuilt server.", show_default=False
        ),
    ] = None,
    listen: ListenOption = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Its RPC port (rpc.port).", show_default=False)
    ] = None,
    queue_port: Annotated[
        int | None,
        typer.Option(metavar="N", help="Its replication port.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The lost server's signing key, if kept.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and show the plan; change nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Go on although the lost server answers.")
    ] = False,
    account: LogonOptions,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Make a backup the PSC of its site after the PSC was lost.

    With SERVER, a backup of the enterprise in --run, which may be running. Without it, the server
    of --config, which has to be stopped first; --server then names the PEC. --user names a user who
    may change the site. The runbook is in docs/operations.md.
    """
    if server_name is not None:
        if follow or rebuild or to:
            raise typer.BadParameter("SERVER excludes --follow, --rebuild and --to")
        _replace(Replacing(run, server_name, force=force), account, json=json, dry_run=dry_run)
        return
    file = Path(DEFAULT_NAME) if config is None else config
    if (rebuild is None) is not (to is None):
        raise typer.BadParameter("--rebuild NAME and --to DIR belong together; give both")
    if rebuild is not None and to is not None:
        request = RebuildRequest(rebuild, to, listen, port, queue_port, key, force)
        rebuilding = plan_rebuild(file, request)
        _show(rebuilding.plan, json=json, dry_run=dry_run)
        if not dry_run:
            rebuilding.carry_out()
    elif follow is not None:
        following = plan_follow(file, follow)
        _show(following.plan, json=json, dry_run=dry_run)
        if not dry_run:
            following.carry_out()
    else:
        with connected(account.login()) as remote:
            takeover = plan_takeover(file, remote, force=force)
            _show(takeover.plan, json=json, dry_run=dry_run)
            if not dry_run:
                takeover.carry_out(remote)
    if not json and not dry_run:
        say("done; now carry out the steps under 'next'", "green")


def _replace(replacing: Replacing, account: LogonOptions, *, json: bool, dry_run: bool) -> None:
    pec = replacing.pec
    access = account if account.server else replace(account, server=[pec.rpc_address])
    with connected(access.login()) as remote:
        if dry_run:
            _show(replacing.planned(remote), json=json, dry_run=True)
            return
        replacing.carry_out(remote, lambda plan: _show(plan, json=json, dry_run=False))
    if not json:
        say("done; the new PSC and the other backups of the site are ready", "green")


def _show(plan: PromotePlan, *, json: bool, dry_run: bool) -> None:
    if json:
        print_json({"dry_run": dry_run, **plan.to_json()})
        return
    say(plan.title, "bold")
    for found in plan.checks:
        say(f"checked: {found}")
    shown = table("#", "where", "what")
    for number, step in enumerate(plan.steps, start=1):
        shown.add_row(cell(str(number)), cell(step.where), cell(step.what))
    console().print(shown)
    for loss in plan.losses:
        say(f"lost: {loss}", "yellow")
    for step_text in plan.next:
        say(f"next: {step_text}")
    if dry_run:
        say("nothing was changed (--dry-run)")
