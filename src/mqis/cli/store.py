"""``mqis store``: looking after a store."""

from __future__ import annotations

import typer

from mqis.cli.options import ConfigOption, JsonOption, StoreOption, opened, store_url
from mqis.cli.output import cell, console, print_json
from mqis.protocol.directory.export import ORDER
from mqis.protocol.ports import Store

app = typer.Typer(help="Look after a store.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Typer makes a group of one command only where there is a callback."""


@app.command()
def check(
    store: StoreOption = None, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """Look for damage. Exit status 1 if there is any."""
    with opened(store_url(store, config)) as checked:
        faults = checked.check()
        counts = {} if faults else counts_of(checked)
    if json:
        print_json({"ok": not faults, "objects": counts, "faults": faults})
    elif faults:
        for fault in faults:
            console().print(cell(fault, "red"))
        console().print(f"{len(faults)} faults", style="bold red")
    else:
        counted = ", ".join(f"{count} {label}" for label, count in counts.items() if count)
        console().print(f"[green]ok[/]: {counted or 'empty'}")
    if faults:
        raise typer.Exit(1)


def counts_of(store: Store) -> dict[str, int]:
    """How many objects of each type there are, and partitions."""
    with store.read() as view:
        counts = {kind.label: view.count(kind) for kind in ORDER}
        return counts | {"partition": len(view.partitions())}
