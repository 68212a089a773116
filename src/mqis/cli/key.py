"""``mqis key``: lists the signing keys of servers, and replaces one while all servers run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import DEFAULT_RUN, ConfigOption, JsonOption, RunOption
from mqis.cli.output import cell, console, print_json, say, table
from mqis.config.file import load
from mqis.config.nodes import load_nodes
from mqis.enterprise.rotating import (
    HeldKey,
    KeyRotation,
    KeyWitness,
    RotationProgress,
    held_keys,
    servers_in,
    witnesses_of_config,
    witnesses_of_run,
)
from mqis.runtime.node.keyring import KeyStage
from mqis.server.identity import server_name
from mqis.texts import counted, moment, some

app = typer.Typer(help="List and rotate the signing keys of servers.", no_args_is_help=True)

_LOOK_S = 0.5
#: The hexadecimal digits of a key's identifier, and the names of servers, that a table shows.
_SHORT_KEY, _MOST_NAMES = 12, 3
_STAGES = {
    KeyStage.NEXT: "the new key is made known; the old one signs",
    KeyStage.FORMER: "the new key signs; the old one is still valid",
    KeyStage.WITHDRAWN: "the old key is withdrawn",
    KeyStage.STEADY: "done: only the new key is valid",
}

ServersArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SERVER]...", help="Default: all servers.", show_default=False),
]


@app.command("list")
def list_(
    servers: ServersArgument = None,
    *,
    run: RunOption = DEFAULT_RUN,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """List each server's key: its age, a rotation under way, and who accepts another key.

    A server of 'mqis up', or with --config one server and those of its monitoring.peers.
    """
    witnesses = witnesses_of_run(load_nodes(run)) if config is None else witnesses_of_config(config)
    found = held_keys(witnesses)
    chosen = {name.lower() for name in servers or ()}
    unknown = chosen - {held.server.lower() for held in found}
    if unknown:
        known = ", ".join(held.server for held in found)
        raise typer.BadParameter(f"{min(unknown)}: no such server; there are {known}")
    found = [held for held in found if not chosen or held.server.lower() in chosen]
    if json:
        print_json([_as_json(held) for held in found])
        return
    shown = table("server", "key", "signs since", "days", "rotation")
    for column in shown.columns[:4]:
        column.no_wrap = True
    for held in found:
        shown.add_row(*map(cell, _row(held)))
    console().print(shown)
    for held in found:
        if held.differing:
            say(f"{held.server}: {_differing(held.differing)}", "yellow")


def _row(held: HeldKey) -> tuple[str, ...]:
    own = held.own
    if own is None:
        return held.server, "?", "", "", held.problem
    since = moment(own.made, to_minute=True)
    days = str(int((time.time() - own.made) // 86400))
    stage = "" if own.stage == KeyStage.STEADY.value else own.stage
    return held.server, own.signs_with[:_SHORT_KEY], since, days, stage


def _differing(names: Sequence[str]) -> str:
    """The number of servers that accept something else than the key, and the first names."""
    accept = counted(len(names), "server accepts", "servers accept")
    return f"{accept} other keys: {some(names, _MOST_NAMES)}"


def _as_json(held: HeldKey) -> dict[str, object]:
    own = held.own
    return {
        "server": held.server,
        "key": None if own is None else own.signs_with,
        "since": None if own is None else own.made,
        "rotation": None if own is None or own.stage == KeyStage.STEADY.value else own.stage,
        "accepted_otherwise_by": list(held.differing),
        "problem": held.problem or None,
    }


@app.command()
def rotate(
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="[SERVER]",
            help="A server of 'mqis up'. Without it, the one of --config.",
            show_default=False,
        ),
    ] = None,
    *,
    run: RunOption = DEFAULT_RUN,
    config: ConfigOption = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="NAME",
            help="Do not wait for this server, which is down. May be repeated.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to wait for the others.")
    ] = 120.0,
    json: JsonOption = False,
) -> None:
    """Give a server a new signing key while all servers run.

    The new key is made known first, then it signs, then the old one is withdrawn; each step waits
    until every server has seen the one before. If one is down, the command ends with status 1 and
    says for whom it waits; both keys stay valid. Repeat it to continue. docs/keys.md has more.
    """
    if server is None and config is None:
        raise typer.BadParameter("name a SERVER of --run, or a configuration with --config")
    rotation = _of_run(run, server, without) if server else _of_config(config, without)
    with rotation:
        if rotation.begin() and not json:
            say(f"{rotation.server}: the rotation goes on: {_STAGES[rotation.ring.stage]}")
        progress = _followed(rotation, wait, quiet=json)
    if json:
        print_json(
            {
                "server": rotation.server,
                "done": progress.done,
                "stage": progress.stage.value,
                "key": rotation.ring.signing.key_id.hex()[:16],
                "waiting": dict(progress.waiting),
            }
        )
    elif not progress.done:
        say(
            f"{rotation.server}: {_STAGES[progress.stage]}; it waits for "
            f"{counted(len(progress.waiting), 'server')}:",
            "yellow",
        )
        for name, reason in progress.waiting.items():
            say(f"  {name}: {reason}")
        say("repeat the command when they are back, or leave one out with --without NAME")
    if not progress.done:
        raise typer.Exit(1)


def _of_run(run: Path, server: str, without: list[str] | None) -> KeyRotation:
    nodes = load_nodes(run)
    for name in without or ():
        nodes.named(name)
    place = nodes.named(server)
    return KeyRotation(Path(place.config), witnesses_of_run(nodes), without=without or ())


def _of_config(config: Path | None, without: list[str] | None) -> KeyRotation:
    assert config is not None
    loaded = load(config)
    own = server_name(loaded)
    witnesses: list[KeyWitness] = witnesses_of_config(config)
    required = [name for name in servers_in(loaded) if name.lower() != own.lower()]
    return KeyRotation(config, witnesses, without=without or (), required=required)


def _followed(rotation: KeyRotation, wait: float, *, quiet: bool) -> RotationProgress:
    """Makes the steps, and tells each; returns when it is done, or has waited in vain."""
    until = time.monotonic() + wait
    stage: KeyStage | None = None
    while True:
        progress = rotation.step()
        if progress.stage is not stage and not quiet:
            stage = progress.stage
            done = progress.done
            say(f"{rotation.server}: {_STAGES[stage]}", "green" if done else "")
        if progress.done or (time.monotonic() > until and not progress.stepped):
            return progress
        if not progress.stepped:
            time.sleep(_LOOK_S)
