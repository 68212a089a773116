"""``mqis backup`` and ``mqis restore``: a file with one server's store, configuration and keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.backup.backup_file import Archive
from mqis.admin.backup.collection import StoredBackup, backups_in, lost_keys, prune
from mqis.admin.backup.manifest import Manifest
from mqis.admin.backup.restoring_backup import RestorePlan, RestoreRequest, plan_restore
from mqis.admin.backup.restoring_backup import restore as put_back
from mqis.admin.backup.taking_backup import Taken, take_backup
from mqis.cli.failures import FAILED, described
from mqis.cli.options import ConfigOption, JsonOption, OptionalRunOption, run_here
from mqis.cli.output import cell, console, print_error, print_json, print_note, say, table
from mqis.config.file import DEFAULT_NAME, load
from mqis.config.nodes import Nodes, load_nodes, supervised_place
from mqis.enterprise.rotating import learn_keys
from mqis.texts import counted, minute, parse_moment, size
from mqis.wire.errors import MqisError


def backup(
    target: Annotated[
        str,  # a Path would forget the slash at the end
        typer.Argument(
            metavar="FILE|DIR",
            help="The file to write. In a directory, the file is named after server and time. A "
            "name that ends in / is a directory, which is made if it is missing.",
            show_default=False,
        ),
    ],
    *,
    run: OptionalRunOption = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            min=1,
            help="Then delete all but the newest N backups of each server in DIR.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only list the backups in DIR.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only read all backups in DIR; exit status 1 if one is damaged."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing backup.")] = False,
    config: ConfigOption = None,
    without_keys: Annotated[
        bool,
        typer.Option(
            "--without-keys",
            help="Leave out the signing key, the keytab, the accounts and the database password.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Back up one server while it runs, or all of 'mqis up': store, configuration, accounts and
    signing key.

    The copy is consistent. It is checked and read back before the file gets its final name. An
    earlier backup is replaced with --force only, another file never. Anyone who can read the backup
    can act as this server and log on as its users: keep its mode at 0600.

    A server of 'mqis up' that cannot be backed up is named, and the others are; the exit status
    then is 1.
    """
    if list_ or check:
        _list(Path(target), verify=check, json=json)
        return
    run = run or run_here(config)
    nodes = None if run is None else load_nodes(run)
    into_directory = Path(target).is_dir() or target.endswith("/")
    if (nodes is not None or keep is not None) and not into_directory:
        raise typer.BadParameter("with --run and --keep, name a directory: DIR/ makes it")
    take = partial(_take, target=target, secrets=not without_keys, force=force)
    left_out: dict[str, str] = {}
    if nodes is None:
        taken = [take(Path(DEFAULT_NAME) if config is None else config)]
    else:
        taken, left_out = _take_all(nodes, take)
    pruned = [] if keep is None or not taken else list(prune(Path(target), keep))
    if json:
        _print_taken(taken, pruned, None if nodes is None else left_out)
    else:
        _show_taken(taken, pruned)
    for server, reason in left_out.items():
        print_error(f"{server} is not backed up: {reason}")
    keyless = [one for one in taken if one.missing_key is not None]
    for one in keyless:
        print_error(
            f"{one.manifest.server}: its signing key {one.missing_key} is gone, so it is not in "
            "this backup: bring it back before the server stops, else the others refuse it; see "
            "docs/operations.md, 'A server with a new key'"
        )
    if left_out or keyless:
        raise typer.Exit(FAILED)


def _take(file: Path, *, target: str, secrets: bool, force: bool) -> Taken:
    return take_backup(load(file), target, file, secrets=secrets, force=force)


def _take_all(nodes: Nodes, take: Callable[[Path], Taken]) -> tuple[list[Taken], dict[str, str]]:
    """Backs up every server that can be; returns the others by name, with the reasons."""
    taken: list[Taken] = []
    left_out: dict[str, str] = {}
    for node in nodes:
        try:
            taken.append(take(Path(node.config)))
        except (MqisError, OSError) as error:
            left_out[node.name] = described(error)
    return taken, left_out


def _show_taken(taken: list[Taken], pruned: list[Path]) -> None:
    for one in taken:
        manifest = one.manifest
        objects = ", ".join(counted(n, kind) for kind, n in manifest.objects.items())
        say(f"wrote {one.path}: {manifest.server} of {manifest.enterprise}, {objects or 'empty'}")
    for path in pruned:
        say(f"deleted {path}")
    if taken:
        _tell_secrets(taken[0].manifest)


def _print_taken(taken: list[Taken], pruned: list[Path], left_out: dict[str, str] | None) -> None:
    """``left_out`` is None for the backup of one server."""
    facts = [
        {
            "file": str(one.path),
            "bytes": one.size,
            "missing_key": None if one.missing_key is None else str(one.missing_key),
            **one.manifest.to_json(),
        }
        for one in taken
    ]
    deleted = [str(path) for path in pruned]
    if left_out is None:
        print_json({**facts[0], "deleted": deleted})
    else:
        print_json({"backups": facts, "deleted": deleted, "left_out": left_out})


def _list(directory: Path, *, verify: bool, json: bool) -> None:
    found = backups_in(directory, verify=verify)
    damaged = [backup for backup in found if backup.fault]
    if json:
        print_json([_stored_as_json(backup) for backup in found])
    else:
        _print_stored(found)
        intact = "intact" if verify else "there"
        text = f"{counted(len(found) - len(damaged), 'backup')} {intact}"
        say(f"{text}, {len(damaged)} damaged" if damaged else text, "red" if damaged else "green")
        for newest, keyed in lost_keys(found):
            print_note(f"{newest.path.name} lacks the signing key, which {keyed.path.name} has")
    if damaged:
        raise typer.Exit(1)


def _print_stored(found: list[StoredBackup]) -> None:
    """Prints a line for each file, under its server; no name is broken, so it can be copied."""
    for title, backups in groupby(found, _owner):
        say(title, "bold")
        for backup in backups:
            taken = "" if backup.manifest is None else minute(parse_moment(backup.manifest.created))
            say(f"  {taken:16}  {size(backup.size):>9}  {backup.path.name}")
            if backup.fault:
                say(f"    {backup.fault}", "red")


def _owner(backup: StoredBackup) -> str:
    manifest = backup.manifest
    return "unknown server" if manifest is None else f"{manifest.server} ({manifest.role})"


def _stored_as_json(backup: StoredBackup) -> dict[str, object]:
    manifest = {} if backup.manifest is None else backup.manifest.to_json()
    return {
        "file": str(backup.path),
        "bytes": backup.size,
        "fault": backup.fault or None,
        "signing_key": backup.has_key,
        **manifest,
    }


def restore(
    file: Annotated[
        Path, typer.Argument(help="A file that 'mqis backup' wrote.", show_default=False)
    ],
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Where to write the configuration; it names the places of the other files. "
            "Default: that of the server in --run, else ./mqis.toml.",
            show_default=False,
        ),
    ] = None,
    run: OptionalRunOption = None,
    store_only: Annotated[
        bool,
        typer.Option(
            "--store-only", help="Restore the store only, and keep the present configuration."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Move existing files aside; none is deleted.")
    ] = False,
    allow_outside: Annotated[
        bool,
        typer.Option(
            "--allow-outside",
            help="Accept a backed-up configuration that names files outside its own directory.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify the backup and show what would be done.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Restore a stopped server from a backup: all of it or nothing.

    The store is marked as restored. 'mqis serve' then compares it with the other servers before it
    accepts changes, and removes the mark when it has caught up.
    """
    place = _place_of(file, config, run)
    plan = plan_restore(file, RestoreRequest(place, store_only, force, allow_outside))
    learned: list[str] = []
    if not dry_run:
        put_back(plan)
        found = supervised_place(place)
        learned = [] if found is None else learn_keys(found[1], load_nodes(found[0]))
    if json:
        print_json({**_as_json(plan, done=not dry_run), "learned_keys": learned})
        return
    _show(plan, done=not dry_run)
    if learned:
        say(f"it trusts the keys that {', '.join(learned)} got after the backup was taken")


def _place_of(file: Path, config: Path | None, run: Path | None) -> Path:
    """The configuration to restore; in a run directory it is the one of the backup's server."""
    if config is not None and run is not None:
        raise typer.BadParameter("--config and --run exclude each other")
    run = run or run_here(config)
    if run is not None:
        return Path(load_nodes(run).named(Archive(file).manifest.server).config)
    return Path(DEFAULT_NAME) if config is None else config


def _as_json(plan: RestorePlan, *, done: bool) -> dict[str, object]:
    return {
        "done": done,
        "files": {content.value: str(path) for content, path in plan.files.items()},
        "kept": None if plan.kept is None else str(plan.kept),
        "kept_key": None if plan.kept_key is None else str(plan.kept_key),
        "moved": {str(path): str(plan.aside(path)) for path in plan.occupied},
        "next": _next(plan),
        **plan.manifest.to_json(),
    }


def _show(plan: RestorePlan, *, done: bool) -> None:
    manifest = plan.manifest
    say(f"{plan.archive.path}: intact; {manifest.server} of {manifest.enterprise}, {manifest.role}")
    say(f"taken {manifest.created} by mqis {manifest.mqis}")
    shown = table("partition", "authority", "last", "purged")
    for entry in manifest.partitions:
        owner = "this server" if entry.authority else entry.owner
        shown.add_row(cell(entry.name), cell(owner), cell(entry.last_seq), cell(entry.purged_seq))
    console().print(shown)
    for path in plan.occupied:
        say(f"{'moved' if done else 'moves'} {path} to {plan.aside(path)}")
    for content, path in plan.files.items():
        say(f"{'wrote' if done else 'writes'} {path} ({content.value})")
    if plan.kept is not None:
        say(f"{'kept' if done else 'keeps'} {plan.kept}, which all servers of 'mqis up' share")
    if plan.kept_key is not None:
        say(f"{'kept' if done else 'keeps'} {plan.kept_key}, which the other servers know")
    _tell_secrets(manifest)
    say(("next: " if done else "then: ") + _next(plan), "bold")


def _next(plan: RestorePlan) -> str:
    manifest = plan.manifest
    text = f"mqis serve --config {plan.request.config}"
    if plan.place is not None:
        text = f"mqis start {plan.place.name}"
    if manifest.role == "none":
        return text
    if not manifest.is_authority:
        return f"{text}; it gets newer changes from its PSC"
    text += "; it asks the other servers first, and accepts no changes until they have answered"
    key = Path(plan.config.replication.key)
    if "signing.key" not in manifest.secrets and not key.exists():
        again = "docs/operations.md, 'A server with a new key'"
        text = f"bring {key} back, or see {again}; then {text}"
    return text


def _tell_secrets(manifest: Manifest) -> None:
    if manifest.secrets:
        say(
            f"it holds secrets ({', '.join(manifest.secrets)}): anyone who can read it can act as "
            "this server and log on as its users"
        )
