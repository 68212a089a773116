"""``mqis store``: checks and upgrades a store."""

from __future__ import annotations

import typer

from mqis.cli.findings import show_faults
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, claimed, opened, store_url
from mqis.cli.output import print_json, say
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.ports import Store
from mqis.storage.schema import VERSION
from mqis.texts import counted

app = typer.Typer(help="Check or upgrade a store.", no_args_is_help=True)


@app.command()
def check(store: StoreOption = None, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Check a store for damage; changes nothing. Exit status 1 if there is any."""
    with opened(store_url(store, config)) as checked:
        faults = checked.check()
        counts = {} if faults else counts_of(checked)
    if json:
        print_json({"ok": not faults, "counts": counts, "faults": faults})
    elif faults:
        show_faults(faults)
    else:
        summary = ", ".join(counted(number, label) for label, number in counts.items() if number)
        say(f"ok: {summary or 'empty'}", "green")
    if faults:
        raise typer.Exit(1)


@app.command()
def upgrade(
    store: StoreOption = None, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """Upgrade a store of an earlier version, which commands that read refuse.

    An earlier mqis cannot open it afterwards: make a backup first. 'mqis serve' upgrades its store
    too.
    """
    with claimed(store_url(store, config)):
        pass
    if json:
        print_json({"schema": VERSION})
    else:
        say(f"the store has schema version {VERSION}", "green")


def counts_of(store: Store) -> dict[str, int]:
    """The numbers of objects by type, and of partitions."""
    with store.read() as view:
        counts = {kind.label: view.count(kind) for kind in ORDER}
        return counts | {"partition": len(view.partitions())}
