"""``mqis delete``: deletes an object, after showing what hangs on it."""

from __future__ import annotations

from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import JsonOption, NameArgument, TypeArgument, spread
from mqis.cli.output import DryRunOption, YesOption, confirm, print_json, say
from mqis.views.deletion.carrying_out import DeletionRefused, carry_out, check_typed
from mqis.views.deletion.delete_text import plan_to_json, sections
from mqis.views.deletion.plan import DeletePlan, plan_delete
from mqis.wire.mqds.objecttype import ObjectType


def _no_option(force: str | None) -> str | None:
    if force is not None and force.startswith("-"):
        raise typer.BadParameter(f"it repeats the object's name, and {force} is an option")
    return force


@spread
def delete(
    kind: TypeArgument,
    name: NameArgument,
    *,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    force: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=_no_option,
            help="Delete even the enterprise, a site with directory servers, or a directory "
            "server. NAME repeats the object's name.",
            show_default=False,
        ),
    ] = None,
    access: OptionalLogonOptions,
    json: JsonOption = False,
) -> None:
    """Delete an object and what would be left without its owner. 'mqis undelete' undoes it.

    Shows the dependents, and asks on a terminal; elsewhere it needs --yes.
    """
    with connected(access.login()) as remote:
        plan = plan_delete(remote, kind.object_type, name)
        if not json:
            _show(plan)
        if not dry_run:
            _check(plan, force)
            if force is None:
                confirm(f"Delete {plan.target.type.label} {plan.target.name}?", yes=yes)
            carry_out(remote, plan)
    if json:
        print_json({"dry_run": dry_run, **plan_to_json(plan)})
    elif dry_run:
        say("nothing was changed (--dry-run)")
    else:
        say(f"deleted {kind.object_type.label} {name}")
        if plan.servers and plan.target.type is ObjectType.SITE:
            say(
                f"next: stop {', '.join(plan.servers)}; if 'mqis up' runs them: 'mqis up --adopt', "
                "then 'mqis up --remove' takes them out"
            )


def _check(plan: DeletePlan, force: str | None) -> None:
    try:
        check_typed(plan, force)
    except DeletionRefused as error:
        hint = f"--force {plan.target.name!r} deletes it all the same"
        raise DeletionRefused(f"{error}; {hint}") from None


def _show(plan: DeletePlan) -> None:
    for title, lines in sections(plan):
        say(f"{title}:", "yellow")
        for line in lines:
            say(f"  {line}")
    if plan.danger is not None:
        say(f"danger: {plan.danger}", "bold red")
