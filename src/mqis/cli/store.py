"""``mqis store``: checks a store."""

from __future__ import annotations

import typer

from mqis.cli.options import ConfigOption, JsonOption, StoreOption, opened, store_url
from mqis.cli.output import counted, print_json, say
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.ports import Store

app = typer.Typer(help="Check a store.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Makes ``store`` a group: without a callback, typer would make it a single command."""


@app.command()
def check(store: StoreOption = None, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Check a store for damage. Exit status 1 if there is any."""
    with opened(store_url(store, config)) as checked:
        faults = checked.check()
        counts = {} if faults else counts_of(checked)
    if json:
        print_json({"ok": not faults, "counts": counts, "faults": faults})
    elif faults:
        for fault in faults:
            say(fault, "red")
        say(counted(len(faults), "fault"), "bold red")
    else:
        summary = ", ".join(counted(number, label) for label, number in counts.items() if number)
        say(f"ok: {summary or 'empty'}", "green")
    if faults:
        raise typer.Exit(1)


def counts_of(store: Store) -> dict[str, int]:
    """The numbers of objects by type, and of partitions."""
    with store.read() as view:
        counts = {kind.label: view.count(kind) for kind in ORDER}
        return counts | {"partition": len(view.partitions())}
