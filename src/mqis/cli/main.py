"""The ``mqis`` command: its subcommands, and the handling of errors."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mqis import __version__
from mqis.cli.output import print_error
from mqis.wire.errors import MqisError

#: Commands in the order of the help, and the functions that run them. A command is imported when it
#: is used: the modules that talk to servers take longer to load than many commands take to run.
_COMMANDS = {
    "init": "mqis.cli.init:init",
    "tour": "mqis.cli.tour.command:tour",
    "up": "mqis.cli.up:up",
    "down": "mqis.cli.control:down",
    "status": "mqis.cli.status:status",
    "logs": "mqis.cli.logs:logs",
    "trace": "mqis.cli.trace:trace",
    "stop": "mqis.cli.control:stop",
    "start": "mqis.cli.control:start",
    "kill": "mqis.cli.control:kill",
    "where": "mqis.cli.control:where",
    "serve": "mqis.cli.serve:serve",
    "join": "mqis.cli.join:join",
    "discover": "mqis.cli.discover:discover",
    "get": "mqis.cli.query:get",
    "lookup": "mqis.cli.query:lookup",
    "create": "mqis.cli.change:create",
    "set": "mqis.cli.change:set_",
    "delete": "mqis.cli.change:delete",
    "security": "mqis.cli.security:security",
    "servers": "mqis.cli.servers:servers",
    "route": "mqis.cli.route:route",
    "map": "mqis.cli.map:map_",
    "send": "mqis.cli.send:send",
    "import": "mqis.cli.transfer:import_",
    "export": "mqis.cli.transfer:export",
    "backup": "mqis.cli.backup:backup",
    "restore": "mqis.cli.backup:restore",
    "promote": "mqis.cli.promote:promote",
    "doctor": "mqis.cli.doctor:doctor",
    "store": "mqis.cli.store:app",
    "console": "mqis.cli.console:console",
    "account": "mqis.cli.account:account_app",
    "oletx": "mqis.cli.oletx:app",
    "journal": "mqis.cli.journal:app",
    "decode": "mqis.cli.decode:decode",
    "capture": "mqis.cli.capture:capture",
    "generate": "mqis.cli.generate:generate",
    "pipeline": "mqis.cli.pipeline:app",
    "sim": "mqis.cli.sim:sim",
}


class _Commands(TyperGroup):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            for name in _COMMANDS:  # so that a similar name can be suggested
                self.commands.setdefault(name, self)
            return None
        found = _load(_COMMANDS[cmd_name])
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(cmd_name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command


def _load(place: str) -> Any:
    """Imports a function. What modules define stays, so searching it for garbage is time lost."""
    module, _, attribute = place.partition(":")
    gc.disable()
    try:
        return getattr(import_module(module), attribute)
    finally:
        gc.freeze()
        gc.enable()


app = typer.Typer(
    name="mqis",
    cls=_Commands,
    help="The MSMQ directory enterprise: directory, replication, discovery, routing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


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
    """Runs the command, and turns every expected error into one line and an exit status."""
    try:
        _run()
    except BrokenPipeError:  # the reader of our output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MqisError as error:
        print_error(str(error))
        sys.exit(1)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # for characters that the encoding lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
