"""The ``mqis`` command: its parts, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from mqis import __version__
from mqis.cli import (
    account,
    change,
    decode,
    init,
    query,
    security,
    serve,
    servers,
    store,
    tour,
    transfer,
)
from mqis.cli.output import print_error
from mqis.wire.errors import MqisError

app = typer.Typer(
    name="mqis",
    help="The MSMQ directory enterprise: directory, replication, discovery, routing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("init")(init.init)
app.command("tour")(tour.tour)
app.command("get")(query.get)
app.command("lookup")(query.lookup)
app.command("create")(change.create)
app.command("set")(change.set_)
app.command("delete")(change.delete)
app.command("security")(security.security)
app.command("servers")(servers.servers)
app.command("serve")(serve.serve)
app.command("import")(transfer.import_)
app.command("export")(transfer.export)
app.add_typer(store.app, name="store")
app.add_typer(account.account_app, name="account")
app.command("decode")(decode.decode)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mqis {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run, and turn every expected error into one line and a status."""
    try:
        _run()
    except BrokenPipeError:  # who read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MqisError as error:
        print_error(str(error))
        sys.exit(1)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
